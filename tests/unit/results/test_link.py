"""The link that a client measured is compared with the one that the spec declares."""

from typing import Any

import pytest

from tests.unit.results.trials import NOW, line, spec
from tierbench.api.link import Link
from tierbench.api.record import RecordStatus
from tierbench.api.result import ResultStatus
from tierbench.results.aggregate import add_trials, conclude

LTE: dict[str, Any] = {
    "name": "lte",
    "up": {"kilobitsPerSecond": 12_000, "delayMicroseconds": 20_000},
    "down": {"kilobitsPerSecond": 40_000, "delayMicroseconds": 20_000},
}
GOOD = {
    "roundTripNanoseconds": 40_700_000,
    "uploadBitsPerSecond": 11_900_000,
    "downloadBitsPerSecond": 40_100_000,
}


def measured(link: dict[str, Any], *samples: dict[str, Any] | None) -> ResultStatus:
    wanted = spec(trials=len(samples), warmup=0, link="lte").model_copy(update={"link": Link.model_validate(link)})
    lines = [
        line(number, client={"cpuNanoseconds": 1} | ({} if sample is None else {"link": sample}))
        for number, sample in enumerate(samples, start=1)
    ]
    return conclude(wanted, add_trials(wanted, RecordStatus(), lines, 1), NOW, None)


def reasons(link: dict[str, Any], *samples: dict[str, Any] | None) -> set[str]:
    return {note.reason for note in measured(link, *samples).invalid if note.reason.startswith("Link")}


def test_measured_link_is_reported_next_to_the_declared_one() -> None:
    status = measured(LTE, GOOD, GOOD)
    assert [note.message for note in status.facts if note.reason == "LinkMeasured"] == [
        "Link lte: round trip 40.7 ms (40.1 ms asked), up 11.9 Mbit/s (12.0 Mbit/s asked), "
        "down 40.1 Mbit/s (40.0 Mbit/s asked)."
    ]

    assert not reasons(LTE, GOOD, GOOD)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("roundTripNanoseconds", 43_200_000, "round trip 43.2 ms (40.1 ms asked)"),
        ("roundTripNanoseconds", 36_900_000, "round trip 36.9 ms (40.1 ms asked)"),
        ("uploadBitsPerSecond", 11_300_000, "up 11.3 Mbit/s (12.0 Mbit/s asked)"),
        ("downloadBitsPerSecond", 42_100_000, "down 42.1 Mbit/s (40.0 Mbit/s asked)"),
    ],
)
def test_link_that_differs_makes_the_result_invalid(name: str, value: int, words: str) -> None:
    status = measured(LTE, GOOD, GOOD | {name: value})
    note = next(note for note in status.invalid if note.reason == "LinkDiffers")
    assert note.message == f"Link lte is not as declared: {words}."


@pytest.mark.parametrize(
    ("name", "value"),
    [("roundTripNanoseconds", 43_000_000), ("uploadBitsPerSecond", 11_410_000), ("downloadBitsPerSecond", 41_900_000)],
)
def test_small_differences_are_accepted(name: str, value: int) -> None:
    assert not reasons(LTE, GOOD | {name: value})


def test_low_rate_of_a_link_that_loses_packets_is_accepted() -> None:
    lossy = LTE | {"up": LTE["up"] | {"lossPartsPerMillion": 10_000}}
    assert not reasons(lossy, GOOD | {"uploadBitsPerSecond": 5_000_000})


def test_round_trip_over_a_trace_may_be_longer_but_not_shorter() -> None:
    late = {"delayMicroseconds": 20_000}
    recorded = {"name": "lte", "up": late, "down": late, "trace": {"configMapRef": {"name": "drive"}}}
    assert not reasons(recorded, {"roundTripNanoseconds": 90_000_000})
    assert reasons(recorded, {"roundTripNanoseconds": 30_000_000}) == {"LinkDiffers"}


@pytest.mark.parametrize("sample", [None, {}, {"roundTripNanoseconds": 40_000_000}])
def test_link_that_was_not_measured_is_reported(sample: dict[str, Any] | None) -> None:
    assert reasons(LTE, GOOD, sample) == {"LinkNotMeasured"}
