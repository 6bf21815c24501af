"""Effects in sentences: one for each two levels, places of which the same is said taken together."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from math import inf
from typing import Final

from tierbench.advice.effects import SHOWN, Effect, Part
from tierbench.advice.estimate import smaller_is_better
from tierbench.advice.inference.verdict import Outcome
from tierbench.advice.words import place_in_words
from tierbench.results.levels import are_numbers
from tierbench.results.units import in_sentence, percent, title

_TWO: Final = 2
_TWICE: Final = 2.0
"""From here on a ratio is said as one, and not as a share."""
_BETTER: Final = frozenset({Outcome.BETTER, Outcome.AHEAD})


def sentence(text: str, *, one_node: bool) -> str:
    """The text as one that stands by itself."""
    return f"On the nodes measured, {text}" if one_node else text


def statement(effect: Effect) -> str:
    """The effect in a sentence."""
    return sentence(_said(effect), one_node=effect.one_node)


def _said(effect: Effect) -> str:
    groups = sorted(_groups(effect), key=lambda parts: parts[0].outcome not in SHOWN)
    first, *others = groups
    clauses = [f"{_in_full(effect, first)}{_place(effect, first)}"]
    clauses += [f"{_in_short(effect, parts)}{_place(effect, parts)}" for parts in others]
    return f"{', '.join(clauses[:-1])}, and {clauses[-1]}." if others else f"{clauses[0]}."


def _groups(effect: Effect) -> Iterator[Sequence[Part]]:
    """The parts of which the same is said: of neighbouring levels. Words have none, so there what is shown is said of
    each, the largest first; and so it is of two.
    """
    numbers = are_numbers(effect.by, effect.every)
    order = effect.parts if numbers else sorted(effect.parts, key=lambda part: (_said_as(part), -part.size))
    for outcome, group in groupby(order, key=_said_as):
        parts = list(group)
        each = outcome in SHOWN and (not numbers or len(parts) == _TWO)
        yield from ([part] for part in parts) if each else [parts]


def _said_as(part: Part) -> Outcome:
    """Small and large effects that are shown are said alike."""
    return {Outcome.AHEAD: Outcome.BETTER, Outcome.BEHIND: Outcome.WORSE}.get(part.outcome, part.outcome)


def _place(effect: Effect, parts: Sequence[Part]) -> str:
    if not effect.by:
        return ""
    return f" {place_in_words(effect.by, effect.every, [part.level for part in parts])}"


def _in_full(effect: Effect, parts: Sequence[Part]) -> str:
    noun, outcome = in_sentence(title(effect.quantity)), parts[0].outcome
    if outcome is Outcome.EQUAL:
        return f"{effect.second} and {effect.first} are equal within {percent(effect.margin)} in {noun}"
    if outcome is Outcome.UNKNOWN:
        return f"nothing is shown between {effect.second} and {effect.first} in {noun}"
    if _as_times(parts):
        return f"{effect.second} has {_times(parts)} the {noun} of {effect.first}"
    return f"{effect.second} {_share(effect, parts)} {_preposition(effect, parts)} {noun} against {effect.first}"


def _in_short(effect: Effect, parts: Sequence[Part]) -> str:
    outcome = parts[0].outcome
    if outcome is Outcome.EQUAL:
        return f"they are equal within {percent(effect.margin)}"
    if outcome is Outcome.UNKNOWN:
        return "nothing is shown"
    return f"has {_times(parts)} of it" if _as_times(parts) else _share(effect, parts)


def _as_times(parts: Sequence[Part]) -> bool:
    return max(part.ratio.value for part in parts) >= _TWICE


def _times(parts: Sequence[Part]) -> str:
    low, high = min(part.ratio.low for part in parts), max(part.ratio.high for part in parts)
    values = sorted(part.ratio.value for part in parts)
    if values[-1] == inf:
        return f"at least {low:.1f} times"
    return f"{_span([f'{value:.1f}' for value in values])} times ({low:.1f} to {high:.1f})"


def _share(effect: Effect, parts: Sequence[Part]) -> str:
    """With the verb: costs 12 % (10 to 14)."""
    shares = sorted(100 * abs(part.ratio.value - 1) for part in parts)
    ends = sorted(100 * abs(end - 1) for part in parts for end in (part.ratio.low, part.ratio.high))
    decimals = 0 if shares[-1] >= 10 else 1 if shares[-1] >= 1 else 2  # noqa: PLR2004 (two digits)
    values, low, high = [f"{share:.{decimals}f}" for share in shares], ends[0], ends[-1]
    return f"{_verb(effect, parts)} {_span(values)} % ({low:.{decimals}f} to {high:.{decimals}f})"


def _span(values: Sequence[str]) -> str:
    return values[0] if values[0] == values[-1] else f"{values[0]}–{values[-1]}"


def _verb(effect: Effect, parts: Sequence[Part]) -> str:
    better = parts[0].outcome in _BETTER
    if smaller_is_better(effect.quantity):
        return "saves" if better else "adds"
    return "gains" if better else "costs"


def _preposition(effect: Effect, parts: Sequence[Part]) -> str:
    return "to" if _verb(effect, parts) == "adds" else "of"
