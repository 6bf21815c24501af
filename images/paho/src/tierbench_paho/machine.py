"""The state of this computer during a trial, for numbers that its kind does not explain. Pure over a root folder."""

from pathlib import Path
from typing import Final, Self

from . import cgroup, route, thermal
from .contract import Json
from .files import number, text

_CHARACTERS: Final = 63  # of a word, by the contract


class Machine:
    """A computer between two looks at it. What its kernel does not tell is absent, never 0."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._throttling, self._throttled = thermal.throttling(root), cgroup.throttled_nanoseconds(root)

    @classmethod
    def own(cls) -> Self:
        """This one. It reads some files for each processor: do so before a trial's clock starts."""
        return cls(Path("/"))

    @property
    def cpu_limit_millicores(self) -> int:
        """CPU that this process can use at once."""
        return cgroup.cpu_limit_millicores(self._root)

    def computer(self, broker: str) -> Json:
        """The second look, after the clock has stopped, as the contract writes it; `broker` is an IP address."""
        root = self._root
        interface = route.interface(root, broker)
        found = {
            "cpuFrequencyKilohertz": _mean_frequency(root, "scaling_cur_freq"),
            "cpuMaxKilohertz": _mean_frequency(root, "cpuinfo_max_freq"),
            "cpuGovernor": _governor(root),
            "powerMode": _power_mode(root),
            "temperatureMillidegrees": thermal.temperature_millidegrees(root),
            "thermalThrottles": thermal.throttles(self._throttling, thermal.throttling(root)),
            "quotaThrottledNanoseconds": _grown(self._throttled, cgroup.throttled_nanoseconds(root)),
            "interface": interface,
            "mtuBytes": None if interface is None else number(root / "sys/class/net" / interface / "mtu"),
            "congestionControl": text(root / "proc/sys/net/ipv4/tcp_congestion_control"),
        }
        return {name: _short(value) for name, value in found.items() if value not in (None, "")}


def _short(value: int | str | None) -> int | str | None:
    return value[:_CHARACTERS] if isinstance(value, str) else value


def _grown(before: int | None, after: int | None) -> int | None:
    """A counter that was set back has grown to what it says."""
    if before is None or after is None:
        return None
    return after - before if after >= before else after


def _mean_frequency(root: Path, name: str) -> int | None:
    """In kHz, over all processors that tell it: they may differ in kind."""
    values = [value for file in _frequencies(root, name) if (value := number(file))]
    return sum(values) // len(values) if values else None


def _governor(root: Path) -> str:
    """Of all processors; with commas between where they differ."""
    return ",".join(sorted({name for file in _frequencies(root, "scaling_governor") if (name := text(file))}))


def _frequencies(root: Path, name: str) -> list[Path]:
    return list((root / "sys/devices/system/cpu").glob(f"cpu[0-9]*/cpufreq/{name}"))


def _power_mode(root: Path) -> str | None:
    """Of a Jetson: nvpmodel writes "pmode:0002 fmode:quiet"; its configuration has "< POWER_MODEL ID=2 NAME=15W >"."""
    for field in text(root / "var/lib/nvpmodel/status").split():
        mode = field.removeprefix("pmode:")
        if field.startswith("pmode:") and mode.isdecimal():
            return _power_mode_name(root, int(mode)) or str(int(mode))
    return None


def _power_mode_name(root: Path, mode: int) -> str | None:
    for line in text(root / "etc/nvpmodel.conf").splitlines():
        fields = line.split()
        if "POWER_MODEL" in fields and f"ID={mode}" in fields:
            return next((field.removeprefix("NAME=") for field in fields if field.startswith("NAME=")), None)
    return None
