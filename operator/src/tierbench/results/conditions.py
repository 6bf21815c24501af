"""What results must share to be taken together."""

from tierbench.api.result import BenchmarkResult


def circumstances(result: BenchmarkResult) -> dict[str, str]:
    """Under what it was measured, by name: the level of each factor, and the conditions of the whole benchmark.

    Results that differ in any of it measured different things, and are never pooled: a condition in which they differ
    is read as one more factor.
    """
    return {**result.spec.levels, **result.spec.conditions}
