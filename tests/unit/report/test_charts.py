"""Charts: marks are at their values, and shapes distinguish series without colour."""

from itertools import pairwise
from typing import Any
from xml.etree import ElementTree

import pytest

from tierbench.report.charts import BOTTOM, HEIGHT, Chart, Point, Series, bars, lines, stacked

BASE = HEIGHT - BOTTOM
LEVELS = ("1", "2", "4")


def chart(*series: Series, **options: Any) -> Chart:
    return Chart("c", "Title", "Description.", "throughputBytesPerSecond", "Pairs", LEVELS, series, **options)


def series(name: str, *values: float, tone: int | None = None, dash: int = 0) -> Series:
    points = tuple(Point(level, value, f"{value}") for level, value in enumerate(values))
    return Series(name, points, tone=tone, dash=dash)


def rects(svg: str) -> list[tuple[float, float]]:
    """Returns the top and the bottom of each bar, with the gap between segments."""
    found = ElementTree.fromstring(svg).iter("rect")
    spans = [(float(rect.get("y", "nan")), float(rect.get("height", "nan"))) for rect in found]
    return [(y, y + height) for y, height in spans]


def test_stack_starts_at_the_axis_and_each_segment_at_the_one_below() -> None:
    drawn = rects(stacked(chart(series("a", 10, 20, 30), series("b", 30, 20, 10), series("c", 10, 10, 10))))
    for level in range(3):
        parts = drawn[level::3]
        assert parts[0][1] == BASE
        assert all(lower[0] == pytest.approx(upper[1], abs=1.2) for lower, upper in pairwise(parts))
        assert parts[-1][0] == pytest.approx(drawn[-1][0], abs=1.2), "the totals are the same"


def test_missing_segment_leaves_no_gap() -> None:
    missing = Series("b", (Point(0, 5, "5"),))
    drawn = rects(stacked(chart(series("a", 5, 5, 5), missing, series("c", 5, 5, 5))))
    assert drawn[5][1] == pytest.approx(drawn[1][0], abs=1.2)


def test_segments_and_bars_have_their_mark() -> None:
    for draw in (stacked, bars):
        svg = draw(chart(series("a", 10, 10, 10), series("b", 10, 10, 10)))
        assert svg.count("<circle") == 3, "the first series' mark is a circle"
        assert svg.count('class="mark"') == 6
        assert ">a: 10<" in svg


def test_colour_and_stroke_distinguish_two_factors() -> None:
    four = [series(f"{tone}{dash}", 1, 2, 3, tone=tone, dash=dash) for tone in (0, 1) for dash in (0, 1)]
    found = ElementTree.fromstring(lines(chart(*four))).iter("g")
    assert [group.get("class") for group in found if "series" in group.get("class", "")] == [
        "series s0",
        "series s0 d1",
        "series s1",
        "series s1 d1",
    ]
    assert 'class="line"' in chart(*four).swatch(1)
    assert 'class="bar"' in chart(*four, bars=True).swatch(1)
    assert 'class="line"' not in chart(series("a", 1, 2, 3)).swatch(0)


def test_axis_of_shares_is_linear_and_axis_of_sizes_is_logarithmic() -> None:
    def places(**options: Any) -> list[float]:
        svg = ElementTree.fromstring(lines(chart(series("a", 1, 2, 3), **options)))
        return [float(mark.get("cx", "nan")) for mark in svg.iter("circle")]

    left, middle, right = places(numbers=(10, 50, 90), proportional=True)
    assert middle - left == right - middle
    left, middle, right = places(numbers=(10, 30, 90))
    assert abs((middle - left) - (right - middle)) < 0.2


def test_bars_have_intervals_and_trials() -> None:
    point = Point(0, 10, "10", 8, 12, (9.0, 10.0, 11.0))
    svg = bars(chart(Series("a", (point,))))
    assert svg.count('class="interval"') == svg.count('class="trials"') == 1
