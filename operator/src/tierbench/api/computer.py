"""The state of a computer while it was measured, or measured: what explains numbers that its kind does not."""

from typing import Annotated

from pydantic import Field

from tierbench.api.model import Model

Word = Annotated[str, Field(min_length=1, max_length=63)]
Whole = Annotated[int, Field(ge=0, json_schema_extra={"format": "int64"})]


class Computer(Model):
    """A computer during a trial. Absent fields are what its kernel does not tell."""

    cpu_frequency_kilohertz: Whole | None = Field(
        default=None, description="Mean frequency of its processors as the load ended."
    )
    cpu_maximum_kilohertz: Whole | None = Field(default=None, description="Mean of the highest that they can have.")
    cpu_governor: Word | None = Field(default=None, description="Who sets their frequency, as the kernel names it.")
    power_mode: Word | None = Field(default=None, description="The power mode of a Jetson, as nvpmodel names it.")
    temperature_millidegrees: Whole | None = Field(
        default=None, description="Of its hottest thermal zone as the load ended, in thousandths of a degree Celsius."
    )
    thermal_throttles: Whole | None = Field(
        default=None, description="How often processors were slowed for their heat during the trial, each counted."
    )
    quota_throttled_nanoseconds: Whole | None = Field(
        default=None, description="How long a quota of CPU held the process back in the trial, added up over CPUs."
    )
    interface: Word | None = Field(default=None, description="The network interface that the load went through.")
    mtu_bytes: Whole | None = Field(default=None, description="Its MTU.")
    congestion_control: Word | None = Field(default=None, description="Of its TCP connections, as the kernel names it.")
