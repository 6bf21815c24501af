"""Timestamps, as the API server writes them."""

from datetime import UTC, datetime


def parse_time(text: str) -> datetime:
    """A timestamp of the API server."""
    return datetime.fromisoformat(text).astimezone(UTC)


def format_time(time: datetime) -> str:
    """A timestamp as the API server writes it, in whole seconds."""
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def format_micro_time(time: datetime) -> str:
    """A timestamp as the API server wants those of Leases, in microseconds."""
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
