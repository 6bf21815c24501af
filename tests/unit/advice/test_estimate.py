"""Which way a quantity is good."""

import pytest

from tierbench.advice.estimate import smaller_is_better


@pytest.mark.parametrize(
    ("quantity", "small"),
    [
        ("durationNanoseconds", True),
        ("throughputBytesPerSecond", False),
        ("fairnessPartsPerMillion", False),
        ("pairFairnessPartsPerMillion", False),
    ],
)
def test_even_shares_and_high_rates_are_the_good_ones(quantity: str, small: bool) -> None:
    assert smaller_is_better(quantity) == small
