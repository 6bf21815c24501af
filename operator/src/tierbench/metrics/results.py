"""The metrics of benchmarks and of the results of the newest ended run of each: families, samples, and their text.

An object stores its labels once and a number per sample. Objects with the same samples share one layout. The text is
written here because prometheus_client takes 18 µs per sample, which is 8 s for 10,000 results. Gauges and histograms
are the same in Prometheus' text format 0.0.4 and in OpenMetrics 1.0.
"""

import re
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from itertools import accumulate, starmap
from typing import Final, Literal

from pydantic_core import from_json

from tierbench.api.benchmark import Phase
from tierbench.api.quantity import parse_size
from tierbench.api.result import BenchmarkResult, CoarseHistogram, ResultPhase, Statistic
from tierbench.domain.results import NewestRun, StoredResult, log_invalid
from tierbench.kinds.registry import Metrics, kind_of
from tierbench.results.nodes import network_quantities
from tierbench.results.units import is_size

Labels = Mapping[str, str]

_BATCH: Final = 100
_UNITS: Final = {"Nanoseconds": 1e9, "PartsPerMillion": 1e6}
"""How many of the unit at the end of a quantity's name are one base unit of Prometheus."""
_ESCAPES: Final = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


@dataclass(frozen=True, eq=False)
class Family:
    """A metric family: its name, its type, and its help text."""

    name: str
    kind: Literal["gauge", "histogram"]
    text: str


@dataclass(frozen=True, eq=False)
class Histogram(Family):
    """A family of histograms of times. The bounds are powers of two of a second, and the last bucket has none."""

    exponents: range

    @cached_property
    def bounds(self) -> Sequence[float]:
        """The upper bounds of the buckets, in seconds."""
        return [2.0**exponent for exponent in self.exponents]

    @cached_property
    def positions(self) -> tuple[tuple[Family, str, str], ...]:
        """The positions of a histogram's samples."""
        bounds = (*map(repr, self.bounds), "+Inf")
        buckets = ((self, "_bucket", "," + label_text({"le": bound})) for bound in bounds)
        return (*buckets, (self, "_count", ""), (self, "_sum", ""))


def gauge(name: str, text: str) -> Family:
    """Returns a family of gauges."""
    return Family(name, "gauge", text)


def gauges(prefix: str) -> Callable[[str, str], Family]:
    """Returns a function like `gauge`, which puts a prefix before each name."""
    return lambda name, text: gauge(f"{prefix}_{name}", text)


def histogram(name: str, text: str, exponents: range) -> Histogram:
    """Returns a family of histograms. The bounds are 2 to the power of each exponent, in seconds."""
    return Histogram(name, "histogram", text, exponents)


def in_base_unit(quantity: str, value: float) -> float:
    """Returns a value in the base unit of Prometheus, such as seconds for a quantity in nanoseconds."""
    return value / _unit(quantity)


@cache
def _unit(quantity: str) -> float:
    return next((number for unit, number in _UNITS.items() if quantity.endswith(unit)), 1)


def label_text(labels: Labels) -> str:
    """Returns labels as the text format writes them between braces."""
    return ",".join(starmap(_label, labels.items()))


@lru_cache(maxsize=4096)
def _label(name: str, value: str) -> str:
    return f'{name}="{value.translate(_ESCAPES)}"'


_Position = tuple[Family, str, str]
"""The family of a sample, the suffix of its name, and the labels that follow those of the object."""


@dataclass(frozen=True, eq=False)
class _Layout:
    """The positions of all samples of an object."""

    positions: tuple[_Position, ...]

    @cached_property
    def families(self) -> Mapping[Family, Sequence[int]]:
        """The indexes of the samples of each family."""
        found: dict[Family, list[int]] = {}
        for index, (family, _, _) in enumerate(self.positions):
            found.setdefault(family, []).append(index)
        return found


_EMPTY: Final = _Layout(())


@lru_cache(maxsize=4096)
def _extended(layout: _Layout, positions: tuple[_Position, ...]) -> _Layout:
    """Returns a layout with further positions. The same call returns the same layout."""
    return _Layout((*layout.positions, *positions))


class Samples:
    """All samples of one object, such as a result."""

    __slots__ = ("_layout", "_values", "labels")

    def __init__(self, labels: Labels) -> None:
        """Takes the labels of all samples of the object."""
        self.labels = label_text(labels)
        self._layout = _EMPTY
        self._values = array("d")

    def add(self, family: Family, value: float | None, more: Labels | None = None) -> None:
        """Adds a sample, unless the value is None. The labels `more` follow those of the object."""
        if value is not None:
            self._extend(((family, "", f",{label_text(more)}" if more else ""),), [value])

    def add_means(self, families: Mapping[str, Family], statistics: Mapping[str, Statistic]) -> None:
        """Adds the means of quantities. `families` are by quantity."""
        known = [quantity for quantity in families if quantity in statistics]
        means = [in_base_unit(quantity, statistics[quantity].mean) for quantity in known]
        self._extend(tuple((families[quantity], "", "") for quantity in known), means)

    def add_histogram(self, family: Histogram, found: CoarseHistogram | None) -> None:
        """Adds a histogram, unless it is None."""
        if found is None:
            return
        buckets = sorted(zip(found.exponents, found.counts, strict=True))
        bounds, below = [bound for bound, _ in buckets], [0, *accumulate(count for _, count in buckets)]
        counts = [below[bisect_right(bounds, exponent)] for exponent in family.exponents]
        self._extend(family.positions, [*counts, below[-1], below[-1], found.sum_nanoseconds / 1e9])

    def _extend(self, positions: tuple[_Position, ...], values: Sequence[float]) -> None:
        self._layout = _extended(self._layout, positions)
        self._values.extend(values)

    @property
    def families(self) -> tuple[Family, ...]:
        """The families of the samples."""
        return tuple(self._layout.families)

    def lines(self, family: Family) -> Iterator[str]:
        """Yields the lines of the samples of a family."""
        for index in self._layout.families.get(family, ()):
            _, suffix, tail = self._layout.positions[index]
            yield f"{family.name}{suffix}{{{self.labels}{tail}}} {self._values[index]}\n"


def render(objects: Sequence[Samples]) -> Iterator[str]:
    """Yields the text of all samples, family by family, in pieces of at most about a megabyte."""
    families = dict.fromkeys(family for samples in objects for family in samples.families)
    for family in families:
        yield f"# HELP {family.name} {family.text}\n# TYPE {family.name} {family.kind}\n"
        for start in range(0, len(objects), _BATCH):
            text = "".join(line for samples in objects[start : start + _BATCH] for line in samples.lines(family))
            if text:
                yield text


PHASE: Final = gauge("tierbench_benchmark_phase", "1 for the phase of the benchmark, 0 for the other phases.")
CASES: Final = gauge("tierbench_benchmark_cases", "Cases of the active run, or of the last one, by state.")
LAST_SUCCESS: Final = gauge(
    "tierbench_benchmark_last_success_timestamp_seconds", "When a case of an ended run was last measured."
)
VERDICTS: Final = {
    "Passed": gauge(
        "tierbench_benchmark_passed",
        "1 if the last run met runPolicy.constraints, 0 if not; absent without constraints.",
    ),
    "Regressed": gauge(
        "tierbench_benchmark_regressed",
        "1 if the last run was shown to be worse than an earlier one, 0 if not; absent without a comparable run.",
    ),
}
MEASURED: Final = gauge("tierbench_result_measured", "1 if the case was measured, 0 if it failed.")
VALID: Final = gauge("tierbench_result_valid", "1 if nothing is known that may have distorted the numbers.")
INFO: Final = gauge("tierbench_result_info", "Facts of the nodes and parameters of all cases, always 1.")
_RUNNING: Final = "Running"
SERVER_MEANS: Final = {
    "serverIoWaitPartsPerMillion": gauge(
        "tierbench_server_io_wait_ratio", "Share of CPU time that the server's node waited for I/O, mean."
    ),
    "serverIoPressurePartsPerMillion": gauge(
        "tierbench_server_io_pressure_ratio",
        "Share of time in which some task of the server's node waited for I/O, mean.",
    ),
    "serverCpuPartsPerMillion": gauge(
        "tierbench_server_cpu_ratio", "Share of CPU time that the server's node was busy, mean."
    ),
    "serverResidentPartsPerMillion": gauge(
        "tierbench_server_resident_ratio", "Share of the served file in the page cache when a trial began, mean."
    ),
    "serverDeviceReadBytes": gauge(
        "tierbench_server_device_read_bytes", "Bytes that the served files' device read per trial, mean."
    ),
    "tcpRetransmits": gauge(
        "tierbench_server_tcp_retransmits", "TCP segments that the server's side sent again per trial, mean."
    ),
    "tcpRoundTripNanoseconds": gauge(
        "tierbench_server_round_trip_seconds", "Smoothed round-trip time of TCP at the server's side, mean."
    ),
}
_PREFLIGHT: Final = {
    "uploadBitsPerSecond": gauge(
        "tierbench_preflight_upload_bits_per_second", "Payload per second from client to server before the first case."
    ),
    "downloadBitsPerSecond": gauge(
        "tierbench_preflight_download_bits_per_second",
        "Payload per second from server to client before the first case.",
    ),
    "pingNanoseconds": gauge(
        "tierbench_preflight_ping_mean_seconds", "Round trip of echo requests before the first case, mean."
    ),
    "pingLostPartsPerMillion": gauge(
        "tierbench_preflight_ping_lost_ratio", "Share of echo requests before the first case without an answer."
    ),
}


def result_samples(result: BenchmarkResult) -> Samples:
    """Returns the samples of an ended result.

    Raises:
        ValueError: the level of a size is not a size.
    """
    spec, status = result.spec, result.status
    known = kind_of(spec.benchmark.kind)
    kind = known.metrics
    samples = Samples(
        {
            "benchmark_namespace": result.metadata.namespace or "",
            "benchmark": spec.benchmark.name,
            "server_class": spec.server.node_class,
            "client_class": spec.client.node_class,
            "server_node": spec.server.node,
            "client_node": spec.client.node,
            **_labels({**known.implied, **spec.settings, **spec.levels}, kind.factors),
        }
    )
    kind.add(samples, result)
    samples.add_means(SERVER_MEANS, status.statistics)
    measured = status.phase is ResultPhase.COMPLETE
    samples.add(MEASURED, int(measured))
    samples.add(VALID, int(status.valid is True) if measured else None)
    samples.add(INFO, 1, _info(result, kind))
    return samples


@cache
def label_name(name: str) -> str:
    """Returns the label of a factor or parameter: file_size for fileSize."""
    return re.sub("(?=[A-Z])", "_", name).lower()


def _labels(levels: Mapping[str, str], names: Sequence[str]) -> Labels:
    """Returns the levels with these names as labels. Sizes are in bytes."""
    return {label_name(name): _label_value(name, levels[name]) for name in names if name in levels}


@lru_cache(maxsize=4096)
def _label_value(name: str, level: str) -> str:
    return str(parse_size(level)) if is_size(name) else level


def _info(result: BenchmarkResult, kind: Metrics) -> Labels:
    spec, status = result.spec, result.status
    return {
        "benchmark_kind": spec.benchmark.kind,
        "run": str(spec.run),
        "valid": "" if status.valid is None else str(status.valid).lower(),
        "architecture": spec.server.architecture,
        "kernel": spec.server.kernel,
        "server_access_network": spec.server.access_network,
        "server_storage": spec.server.storage,
        "client_access_network": spec.client.access_network,
        **_labels(spec.settings, kind.parameters),
    }


class SampleCache:
    """The samples of the results that were exported last: an ended result does not change, so it is read once."""

    def __init__(self) -> None:
        self._known: dict[StoredResult, Samples | None] = {}

    def read(self, runs: Iterable[NewestRun]) -> list[Samples]:
        """Returns the samples of benchmarks and of the results of these runs. No labels occur twice.

        Two results have the same labels if a class lacks more than one node, or if a user has copied a result.
        """
        before, self._known = self._known, {}
        found: dict[str, Samples] = {}
        for newest in runs:
            own = _benchmark_samples(newest)
            found.setdefault(own.labels, own)
            for stored in newest.results:
                self._known[stored] = samples = before[stored] if stored in before else _stored_samples(stored)
                if samples is not None:
                    found.setdefault(samples.labels, samples)
        return list(found.values())


def _stored_samples(stored: StoredResult) -> Samples | None:
    """Returns None for a result that is invalid."""
    try:
        return result_samples(stored.parse())
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        log_invalid(from_json(stored.text), error)
        return None


def _benchmark_samples(newest: NewestRun) -> Samples:
    (kind, namespace, name), status = newest.key, newest.status
    samples = Samples({"benchmark_kind": kind, "benchmark_namespace": namespace, "benchmark": name})
    for phase in Phase:
        samples.add(PHASE, int(status.phase is phase), {"phase": phase.value})
    cases = status.cases
    states = {
        "Valid": cases.finished - cases.failed - cases.invalid,
        "Invalid": cases.invalid,
        "Failed": cases.failed,
        "Due": cases.total - cases.finished,
    }
    for state, number in states.items():
        samples.add(CASES, number, {"state": state})
    samples.add(LAST_SUCCESS, newest.measured)
    for condition in status.conditions:
        if condition.type in VERDICTS and condition.reason != _RUNNING and condition.status != "Unknown":
            samples.add(VERDICTS[condition.type], int(condition.status == "True"))
    for network in status.run.networks if status.run is not None else ():
        nodes = {"server_node": network.server_node, "client_node": network.client_node}
        for quantity, value in network_quantities(network).items():
            samples.add(_PREFLIGHT[quantity], in_base_unit(quantity, value), nodes)
    return samples
