"""Effects of factors on the page and in the terminal."""

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


def test_page_has_sentences_and_a_table_by_the_interacting_factor() -> None:
    html = page(tls())
    text = " ".join("".join(outline(html).text).replace("\xa0", " ").split())
    assert "Effects of factors" in text
    assert _SENTENCE in text
    rows = [row for row in html.split("<tr>") if "TLSv1.3 compared with TLS None</td>" in row]
    assert [row.split("<td>")[3].split("<")[0] for row in rows] == ["1 kB", "10 kB", "100 kB", "1 MB"]
    assert ("worse" in rows[0], "inconclusive" in rows[3]) == (True, True)


def test_terminal_omits_effects_of_the_compared_factor() -> None:
    """The run compares brokers."""
    text = printed(tls())
    start = text.index("Effects of factors, all else equal")
    assert "TLSv1.3 lowers throughput by 23%" in text[start + 1]
    assert not any("kafka lowers" in line for line in text)


def test_terminal_has_no_effects_of_a_run_with_one_further_factor() -> None:
    assert "Effects of factors, all else equal" not in printed(published())
