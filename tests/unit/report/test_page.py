"""The report page: complete, self-contained, safe, and fast."""

import re
from collections.abc import Mapping
from functools import cache
from html.parser import HTMLParser
from itertools import product
from typing import Any
from xml.etree import ElementTree

from rich.text import Text

from tests.unit.kinds.network.test_report import ALONE, CLIENTS, result
from tests.unit.kinds.network.test_report import run as network_run
from tests.unit.report.published import LEVELS, measured, published
from tests.unit.results.preflights import blocked, node_network, with_networks
from tierbench.advice.tables import newest, runs
from tierbench.api.result import BenchmarkResult
from tierbench.cli.results import show_run
from tierbench.report.page import render


def page(results: list[BenchmarkResult], specs: Mapping[tuple[str, str, str], Mapping[str, Any]] | None = None) -> str:
    return render(newest(runs(results)), specs or {})


@cache
def published_page() -> str:
    return page(published())


def plots(html: str) -> list[ElementTree.Element]:
    return [ElementTree.fromstring(svg) for svg in re.findall(r'<svg viewBox="0 0 480.*?</svg>', html, re.DOTALL)]


class Outline(HTMLParser):
    """Checks that all elements are closed in order, and collects attributes and text."""

    VOID = frozenset({"meta", "br", "rect", "path", "circle"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += [(tag, name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def outline(html: str) -> Outline:
    parser = Outline()
    parser.feed(html)
    assert parser.open == []
    return parser


def test_answer_is_at_the_top() -> None:
    text = " ".join("".join(outline(published_page()).text).replace("\xa0", " ").split())
    assert "cloud is ahead at 1 MiB, by 47%; jetson is ahead from 512 MiB to 2 GiB" in text
    assert text.index("Retries occurred only on jetson, from 3 GiB on") < text.index("22.11 ± 0.05 s")


def test_page_of_one_class_compares_the_setting_that_varies() -> None:
    """The columns are levels of the setting. Nodes and trials have the name of the class."""
    results = [
        measured(
            "cloud", "1Mi", [(base * step, 0) for step in (0.99, 1.0, 1.01)], case, levels={**LEVELS, "tls": level}
        )
        for case, (level, base) in enumerate((("None", 1.0), ("TLSv1.3", 2.0)), start=1)
    ]
    html = page(results)
    text = " ".join("".join(outline(html).text).replace("\xa0", " ").split())
    assert "On the nodes measured, TLS None is ahead at 1 MiB, by 50%." in text
    assert "cloud-1" in text
    (run,) = runs(results)
    printed = "".join(str(part) for part in show_run(run) if isinstance(part, Text))
    assert "On the nodes measured, TLS None is ahead at 1 MiB, by 50%." in printed


def test_shares_of_clients_are_added_to_the_answer() -> None:
    run = network_run(*ALONE, result(4, CLIENTS, 60, 30, 10))
    sentence = "All at once, phone gets 60% of the total throughput. Compared with alone: phone 60%"
    assert sentence in render([run], {})
    assert sentence in "".join(str(part) for part in show_run(run) if isinstance(part, Text))


def test_page_loads_nothing() -> None:
    html = published_page()
    found = outline(html)
    assert not re.search(r"https?:|url\(|@import|<script|<link|<iframe", html)
    assert not {name for _, name, _ in found.attributes} & {"src", "srcset", "background", "onclick", "onload"}
    assert all(value.startswith("#") for _, name, value in found.attributes if name == "href")


def test_every_chart_has_a_title_a_description_and_numbers() -> None:
    html = published_page()
    drawn = plots(html)
    assert len(drawn) >= 8
    for svg in drawn:
        ids = {child.get("id") for child in svg if child.tag in {"title", "desc"} and child.text}
        assert set((svg.get("aria-labelledby") or "").split()) == ids
        assert svg.get("role") == "img"
    assert html.count('<details class="numbers">') == len(drawn)
    names = [value for _, name, value in outline(html).attributes if name == "id"]
    assert len(names) == len(set(names))


def test_every_trial_is_a_dot_and_a_row() -> None:
    html = published_page()
    dots = [
        len(path.get("d", "").split("M")) - 1 for path in plots(html)[0].iter("path") if path.get("class") == "trials"
    ]
    assert sum(dots) == 140
    assert len(re.findall(r"<tr><td>.*?</tr>", html.split('class="trials"><summary>')[1])) == 140


def test_every_mark_is_within_its_chart() -> None:
    for svg in plots(published_page()):
        for bar in svg.iter("rect"):
            assert 0 <= float(bar.get("y", "nan")) <= 254
            assert float(bar.get("y", "nan")) + float(bar.get("height", "nan")) <= 254.1
        for mark in svg.iter("circle"):
            assert 12 <= float(mark.get("cy", "nan")) <= 254
            assert 66 <= float(mark.get("cx", "nan")) <= 466


def test_names_are_escaped() -> None:
    hostile = '"><script>alert(1)</script>'
    result = measured("cloud", "1Mi", [(1.0, 0)], name=hostile, node=hostile)
    assert "<script" not in page([result])


def test_known_spec_is_shown() -> None:
    specs = {("FileTransferBenchmark", "default", "file-transfer"): {"fileSizes": ["1Mi"], "access": "NodePort"}}
    assert "access: NodePort" in page(published(), specs)


def test_page_has_notes_on_invalid_results() -> None:
    text = "".join(outline(published_page()).text)
    assert "1 of 14 cases are not valid" in text
    assert "SpreadTooWide" in text
    assert "CacheCannotHold" in text


def test_page_shows_a_run_without_statistics() -> None:
    result = measured("cloud", "1Mi", [(1.0, 0)])
    running = {"metadata": {"name": "r"}, "spec": result.spec.to_json(), "status": {"phase": "Running"}}
    failed = running | {"status": {"phase": "Failed", "reason": "NoReadyNode", "message": "No node is ready."}}
    text = "".join(outline(page([BenchmarkResult.model_validate(running)])).text)
    assert "There is too little data at 1 MiB" in text.replace("\xa0", " ")
    assert "No node is ready." in page([BenchmarkResult.model_validate(failed)])


def statistic(mean: int) -> dict[str, int]:
    around = dict.fromkeys(("min", "max", "p50", "p90", "p99"), mean)
    ends = {"confidenceLow": mean * 99 // 100, "confidenceHigh": mean * 101 // 100}
    return {"count": 5, "mean": mean, "standardDeviation": mean // 100, **around, **ends}


def result_of_kind(
    kind: str, levels: Mapping[str, str], server: str, case: int, statistics: Mapping[str, int]
) -> BenchmarkResult:
    return BenchmarkResult.model_validate(
        {
            "metadata": {"name": f"x-{case}"},
            "spec": {
                "benchmark": {"kind": kind, "name": "other"},
                "run": 1,
                "case": case,
                "levels": levels,
                "server": {"nodeClass": server, "node": f"{server}-1"},
                "client": {"nodeClass": "pi", "node": "pi-1"},
                "trials": 5,
            },
            "status": {
                "phase": "Complete",
                "statistics": {name: statistic(mean) for name, mean in statistics.items()},
                "counts": {"completed": 5},
            },
        }
    )


def test_page_shows_unknown_quantities_and_factors() -> None:
    results = [
        result_of_kind(
            "BrokerBenchmark",
            {"broker": "kafka", "delivery": delivery, "payloadSize": payload},
            server,
            case,
            {
                "roundTripNanoseconds": 10**6 * case,
                "throughputMessagesPerSecond": 10**5 // case,
                "lostRatioPartsPerMillion": 5,
            },
        )
        for case, (server, delivery, payload) in enumerate(
            product(("cloud", "pi"), ("AtMostOnce", "AtLeastOnce"), ("1024", "10240")), start=1
        )
    ]
    text = "".join(outline(page(results)).text).replace("\xa0", " ")
    assert "delivery AtMostOnce" in text
    assert "cloud is ahead from 1 KiB to 10 KiB" in text
    assert "Round trip by payload size, class and delivery" in text
    assert "Lost ratio by payload size, class and delivery" in text


def test_networks_are_compared_by_rate() -> None:
    results = [
        result_of_kind("NetworkBenchmark", {"direction": "Upload"}, server, case, {"throughputBitsPerSecond": rate})
        for case, (server, rate) in enumerate((("cloud", 9 * 10**8), ("pi", 10**8)), start=1)
    ]
    text = "".join(outline(page(results)).text).replace("\xa0", " ")
    assert "cloud is ahead with direction Upload, by 800%" in text
    assert "900.0 ± 9.0 Mbit/s" in text


def test_page_has_about_ten_kilobytes_per_result() -> None:
    """A page of 1,000 results is smaller than 10 MB, because it leaves out charts of many combinations."""
    sizes = ("1Mi", "512Mi", "1Gi", "2Gi", "3Gi", "4Gi", "5Gi")
    places = product(("cloud", "jetson"), ("1", "2"), ("Unchanged", "Warm", "Cold"), ("None", "TLSv1.3"), sizes)
    results = [
        measured(
            server,
            size,
            [(5 + trial / 100, trial % 2) for trial in range(10)],
            case,
            levels={"concurrency": concurrency, "cacheState": state, "tls": tls},
        )
        for case, (server, concurrency, state, tls, size) in enumerate(places, start=1)
    ]
    assert len(results) == 168
    assert len(page(results).encode()) < 2_200_000


def test_page_of_many_combinations_has_the_main_charts_of_each() -> None:
    sizes, numbers, states = (
        ("1Mi", "512Mi", "1Gi", "2Gi", "3Gi", "4Gi", "5Gi"),
        "123456",
        ("Unchanged", "Warm", "Cold", "A", "B"),
    )
    times = [(5.0, 0), (5.1, 0), (5.2, 0)]
    places = product(("cloud", "jetson"), sizes, numbers, states)
    results = [
        measured(server, size, times, case, levels={**LEVELS, "concurrency": number, "cacheState": state})
        for case, (server, size, number, state) in enumerate(places, start=1)
    ]
    html = page(results)
    assert html.count("There are too many combinations") == 1
    assert html.count("<h4>Transfer time by file size and class: ") == 30
    assert html.count("<h4>Throughput by file size and class: ") == 24
    assert html.count("<h4>How much longer than the fastest class</h4>") == 24


def test_page_has_a_table_of_networks_in_the_preflight() -> None:
    first, second, *_ = published()
    text = "".join(outline(page([with_networks(first, node_network()), with_networks(second, blocked())])).text)
    assert "Network between nodes" in text
    for text_part in ("user-1 to cloud-1", "90.0 Mbit/s", "80.0 Mbit/s", "700 µs", "10%", "lte"):
        assert text_part in text, text_part
    assert "ServerUnreachable: no route: see network policies." in text
    assert "Network between nodes" not in page([first, second])


def test_page_names_the_files_that_results_come_from() -> None:
    found = newest(runs(published()))
    assert "read from a&lt;b.json, not from a cluster" in render(found, {}, files=["a<b.json"])
    assert "not from a cluster" not in render(found, {})
