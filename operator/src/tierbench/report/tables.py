"""The long tables of a report: nodes and trials."""

from dataclasses import dataclass

from tierbench.advice.matrix import Run
from tierbench.advice.units import show, show_level, words
from tierbench.api.contract import Outcome, ServerSample
from tierbench.api.result import BenchmarkResult, NodeFacts, ResultTrial
from tierbench.results.quantities import quantities


@dataclass(frozen=True)
class NodeColumn:
    """A node: its name, what it was used for, and its facts in the order of NODE_FACTS."""

    node: str
    role: str
    facts: tuple[str, ...]


NODE_FACTS = (
    "Class",
    "Architecture",
    "CPUs",
    "Memory",
    "Access network",
    "Storage",
    "Kernel",
    "Operating system",
    "Kubelet",
    "Container runtime",
)


def node_columns(run: Run) -> tuple[NodeColumn, ...]:
    """Every node that took part, servers first."""
    roles: dict[NodeFacts, list[str]] = {}
    for role in ("server", "client"):
        for result in run.results:
            used = roles.setdefault(getattr(result.spec, role), [])
            if role not in used:
                used.append(role)
    return tuple(NodeColumn(node.node or "none", " and ".join(used), _facts(node)) for node, used in roles.items())


def _facts(node: NodeFacts) -> tuple[str, ...]:
    return (
        node.node_class,
        node.architecture or "–",
        f"{node.cpu_millicores / 1000:g}" if node.cpu_millicores else "–",
        show("memoryBytes", node.memory_bytes) if node.memory_bytes else "–",
        node.access_network or "–",
        node.storage or "–",
        node.kernel or "–",
        node.os_image or "–",
        node.kubelet or "–",
        node.runtime or "–",
    )


@dataclass(frozen=True)
class TrialRow:
    """A trial as text, cell by cell in the order of TRIAL_HEADINGS, after the levels that vary."""

    cells: tuple[str, ...]
    muted: bool


TRIAL_HEADINGS = (
    "Class",
    "Node",
    "Trial",
    "Outcome",
    "Time",
    "Throughput",
    "Retries",
    "First byte",
    "Longest stall",
    "Cached before",
    "Read from disk",
    "I/O wait",
    "Begun",
)


def trial_rows(run: Run) -> tuple[TrialRow, ...]:
    """Every trial of every case, warm-up ones included."""
    varying = [name for name in run.factors if name not in run.fixed or name == run.row_factor]
    return tuple(
        TrialRow(
            (*(show_level(name, result.spec.levels.get(name, "")) for name in varying), *_cells(result, trial)),
            trial.warmup or trial.outcome is Outcome.FAILED,
        )
        for result in run.results
        for trial in result.status.trials
    )


def _cells(result: BenchmarkResult, trial: ResultTrial) -> tuple[str, ...]:
    transfer, sample = trial.transfer, trial.server or ServerSample()
    rate = quantities([trial]).get("throughputBytesPerSecond", [None])[0]
    number = f"w{trial.trial}" if trial.warmup else str(trial.trial)
    return (
        result.spec.server.node_class,
        result.spec.server.node,
        number,
        trial.outcome if trial.failure is None else f"{trial.outcome}: {trial.failure.reason}",
        show("durationNanoseconds", trial.duration_nanoseconds),
        show("throughputBytesPerSecond", rate),
        "–" if transfer is None else _retries(transfer.retries, transfer.retry_causes.model_dump(by_alias=True)),
        "–" if transfer is None else show("firstByteNanoseconds", transfer.first_byte_nanoseconds),
        "–" if transfer is None else show("longestStallNanoseconds", transfer.longest_stall_nanoseconds),
        show("residentBeforePartsPerMillion", sample.resident_before_parts_per_million),
        show("deviceReadBytes", sample.device_read_bytes),
        show("ioWaitPartsPerMillion", sample.io_wait_parts_per_million),
        trial.start_time[11:19],
    )


def _retries(count: int, causes: dict[str, int]) -> str:
    named = [words(cause).lower() for cause, times in causes.items() if times]
    return f"{count} ({', '.join(named)})" if count and named else str(count)
