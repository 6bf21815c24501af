"""The plots of a whole run: what is compared stands in one of them, laid out by the levels."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from tierbench.advice.estimate import is_rate, quantities, smaller_is_better
from tierbench.advice.matrix import RunResults
from tierbench.kinds.registry import Report, kind_of
from tierbench.report import layout
from tierbench.report.distributions import distribution_figures
from tierbench.report.evidence import EVIDENCE
from tierbench.report.figures import Figure, measured_figure, trials_figure
from tierbench.report.layout import Panel
from tierbench.results.overall import is_overall
from tierbench.results.quantities import rate_quantity
from tierbench.results.rates import RETRIES

_MOST: Final = 24


@dataclass(frozen=True)
class Pictures:
    """Those of one run. `name` begins the names of all, and `quantity` is the one that classes are compared by."""

    run: RunResults
    name: str
    quantity: str

    @cached_property
    def _panels(self) -> tuple[Panel, ...]:
        return layout.panels(self.run)

    @cached_property
    def _trials(self) -> tuple[Panel, ...]:
        return layout.panels_of_trials(self.run)

    @property
    def _own(self) -> Report:
        return kind_of(self.run.benchmark.kind).report

    @property
    def left_out(self) -> bool:
        """Whether a page could not hold them all."""
        return max(len(self._panels), len(self._trials)) > _MOST

    @cached_property
    def main(self) -> tuple[Figure, ...]:
        """What only this kind of benchmark shows, the main quantity throughout, and the rates."""
        rates = [name for name in quantities(self.run) if is_rate(name) and name != self.quantity]
        whole = [name for name in rates if not self._own.drawn(name) and not is_overall(name)]
        own = self._own.figures(f"{self.name}-devices", self.run)
        return (*own, *self._measured(self.quantity, len(self._panels)), *self._each(whole))

    @cached_property
    def shares(self) -> tuple[Figure, ...]:
        """What each of several parts had."""
        return self._drawn("shares", self._own.shares)

    @cached_property
    def times(self) -> tuple[Figure, ...]:
        """Where the time goes."""
        return self._drawn("time", self._own.times)

    @cached_property
    def trials(self) -> tuple[Figure, ...]:
        """The rate over the number of the trial."""
        rate = rate_quantity(self.run.benchmark.kind)
        drawn = enumerate(self._trials[:_MOST])
        return _known(trials_figure(f"{self.name}-trials-{number}", panel, rate) for number, panel in drawn)

    @cached_property
    def spreads(self) -> tuple[Figure, ...]:
        """How single round trips or downloads are spread."""
        return self._drawn("spread", lambda name, panel: distribution_figures(name, panel, self._own.spreads))

    @cached_property
    def others(self) -> tuple[Figure, ...]:
        """Every other quantity that the results hold, as far as it is not 0 throughout."""
        names = [name for name in quantities(self.run) if not is_rate(name) or is_overall(name)]
        rest = [name for name in names if name not in {self.quantity, RETRIES, *EVIDENCE}]
        spreads = self._drawn("other", lambda name, panel: distribution_figures(name, panel, self._own.other_spreads))
        return (*(figure for figure in self._each(rest) if not figure.chart.zero), *spreads)

    def _each(self, names: Iterable[str]) -> tuple[Figure, ...]:
        return tuple(figure for name in names for figure in self._measured(name, _MOST))

    def _measured(self, quantity: str, most: int) -> tuple[Figure, ...]:
        log = quantity == self.quantity and smaller_is_better(quantity)
        panels = enumerate(self._panels[:most])
        return _known(
            measured_figure(f"{self.name}-{quantity}-{number}", panel, quantity, log=log) for number, panel in panels
        )

    def _drawn(self, name: str, draw: Callable[[str, Panel], tuple[Figure, ...]]) -> tuple[Figure, ...]:
        panels = enumerate(self._panels[:_MOST])
        return tuple(figure for number, panel in panels for figure in draw(f"{self.name}-{name}-{number}", panel))


def _known(figures: Iterable[Figure | None]) -> tuple[Figure, ...]:
    return tuple(figure for figure in figures if figure is not None)
