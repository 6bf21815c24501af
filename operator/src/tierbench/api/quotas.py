"""What an administrator lets benchmarks take: a value of the chart, and a setting of the operator."""

from typing import Annotated

from pydantic import ConfigDict, Field

from tierbench.api.benchmark import MAXIMUM_CASES
from tierbench.api.model import QUANTITY_PATTERN, Model
from tierbench.api.quantity import parse_size
from tierbench.api.run_policy import MAXIMUM_HISTORY


class Quotas(Model):
    """What a benchmark may take. Beyond it a case fails, or a benchmark, with a reason and the name of the value."""

    model_config = ConfigDict(extra="forbid")

    lease_seconds: int = Field(
        default=14 * 24 * 3600,
        ge=600,
        description="How long a run may hold its nodes in one go. Then its client is ended, the cases that are left "
        "end with what was measured, and the nodes are given back.",
    )
    benchmarks_at_once: int = Field(
        default=100,
        ge=1,
        description="How many benchmarks of a namespace may hold nodes at once. Others wait in the queue.",
    )
    cases: int = Field(
        default=MAXIMUM_CASES,
        ge=1,
        le=MAXIMUM_CASES,
        description="How many cases a run may have. A benchmark that asks for more fails before anything is deployed.",
    )
    history: int = Field(
        default=MAXIMUM_HISTORY,
        ge=1,
        le=MAXIMUM_HISTORY,
        description="How many runs of a benchmark are kept, whatever runPolicy.history says.",
    )
    result_bytes: Annotated[str, Field(max_length=18, pattern=QUANTITY_PATTERN)] = Field(
        default="256Mi",
        description="How much the results and traces of a benchmark may take in etcd, those of all runs together. "
        "Cases beyond it fail; what was measured is kept.",
    )
    stored_bytes: Annotated[str, Field(max_length=18, pattern=QUANTITY_PATTERN)] = Field(
        default="512Mi",
        description="How much the results and traces of all benchmarks of this release may take in etcd. From 80 % of "
        "it on a warning announces that the oldest runs which have ended will go. At the limit they do, and no run "
        "begins before there is room.",
    )
    eviction_notice_seconds: int = Field(
        default=24 * 3600,
        ge=10,
        description="How long before a run goes for limits.storedBytes it is announced at the least.",
    )
    free_disk: Annotated[str, Field(max_length=18, pattern=f"^({QUANTITY_PATTERN.strip('^$')})?$")] = Field(
        default="",
        description="How much of a node's disk stays free when files are prepared there; if empty, the lesser of 5 % "
        "of it and 256Mi.",
    )

    @property
    def most_bytes(self) -> int:
        """Of the results and traces of a benchmark."""
        return parse_size(self.result_bytes)

    @property
    def most_stored_bytes(self) -> int:
        """Of the results and traces of all benchmarks."""
        return parse_size(self.stored_bytes)

    @property
    def free_bytes(self) -> int | None:
        """Of a node's disk; None leaves it to the preparation."""
        return parse_size(self.free_disk) if self.free_disk else None
