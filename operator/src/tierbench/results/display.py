"""Numbers and cases as a person reads them: the one place for units."""

import math
from collections.abc import Mapping
from typing import Final

USUAL_LEVELS: Final = {"concurrency": "1", "cacheState": "Natural", "tls": "None"}
_TIMES: Final = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1, "ns"))
_RATES: Final = ((1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s"), (1, "B/s"))
_DIGITS: Final = 3


def duration(nanoseconds: float) -> str:
    """34.2 ms, 812 µs: three significant digits; seconds to hundredths, as papers print them: 12.78 s."""
    return _scaled(nanoseconds, _TIMES)


def byte_rate(bytes_per_second: float) -> str:
    """84.0 MB/s: three significant digits."""
    return _scaled(bytes_per_second, _RATES)


def _scaled(value: float, units: tuple[tuple[float, str], ...]) -> str:
    """The unit is that of the rounded value: 999.9 ms is 1.00 s."""
    rounded = abs(float(f"{value:.{_DIGITS}g}"))
    factor, unit = next((item for item in units if rounded >= item[0]), units[-1])
    return f"{value / factor:.{2 if unit == 's' else _decimals(rounded / factor)}f} {unit}"


def _decimals(rounded: float) -> int:
    return max(0, _DIGITS - 1 - math.floor(math.log10(rounded))) if rounded >= 1 else 0


def case_words(levels: Mapping[str, str]) -> str:
    """The levels that tell a case from the usual: `1Gi Cold TLSv1.3 x4`."""
    words = [levels["fileSize"]] if "fileSize" in levels else []
    for name, level in levels.items():
        if name in {"fileSize", "access"} or USUAL_LEVELS.get(name) == level:
            continue
        words.append(f"x{level}" if name == "concurrency" else level)
    return " ".join(words)
