"""Who is ahead where, from the published table and from small ones."""

from collections.abc import Mapping, Sequence

import pytest

from tests.unit.report.published import measured, published
from tierbench.advice.answer import retries, said_of
from tierbench.advice.leaders import standings, stretches
from tierbench.advice.tables import Table, runs

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
        (("cloud",), ["1Mi"]),
        (("jetson",), ["512Mi", "1Gi", "2Gi"]),
        (("cloud",), ["3Gi", "4Gi", "5Gi"]),
    ]
    assert answer(found, TIME) == (
        "On the nodes measured, cloud is ahead at 1 MiB, by 47 %; jetson is ahead from 512 MiB to 2 GiB, by 12–14 %; "
        "cloud is ahead from 3 GiB on, by 14–16 %."
    )
    assert retries(found) == "Retries happened only on jetson, from 3 GiB on (38 in all)."


def test_a_rate_ranks_the_other_way_round() -> None:
    found = runs(published())[0].tables[0]
    rates, times = standings([found], RATE)[0], standings([found], TIME)[0]
    assert [each.leaders for each in rates] == [each.leaders for each in times]


def test_what_is_not_shown_is_not_known() -> None:
    found = table({("cloud", "1Mi"): [1.0, 1.2, 1.4], ("jetson", "1Mi"): [1.1, 1.3, 1.5]})
    assert answer(found, TIME) == "On the nodes measured, it is not known which of cloud and jetson is ahead at 1 MiB."


def test_a_single_trial_proves_nothing() -> None:
    found = table({("cloud", "1Mi"): [1.0], ("jetson", "1Mi"): [9.0]})
    assert answer(found, TIME) == "nothing is known at 1 MiB."


def test_a_class_alone_is_not_ahead() -> None:
    found = table({("cloud", "1Mi"): [1.0, 1.1], ("cloud", "2Mi"): [2.0, 2.1], ("jetson", "2Mi"): [9.0, 9.1]})
    assert (
        answer(found, TIME)
        == "On the nodes measured, only cloud is measured at 1 MiB; cloud is ahead at 2 MiB, by 77 %."
    )


def test_the_best_class_everywhere() -> None:
    times = {
        (server, size): [base, base + 0.01]
        for server, base in (("cloud", 1.0), ("jetson", 2.0))
        for size in ("1Mi", "2Mi")
    }
    assert answer(table(times), TIME) == "On the nodes measured, cloud is ahead from 1 MiB to 2 MiB, by 50 %."


@pytest.mark.parametrize(
    ("tried_again", "sentence"),
    [
        ({}, "No retries."),
        ({("cloud", "1Mi"): 1}, "Retries happened only on cloud, at 1 MiB (2 in all)."),
        (
            {("cloud", "1Mi"): 1, ("cloud", "3Mi"): 1, ("jetson", "1Mi"): 2, ("jetson", "2Mi"): 1},
            "Retries happened on cloud, at 1 MiB and 3 MiB (4 in all) and on jetson, up to 2 MiB (6 in all).",
        ),
    ],
)
def test_where_retries_happened(tried_again: Mapping[tuple[str, str], int], sentence: str) -> None:
    times = {(server, size): [1.0, 1.1] for server in ("cloud", "jetson") for size in ("1Mi", "2Mi", "3Mi")}
    assert retries(table(times, tried_again)) == sentence
