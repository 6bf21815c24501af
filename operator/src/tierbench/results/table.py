"""Results as a table for other programs: a row a trial, in the units that the columns' names end with."""

import csv
import io
from collections.abc import Sequence

from tierbench.api.result import BenchmarkResult
from tierbench.results.quantities import quantities

_PLACE = (
    "namespace", "kind", "benchmark", "run", "case", "serverClass", "serverNode", "clientClass", "clientNode",
    "trial", "warmup", "outcome", "failure", "startTime",
)  # fmt: skip


def to_csv(results: Sequence[BenchmarkResult]) -> str:
    """Columns: where and what, the level of every factor, then every quantity that some trial has."""
    factors = sorted({factor for result in results for factor in result.spec.levels})
    names: dict[str, None] = {}
    rows = []
    for result in results:
        spec = result.spec
        reference = spec.benchmark
        for trial in result.status.trials:
            values = {name: numbers[0] for name, numbers in quantities([trial]).items()}
            names |= dict.fromkeys(values)
            failure = "" if trial.failure is None else trial.failure.reason
            place = (
                result.metadata.namespace or "", reference.kind, reference.name, spec.run, spec.case,
                spec.server.node_class, spec.server.node, spec.client.node_class, spec.client.node,
                trial.trial, str(trial.warmup).lower(), trial.outcome.value, failure, trial.start_time,
            )  # fmt: skip
            rows.append((place, [spec.levels.get(factor, "") for factor in factors], values))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*_PLACE, *factors, *names])
    writer.writerows([*place, *levels, *(values.get(name, "") for name in names)] for place, levels, values in rows)
    return text.getvalue()
