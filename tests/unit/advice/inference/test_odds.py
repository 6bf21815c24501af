"""How likely each class is best, where their distributions hardly meet."""

import pytest

from tierbench.advice.inference.mixture import Mixture, Part
from tierbench.advice.inference.odds import odds


@pytest.mark.parametrize("apart", [0.1, 10.0])
def test_one_of_two_is_best_even_if_one_reaches_into_the_gap_between_them(apart: float) -> None:
    def belief(centre: float) -> Mixture:
        return Mixture((Part(1 - 1e-4, centre, 1e-6, 0.0), Part(1e-4, centre + 0.2, 1e-6, 0.0)))

    found = odds({"first": belief(0.0), "second": belief(apart)})
    assert found["first"].best + found["second"].best == pytest.approx(1, abs=1e-7)
