"""Who is ahead where, from the published table and from small ones."""

from collections.abc import Mapping, Sequence

import pytest

from tests.unit.report.published import measured, published
from tierbench.advice.matrix import Table, runs
from tierbench.advice.words import retries, said_of, standings, stretches

TIME = "durationNanoseconds"
RATE = "throughputBytesPerSecond"


def answer(found: Table, quantity: str) -> str:
    return said_of(found, standings([found], quantity)[0])


def table(
    seconds: Mapping[tuple[str, str], Sequence[float]], tried_again: Mapping[tuple[str, str], int] | None = None
) -> Table:
    again = tried_again or {}
    results = [
        measured(server, size, [(time, again.get((server, size), 0)) for time in times], case)
        for case, ((server, size), times) in enumerate(seconds.items(), start=1)
    ]
    return runs(results)[0].tables[0]


def test_the_published_table_gives_the_published_answer() -> None:
    found = runs(published())[0].tables[0]
    assert [
        (stretch.leaders, [standing.level for standing in stretch.standings])
        for stretch in stretches(standings([found], TIME)[0])
    ] == [
        (("cloud",), ["1M"]),
        (("jetson",), ["512M", "1G", "2G"]),
        (("cloud",), ["3G", "4G", "5G"]),
    ]
    assert answer(found, TIME) == (
        "On the nodes measured, cloud is ahead at 1 MB, by 47 %; jetson is ahead from 512 MB to 2 GB, by 12–14 %; "
        "cloud is ahead from 3 GB on, by 14–16 %."
    )
    assert retries(found) == "Retries happened only on jetson, from 3 GB on (38 in all)."


def test_a_rate_ranks_the_other_way_round() -> None:
    found = runs(published())[0].tables[0]
    rates, times = standings([found], RATE)[0], standings([found], TIME)[0]
    assert [each.leaders for each in rates] == [each.leaders for each in times]


def test_what_is_not_shown_is_not_known() -> None:
    found = table({("cloud", "1M"): [1.0, 1.2, 1.4], ("jetson", "1M"): [1.1, 1.3, 1.5]})
    assert answer(found, TIME) == "On the nodes measured, it is not known which of cloud and jetson is ahead at 1 MB."


def test_a_single_trial_proves_nothing() -> None:
    found = table({("cloud", "1M"): [1.0], ("jetson", "1M"): [9.0]})
    assert answer(found, TIME) == "nothing is known at 1 MB."


def test_a_class_alone_is_not_ahead() -> None:
    found = table({("cloud", "1M"): [1.0, 1.1], ("cloud", "2M"): [2.0, 2.1], ("jetson", "2M"): [9.0, 9.1]})
    assert (
        answer(found, TIME) == "On the nodes measured, only cloud is measured at 1 MB; cloud is ahead at 2 MB, by 77 %."
    )


def test_the_best_class_everywhere() -> None:
    times = {
        (server, size): [base, base + 0.01]
        for server, base in (("cloud", 1.0), ("jetson", 2.0))
        for size in ("1M", "2M")
    }
    assert answer(table(times), TIME) == "On the nodes measured, cloud is ahead from 1 MB to 2 MB, by 50 %."


@pytest.mark.parametrize(
    ("tried_again", "sentence"),
    [
        ({}, "No retries."),
        ({("cloud", "1M"): 1}, "Retries happened only on cloud, at 1 MB (2 in all)."),
        (
            {("cloud", "1M"): 1, ("cloud", "3M"): 1, ("jetson", "1M"): 2, ("jetson", "2M"): 1},
            "Retries happened on cloud, at 1 MB and 3 MB (4 in all) and on jetson, up to 2 MB (6 in all).",
        ),
    ],
)
def test_where_retries_happened(tried_again: Mapping[tuple[str, str], int], sentence: str) -> None:
    times = {(server, size): [1.0, 1.1] for server in ("cloud", "jetson") for size in ("1M", "2M", "3M")}
    assert retries(table(times, tried_again)) == sentence
