"""One rule lays out the charts of a run, including those of each paper."""

from collections.abc import Sequence

from tests.unit.report import papers
from tests.unit.report.published import LEVELS, measured, published
from tierbench.advice.selection import relabelled_run
from tierbench.advice.tables import RunResults, newest, runs
from tierbench.api.result import BenchmarkResult
from tierbench.report.panels import Panel, client_names, panels


def run(results: Sequence[BenchmarkResult]) -> RunResults:
    (found,) = newest(runs(results))
    return found


def names(panel: Panel) -> list[tuple[str, int, int]]:
    return [(line.name, line.tone, line.dash) for line in panel.lines]


def test_each_class_is_a_line_if_nothing_else_is_compared() -> None:
    (panel,) = panels(run(published()))
    assert (panel.axis, panel.distinguished_by, panel.held) == ("fileSize", ("class",), "")
    assert names(panel) == [("cloud", 0, 0), ("jetson", 1, 0)]


def test_access_networks_are_lines_of_one_plot() -> None:
    (panel,) = panels(run(papers.access_networks()))
    assert (panel.axis, panel.levels) == ("payloadSize", ("1Ki", "10Ki", "100Ki"))
    assert panel.distinguished_by == ("broker", "access network")
    assert names(panel) == [
        ("kafka, lte", 0, 0),
        ("kafka, 5g-sa", 0, 1),
        ("mosquitto, lte", 1, 0),
        ("mosquitto, 5g-sa", 1, 1),
    ]
    assert all(len(line.cell(size).results) == 1 for line in panel.lines for size in panel.levels)


def test_clients_have_the_names_of_unique_access_networks() -> None:
    def client_names_of(*networks: str) -> list[str]:
        clients = [{"nodeClass": f"class-{n}", "node": "n", "accessNetwork": name} for n, name in enumerate(networks)]
        cases = enumerate(clients, start=1)
        return [*client_names(run([papers.broker_result(n, 1e6, one, payloadSize="1Ki") for n, one in cases])).values()]

    assert client_names_of("lte", "5g-sa") == ["lte", "5g-sa"]
    assert client_names_of("lte", "") == ["class-0", "class-1"]
    assert client_names_of("lte", "lte") == ["class-0", "class-1"]


def test_ratios_are_on_the_axis_and_algorithms_are_lines() -> None:
    small, large = panels(run(papers.ratios()))
    assert small.levels == tuple(f"Ratio{left}0" for left in range(1, 10))
    assert [name for name, _, _ in names(small)] == ["compression None", "compression Gzip", "compression Zstd"]
    assert (small.held, large.held) == ("10 kB", "100 kB")


def test_numbers_and_words_of_one_factor_have_separate_charts() -> None:
    found = panels(run(papers.contents()))
    assert [len(panel.levels) for panel in found] == [9, 9, 3, 3]
    assert found[2].levels == ("Random", "Zeros", "SensorJSON")
    assert [len(panel.lines) for panel in found] == [3] * 4
    assert [len(table.rows) for table in relabelled_run(run(papers.contents())).tables] == [9, 9, 2, 2, 2]


def test_delivery_is_the_axis_if_sizes_are_few() -> None:
    found = panels(run(papers.deliveries()))
    assert {panel.axis for panel in found} == {"delivery"}
    assert [panel.held for panel in found] == ["2 B, pairs 1", "2 B, pairs 4", "2 kB, pairs 1", "2 kB, pairs 4"]
    assert names(found[0]) == [("TLS None", 0, 0), ("TLSv1.2", 1, 0)]


def test_too_many_lines_become_separate_charts() -> None:
    states = ("Unchanged", "Warm", "Cold", "A", "B")
    results = [
        measured(server, size, [(1.0, 0)], levels={**LEVELS, "cacheState": state})
        for server in ("cloud", "jetson")
        for state in states
        for size in ("1M", "2M", "3M")
    ]
    assert [panel.held for panel in panels(run(results))] == [f"cache state {state}" for state in states]
    assert len(panels(run([each for each in results if each.spec.levels["cacheState"] not in "AB"]))) == 1


def test_every_case_is_in_one_cell() -> None:
    for results in (papers.access_networks(), papers.contents(), papers.deliveries(), papers.devices(), published()):
        cells = [cell for panel in panels(run(results)) for line in panel.lines for cell in line.cells.values()]
        cases = [result.spec.case for cell in cells for result in cell.results]
        assert sorted(cases) == sorted(result.spec.case for result in results)
    assert (
        max(len(c.results) for p in panels(run(papers.ratios())) for line in p.lines for c in line.cells.values()) == 1
    )


def test_clients_at_once_have_no_client_class() -> None:
    spec = papers.devices()[0].spec
    client = spec.client.model_copy(update={"node_class": "pc"})
    other = papers.devices()[0].model_copy(update={"spec": spec.model_copy(update={"client": client})})
    found = panels(run([*papers.devices()[1:], other]))
    assert [[line.name for line in panel.lines] for panel in found] == [["pc", "device"], ["cloud"]]


def test_factor_of_one_broker_is_part_of_its_name() -> None:
    results = [
        papers.broker_result(1, 1e6, broker="mosquitto", payloadSize="1Ki"),
        papers.broker_result(2, 1e6, broker="kafka", payloadSize="1Ki", codec="None"),
        papers.broker_result(3, 1e6, broker="kafka", payloadSize="1Ki", codec="Zstd"),
    ]
    (panel,) = panels(run(results))
    assert [line.name for line in panel.lines] == ["mosquitto", "kafka with codec None", "kafka with codec Zstd"]
