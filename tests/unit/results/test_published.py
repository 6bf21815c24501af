"""The table of trials: `export` writes it, and tierbench reads it and tables of papers."""

import csv
import io
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.unit.kinds.broker.trials import line
from tests.unit.kinds.broker.trials import recorded as exchanged
from tests.unit.report.published import measured, published
from tests.unit.results.preflights import node_network, with_networks
from tierbench.advice.advise import advise
from tierbench.advice.tables import Cell, derived_statistic, estimate
from tierbench.api.placement_advice import PlacementAdviceSpec
from tierbench.api.result import BenchmarkResult, ResultPhase
from tierbench.kube.meta import parse_time
from tierbench.results.export import to_csv
from tierbench.results.published import is_ignored, read_csv
from tierbench.results.quantities import RETRIES

HEADER = (
    "kind,benchmark,serverClass,clientClass,fileSize,trial,durationSeconds,retries,trials,"
    "durationSecondsStandardDeviation"
)
NOW = parse_time("2026-05-05T00:00:00Z")
TABLES = sorted((Path(__file__).parents[3] / "examples").rglob("published*.csv"))


def read(*lines: str, header: str = HEADER) -> list[BenchmarkResult]:
    return read_csv("\n".join((header, *lines)), "table", "table.csv")


def mean(*cells: str) -> str:
    return ",".join(("FileTransferBenchmark", "f", "cloud", "user", *cells))


def broker() -> BenchmarkResult:
    lines = [line(number).model_copy(update={"transfer": None}) for number in (1, 2)]
    return exchanged(*lines)


def as_rows(text: str) -> list[dict[str, str]]:
    return [{name: value for name, value in row.items() if value} for row in csv.DictReader(io.StringIO(text))]


def test_an_exported_table_is_read_back() -> None:
    results = [*published(), broker()]
    text = to_csv(results)
    again = read_csv(text, "table", "table.csv")
    assert as_rows(to_csv(again)) == [
        {name: value for name, value in row.items() if not is_ignored(name)} for row in as_rows(text)
    ]
    for one, other in zip(sorted(results, key=str_of), sorted(again, key=str_of), strict=True):
        assert one.metadata.name == other.metadata.name or one.spec.benchmark.kind == "FileTransferBenchmark"
        assert {**one.status.statistics} == {**other.status.statistics}
        assert one.status.counts.retries == other.status.counts.retries


def str_of(result: BenchmarkResult) -> tuple[str, int]:
    return result.spec.benchmark.kind, result.spec.case


def test_computers_and_preflight_are_no_factors() -> None:
    text = to_csv([with_networks(broker(), node_network())])
    assert "preflightDownloadBitsPerSecond" in text
    (again,) = read_csv(text, "table", "table.csv")
    assert not [name for name in again.spec.levels if name.startswith(("preflight", "client", "server"))]


def test_an_exported_mean_is_read_back() -> None:
    text = to_csv(read(mean("1Gi", "", "11.06", "0.5", "10", "0.04")))
    assert to_csv(read_csv(text, "table", "table.csv")) == text
    (row,) = as_rows(text)
    assert (row["durationNanoseconds"], row["durationNanosecondsStandardDeviation"]) == ("11060000000", "40000000")
    assert (row["trials"], row["retries"]) == ("10", "0.5")


def test_longer_units_are_converted() -> None:
    header = "kind,protocol,pingMilliseconds,pingLostPercent,throughputMegabitsPerSecond"
    (found,) = read("NetworkBenchmark,TCP,46.4,2,10.8", header=header)
    assert {name: found.status.statistics[name].mean for name in found.status.statistics} == {
        "pingNanoseconds": 46_400_000, "pingLostPartsPerMillion": 20_000, "throughputBitsPerSecond": 10_800_000,
    }  # fmt: skip
    assert found.spec.levels == {"protocol": "TCP"}
    assert (found.spec.server.node_class, found.spec.benchmark.name) == ("unknown", "table")


def test_the_rate_of_a_file_transfer_is_derived() -> None:
    (found,) = read(mean("1Mi", "1", "0.5", "0", "", ""))
    assert found.status.statistics["throughputBytesPerSecond"].mean == 2 * 2**20


@pytest.mark.parametrize(
    ("cells", "count", "interval", "words"),
    [
        (("1Gi", "", "11", "", "10", "0.04"), 10, True, "its single trials are not known"),
        (("1Gi", "", "11", "", "10", ""), 0, False, "no verdict includes it"),
        (("1Gi", "", "11", "", "", "0.04"), 0, False, "no verdict includes it"),
        (("1Gi", "", "11", "", "1", "0.04"), 0, False, "no verdict includes it"),
    ],
)
def test_a_mean_needs_its_number_and_deviation_for_an_interval(
    cells: Sequence[str], count: int, interval: bool, words: str
) -> None:
    (found,) = read(mean(*cells))
    known = estimate(Cell((found,)), "durationNanoseconds")
    assert known is not None
    assert (known.count, known.interval is not None, known.mean) == (count, interval, 11_000_000_000)
    assert words in found.status.facts[0].message
    assert RETRIES not in found.status.statistics


def decided(*more: BenchmarkResult) -> tuple[str, set[str]]:
    cloud = [
        measured("cloud", size, [(1.0, 0), (1.1, 0), (1.05, 0)], case, levels={}) for case, size in enumerate(SIZES, 1)
    ]
    asked = PlacementAdviceSpec(client_class_name="user")
    status = advise(asked, [*cloud, *more], NOW)
    return status.best, {item.name for item in status.ranking if item.value is not None}


SIZES = ("1Mi", "2Mi", "3Mi", "4Mi", "5Mi")


def competitor(deviation: str) -> list[BenchmarkResult]:
    rows = [f"FileTransferBenchmark,g,jetson,user,{size},,,,10,,{2 * 2**30},{deviation}" for size in SIZES]
    return read(*rows, header=f"{HEADER},throughputBytesPerSecond,throughputBytesPerSecondStandardDeviation")


def test_mean_without_deviation_never_decides() -> None:
    assert decided(*competitor("")) == decided()
    status = advise(PlacementAdviceSpec(client_class_name="user"), competitor(""), NOW)
    assert (
        "jetson: A published mean without its number of trials and standard deviation cannot be compared"
        in status.answer
    )
    assert decided(*competitor("1000000"))[0] == "jetson"


@pytest.mark.parametrize("quantity", ["durationP99Nanoseconds", RETRIES])
def test_a_mean_has_no_percentiles_and_no_retries(quantity: str) -> None:
    (found,) = read(mean("1Gi", "", "11", "", "10", "0.04"))
    assert derived_statistic(found, quantity) is None
    (trial,) = read(mean("1Gi", "1", "11", "0", "", ""))
    assert derived_statistic(trial, quantity) is not None


def test_a_failed_trial_is_counted_and_in_no_mean() -> None:
    header = "kind,fileSize,trial,outcome,failure,durationSeconds"
    rows = ("FileTransferBenchmark,1Mi,1,Completed,,2", "FileTransferBenchmark,1Mi,2,Failed,TimedOut,")
    (found,) = read(*rows, header=header)
    assert (found.status.counts.completed, found.status.counts.failed) == (1, 1)
    assert found.status.statistics["durationNanoseconds"].mean == 2_000_000_000
    (failed,) = read(rows[1], header=header)
    assert (failed.status.phase, failed.status.reason) == (ResultPhase.FAILED, "TimedOut")


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("kind,file_size\n", "line 1, column 2: 'file_size' is not the name of a column: write names as `export` does"),
        ("kind,tls,tls\n", "line 1, column 3: there are two columns tls"),
        ("benchmark,fileSize\n", "line 1, there is no column kind: it contains"),
        ("kind,trial\nPod,1\n", "line 2, column kind: 'Pod' is not FileTransferBenchmark or BrokerBenchmark or"),
        ("kind,trial\n,1\n", "line 2, column kind: '' is not FileTransferBenchmark"),
        (f"{HEADER}\n{mean('1QB', '1', '3', '0')}\n", "line 2, column fileSize: '1QB' is not a size: write a whole"),
        (f"{HEADER}\n{mean('1Mi', '0', '3', '0')}\n", "line 2, column trial: '0' is not a number from 1 to 1000"),
        (f"{HEADER}\n{mean('1Mi', '1', '-1', '0')}\n", "line 2, column durationSeconds: '-1' is not a number from 0"),
        (f"{HEADER}\n{mean('1Mi', '1', 'nan', '0')}\n", "line 2, column durationSeconds: 'nan' is not a number"),
        (f"{HEADER}\n{mean('1Mi', '1', '', '')}\n", "line 2: no quantity; a FileTransferBenchmark has durationNanosec"),
        (f"{HEADER}\n{mean('1Mi', '1', '3', '0', '', '', '', '7')}\n", "line 2: 12 fields, and 10 columns"),
        (f"{HEADER}\n{mean('1Mi', '1', '3', '0', '10')}\n", "line 2, column trials: a row is a trial, with its number"),
        (f"{HEADER}\n{mean('1Mi', '1', '3')}\n{mean('1Mi', '1', '4')}\n", "line 3: the same as line 2: remove one"),
        (f"{HEADER}\n{mean('1Mi', '1', '3')}\n{mean('1Mi', '', '4')}\n", "line 3: the same case as line 2, and one is"),
        (
            "kind,retries,trial\nNetworkBenchmark,3,1\n",
            "line 2, column retries: a NetworkBenchmark has no such quantity",
        ),
        (
            "kind,trial,pongNanoseconds\nNetworkBenchmark,1,1\n",
            "line 2, column pongNanoseconds: a NetworkBenchmark has",
        ),
        ("kind,trial,warmup\nNetworkBenchmark,1,yes\n", "line 2, column warmup: 'yes' is not true or false"),
        ("kind,trial,outcome,failure\nNetworkBenchmark,1,Failed,out of time\n", "column failure: 'out of time' is not"),
        ("kind,warmup,pingMilliseconds\nNetworkBenchmark,true,1\n", "line 2, column warmup: a row is a trial"),
    ],
)
def test_error_in_a_table_names_the_line_and_what_is_allowed(text: str, hint: str) -> None:
    with pytest.raises(ValueError) as problem:
        read_csv(text, "table", "table.csv")
    assert hint in str(problem.value)


@pytest.mark.parametrize("path", TABLES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_every_published_table_of_an_example_is_read(path: Path) -> None:
    results = read_csv(path.read_text(), path.stem, path.name)
    assert results
    assert all(result.status.phase is ResultPhase.COMPLETE for result in results)
    assert all(result.spec.benchmark.name.startswith("published-") for result in results)
