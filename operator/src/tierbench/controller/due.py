"""Which benchmarks need the operator, told from the object as it is stored."""

from typing import Final

from tierbench.api.benchmark import BenchmarkStatus
from tierbench.api.model import GROUP
from tierbench.domain import decide
from tierbench.domain.views import Raw

FINALIZER: Final = f"{GROUP}/cleanup"


def is_leaving(raw: Raw) -> bool:
    """Whether the benchmark was deleted."""
    return "deletionTimestamp" in raw["metadata"]


def is_due(raw: Raw) -> bool:
    """Whether anything is to be done for a benchmark, or for what it leaves."""
    metadata, policy = raw["metadata"], raw.get("spec", {}).get("runPolicy", {})
    if is_leaving(raw):
        return FINALIZER in metadata.get("finalizers", ())
    try:
        known = BenchmarkStatus.model_validate(raw.get("status", {}))
    except ValueError:
        return True  # its loop says what is wrong
    later = any(policy.get(name) is not None for name in ("ttlSeconds", "schedule"))
    return decide.needs_reconcile(known.observed_generation, metadata["generation"], known.phase, later=later)
