"""The panels that the dashboards of all kinds have in common."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from grafana_foundation_sdk.builders import bargauge, table, timeseries

from tierbench.generate.dashboards.panels import bars, matrix, over_time, query, share_bars
from tierbench.generate.dashboards.queries import Results, part
from tierbench.metrics.results import SERVER_MEANS, Family

_UNITS: Final = {
    "bytes_per_second": "Bps",
    "bits_per_second": "bps",
    "messages_per_second": "mps",
    "seconds": "s",
    "ratio": "percentunit",
    "bytes": "bytes",
    "bytes_per_message": "bytes",
}
_OF_A_NUMBER: Final = "short"


@dataclass(frozen=True)
class KindPanels:
    """The panels of a kind of benchmark, whose metrics are named without `prefix`.

    The description of a panel is its question and the help text of its metric, which is one of `families`. The unit is
    the one at the end of the metric's name.
    """

    results: Results
    prefix: str
    families: Iterable[Family]

    def mean(self, metric: str) -> str:
        """Returns the mean of a metric."""
        return self.results.mean(self._family(metric).name)

    def total(self, metric: str) -> str:
        """Returns the sum of a count, including failed cases."""
        return self.results.total(f"{self.prefix}_{metric}")

    def matrix(self, title: str, text: str, unit: str, expression: str) -> table.Panel:
        """Returns a table of an expression, with a row for each level of the kind's first factor."""
        return matrix(title, text, unit, expression, self.results.row)

    def means(self, title: str, question: str, metric: str, hint: str = "") -> table.Panel:
        """Returns a table of the mean of a metric."""
        return self.matrix(title, self._text(question, metric, hint), _unit(metric), self.mean(metric))

    def quantiles(self, title: str, question: str, share: float, metric: str) -> table.Panel:
        """Returns a table of a quantile of a histogram."""
        text = self._text(question, metric, "This is an estimate, because buckets are a factor of 2 apart.")
        return self.matrix(title, text, _unit(metric), self.results.quantile(share, self._family(metric).name))

    def compared_with_none(self, title: str, question: str, factor: str, metric: str) -> table.Panel:
        """Returns a table of a metric as a share of its value at level None of a factor."""
        how = "As a share of the value without it, on the same nodes, all else equal. Needs results with None, too."
        value = self.results.share_of_without(factor, self._family(metric).name)
        return self.matrix(title, f"{question} {how}", "percentunit", value)

    def bars(self, title: str, question: str, metric: str) -> bargauge.Panel:
        """Returns a bar per series of the mean of a metric."""
        return bars(title, self._text(question, metric), _unit(metric), self.mean(metric))

    def shares(self, title: str, question: str, metric: str, hint: str = "") -> bargauge.Panel:
        """Returns a bar per series of the mean of a metric, from 0% to 100%."""
        return share_bars(title, self._text(question, metric, hint), self.mean(metric))

    def trend(self, title: str, question: str, metric: str) -> timeseries.Panel:
        """Returns the mean of a metric over time."""
        return over_time(
            title, self._text(question, metric, "A step is a new run."), _unit(metric), query(self.mean(metric))
        )

    def _text(self, question: str, metric: str, hint: str = "") -> str:
        return f"{question} {self._family(metric).text} {hint}".rstrip()

    def _family(self, metric: str) -> Family:
        return self._known.get(f"{self.prefix}_{metric}") or self._known[f"tierbench_{metric}"]

    @cached_property
    def _known(self) -> Mapping[str, Family]:
        return {family.name: family for family in (*self.families, *SERVER_MEANS.values())}


def parts(title: str, text: str, unit: str, expressions: Mapping[str, str]) -> timeseries.Panel:
    """Returns several expressions over time, each with its name."""
    return over_time(title, text, unit, *(query(part(name, expression)) for name, expression in expressions.items()))


def _unit(metric: str) -> str:
    return next((unit for end, unit in _UNITS.items() if metric.endswith(end)), _OF_A_NUMBER)
