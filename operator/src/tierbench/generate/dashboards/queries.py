"""PromQL over the results that the variables of a dashboard select."""

from dataclasses import dataclass
from functools import cached_property
from typing import Final

from tierbench.kinds.registry import BenchmarkKind, kind_of, kinds
from tierbench.metrics.results import label_name

BY: Final = "by"
_BENCHMARK: Final = 'benchmark_namespace=~"$namespace",benchmark=~"$benchmark"'
_INFO: Final = "tierbench_result_info"
_JOINED: Final = ("client_access_network", "access")
"""Labels that only _INFO has, and in which results differ."""

_WHO: Final = ("benchmark_namespace", "benchmark")
_CLASSES: Final = ("server_class", "client_class")
_NODES: Final = ("server_node", "client_node")


def _factors(kind: BenchmarkKind) -> tuple[str, ...]:
    return tuple(map(label_name, kind.metrics.factors))


@dataclass(frozen=True)
class Results:
    """The results of a kind, or of all kinds, that a dashboard shows. `row` is a label with its own place in panels.

    The variable `$by` contains all other labels in which the selected results differ. Means are grouped by them, so
    they are means over nodes only, until a user removes a label from `$by`.
    """

    kind: str = ""
    row: str = ""

    @cached_property
    def factors(self) -> tuple[str, ...]:
        """The labels of the kind's factors, or none for all kinds."""
        return _factors(kind_of(self.kind)) if self.kind else ()

    @cached_property
    def choices(self) -> tuple[str, ...]:
        """The labels whose values a user selects."""
        return (*_CLASSES, *_JOINED, *self.factors)

    @cached_property
    def groupable(self) -> tuple[str, ...]:
        """The labels that `$by` may contain."""
        return tuple(label for label in (*self.choices, *_WHO) if label != self.row)

    @property
    def everything(self) -> str:
        """A selector with one series for each result of the selected benchmarks."""
        return f"{_INFO}{{{_joined(self._of_kind, _BENCHMARK)}}}"

    def chosen(self, more: str = "") -> str:
        """Returns a selector with one series for each selected result. `more` contains further matchers."""
        return f"{_INFO}{{{_joined(self._of_kind, _BENCHMARK, *map(_matcher, self.choices), more)}}}"

    def varying(self) -> str:
        """Returns one series for each label in which the selected results differ, and for the server's class."""
        labels = (label for label in self.groupable if label != "server_class")
        return " or ".join([_named("label", "server_class", "vector(1)"), *map(self._varies, labels)])

    def counted(self, metric: str) -> str:
        """Returns a metric of the selected results, including failed and invalid ones."""
        return self._of(metric, "", "")

    def measured(self, metric: str, more: str = "") -> str:
        """Returns a metric of the selected results, without invalid ones if the user deselects them."""
        return self._of(metric, more, 'valid=~"$validity"')

    def mean(self, metric: str, by: str = "") -> str:
        """Returns the mean of a metric. All nodes of a class have the same weight."""
        return f"avg by ({self._by(by)}) {self.measured(metric)}"

    def total(self, metric: str, by: str = "") -> str:
        """Returns the sum of a count, including failed cases."""
        return f"sum by ({self._by(by)}) {self.counted(metric)}"

    def quantile(self, share: float, histogram: str) -> str:
        """Returns a quantile of a histogram."""
        return f"histogram_quantile({share}, sum by (le, {self._by()}) {self.measured(f'{histogram}_bucket')})"

    def share_of_without(self, factor: str, metric: str) -> str:
        """Returns a metric at each level of a factor, divided by its value at level None, other factors held equal."""
        some, none = (self.measured(metric, f'{factor}{sign}"None"') for sign in ("!=", "="))
        return f"avg by ({self._by()}) ({some} / ignoring ({factor}) group_left () {none})"

    def multiple_of_fastest(self, metric: str) -> str:
        """Returns the time of each class as a multiple of the fastest class, mean over all measured levels."""
        classes = f"avg without (server_node, client_node) {self.measured(metric)}"
        fastest = f"min without (server_class) ({classes})"
        return f"avg by (server_class) ({classes} / ignoring (server_class) group_left () {fastest})"

    def _by(self, labels: str = "") -> str:
        return labels or ", ".join(filter(None, (self.row, f"${{{BY}:csv}}")))

    def _of(self, metric: str, more: str, validity: str) -> str:
        join = f"* on ({self._identity}) group_left ({', '.join(_JOINED)})"
        return f"({benchmarks(metric, more)} {join} {self.chosen(validity)})"

    def _varies(self, label: str) -> str:
        levels = f'{_INFO}{{{_joined(self._of_kind, _BENCHMARK, self._chosen(label))},{label}!=""}}'
        return _named("label", label, f"count(count by ({label}) ({levels})) > 1")

    def _chosen(self, label: str) -> str:
        return _matcher(label) if label in self.choices else ""

    @property
    def _of_kind(self) -> str:
        return f'benchmark_kind="{self.kind}"' if self.kind else ""

    @property
    def _identity(self) -> str:
        """The labels that identify a result of the kind, or of any kind."""
        factors = self.factors or dict.fromkeys(label for kind in kinds() for label in _factors(kind))
        return ", ".join((*_WHO, *_CLASSES, *_NODES, *factors))


def benchmarks(metric: str, more: str = "") -> str:
    """Returns a metric of the selected benchmarks. `more` contains further matchers."""
    return f"{metric}{{{_joined(_BENCHMARK, more)}}}"


def columns(expression: str, *before: str) -> str:
    """Joins the labels of `$by` into one label `compared`, after the values of the labels `before`."""
    labels = ", ".join([*(f'"{label}"' for label in before), f"${{{BY}:doublequote}}"])
    return f'label_join({expression}, "compared", ", ", {labels})'


def part(name: str, expression: str) -> str:
    """Returns the expression with a label `part` that identifies it in a panel."""
    return _named("part", name, expression)


def or_zero(expression: str, label: str, word: str) -> str:
    """Returns the expression, or 0 with `label` as `word` while the expression has no series."""
    return f"{expression} or on () {_named(label, word, 'vector(0)')}"


def _named(label: str, value: str, expression: str) -> str:
    return f'label_replace({expression}, "{label}", "{value}", "", "")'


def _matcher(label: str) -> str:
    return f'{label}=~"${label}"'


def _joined(*matchers: str) -> str:
    return ",".join(filter(None, matchers))
