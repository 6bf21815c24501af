"""The heat of this computer, and what it does to its processors. Pure over a root folder."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from .files import number, text

_CONSTANT_ZONE: Final = "PMIC-Die"  # of a Jetson: says 100 °C whatever it has

# Bits of a Raspberry Pi's get_throttled: frequency capped, throttled, soft limit of temperature; now, since it booted.
_PI: Final = "sys/devices/platform/soc/soc:firmware/get_throttled"
_PI_NOW, _PI_SINCE = 0xE, 0xE0000


@dataclass(frozen=True)
class Throttling:
    """What the kernel says of processors slowed for their heat: how often so far, at some time before, at present."""

    events: int
    since: int
    now: bool


def temperature_millidegrees(root: Path) -> int | None:
    """Of the hottest zone, in thousandths of a degree Celsius."""
    zones = (root / "sys/class/thermal").glob("thermal_zone[0-9]*")
    found = (number(zone / "temp") for zone in zones if text(zone / "type") != _CONSTANT_ZONE)
    return max((value for value in found if value), default=None)


def throttling(root: Path) -> Throttling | None:
    """None where nothing tells of it."""
    counters = (root / "sys/devices/system/cpu").glob("cpu[0-9]*/thermal_throttle/*_throttle_count")
    events = [count for file in counters if (count := number(file)) is not None]
    devices = [file for file in (root / "sys/class/thermal").glob("cooling_device[0-9]*") if _slows(file)]
    states = [state for device in devices if (state := number(device / "cur_state")) is not None]
    pi = _bits(text(root / _PI))
    if not events and not states and pi is None:
        return None
    bits = pi or 0
    return Throttling(sum(events), bits & _PI_SINCE, bool(bits & _PI_NOW) or any(states))


def throttles(before: Throttling | None, after: Throttling | None) -> int | None:
    """How often between two looks. What is not counted but seen at one of them, or since the first, is once."""
    if before is None or after is None:
        return None
    seen = before.now or after.now or bool(after.since & ~before.since)
    return max(after.events - before.events, int(seen))


def _slows(device: Path) -> bool:
    return "cpufreq" in text(device / "type")


def _bits(hexadecimal: str) -> int | None:
    try:
        return int(hexadecimal, 16)
    except ValueError:
        return None
