"""Percentiles by class: the right numbers, only where there are enough, drawn within the plot."""

import re
from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from tests.unit.report.brokers import measured, three_classes
from tests.unit.report.test_page import outline, page, plots
from tierbench.advice.tables import newest, runs
from tierbench.api.contract import Distributions
from tierbench.api.result import BenchmarkResult
from tierbench.kinds.registry import kind_of, kinds
from tierbench.report.figures import Figure
from tierbench.report.panels import panel_of
from tierbench.report.run_figures import distribution_figures

BROKER = kind_of("BrokerBenchmark").report


def figures(results: list[BenchmarkResult], titles: Mapping[str, str] = BROKER.spreads) -> tuple[Figure, ...]:
    (run,) = newest(runs(results))
    (table,) = run.tables
    return distribution_figures("p", panel_of(table), titles)


def test_percentiles_are_those_of_all_trials_together() -> None:
    times = [10**6 * (1 + n // 90) for n in range(100)]  # 90 of 1 ms, 10 of 2 ms
    (figure,) = figures([measured("cloud", "1Ki", times)])
    numbers = {row[0]: row[1] for row in figure.rows}
    assert list(numbers) == ["0 %", "50 %", "90 %", "99 %"]  # 300 messages: one in 1,000 is not among them
    assert [text.split()[0][:3] for text in numbers.values()] == ["1.0", "1.0", "1.0", "2.0"]


def test_a_plot_for_each_size_and_a_line_for_each_class() -> None:
    found = figures(three_classes())
    assert [figure.chart.title for figure in found] == [
        f"Round trip at {size}" for size in ("1 KiB", "10 KiB", "100 KiB")
    ]
    for figure in found:
        assert [series.name for series in figure.chart.series] == ["cloud", "jetson", "raspberry-pi-4"]
        assert figure.svg.count('class="line"') == 3
    assert len(figures(three_classes(), BROKER.other_spreads)) == 3


def test_every_distribution_that_results_hold_has_a_name() -> None:
    drawn = [name for kind in kinds() for name in (*kind.report.spreads, *kind.report.other_spreads)]
    assert sorted(drawn) == sorted(Distributions.model_fields)


def test_few_messages_have_no_percentiles() -> None:
    assert figures([measured("cloud", "1Ki", [10**6] * 33)]) == ()
    assert len(figures([measured("cloud", "1Ki", [10**6] * 34)])) == 1


def test_a_class_without_enough_messages_ends_earlier() -> None:
    many, few = measured("cloud", "1Ki", [10**6] * 1000), measured("jetson", "1Ki", [10**6] * 20, case=2)
    (figure,) = figures([many, few])
    assert figure.rows[-1][2] == "–"
    assert figure.rows[2][2] != "–"


@given(st.lists(st.integers(1, 10**10), min_size=34, max_size=200))
def test_lines_never_fall_and_stay_within_the_plot(times: list[int]) -> None:
    (figure,) = figures([measured("cloud", "1Ki", times)])
    (line,) = re.findall(r'class="line" d="M([^"]+)"', figure.svg)
    corners = [tuple(map(float, corner.split())) for corner in line.split("L")]
    assert corners == sorted(corners, key=lambda corner: corner[0])
    assert [y for _, y in corners] == sorted((y for _, y in corners), reverse=True)
    assert all(66 <= x <= 466 and 12 <= y <= 254 for x, y in corners)


def test_the_page_shows_them() -> None:
    html = page(three_classes())
    text = "".join(outline(html).text)
    assert "How single observations are spread (3)" in text
    assert "Share that was at least as fast" in text
    assert len(plots(html)) == html.count('<details class="numbers">')
