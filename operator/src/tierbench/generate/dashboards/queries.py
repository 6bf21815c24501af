"""PromQL that several dashboards share."""

from typing import Final

_BENCHMARK: Final = 'benchmark_namespace=~"$namespace",benchmark=~"$benchmark"'
_CLASSES: Final = 'server_class=~"$server_class",client_class=~"$client_class"'


def benchmarks(metric: str, more: str = "") -> str:
    """A metric of the chosen benchmarks; `more` are further matchers."""
    return f"{metric}{{{_joined(_BENCHMARK, more)}}}"


def results(metric: str, more: str = "") -> str:
    """A metric of the results of the chosen benchmarks and classes."""
    return f"{metric}{{{_joined(_BENCHMARK, _CLASSES, more)}}}"


def measured(metric: str, more: str = "", parts: str = "") -> str:
    """The same, without results that are not valid if those are not wanted; `parts` are labels within a result."""
    which = f"and ignoring ({parts})" if parts else "and"
    return f"({results(metric, more)} {which} {results('tierbench_result_valid')} >= $validity)"


def mean(by: str, metric: str, more: str = "", parts: str = "") -> str:
    """The mean of a metric by these labels; nodes of one class count alike."""
    return f"avg by ({by}) {measured(metric, more, parts)}"


def total(by: str, metric: str, more: str = "") -> str:
    """The sum of a count by these labels, failed cases included."""
    return f"sum by ({by}) ({results(metric, more)})"


def quantile(share: float, by: str, histogram: str, more: str = "") -> str:
    """A quantile of a histogram by these labels."""
    return f"histogram_quantile({share}, sum by (le, {by}) ({results(f'{histogram}_bucket', more)}))"


def multiple_of_fastest(metric: str) -> str:
    """How many times as long as the fastest class each class takes, mean over all levels that were measured."""
    classes = f"avg without (server_node, client_node) {measured(metric)}"
    fastest = f"min without (server_class) ({classes})"
    return f"avg by (server_class) ({classes} / ignoring (server_class) group_left () {fastest})"


def or_zero(expression: str, label: str, word: str) -> str:
    """0, with `label` as `word`, while the expression gives nothing because nothing has happened."""
    return f'{expression} or on () label_replace(vector(0), "{label}", "{word}", "", "")'


def _joined(*matchers: str) -> str:
    return ",".join(filter(None, matchers))
