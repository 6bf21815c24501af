"""What each factor costs, on the page, in the terminal and of an advice."""

from rich.text import Text

from tests.unit.advice.test_effects import tls
from tests.unit.report.published import published
from tests.unit.report.test_page import outline, page
from tierbench.advice.tables import runs
from tierbench.api.result import BenchmarkResult
from tierbench.cli.results import show_run

_SENTENCE = "On the nodes measured, kafka lowers throughput by 29% (95% CI 28–29%) compared with mosquitto."


def printed(results: list[BenchmarkResult]) -> list[str]:
    (run,) = runs(results)
    return [part.plain for part in show_run(run) if isinstance(part, Text)]


def test_the_page_has_sentences_a_table_and_a_plot_by_what_an_effect_depends_on() -> None:
    html = page(tls())
    text = " ".join("".join(outline(html).text).replace("\xa0", " ").split())
    assert "Effects of factors" in text
    assert _SENTENCE in text
    assert "TLS: ratio of throughput by file size" in text
    rows = [row for row in html.split("<tr>") if "TLSv1.3 compared with TLS None</td>" in row]
    assert [row.split("<td>")[3].split("<")[0] for row in rows] == ["1 kB", "10 kB", "100 kB", "1 MB"]
    assert ("worse" in rows[0], "inconclusive" in rows[3]) == (True, True)


def test_the_table_of_results_leaves_out_what_its_answer_compares() -> None:
    """It compares brokers."""
    text = printed(tls())
    start = text.index("Effects of factors, all else equal")
    assert "TLSv1.3 lowers throughput by 23%" in text[start + 1]
    assert not any("kafka lowers" in line for line in text)


def test_one_factor_beside_the_answer_is_in_the_answer() -> None:
    assert "Effects of factors, all else equal" not in printed(published())
