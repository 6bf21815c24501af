"""Who gets what of a server's Secret: only what it needs."""

from collections.abc import Sequence
from typing import Any, Final

from tierbench.workloads.workload import ServerSite

CREDENTIALS: Final = "/credentials"
CREDENTIALS_MOUNT: Final = {"name": "credentials", "mountPath": CREDENTIALS, "readOnly": True}

# Keys of a Secret.
TOKEN: Final = "agent-token"  # noqa: S105 (the name of one)
KEY: Final = "agent-key"
PIN: Final = "agent-pin"
CERTIFICATE: Final = ("tls.crt", "tls.key")


def secret_items(secret: str, *keys: str) -> dict[str, Any]:
    """Some keys of a Secret, as files of their names, for a projected volume."""
    return {"secret": {"name": secret, "items": _items(keys)}}


def secret_volume(name: str, site: ServerSite, keys: Sequence[str]) -> dict[str, Any]:
    """Some keys of a server's Secret, for its pod."""
    return {"name": name, "secret": {"secretName": site.attached, "items": _items(keys), "defaultMode": 0o440}}


def credentials_volumes(site: ServerSite, keys: Sequence[str]) -> tuple[dict[str, Any], ...]:
    """Those that the server itself needs, if it needs any."""
    return (secret_volume("credentials", site, keys),) if keys else ()


def credentials_mounts(keys: Sequence[str]) -> tuple[dict[str, Any], ...]:
    """The same for its container."""
    return (CREDENTIALS_MOUNT,) if keys else ()


def _items(keys: Sequence[str]) -> list[dict[str, str]]:
    return [{"key": key, "path": key} for key in keys]
