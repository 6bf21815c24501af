"""When a benchmark runs, how long it is kept, and what its runs are held to."""

from typing import Annotated, Final

from pydantic import Field

from tierbench.api.limits import Limits
from tierbench.api.model import Model, Rule, matching, rules

_CRON_FIELD: Final = r"[0-9A-Za-z*?/,#-]+"
_SCHEDULE = matching(
    rf"^{_CRON_FIELD}( {_CRON_FIELD}){{4}}$",
    "is not a cron schedule: write minute, hour, day of the month, month and day of the week, as in 30 3 * * 1",
)
_TIME_ZONE = matching(
    r"^[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*$",
    "is not the name of a time zone: write one of the IANA database, as in Europe/Berlin, or UTC",
)
MAXIMUM_HISTORY: Final = 50
MAXIMUM_REFINED: Final = 128
REFINABLE: Final = frozenset({"fileSize", "payloadSize"})
"""The factors of which a run may take levels in between."""
ZONE_OF_SCHEDULE: Final = Rule("!has(self.timeZone) || has(self.schedule)", "timeZone goes with schedule: give both")


class Refine(Model):
    """How closely it is measured where another server class comes ahead."""

    within_percent: int = Field(
        default=25,
        ge=1,
        le=1000,
        description="Between two sizes that are further apart than this, their middle is measured, too.",
    )
    maximum_cases: int = Field(
        default=MAXIMUM_REFINED // 2, ge=2, le=MAXIMUM_REFINED, description="Cases that a run may get by it."
    )


class RunPolicy(Model):
    """When the benchmark runs, and what its runs are held to. The one part of a spec that can change."""

    suspend: bool = Field(
        default=False, description="True stops after what is measured already; false goes on with the next trial."
    )
    rerun: str | None = Field(
        default=None, max_length=63, description="A new value starts a new run once the one under way has ended."
    )
    schedule: Annotated[str, Field(min_length=9, max_length=128, json_schema_extra=rules(_SCHEDULE))] | None = Field(
        default=None,
        description="Starts further runs, in cron's five fields; the first starts at once. A time at which a run is "
        "under way is passed over; of those missed while the operator was away, one is made up for.",
    )
    time_zone: Annotated[str, Field(min_length=1, max_length=64, json_schema_extra=rules(_TIME_ZONE))] | None = Field(
        default=None, description="Of the schedule, as the IANA database names it; UTC if there is none."
    )
    history: int = Field(
        default=5, ge=1, le=MAXIMUM_HISTORY, description="How many runs are kept, the newest included."
    )
    baseline_run: int | None = Field(
        default=None,
        ge=1,
        le=2**31 - 1,
        description="A run that is kept, and that every later one is compared with, beside the one before it.",
    )
    tolerance_percent: int = Field(
        default=5, ge=0, le=1000, description="How much worse a run may be before the benchmark is Regressed."
    )
    constraints: Limits = Field(
        default=Limits(), description="What every case must keep to: then the benchmark has Passed, else not."
    )
    refine: Refine | None = Field(
        default=None,
        description="Once all is measured, measures between the sizes where another server class comes ahead, again "
        "and again at the middle, until it is known as closely as asked. Of sizes of files and payloads; write {} for "
        "within 25 %.",
    )
    ttl_seconds: int | None = Field(
        default=None,
        ge=600,
        le=31536000,
        description="The benchmark and its results are deleted this long after it ended. "
        "At least 600, or no scrape would ever see the results.",
    )
