"""What each factor costs, as the page shows it: sentences, a table of ratios, and plots of them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from tierbench.advice.costs import Costs, costs_of_run, sentences
from tierbench.advice.effects import SHOWN, Effect, Part
from tierbench.advice.estimate import smaller_is_better
from tierbench.advice.inference.verdict import Outcome
from tierbench.advice.matrix import RunResults
from tierbench.report import charts
from tierbench.report.charts import Chart, Point, Series
from tierbench.report.figures import Figure
from tierbench.results.levels import are_numbers, is_share, level_in_words, number_of_level, show_level
from tierbench.results.units import in_sentence, percent, title, words

_OPEN_ROWS: Final = 24


@dataclass(frozen=True)
class CostRow:
    """A ratio, and what is said of it."""

    factor: str
    pair: str
    place: str
    ratio: str
    said: str


@dataclass(frozen=True)
class CostTable:
    """All that is known by one quantity."""

    title: str
    sentences: tuple[str, ...]
    rows: tuple[CostRow, ...]
    figures: tuple[Figure, ...]

    @property
    def open(self) -> bool:
        """Whether the table is short enough to be shown at once."""
        return len(self.rows) <= _OPEN_ROWS


def cost_tables(run: RunResults, name: str) -> tuple[CostTable, ...]:
    """A table a quantity, if there is anything to say; `name` begins those of the plots."""
    return tuple(
        CostTable(
            title(costs.quantity),
            tuple(sentences([costs])),
            tuple(row for effect in costs.effects for row in _rows(effect)),
            tuple(_figures(costs, f"{name}-{costs.quantity}")),
        )
        for costs in costs_of_run(run)
        if costs.effects
    )


def _rows(effect: Effect) -> Iterator[CostRow]:
    for part in effect.parts:
        place = level_in_words(effect.by, part.level) if effect.by else ""
        pair = f"{effect.second} against {effect.first}"
        yield CostRow(words(effect.factor), pair, place, _ratio(part), _said(effect, part))


def _ratio(part: Part) -> str:
    return f"{part.ratio.value:.3g} ({part.ratio.low:.3g} to {part.ratio.high:.3g})"


def _said(effect: Effect, part: Part) -> str:
    if part.outcome is Outcome.EQUAL:
        return f"equal within {percent(effect.margin)}"
    if part.outcome not in SHOWN:
        return "nothing is shown"
    worse = (part.ratio.value > 1) == smaller_is_better(effect.quantity)
    perhaps = part.outcome in {Outcome.AHEAD, Outcome.BEHIND}
    return f"{'worse' if worse else 'better'}{f', perhaps by less than {percent(effect.margin)}' if perhaps else ''}"


def _figures(costs: Costs, name: str) -> Iterator[Figure]:
    """Of each factor whose effects depend on one of numbers: a line of ratios for each two levels."""
    found: dict[tuple[str, str], list[Effect]] = {}
    for effect in costs.effects:
        if len(effect.parts) > 1 and are_numbers(effect.by, effect.every):
            found.setdefault((effect.factor, effect.by), []).append(effect)
    for (factor, by), effects in found.items():
        chart = _chart(f"{name}-{factor}", costs.quantity, factor, by, effects)
        yield Figure(chart, charts.lines(chart), "1: no difference. Bars are 95 % intervals.")


def _chart(name: str, quantity: str, factor: str, by: str, effects: Sequence[Effect]) -> Chart:
    every = effects[0].every
    numbers = tuple(number for level in every if (number := number_of_level(level)))
    return Chart(
        name,
        f"{words(factor)}: ratio of {in_sentence(title(quantity))} by {in_sentence(words(by))}",
        "The ratio between two levels, all else equal, with its 95 % interval.",
        "",
        words(by),
        tuple(show_level(by, level) for level in every),
        tuple(_series(effect) for effect in effects),
        numbers if len(numbers) == len(every) else None,
        proportional=is_share(every),
    )


def _series(effect: Effect) -> Series:
    points = (
        Point(effect.every.index(part.level), part.ratio.value, _ratio(part), part.ratio.low, part.ratio.high)
        for part in effect.parts
    )
    return Series(f"{effect.second} against {effect.first}", tuple(points))
