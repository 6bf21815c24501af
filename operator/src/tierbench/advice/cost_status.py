"""Effects and knees as the status of an advice keeps them."""

from typing import Final

from tierbench.advice.costs import Costs
from tierbench.advice.effect_words import statement
from tierbench.advice.effects import Effect
from tierbench.advice.inference.verdict import Outcome
from tierbench.advice.knee import Knee
from tierbench.advice.verdicts import millionths
from tierbench.api.advice_answer import (
    MOST_EFFECTS,
    MOST_KNEES,
    EffectAt,
    EffectVerdict,
    FactorEffect,
    FactorKnee,
    KneeAt,
)

_LONGEST: Final = 1024
_VERDICTS: Final = {
    Outcome.BETTER: EffectVerdict.BETTER,
    Outcome.AHEAD: EffectVerdict.AHEAD,
    Outcome.EQUAL: EffectVerdict.EQUAL,
    Outcome.UNKNOWN: EffectVerdict.NOT_KNOWN,
    Outcome.BEHIND: EffectVerdict.BEHIND,
    Outcome.WORSE: EffectVerdict.WORSE,
}


def factor_effects(costs: Costs) -> tuple[FactorEffect, ...]:
    """The largest effects."""
    return tuple(map(_effect, costs.effects[:MOST_EFFECTS]))


def factor_knees(costs: Costs) -> tuple[FactorKnee, ...]:
    """The knees."""
    return tuple(map(_knee, costs.knees[:MOST_KNEES]))


def _effect(effect: Effect) -> FactorEffect:
    return FactorEffect(
        factor=effect.factor,
        from_level=effect.first,
        to_level=effect.second,
        by=effect.by,
        statement=statement(effect)[:_LONGEST],
        at=tuple(
            EffectAt(
                level=part.level,
                verdict=_VERDICTS[part.outcome],
                ratio_parts_per_million=millionths(part.ratio.value),
                low_parts_per_million=millionths(part.ratio.low),
                high_parts_per_million=millionths(part.ratio.high),
            )
            for part in effect.parts
        ),
    )


def _knee(knee: Knee) -> FactorKnee:
    at = tuple(KneeAt(level=turn.level, knee=turn.knee, course=turn.course) for turn in knee.turns)
    return FactorKnee(factor=knee.factor, by=knee.by, statement=str(knee)[:_LONGEST], at=at)
