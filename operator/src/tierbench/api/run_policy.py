"""How and when a benchmark runs: order, passes, timeouts, trimming, schedule, and the constraints on its results."""

from enum import StrEnum
from typing import Annotated, Final

from pydantic import Field

from tierbench.api.model import Model, Rule, matching, rules
from tierbench.api.quantity import Size

_CRON_FIELD: Final = r"[0-9A-Za-z*?/,#-]+"
_SCHEDULE = matching(
    rf"^{_CRON_FIELD}( {_CRON_FIELD}){{4}}$",
    "is not a cron schedule: write minute, hour, day of the month, month and day of the week, as in 30 3 * * 1",
)
_TIME_ZONE = matching(
    r"^[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*$",
    "is not the name of a time zone: write one of the IANA database, as in Europe/Berlin, or UTC",
)
MAXIMUM_CASES: Final = 1000
MAXIMUM_HISTORY: Final = 50
MAXIMUM_REFINED: Final = 128
REFINABLE: Final = frozenset({"fileSize", "payloadSize"})
"""The factors of which a run may take levels in between."""
ZONE_OF_SCHEDULE: Final = Rule("!has(self.timeZone) || has(self.schedule)", "timeZone goes with schedule: give both")


class OrderType(StrEnum):
    """In which order cases run."""

    SEQUENTIAL = "Sequential"
    RANDOM = "Random"


class Order(Model):
    """In which order levels are measured; within each the trials of the servers alternate, in random order. Servers
    that cannot be up at once take turns in whole passes."""

    type: OrderType = Field(
        default=OrderType.SEQUENTIAL,
        description="Sequential as the spec lists them; Random shuffles them, and servers that are not up at once.",
    )
    seed: int = Field(
        default=0,
        ge=0,
        le=2**31 - 1,
        description="Of both orders: one seed gives one order of levels, and one of servers in each repetition.",
    )
    passes: int = Field(
        default=2,
        ge=1,
        le=10,
        description="Where servers cannot be up at once, the repetitions are shared among so many passes over them, "
        "forwards and backwards in turn: with an even number a steady drift falls on all alike. Each pass sets every "
        "server up anew.",
    )


def shares(trials: int, passes: int) -> tuple[range, ...]:
    """The numbers of the trials of each pass, one after the other; none has more than the first."""
    bounds = [-(-trials * number // passes) + 1 for number in range(passes + 1)]
    return tuple(map(range, bounds, bounds[1:]))


class Timeouts(Model):
    """How long a step may take before its cases are marked failed."""

    scheduling_seconds: int = Field(
        default=60, ge=5, le=3600, description="Until nodes of a class are found and a pod has its node."
    )
    node_not_ready_seconds: int = Field(
        default=120,
        ge=5,
        le=3600,
        description="That a node in use may be NotReady, as after an outage of the API server, before it is given up.",
    )
    server_ready_seconds: int = Field(
        default=1800, ge=10, le=86400, description="Until the server is ready, the preparation of its data included."
    )
    trial_seconds: int = Field(
        default=1800,
        ge=1,
        le=86400,
        description="A trial. Of file transfers each one: it has failed when it takes longer, and the next one is run. "
        "Of other kinds on average over those of a case.",
    )


Repetitions = Annotated[
    int,
    Field(ge=1, le=30, description="Trials of each case that count. From 10 on, intervals mean something."),
]


Warmup = Annotated[int, Field(ge=0, le=5, description="Trials before them that are run, shown and never counted.")]


class TrimBy(StrEnum):
    """Whose lowest and highest are left out."""

    TOTAL = "Total"
    CLIENT = "Client"


class Trim(Model):
    """How many of the good trials of a case are left out of its statistics, by what the kind is read by first."""

    lowest: int = Field(default=0, ge=0, le=10, description="The lowest so many.")
    highest: int = Field(default=0, ge=0, le=10, description="The highest so many.")
    by: TrimBy = Field(
        default=TrimBy.TOTAL,
        description="Total: trials are left out of everything, by what all clients had together. Client: of each of "
        "several clients that measure at once its own lowest and highest are left out of its rate alone.",
    )


FITTING_TRIM: Final = Rule(
    "self.trim.lowest + self.trim.highest < self.repetitions",
    "trim leaves no trial: raise repetitions above trim.lowest and trim.highest together",
)
TRIM_BY_CLIENT: Final = Rule(
    "self.trim.by != 'Client' || self.clients.together.all(t, t == 'AllAtOnce')",
    "trim.by: Client is of clients that measure at once: write clients.together: [AllAtOnce], or take trim.by out",
)


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


class Constraints(Model):
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
    constraints: Constraints = Field(
        default=Constraints(), description="What every case must keep to: then the benchmark has Passed, else not."
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
