"""Numbers and cases as a person reads them: the one place for units."""

from collections.abc import Mapping
from typing import Final

USUAL_LEVELS: Final = {"concurrency": "1", "cacheState": "Natural", "tls": "None"}
_TIMES: Final = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1, "ns"))
_RATES: Final = ((1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s"), (1, "B/s"))
_DIGITS: Final = 4


def duration(nanoseconds: float) -> str:
    """12.78 s, 34.2 ms, 812 µs: four significant digits at the most."""
    return _scaled(nanoseconds, _TIMES)


def byte_rate(bytes_per_second: float) -> str:
    """84.03 MB/s."""
    return _scaled(bytes_per_second, _RATES)


def _scaled(value: float, units: tuple[tuple[float, str], ...]) -> str:
    factor, unit = next((item for item in units if abs(value) >= item[0]), units[-1])
    return f"{_digits(value / factor)} {unit}"


def _digits(number: float) -> str:
    whole = len(str(int(abs(number))))
    return f"{number:.{max(0, _DIGITS - whole - 1) if whole > 1 else 2}f}"


def case_words(levels: Mapping[str, str]) -> str:
    """The levels that tell a case from the usual: `1Gi Cold TLSv1.3 x4`."""
    words = [levels["fileSize"]] if "fileSize" in levels else []
    for name, level in levels.items():
        if name in {"fileSize", "access"} or USUAL_LEVELS.get(name) == level:
            continue
        words.append(f"x{level}" if name == "concurrency" else level)
    return " ".join(words)
