"""How and when a benchmark runs: order, passes, timeouts, preflight, trimming, schedule, and constraints on results."""

from enum import StrEnum
from typing import Annotated, Final

from pydantic import Field

from tierbench.api.measurements import MAXIMUM_PAIRS
from tierbench.api.model import Model, Rule, matching, rules
from tierbench.api.quantity import Size

_CRON_FIELD: Final = r"[0-9A-Za-z*?/,#-]+"
_SCHEDULE = matching(
    rf"^{_CRON_FIELD}( {_CRON_FIELD}){{4}}$",
    "is not a cron schedule: write minute, hour, day of the month, month and day of the week, as in 30 3 * * 1",
)
_TIME_ZONE = matching(
    r"^[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*$",
    "is not the name of a time zone: write a name from the IANA database, as in Europe/Berlin, or UTC",
)
MAXIMUM_CASES: Final = 1000
MAXIMUM_REPETITIONS: Final = 30
MAXIMUM_HISTORY: Final = 50
MAXIMUM_REFINED: Final = 128
TIME_ZONE_NEEDS_SCHEDULE: Final = Rule("!has(self.timeZone) || has(self.schedule)", "timeZone needs schedule: set both")


class OrderType(StrEnum):
    """The order in which levels are measured."""

    SEQUENTIAL = "Sequential"
    RANDOM = "Random"


class Order(Model):
    """The order in which levels are measured.

    Within a level, trials alternate between servers in random order. Servers that cannot be up at the same time are
    measured in turn, in whole passes.
    """

    type: OrderType = Field(
        default=OrderType.SEQUENTIAL,
        description="Sequential: in the order of the case numbers, in which sizes and numbers ascend. Random: levels "
        "are shuffled, and so are servers that cannot be up at the same time.",
    )
    seed: int = Field(
        default=0,
        ge=0,
        le=2**31 - 1,
        description="Seed of both random orders: that of the levels, and that of the servers within each repetition.",
    )
    passes: int = Field(
        default=2,
        ge=1,
        le=10,
        description="Number of passes over servers that cannot be up at the same time. The repetitions are shared "
        "among the passes, and every other pass runs backwards. With an even number, a steady drift affects all "
        "servers alike. Each pass deploys every server again.",
    )


def trials_of_passes(trials: int, passes: int) -> tuple[range, ...]:
    """Returns the numbers of the trials of each pass. No pass has more than the first."""
    bounds = [-(-trials * number // passes) + 1 for number in range(passes + 1)]
    return tuple(map(range, bounds, bounds[1:]))


class Timeouts(Model):
    """The time that a step can take before its cases fail."""

    scheduling_seconds: int = Field(
        default=60, ge=5, le=3600, description="Time to find nodes of a class, and to schedule a pod."
    )
    node_not_ready_seconds: int = Field(
        default=120,
        ge=5,
        le=3600,
        description="Time for which a node in use can be NotReady, as after an outage of the API server, before its "
        "cases fail.",
    )
    server_ready_seconds: int = Field(
        default=1800,
        ge=10,
        le=86400,
        description="Time until a server is ready, including the preparation of its data.",
    )
    trial_seconds: int = Field(
        default=1800,
        ge=1,
        le=86400,
        description="Time per trial. A file transfer that takes longer fails, and the next trial starts. For other "
        "kinds it is the mean over the trials of a case.",
    )


Repetitions = Annotated[
    int,
    Field(
        ge=1,
        le=MAXIMUM_REPETITIONS,
        description="Number of trials per case that count. Use at least 10 for useful confidence intervals.",
    ),
]


WarmupTrials = Annotated[
    int, Field(ge=0, le=5, description="Number of trials before these. They are shown, and no statistic contains them.")
]


class Ping(Model):
    """Echo requests before the load of each trial, while the network is idle."""

    count: int = Field(default=10, ge=0, le=1000, description="Number of requests. 0 means none.")
    interval_milliseconds: int = Field(default=200, ge=2, le=60000, description="Time between two requests.")
    size: int = Field(default=56, ge=16, le=65000, description="Bytes of payload per request, as ping counts them.")


class Preflight(Model):
    """The measurement of the network between two nodes before the first case."""

    duration_seconds: int = Field(default=3, ge=1, le=60, description="Duration of the load of TCP in each direction.")
    ping: Ping = Field(default=Ping(), description="Echo requests before the load.")


class TrimScope(StrEnum):
    """The scope of the trials that are left out."""

    TOTAL = "Total"
    CLIENT = "Client"


class Trim(Model):
    """The number of good trials of a case that are left out of its statistics, by the main quantity of the kind."""

    lowest: int = Field(default=0, ge=0, le=10, description="Number of lowest trials to leave out.")
    highest: int = Field(default=0, ge=0, le=10, description="Number of highest trials to leave out.")
    scope: TrimScope = Field(
        default=TrimScope.TOTAL,
        description="Total: leaves trials out of all statistics, by the total of all clients. Client: leaves out the "
        "lowest and highest trials of each client that measures at the same time, of its own rate only.",
    )


class Refine(Model):
    """The precision with which a run measures where another server class takes the lead."""

    within_percent: int = Field(
        default=25,
        ge=1,
        le=1000,
        description="The difference of two sizes above which the middle is measured.",
    )
    max_cases: int = Field(
        default=MAXIMUM_REFINED // 2,
        ge=2,
        le=MAXIMUM_REFINED,
        description="Maximum number of cases that are added to a run.",
    )


class Constraints(Model):
    """Criteria for the measured numbers. Each one applies to every level."""

    max_mean_milliseconds: int | None = Field(
        default=None,
        ge=1,
        le=86400000,
        description="Maximum mean time: of a transfer, a round trip or an echo request.",
    )
    max_p99_milliseconds: int | None = Field(
        default=None,
        ge=1,
        le=86400000,
        description="Maximum 99th percentile of this time, judged by its 95% confidence interval: met, not met, or "
        "inconclusive.",
    )
    min_bytes_per_second: Size | None = Field(default=None, description="Minimum mean throughput.")
    min_messages_per_second: int | None = Field(
        default=None, ge=1, le=10**9, description="Minimum mean throughput in messages."
    )
    max_retries: int | None = Field(
        default=None,
        ge=0,
        le=10**9,
        description="Maximum number of retries per trial, as the mean over the counted trials of a level. 0 allows "
        "none.",
    )


class RunPolicy(Model):
    """Schedule, retention and pass criteria. Its changes do not affect what a run measures."""

    suspend: bool = Field(
        default=False,
        description="True stops the run and keeps what was measured. False continues it with the next trial.",
    )
    rerun: str | None = Field(
        default=None, max_length=63, description="A new value starts a new run after the current one."
    )
    schedule: Annotated[str, Field(min_length=9, max_length=128, json_schema_extra=rules(_SCHEDULE))] | None = Field(
        default=None,
        description="Starts further runs, in cron's five fields. The first run starts at once. A time during a run is "
        "skipped. If the operator misses several times, it makes up for one.",
    )
    time_zone: Annotated[str, Field(min_length=1, max_length=64, json_schema_extra=rules(_TIME_ZONE))] | None = Field(
        default=None, description="Time zone of the schedule from the IANA database. The default is UTC."
    )
    history_limit: int = Field(
        default=5, ge=1, le=MAXIMUM_HISTORY, description="Number of runs to keep, including the newest."
    )
    baseline_run: int | None = Field(
        default=None,
        ge=1,
        le=2**31 - 1,
        description="Number of a run that is kept. Every later run is compared with it, in addition to the run before.",
    )
    tolerance_percent: int = Field(
        default=5,
        ge=0,
        le=1000,
        description="The difference by which a run can be worse than the one it is compared with before the benchmark "
        "is Regressed.",
    )
    constraints: Constraints = Field(
        default=Constraints(),
        description="Criteria that every case must meet. The condition Passed says whether they do.",
    )
    refine: Refine | None = Field(
        default=None,
        description="After all cases, measures further sizes of files or payloads where another server class takes the "
        "lead. Each step measures the middle, until the crossover is known within withinPercent. {} means within 25%.",
    )
    ttl_seconds_after_finished: int | None = Field(
        default=None,
        ge=600,
        le=31536000,
        description="Deletes the benchmark and its results this long after it ended. The minimum of 600 lets "
        "Prometheus scrape the results.",
    )


SERVER_NODES: Final = "(has(self.servers) ? size(self.servers.nodeClassNames) * self.servers.nodesPerClass : 0)"
"""The CEL expression for the number of nodes that host the service."""


def refine_rule(sizes: str) -> Rule:
    """Returns the rule that a spec with runPolicy.refine has at least two of `sizes` and two server classes."""
    return Rule(
        "!has(self.runPolicy) || !has(self.runPolicy.refine)"
        f" || has(self.{sizes}) && size(self.{sizes}) > 1"
        " && has(self.servers) && size(self.servers.nodeClassNames) > 1",
        f"runPolicy.refine measures between sizes where another server class takes the lead: name at least two {sizes} "
        "and two servers.nodeClassNames",
    )


def matrix_rule(cases: str) -> Rule:
    """Returns the rule that a spec has at most MAXIMUM_CASES cases. `cases` is the CEL expression for their number."""
    help_text = "remove levels, or make several benchmarks"
    return Rule(
        f"{cases} <= {MAXIMUM_CASES}",
        f"the matrix has more than {MAXIMUM_CASES} cases: {help_text}",
        f"'the matrix has %d cases, at most {MAXIMUM_CASES} are allowed: {help_text}'.format([{cases}])",
    )


def preflight_rule(clients: str) -> Rule:
    """Returns the rule that the pairs of a preflight fit into the status.

    `clients` is the CEL expression for the number of nodes that use each server.
    """
    return Rule(
        f"!has(self.preflight) || {SERVER_NODES} * ({clients}) <= {MAXIMUM_PAIRS}",
        f"preflight would measure between more than {MAXIMUM_PAIRS} pairs of nodes: remove it, or name fewer classes",
    )
