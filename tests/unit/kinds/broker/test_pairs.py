"""Shares of pairs: of several pods, over the trials of a case, and their fairness."""

import pytest

from tests.unit.kinds.broker.trials import line, measured, recorded
from tierbench.api.contract import PairShares, TrialLine
from tierbench.kinds.broker.measures import pair_rates
from tierbench.results.client_output import PartOutput, merge_parts


def shared(number: int, *pairs: tuple[int, int], **fields: str) -> TrialLine:
    """A trial of pairs, each given as the messages that it received and the milliseconds that they took."""
    received, milliseconds = zip(*pairs, strict=True)
    shares = PairShares(received=received, nanoseconds=tuple(one * 10**6 for one in milliseconds))
    body = line(number, pairs=len(pairs)).to_json() | {"pairShares": shares.to_json()} | fields
    return TrialLine.model_validate(body)


def test_pairs_of_several_parts_are_in_the_order_of_the_parts() -> None:
    echo = shared(1, (7, 7))
    parts = [PartOutput([shared(1, (10, 1), (20, 2))]), PartOutput([shared(1, (30, 3))]), PartOutput([echo], echo=True)]
    (merged,) = merge_parts(parts)
    assert merged.pair_shares == PairShares(received=(10, 20, 30), nanoseconds=(10**6, 2 * 10**6, 3 * 10**6))


def test_pairs_add_up_over_good_trials() -> None:
    failed = shared(3, (9, 9), (9, 9), outcome="Failed")
    record = recorded(shared(1, (10, 10), (20, 10)), shared(2, (30, 10), (60, 30)), failed, pairs="2").recorded
    assert record.pair_shares == PairShares(received=(40, 80), nanoseconds=(20 * 10**6, 40 * 10**6))
    assert pair_rates(record.pair_shares) == (2000, 2000)


def test_size_of_pair_shares_does_not_grow_with_trials() -> None:
    """A case has at most 256 pairs and 35 trials."""
    trials = [shared(number, *[(10**6, 10**8)] * 256) for number in range(1, 36)]
    record = recorded(*trials, pairs="256").recorded.to_json()
    assert len(str(record["pairShares"])) < 8 * 1024
    assert not any("pairShares" in trial for trial in record["trials"])


@pytest.mark.parametrize(
    ("pairs", "index"),
    [
        ([(100, 1000), (100, 1000)], 1_000_000),
        ([(100, 1000), (100, 2000)], 900_000),  # 100 and 50 per second
        ([(100, 1000), (0, 1000)], 500_000),
    ],
)
def test_fairness_compares_rates_of_pairs(pairs: list[tuple[int, int]], index: int) -> None:
    assert measured(shared(1, *pairs), pairs="2").statistics["pairFairnessPartsPerMillion"].mean == index


@pytest.mark.parametrize("pairs", [[(100, 1000)], [(0, 0), (0, 0)]])
def test_one_pair_or_no_message_has_no_fairness(pairs: list[tuple[int, int]]) -> None:
    assert "pairFairnessPartsPerMillion" not in measured(shared(1, *pairs)).statistics
