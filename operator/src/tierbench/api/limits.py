"""What measured numbers may be asked to keep to."""

from pydantic import Field

from tierbench.api.model import Model, Size


class Limits(Model):
    """Each holds at every level that it is asked of."""

    maximum_mean_milliseconds: int | None = Field(
        default=None, ge=1, le=86400000, description="Of the mean time that the kind is read by."
    )
    maximum_p99_milliseconds: int | None = Field(
        default=None,
        ge=1,
        le=86400000,
        description="Of the 99th percentile of that time, judged by its 95 % interval: kept to, broken, or not known.",
    )
    minimum_bytes_per_second: Size | None = Field(default=None, description="Of the mean throughput.")
    minimum_messages_per_second: int | None = Field(default=None, ge=1, le=10**9, description="Of it, in messages.")
    maximum_retries: int | None = Field(
        default=None,
        ge=0,
        le=10**9,
        description="Retries a trial, on average over the counted trials of a level; 0: none at all.",
    )
