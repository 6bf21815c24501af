"""Gauges and histograms with labels, as a scrape gives them."""

from collections.abc import Mapping, Sequence

from prometheus_client.core import GaugeMetricFamily, HistogramMetricFamily, Metric

Labels = Mapping[str, str]


class Families:
    """Metric families that grow sample by sample; all samples of a name have the same labels."""

    def __init__(self) -> None:
        self._gauges: dict[str, GaugeMetricFamily] = {}
        self._histograms: dict[str, HistogramMetricFamily] = {}

    def gauge(self, name: str, text: str, labels: Labels, value: float | None) -> None:
        """A sample, unless there is no value."""
        if value is None:
            return
        family = self._gauges.get(name)
        if family is None:
            family = self._gauges[name] = GaugeMetricFamily(name, text, labels=list(labels))
        family.add_metric(list(labels.values()), value)

    def histogram(
        self, name: str, text: str, labels: Labels, buckets: Sequence[tuple[str, float]], total: float
    ) -> None:
        """A sample with cumulative buckets (upper bound, count), +Inf the last."""
        family = self._histograms.get(name)
        if family is None:
            family = self._histograms[name] = HistogramMetricFamily(name, text, labels=list(labels))
        family.add_metric(list(labels.values()), list(buckets), total)

    def collect(self) -> list[Metric]:
        """All families."""
        return [*self._gauges.values(), *self._histograms.values()]
