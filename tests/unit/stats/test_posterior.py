"""Relations and prospects from posterior distributions."""

import pytest

from tierbench.stats.posterior import Component, Mixture, Relation, prospects, relation, student


@pytest.mark.parametrize("apart", [0.1, 10.0])
def test_probabilities_of_two_distant_alternatives_add_up_to_one(apart: float) -> None:
    def posterior(centre: float) -> Mixture:
        return Mixture((Component(1 - 1e-4, centre, 1e-6, 0.0), Component(1e-4, centre + 0.2, 1e-6, 0.0)))

    found = prospects({"first": posterior(0.0), "second": posterior(apart)})
    assert found["first"].best + found["second"].best == pytest.approx(1, abs=1e-7)


@pytest.mark.parametrize(
    ("centre", "deviation", "wanted"),
    [
        (-0.10, 0.02, Relation.BETTER),
        (0.10, 0.02, Relation.WORSE),
        (-0.04, 0.015, Relation.AHEAD),
        (0.04, 0.015, Relation.BEHIND),
        (0.0, 0.02, Relation.EQUAL),
        (-0.02, 0.005, Relation.EQUAL),
        (-0.04, 0.03, Relation.INCONCLUSIVE),
    ],
)
def test_relation_follows_from_the_difference_and_a_margin_of_5_percent(
    centre: float, deviation: float, wanted: Relation
) -> None:
    assert relation(student(centre, deviation**2, 0.0), 0.05) is wanted
    assert relation(student(-centre, deviation**2, 0.0), 0.05) is wanted.inverse
