"""PlacementAdvice: on which class of node, and with which settings, should a service run, by the results there are?"""

from collections.abc import Callable
from enum import StrEnum
from typing import Annotated, ClassVar, Final

from pydantic import Field, JsonValue, ValidationError, field_validator

from tierbench.api.advice_answer import PlacementAdviceStatus
from tierbench.api.benchmark import Delivery
from tierbench.api.model import ClassName, Column, Kind, Model, Resource, Rule, rules
from tierbench.api.quantity import MOST_SIZES, Size
from tierbench.api.result import Level
from tierbench.api.run_policy import Constraints

_SET: Final[dict[str, JsonValue]] = {"x-kubernetes-list-type": "set"}


class Dimension(StrEnum):
    """What can be chosen. Sizes, contents and rates are the workload's, and what a client is like is its own."""

    NODE_CLASS = "nodeClass"
    BROKER = "broker"
    IMAGE = "image"
    CODEC = "codec"
    COMPRESSION = "compression"
    ENCRYPTION = "encryption"
    TLS = "tls"
    DELIVERY = "delivery"
    PROTOCOL = "protocol"
    ACCESS = "access"
    STORAGE = "storage"
    PAIRS = "pairs"
    CONCURRENCY = "concurrency"
    STREAMS = "streams"
    PARTITIONS = "partitions"
    LINGER = "lingerMilliseconds"
    BATCH_SIZE = "batchSize"


class ObjectiveType(StrEnum):
    """What makes an alternative the best one."""

    MEAN_TIME = "MeanTime"
    PERCENTILE = "Percentile"
    THROUGHPUT = "Throughput"
    RETRIES = "Retries"


class Percentile(StrEnum):
    """A percentile that results have."""

    P50 = "P50"
    P90 = "P90"
    P99 = "P99"


class Objective(Model):
    """What alternatives are ranked by."""

    type: ObjectiveType = Field(
        description="MeanTime, or Percentile of the time that the benchmark's kind is read by (a transfer's, a round "
        "trip's, an echo request's); Throughput; or Retries a trial."
    )
    percentile: Percentile | None = Field(default=None, description="With Percentile: P50 (the median), P90 or P99.")


class WeightedSize(Model):
    """A file size and how much it counts."""

    size: Size
    weight: int = Field(default=1, ge=1, le=1000000, description="How often it is asked for, against the others.")


class WorkloadProfile(Model):
    """What the service will have to do. Each level must have been measured: nothing is guessed between levels."""

    file_sizes: tuple[WeightedSize, ...] = Field(
        default=(), max_length=MOST_SIZES, description="Of file transfers: the sizes of the files."
    )
    payload_size: Size | None = Field(default=None, description="Of brokers: the size of a message.")
    delivery: Delivery | None = Field(default=None, description="Of brokers: how hard a message is delivered.")
    messages_per_second: int | None = Field(
        default=None,
        ge=1,
        le=10**7,
        description="Of brokers: what each publisher sends a second, as results have it by their pacing.",
    )
    levels: dict[str, Level] = Field(
        default={},
        json_schema_extra={"maxProperties": 24},
        description="The level of any other factor, by the factor's name: {tls: TLSv1.3}. Levels of factors that are "
        "not named here count equally.",
    )


class Benchmarks(Model):
    """Which results count: those that meet all that is given here."""

    names: tuple[Annotated[str, Field(min_length=1, max_length=253)], ...] = Field(
        default=(), max_length=64, json_schema_extra=_SET, description="Names of benchmarks; none means all."
    )
    match_labels: dict[str, Level] = Field(
        default={}, json_schema_extra={"maxProperties": 16}, description="Labels that a result must bear."
    )


class AdviceConstraints(Constraints):
    """What an alternative must keep to at each level of the workload, or it is Infeasible."""

    architectures: tuple[Annotated[str, Field(min_length=1, max_length=32)], ...] = Field(
        default=(),
        max_length=8,
        json_schema_extra=_SET,
        description="Architectures that the service is built for, as in amd64, arm64, arm; none means any.",
    )


_ONE_WORKLOAD = Rule(
    "size(self.fileSizes) == 0 || !(has(self.payloadSize) || has(self.delivery) || has(self.messagesPerSecond))",
    "mixes files and messages: give fileSizes, or payloadSize, delivery and messagesPerSecond; make two advices",
)
_SOME_WORKLOAD = Rule(
    "size(self.fileSizes) + size(self.levels) > 0 || has(self.payloadSize) || has(self.delivery)"
    " || has(self.messagesPerSecond)",
    "names no level: give fileSizes, as in [{size: 512Mi}], or leave workload out to rank by throughput",
)
_PERCENTILE = Rule(
    "(self.type == 'Percentile') == has(self.percentile)",
    "a percentile goes with type Percentile, and with no other: write {type: Percentile, percentile: P99} "
    "or {type: MeanTime}",
)


_EITHER = Rule(
    "!has(self.workload) || !self.choose.exists(one, one in self.workload.levels"
    " || (one == 'delivery' && has(self.workload.delivery)))",
    "fixes in workload what choose is to choose: leave it out of one of them",
)


class PlacementAdviceSpec(Model):
    """The question."""

    choose: tuple[Dimension, ...] = Field(
        default=(Dimension.NODE_CLASS,),
        min_length=1,
        max_length=3,
        json_schema_extra=_SET,
        description=f"What to choose: one to three of {', '.join(Dimension)}. Alternatives are their combinations. "
        "What is not chosen is weighted by the workload, or compared level by level; a server's class, too.",
    )

    benchmarks: Benchmarks = Field(default=Benchmarks(), description="Which results count; by default all.")
    client_class: ClassName = Field(description="The node class that will use the service.")
    workload: WorkloadProfile | None = Field(
        default=None,
        json_schema_extra=rules(_ONE_WORKLOAD, _SOME_WORKLOAD),
        description="What the service will have to do. Without it every measured level counts equally.",
    )
    objective: Objective | None = Field(
        default=None,
        json_schema_extra=rules(_PERCENTILE),
        description="What alternatives are ranked by; by default MeanTime with a workload, and Throughput without.",
    )
    constraints: AdviceConstraints = Field(default=AdviceConstraints(), description="What an alternative must keep to.")
    smallest_margin: Annotated[str, Field(pattern=r"^(0|[1-9][0-9]?)(\.[0-9]{1,2})?%$", max_length=6)] = Field(
        default="5%",
        description="The smallest difference that is worth having, as in 5%: what differs by less is equal, "
        "and an alternative is best only by more.",
    )


class PlacementAdvice(Resource):
    """On which class of node, and with which settings, should a service run?"""

    KIND: ClassVar[Kind] = Kind(
        kind="PlacementAdvice",
        plural="placementadvices",
        singular="placementadvice",
        short_names=("advice",),
        namespaced=True,
        columns=(
            Column("Best", ".status.best"),
            Column("Runner-Up", ".status.runnerUp", priority=1),
            Column("Margin", ".status.margin"),
            Column("Loss", ".status.expectedLoss"),
            Column("Confidence", ".status.confidence"),
            Column("Reason", '.status.conditions[?(@.type=="Answered")].reason'),
            Column("Answer", ".status.answer", priority=1),
            Column("Age", ".metadata.creationTimestamp", "date"),
        ),
        description="PlacementAdvice says from the results that are there on which class of node a service should "
        "run or with which settings, from which level on another choice is better, and how sure that is.",
    )

    SPEC_RULES: ClassVar[tuple[Rule, ...]] = (_EITHER,)

    spec: PlacementAdviceSpec
    status: PlacementAdviceStatus = PlacementAdviceStatus()

    @field_validator("status", mode="wrap")
    @classmethod
    def _of_this_version(cls, status: object, read: Callable[[object], PlacementAdviceStatus]) -> PlacementAdviceStatus:
        """An answer of another version is none: it is given anew from the results."""
        try:
            return read(status)
        except ValidationError:
            return PlacementAdviceStatus()


ADVICES: Final = PlacementAdvice.KIND.resource
