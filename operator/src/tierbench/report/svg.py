"""SVG elements, scales and ticks."""

from collections.abc import Callable, Sequence
from math import ceil, floor, log10

from markupsafe import Markup, escape

Scale = Callable[[float], float]


def element(name: str, *children: str | Markup, **attributes: str | float) -> Markup:
    """An element; `class_` and `text_anchor` become `class` and `text-anchor`. Text is escaped, numbers rounded."""
    head = "".join(f' {key.rstrip("_").replace("_", "-")}="{_value(value)}"' for key, value in attributes.items())
    body = "".join(escape(child) for child in children)
    return Markup(f"<{name}{head}>{body}</{name}>" if body else f"<{name}{head}/>")  # noqa: S704 (escaped above)


def _value(value: str | float) -> str:
    return str(escape(value)) if isinstance(value, str) else f"{value:.1f}".removesuffix(".0")


def path(points: Sequence[tuple[float, float]]) -> str:
    """A polyline as path data."""
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)


def linear(low: float, high: float, start: float, end: float) -> Scale:
    """Maps low..high onto start..end."""
    factor = (end - start) / ((high - low) or 1)
    return lambda value: start + (value - low) * factor


def logarithmic(low: float, high: float, start: float, end: float) -> Scale:
    """The same by logarithms; everything must be positive."""
    scale = linear(log10(low), log10(high), start, end)
    return lambda value: scale(log10(value))


def linear_ticks(high: float, unit: float, count: int = 5) -> list[float]:
    """Round numbers of `unit` from 0 to beyond `high`, about `count` of them."""
    if high <= 0:
        return [0.0, unit]
    rough = high / unit / count
    magnitude = 10 ** floor(log10(rough))
    step = next(nice * magnitude for nice in (1, 2, 2.5, 5, 10) if nice * magnitude >= rough)
    return [index * step * unit for index in range(ceil(high / unit / step - 1e-9) + 1)]


def log_ticks(low: float, high: float, most: int = 7) -> list[float]:
    """1, 2 and 5 times powers of ten within low..high, or powers alone if those are too many."""
    exponents = range(floor(log10(low)), ceil(log10(high)) + 1)
    for digits in ((1, 2, 5), (1, 3), (1,)):
        found = [digit * 10.0**exponent for exponent in exponents for digit in digits]
        inside = [tick for tick in found if low <= tick <= high]
        if len(inside) <= most:
            return inside
    return inside


def marker(index: int, x: float, y: float, size: float = 4.2) -> Markup:
    """The mark of the `index`-th series: its shape tells it apart without colour."""
    s = size
    corners = (
        [],
        [(-s, -s), (s, -s), (s, s), (-s, s)],
        [(0, -1.3 * s), (1.2 * s, 0.9 * s), (-1.2 * s, 0.9 * s)],
        [(0, -1.4 * s), (1.4 * s, 0), (0, 1.4 * s), (-1.4 * s, 0)],
        [(0, 1.3 * s), (1.2 * s, -0.9 * s), (-1.2 * s, -0.9 * s)],
        [(-0.5 * s, -1.3 * s), (0.5 * s, -1.3 * s), (0.5 * s, 1.3 * s), (-0.5 * s, 1.3 * s)],
    )[index % 6]
    if not corners:
        return element("circle", class_="mark", cx=x, cy=y, r=size)
    return element("path", class_="mark", d=path([(x + dx, y + dy) for dx, dy in corners]) + "Z")
