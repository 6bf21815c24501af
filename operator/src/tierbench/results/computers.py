"""The computers of a run, by the names of their nodes: what they said of themselves over all its trials."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tierbench.api.contract import Computer
from tierbench.api.result import BenchmarkResult

NAMES = ("Governor", "Frequency", "Power mode", "Temperature", "Throttled", "Interface", "Congestion control")


@dataclass(frozen=True)
class NodeComputer:
    """A node, and what it said in each of its trials."""

    node: str
    seen: tuple[Computer, ...]

    @property
    def words(self) -> tuple[str, ...]:
        """What was seen in words, in the order of NAMES; empty where nothing was told."""
        return (
            _joined(one.cpu_governor for one in self.seen),
            self._frequency(),
            _joined(one.power_mode for one in self.seen),
            self._temperature(),
            self._throttled(),
            _joined(_interface(one) for one in self.seen),
            _joined(one.congestion_control for one in self.seen),
        )

    def _frequency(self) -> str:
        known = [one.cpu_frequency_kilohertz for one in self.seen if one.cpu_frequency_kilohertz is not None]
        highest = [one.cpu_maximum_kilohertz for one in self.seen if one.cpu_maximum_kilohertz is not None]
        if not known:
            return ""
        low, high = (f"{kilohertz / 1e6:.2f}" for kilohertz in (min(known), max(known)))
        text = low if low == high else f"{low} to {high}"
        return f"{text} of {max(highest) / 1e6:.2f} GHz" if highest else f"{text} GHz"

    def _temperature(self) -> str:
        known = [one.temperature_millidegrees for one in self.seen if one.temperature_millidegrees is not None]
        return f"up to {max(known) / 1000:.0f} °C" if known else ""

    def _throttled(self) -> str:
        """In how many trials."""
        told = [one for one in self.seen if one.thermal_throttles is not None]
        if not told:
            return ""
        slowed = sum(bool(one.thermal_throttles) for one in told)
        return f"for heat in {slowed} of {len(told)} trials" if slowed else "never for heat"


def node_computers(results: Sequence[BenchmarkResult]) -> tuple[NodeComputer, ...]:
    """Those that told of themselves. Of several clients of one trial it is not known whose computer is kept."""
    found: dict[str, list[Computer]] = {}
    for result in results:
        for trial in result.status.trials:
            if trial.server is not None and trial.server.computer is not None:
                found.setdefault(result.spec.server.node, []).append(trial.server.computer)
            if trial.client.computer is not None and len(result.spec.clients) < 2:  # noqa: PLR2004 (a pair)
                found.setdefault(result.spec.client.node, []).append(trial.client.computer)
    return tuple(NodeComputer(node, tuple(seen)) for node, seen in found.items())


def in_words(computer: NodeComputer) -> str:
    """A node in a line; empty if nothing is known of it."""
    said = [f"{name[:1].lower()}{name[1:]} {text}" for name, text in zip(NAMES, computer.words, strict=True) if text]
    return f"{computer.node}: {', '.join(said)}" if said else ""


def _interface(computer: Computer) -> str | None:
    if computer.interface is None or computer.mtu_bytes is None:
        return computer.interface
    return f"{computer.interface} (MTU {computer.mtu_bytes})"


def _joined(texts: Iterable[str | None]) -> str:
    return ", ".join(dict.fromkeys(text for text in texts if text))
