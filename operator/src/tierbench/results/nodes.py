"""What is known of the nodes of a run: their computers, and the network between two of them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from tierbench.api.contract import Computer, Histogram, TrialLine
from tierbench.api.measurements import EchoSpread, NodeNetwork, TcpRate
from tierbench.api.result import BenchmarkResult
from tierbench.results.units import show
from tierbench.stats.distributions import bucket_quantile

COMPUTER_COLUMNS: Final = (
    "Governor", "Frequency", "Power mode", "Temperature", "Throttled", "Interface", "Congestion control",
)  # fmt: skip


@dataclass(frozen=True)
class NodeComputer:
    """The computer of a node, as each trial reported it."""

    node: str
    reports: tuple[Computer, ...]

    @property
    def cells(self) -> tuple[str, ...]:
        """A text for each of COMPUTER_COLUMNS; empty if no trial reported it."""
        return (
            _join(one.cpu_governor for one in self.reports),
            self._frequency(),
            _join(one.power_mode for one in self.reports),
            self._temperature(),
            self._throttled(),
            _join(_interface(one) for one in self.reports),
            _join(one.congestion_control for one in self.reports),
        )

    def _frequency(self) -> str:
        known = [one.cpu_frequency_kilohertz for one in self.reports if one.cpu_frequency_kilohertz is not None]
        highest = [one.cpu_max_kilohertz for one in self.reports if one.cpu_max_kilohertz is not None]
        if not known:
            return ""
        low, high = (f"{kilohertz / 1e6:.2f}" for kilohertz in (min(known), max(known)))
        text = low if low == high else f"{low} to {high}"
        return f"{text} of {max(highest) / 1e6:.2f} GHz" if highest else f"{text} GHz"

    def _temperature(self) -> str:
        known = [one.temperature_millidegrees for one in self.reports if one.temperature_millidegrees is not None]
        return f"up to {max(known) / 1000:.0f} °C" if known else ""

    def _throttled(self) -> str:
        known = [one.thermal_throttles for one in self.reports if one.thermal_throttles is not None]
        if not known:
            return ""
        throttled = sum(map(bool, known))
        return f"for heat in {throttled} of {len(known)} trials" if throttled else "never for heat"


def node_computers(results: Sequence[BenchmarkResult]) -> tuple[NodeComputer, ...]:
    """Returns the computers that trials reported.

    It leaves out the clients of cases with several clients: a trial has one client report, and not which client sent
    it.
    """
    found: dict[str, list[Computer]] = {}
    for result in results:
        for trial in result.recorded.trials:
            if trial.server is not None and trial.server.computer is not None:
                found.setdefault(result.spec.server.node, []).append(trial.server.computer)
            if trial.client.computer is not None and len(result.spec.clients) < 2:  # noqa: PLR2004 (a pair)
                found.setdefault(result.spec.client.node, []).append(trial.client.computer)
    return tuple(NodeComputer(node, tuple(reports)) for node, reports in found.items())


def describe_computer(computer: NodeComputer) -> str:
    """Returns the computer in one line; empty if nothing is known."""
    known = zip(COMPUTER_COLUMNS, computer.cells, strict=True)
    texts = [f"{name[:1].lower()}{name[1:]} {text}" for name, text in known if text]
    return f"{computer.node}: {', '.join(texts)}" if texts else ""


def _interface(computer: Computer) -> str | None:
    if computer.interface is None or computer.mtu_bytes is None:
        return computer.interface
    return f"{computer.interface} (MTU {computer.mtu_bytes})"


def _join(texts: Iterable[str | None]) -> str:
    return ", ".join(dict.fromkeys(text for text in texts if text))


def add_network_trial(known: NodeNetwork, line: TrialLine) -> NodeNetwork:
    """Returns the network with what one trial measured of it."""
    network = line.network
    if network is None:
        return known
    found: dict[str, object] = {
        name: TcpRate(bits_per_second=flow.bits_per_second, retransmits=flow.retransmits or 0)
        for name, flow in (("upload", network.upload), ("download", network.download))
        if flow is not None
    }
    if network.ping is not None:
        percentiles = _percentiles(line.distributions.ping, network.ping.max_nanoseconds)
        found["ping"] = EchoSpread(**network.ping.model_dump(), **percentiles)
    return known.model_copy(update=found)


def _percentiles(found: Histogram | None, longest: int | None) -> dict[str, int]:
    """Returns percentiles of a histogram, at most the longest time: the last bucket may end after it."""
    if found is None or not found.count or longest is None:
        return {}
    percentiles = {"p50_nanoseconds": 0.5, "p90_nanoseconds": 0.9, "p99_nanoseconds": 0.99}
    return {name: min(round(bucket_quantile(found, share)), longest) for name, share in percentiles.items()}


def network_quantities(network: NodeNetwork) -> dict[str, float]:
    """Returns the known quantities of a network. Each name ends with the unit."""
    ping = network.ping or EchoSpread()
    found = {
        "uploadBitsPerSecond": None if network.upload is None else network.upload.bits_per_second,
        "downloadBitsPerSecond": None if network.download is None else network.download.bits_per_second,
        "pingNanoseconds": ping.mean_nanoseconds,
        "pingLostPartsPerMillion": 1e6 * (ping.sent - ping.received) / ping.sent if ping.sent else None,
    }
    return {name: value for name, value in found.items() if value is not None}


def worst_network(networks: Sequence[NodeNetwork]) -> dict[str, float]:
    """Returns the worst quantities of several networks: the lowest rates, the longest round trip, the highest loss."""
    columns: dict[str, list[float]] = {}
    for network in networks:
        for name, value in network_quantities(network).items():
            columns.setdefault(name, []).append(value)
    return {name: (min if name.endswith("PerSecond") else max)(values) for name, values in columns.items()}


def describe_network(network: NodeNetwork) -> str:
    """Returns a network in one line, such as "cloud-1 to user-1: 94.1 Mbit/s up, 93.9 Mbit/s down, ping 412 µs"."""
    texts = [
        f"{show('throughputBitsPerSecond', way.bits_per_second)} {name}"
        for way, name in ((network.upload, "up"), (network.download, "down"))
        if way is not None
    ]
    if network.ping is not None and network.ping.mean_nanoseconds is not None:
        texts.append(f"ping {show('pingNanoseconds', network.ping.mean_nanoseconds)}")
    if network.reason is not None:
        texts.append(f"incomplete ({network.reason}): {network.message}")
    return f"{network.client_node} to {network.server_node}: {', '.join(texts)}"
