"""Dashboards, their variables, and the types of their panels.

A panel states which question it answers, how, and in which unit. Without a legend, Grafana names series by labels.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, TypeVar

from grafana_foundation_sdk.builders import barchart, bargauge, common, prometheus, stat, table, timeseries
from grafana_foundation_sdk.builders.dashboard import (
    CustomVariable,
    Dashboard,
    DashboardLink,
    DatasourceVariable,
    QueryVariable,
    Row,
)
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.models import common as options
from grafana_foundation_sdk.models import dashboard as model
from grafana_foundation_sdk.models.dashboard import DataSourceRef, DataTransformerConfig, DynamicConfigValue
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

from tierbench.generate.dashboards.queries import BY, Results, columns, part
from tierbench.metrics.results import SERVER_MEANS, Family
from tierbench.results.units import humanize

SOURCE: Final = DataSourceRef(type_val="prometheus", uid="${datasource}")

_HEIGHT: Final = 8
_WIDTH: Final = 12
_LOW: Final = 5
_NUMBERS: Final = {"file_size": "bytes", "payload_size": "bytes"}
_AUTO: Final = "__auto"
Query = prometheus.Dataquery
_TAG: Final = "tierbench"
_UID: Final = "tierbench-"
_ALL: Final = model.VariableOption(selected=True, text="All", value="$__all")
Variable = Builder[model.VariableModel]
Panels = Sequence[Builder[model.Panel]]
_Panel = TypeVar("_Panel", barchart.Panel, bargauge.Panel, stat.Panel, table.Panel, timeseries.Panel)
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
class Topic:
    """A row of panels, and the place in docs/ that explains them: a file, and a heading or bold words in it."""

    title: str
    document: str
    section: str
    panels: Panels


def board(name: str, title: str, text: str, variables: Sequence[Variable], topics: Sequence[Topic]) -> model.Dashboard:
    """Returns a dashboard of these topics. It shows the last day, and has links to the other dashboards."""
    links = DashboardLink("tierbench").type(model.DashboardLinkType.DASHBOARDS).tags([_TAG]).keep_time(True)
    built = (
        Dashboard(f"tierbench / {title}")
        .uid(f"{_UID}{name}")
        .description(text)
        .tags([_TAG])
        .readonly()
        .tooltip(model.DashboardCursorSync.CROSSHAIR)
        .time("now-24h", "now")
        .refresh("1m")
        .link(links.as_dropdown(True).include_vars(True))
        .with_variable(DatasourceVariable("datasource").label("Data source").type("prometheus"))
    )
    for variable in variables:
        built = built.with_variable(variable)
    apart = f", by ${{{BY}:csv}}" if BY in {variable.build().name for variable in variables} else ""
    for topic in topics:
        built = built.with_row(Row(f"{topic.title}{apart}"))
        for panel in topic.panels:
            built = built.with_panel(panel)
    return _finished(built.build(), topics)


def name_of(board: model.Dashboard) -> str:
    """Returns the name of a dashboard, without the prefix of its uid."""
    return (board.uid or "").removeprefix(_UID)


def _finished(dashboard: model.Dashboard, topics: Sequence[Topic]) -> model.Dashboard:
    """Numbers the panels, as links to panels need stable ids, and adds to each description where docs/ explains it."""
    for number, each in enumerate(dashboard.panels or (), start=1):
        each.id_val = number
    panels = [each for each in dashboard.panels or () if isinstance(each, model.Panel)]
    explained = [topic for topic in topics for _ in topic.panels]
    for panel, topic in zip(panels, explained, strict=True):
        panel.description = f"{panel.description} See docs/{topic.document}, {topic.section}."
    return dashboard


def result_variables(results: Results) -> tuple[Variable, ...]:
    """Returns the variables of results: namespace, benchmark, levels of factors, validity, and the grouping."""
    of_kind = f'tierbench_benchmark_phase{{benchmark_kind=~"{results.kind or ".+"}"'
    by = (_grouping(results),) if results.kind else ()
    return (
        label_variable("namespace", "Namespace", f"{of_kind}}}", "benchmark_namespace"),
        label_variable("benchmark", "Benchmark", f'{of_kind},benchmark_namespace=~"$namespace"}}'),
        *(label_variable(label, _heading(label), results.everything) for label in results.choices),
        CustomVariable("validity")
        .label("Results")
        .values("all : .*, valid only : true")
        .current(model.VariableOption(selected=True, text="all", value=".*")),
        *by,
    )


def label_variable(name: str, label: str, series: str, metric_label: str = "") -> Variable:
    """Returns a variable with the values of a label in some series. All are selected at first."""
    return _several(name, label, f"label_values({series}, {metric_label or name})").all_value(".*")


def _grouping(results: Results) -> Variable:
    """Returns a variable with all labels in which the selected results differ. Queries need their names."""
    labels = _several(BY, "Grouped by", f"query_result({results.varying()})")
    return labels.regex('/label="([^"]+)"/').sort(model.VariableSort.DISABLED)


def _several(name: str, label: str, query: str) -> QueryVariable:
    return (
        QueryVariable(name)
        .label(label)
        .datasource(SOURCE)
        .query(query)
        .refresh(model.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(model.VariableSort.NATURAL_ASC)
        .multi(True)
        .include_all(True)
        .current(_ALL)
    )


def _heading(label: str) -> str:
    return humanize(label.replace("_", " "))


def query(expression: str, legend: str = "") -> Query:
    """Returns a query over the time range of the dashboard. `legend` names its series by their labels."""
    return prometheus.Dataquery().expr(expression).legend_format(legend or _AUTO).range()


def _now(expression: str, legend: str) -> Query:
    return prometheus.Dataquery().expr(expression).legend_format(legend).ref_id("A").instant()


def _framed(panel: _Panel, title: str, description: str, unit: str, height: int = _HEIGHT) -> _Panel:
    framed = panel.title(title).description(description).unit(unit).datasource(SOURCE)
    return framed.height(height).span(_WIDTH)


def over_time(title: str, description: str, unit: str, *queries: Query) -> timeseries.Panel:
    """Returns a panel of lines over time. A new run of a benchmark is a step."""
    legend = common.VizLegendOptions().display_mode(options.LegendDisplayMode.TABLE).show_legend(True)
    panel = (
        _framed(timeseries.Panel(), title, description, unit)
        .min(0)
        .fill_opacity(8)
        .legend(legend.placement(options.LegendPlacement.BOTTOM).calcs(["lastNotNull"]))
        .tooltip(common.VizTooltipOptions().mode(options.TooltipDisplayMode.MULTI))
    )
    for number, each in enumerate(queries):
        panel = panel.with_target(each.ref_id(chr(ord("A") + number)))
    return panel


def number(title: str, description: str, unit: str, expression: str, legend: str) -> stat.Panel:
    """Returns a panel of large numbers, one per series."""
    return (
        _framed(stat.Panel(), title, description, unit, _LOW)
        .color_mode(options.BigValueColorMode.NONE)
        .graph_mode(options.BigValueGraphMode.NONE)
        .with_target(_now(expression, legend))
    )


def bars(title: str, description: str, unit: str, expression: str, legend: str = _AUTO) -> bargauge.Panel:
    """Returns a panel with a bar per series, at the end of the time range."""
    return (
        _framed(bargauge.Panel(), title, description, unit)
        .min(0)
        .display_mode(options.BarGaugeDisplayMode.BASIC)
        .orientation(options.VizOrientation.HORIZONTAL)
        .with_target(_now(expression, legend))
    )


def share_bars(title: str, description: str, expression: str, legend: str = _AUTO) -> bargauge.Panel:
    """Returns a panel with a bar per series, from 0% to 100%."""
    return bars(title, description, "percentunit", expression, legend).max(1)


def matrix(title: str, description: str, unit: str, expression: str, row: str) -> table.Panel:
    """Returns a table: a row for each value of the label `row`, a column for each combination of other labels."""
    corner, heading = _corner(row, "compared"), row.replace("_", " ").capitalize()
    rename = {"excludeByName": {}, "indexByName": {}, "renameByName": {corner: heading}}
    convert = {"conversions": [{"targetField": corner, "destinationType": "number"}], "fields": {}}
    changes = [_crossed(row, "compared")]
    if row in _NUMBERS:
        changes.append(_change("convertFieldType", **convert))
    return (
        _table(title, description, unit, columns(expression))
        .transformations([*changes, _change("organize", **rename)])
        .override_by_name(heading, [DynamicConfigValue("unit", _NUMBERS.get(row, "string"))])
        .sort_by([common.TableSortByFieldState().display_name(heading).desc(False)])
    )


def stacked_bars(title: str, description: str, unit: str, expression: str, bar: str, segment: str) -> barchart.Panel:
    """Returns a panel with a bar for each value of the label `bar`, and in it a segment for each of `segment`."""
    order = _change("sortBy", fields={}, sort=[{"field": _corner(bar, segment)}])
    return (
        _framed(barchart.Panel(), title, description, unit)
        .min(0)
        .orientation(options.VizOrientation.HORIZONTAL)
        .stacking(options.StackingMode.NORMAL)
        .with_target(_now(expression, "").format(PromQueryFormat.TABLE))
        .transformations([_crossed(bar, segment), order])
    )


def _corner(row: str, column: str) -> str:
    """Returns the name that Grafana gives the row field of a matrix."""
    return f"{row}\\{column}"


def _crossed(row: str, column: str) -> DataTransformerConfig:
    """Returns a transformation that turns the values of one label into rows, and of another into columns."""
    return _change("groupingToMatrix", columnField=column, rowField=row, valueField="Value")


def facts(title: str, description: str, expression: str, count: str) -> table.Panel:
    """Returns a table of labels. `count` is the title of the column with the value."""
    organize = {"excludeByName": {"Time": True}, "indexByName": {}, "renameByName": {"Value": count}}
    return _table(title, description, "short", expression).with_transformation(_change("organize", **organize))


def _table(title: str, description: str, unit: str, expression: str) -> table.Panel:
    target = _now(expression, "").format(PromQueryFormat.TABLE)
    return _framed(table.Panel(), title, description, unit).with_target(target)


def _change(name: str, **how: object) -> DataTransformerConfig:
    return DataTransformerConfig(id_val=name, options=how)


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
