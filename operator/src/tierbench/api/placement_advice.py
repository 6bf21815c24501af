"""PlacementAdvice: the node class or the settings that a service should use, according to the results."""

from collections.abc import Callable
from enum import StrEnum
from typing import Annotated, ClassVar, Final, Self

from pydantic import Field, JsonValue, ValidationError, field_validator, model_validator
from pydantic_core import PydanticCustomError

from tierbench.api.advice_answer import PlacementAdviceStatus
from tierbench.api.benchmark import Delivery
from tierbench.api.model import ClassName, Column, Kind, Model, Resource, Rule, rules
from tierbench.api.quantity import MOST_SIZES, Size
from tierbench.api.result import Level
from tierbench.api.run_policy import Constraints

_SET: Final[dict[str, JsonValue]] = {"x-kubernetes-list-type": "set"}


class Dimension(StrEnum):
    """Dimensions that an advice can choose.

    Sizes, contents and rates belong to the workload, and the client chooses its own settings.
    """

    NODE_CLASS = "nodeClass"
    BROKER = "broker"
    IMAGE = "image"
    CODEC = "codec"
    MQTT_VERSION = "mqttVersion"
    COMPRESSION = "compression"
    ENCRYPTION = "encryption"
    TLS = "tls"
    HANDSHAKE = "handshake"
    CERTIFICATE = "certificate"
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
    """The quantity that decides which alternative is best."""

    MEAN_TIME = "MeanTime"
    PERCENTILE = "Percentile"
    THROUGHPUT = "Throughput"
    RETRIES = "Retries"


class Percentile(StrEnum):
    """A percentile that results have."""

    P50 = "P50"
    P90 = "P90"
    P99 = "P99"


_PERCENTILE = Rule(
    "(self.type == 'Percentile') == has(self.percentile)",
    "percentile needs type Percentile, which needs a percentile: write {type: Percentile, percentile: P99} or "
    "{type: MeanTime}",
)


class Objective(Model):
    """The quantity by which alternatives are ranked."""

    type: ObjectiveType = Field(
        description="MeanTime or Percentile of a time (that of a transfer, a round trip or an echo request), "
        "Throughput, or Retries per trial."
    )
    percentile: Percentile | None = Field(
        default=None, description="The percentile, with type Percentile: P50 (the median), P90 or P99."
    )

    @model_validator(mode="after")
    def _check_percentile(self) -> Self:
        # Files that `advise --file` reads pass no API server.
        if (self.type is ObjectiveType.PERCENTILE) != (self.percentile is not None):
            raise ValueError(_PERCENTILE.message)
        return self


class WeightedSize(Model):
    """A file size and its weight."""

    size: Size
    weight: int = Field(
        default=1, ge=1, le=1000000, description="The frequency of requests for this size, relative to the others."
    )


class WorkloadProfile(Model):
    """The work that the service will have to do.

    Each level must have been measured, because the advice does not interpolate.
    """

    file_sizes: tuple[WeightedSize, ...] = Field(
        default=(), max_length=MOST_SIZES, description="File transfers: the sizes of the files."
    )
    payload_size: Size | None = Field(default=None, description="Brokers: the size of a message.")
    delivery: Delivery | None = Field(default=None, description="Brokers: the delivery guarantee of a message.")
    messages_per_second: int | None = Field(
        default=None,
        ge=1,
        le=10**7,
        description="Brokers: messages per second and publisher, as in the pacing of the results.",
    )
    levels: dict[str, Level] = Field(
        default={},
        json_schema_extra={"maxProperties": 24},
        description="The level of any other factor, by the factor's name: {tls: TLSv1.3}. Levels of factors that are "
        "not named here have equal weight.",
    )


class BenchmarkSelector(Model):
    """The results that count. They must match all fields."""

    names: tuple[Annotated[str, Field(min_length=1, max_length=253)], ...] = Field(
        default=(), max_length=64, json_schema_extra=_SET, description="Names of benchmarks. Empty means all."
    )
    match_labels: dict[str, Level] = Field(
        default={}, json_schema_extra={"maxProperties": 16}, description="Labels that a result must have."
    )


class AdviceConstraints(Constraints):
    """Limits that an alternative must meet at each level of the workload. Otherwise it is Infeasible."""

    architectures: tuple[Annotated[str, Field(min_length=1, max_length=32)], ...] = Field(
        default=(),
        max_length=8,
        json_schema_extra=_SET,
        description="Architectures that the service is built for, as in amd64, arm64, arm. Empty means any.",
    )


_ONE_WORKLOAD = Rule(
    "size(self.fileSizes) == 0 || !(has(self.payloadSize) || has(self.delivery) || has(self.messagesPerSecond))",
    "mixes files and messages: set fileSizes, or payloadSize, delivery and messagesPerSecond, in two advices",
)
_SOME_WORKLOAD = Rule(
    "size(self.fileSizes) + size(self.levels) > 0 || has(self.payloadSize) || has(self.delivery)"
    " || has(self.messagesPerSecond)",
    "names no level: set fileSizes, as in [{size: 512Mi}], or remove workload to rank by throughput",
)


_EITHER = Rule(
    "!has(self.workload) || !self.choose.exists(one, one in self.workload.levels"
    " || (one == 'delivery' && has(self.workload.delivery)))",
    "sets in workload what choose chooses: remove it from one of them",
)


class PlacementAdviceSpec(Model):
    """The question of an advice."""

    choose: tuple[Dimension, ...] = Field(
        default=(Dimension.NODE_CLASS,),
        min_length=1,
        max_length=3,
        json_schema_extra=_SET,
        description=f"What to choose: one to three of {', '.join(Dimension)}. Alternatives are their combinations. The "
        "workload weights all other factors, and the server's class if it is not chosen, or the advice compares them "
        "level by level.",
    )

    benchmarks: BenchmarkSelector = Field(
        default=BenchmarkSelector(), description="The results that count. The default is all."
    )
    client_class_name: ClassName = Field(description="Name of the node class that will use the service.")
    workload: WorkloadProfile | None = Field(
        default=None,
        json_schema_extra=rules(_ONE_WORKLOAD, _SOME_WORKLOAD),
        description="The work that the service will have to do. Without it, every measured level has equal weight.",
    )
    objective: Objective | None = Field(
        default=None,
        json_schema_extra=rules(_PERCENTILE),
        description="The quantity by which alternatives are ranked. The default is MeanTime with a workload, and "
        "Throughput without one.",
    )
    constraints: AdviceConstraints = Field(
        default=AdviceConstraints(), description="The limits that an alternative must meet."
    )
    min_margin_percent: int = Field(
        default=5,
        ge=0,
        le=99,
        description="The smallest difference that matters, in percent. Alternatives that differ by less are equal, and "
        "the best one is ahead by at least this much.",
    )

    @model_validator(mode="after")
    def _check_levels(self) -> Self:
        # Questions that the command line gets from options or files pass no API server.
        held = {} if self.workload is None else {"delivery": self.workload.delivery, **self.workload.levels}
        if any(held.get(one) for one in self.choose):
            raise PydanticCustomError("chosen_level", _EITHER.message)
        return self


class PlacementAdvice(Resource):
    """The node class or the settings that a service should use, according to the results."""

    KIND: ClassVar[Kind] = Kind(
        kind="PlacementAdvice",
        short_names=("tba",),
        categories=("advice",),
        columns=(
            Column("Best", ".status.best"),
            Column("Runner-Up", ".status.runnerUp", priority=1),
            Column("Margin", ".status.margin"),
            Column("Loss", ".status.expectedLoss"),
            Column("Confidence", ".status.confidence"),
            Column("Reason", '.status.conditions[?(@.type=="BestFound")].reason'),
            Column("Answer", ".status.answer", priority=1),
            Column("Age", ".metadata.creationTimestamp", "date"),
        ),
        description="PlacementAdvice derives from results the node class or the settings that a service should use. "
        "It names the level from which another choice is better, and how certain the answer is.",
    )

    SPEC_RULES: ClassVar[tuple[Rule, ...]] = (_EITHER,)

    spec: PlacementAdviceSpec
    status: PlacementAdviceStatus = PlacementAdviceStatus()

    @field_validator("status", mode="wrap")
    @classmethod
    def _of_this_version(cls, status: object, read: Callable[[object], PlacementAdviceStatus]) -> PlacementAdviceStatus:
        """Replaces an answer of another version by an empty one. The operator then answers again from the results."""
        try:
            return read(status)
        except ValidationError:
            return PlacementAdviceStatus()


ADVICES: Final = PlacementAdvice.KIND.resource
