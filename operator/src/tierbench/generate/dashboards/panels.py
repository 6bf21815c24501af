"""Panels, in the few shapes that the dashboards use. Each says which question it answers, how, and in which unit.

Where no legend is given, Grafana names series by their labels.
"""

from typing import Final

from grafana_foundation_sdk.builders import barchart, bargauge, common, prometheus, stat, table, timeseries
from grafana_foundation_sdk.models import common as options
from grafana_foundation_sdk.models.dashboard import DataSourceRef, DataTransformerConfig, DynamicConfigValue
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

from tierbench.generate.dashboards.queries import columns

SOURCE: Final = DataSourceRef(type_val="prometheus", uid="${datasource}")

_HEIGHT: Final = 8
_WIDTH: Final = 12
_LOW: Final = 5
_NUMBERS: Final = {"file_size": "bytes", "payload_size": "bytes"}
_AUTO: Final = "__auto"
Query = prometheus.Dataquery


def query(expression: str, legend: str = "") -> Query:
    """A query over the time that the dashboard shows; `legend` names its series by their labels."""
    return prometheus.Dataquery().expr(expression).legend_format(legend or _AUTO).range()


def _now(expression: str, legend: str) -> Query:
    return prometheus.Dataquery().expr(expression).legend_format(legend).ref_id("A").instant()


def over_time(title: str, description: str, unit: str, *queries: Query, width: int = _WIDTH) -> timeseries.Panel:
    """Lines over time; a new run of a benchmark is a step."""
    legend = common.VizLegendOptions().display_mode(options.LegendDisplayMode.TABLE).show_legend(True)
    panel = (
        timeseries.Panel()
        .title(title)
        .description(description)
        .unit(unit)
        .datasource(SOURCE)
        .min(0)
        .fill_opacity(8)
        .legend(legend.placement(options.LegendPlacement.BOTTOM).calcs(["lastNotNull"]))
        .tooltip(common.VizTooltipOptions().mode(options.TooltipDisplayMode.MULTI))
        .height(_HEIGHT)
        .span(width)
    )
    for number, each in enumerate(queries):
        panel = panel.with_target(each.ref_id(chr(ord("A") + number)))
    return panel


def number(title: str, description: str, unit: str, expression: str, legend: str, width: int = _WIDTH) -> stat.Panel:
    """Large numbers, one a series."""
    return (
        stat.Panel()
        .title(title)
        .description(description)
        .unit(unit)
        .datasource(SOURCE)
        .color_mode(options.BigValueColorMode.NONE)
        .graph_mode(options.BigValueGraphMode.NONE)
        .with_target(_now(expression, legend))
        .height(_LOW)
        .span(width)
    )


def bars(
    title: str, description: str, unit: str, expression: str, legend: str = _AUTO, width: int = _WIDTH
) -> bargauge.Panel:
    """A bar a series, as things stand now."""
    return (
        bargauge.Panel()
        .title(title)
        .description(description)
        .unit(unit)
        .datasource(SOURCE)
        .min(0)
        .display_mode(options.BarGaugeDisplayMode.BASIC)
        .orientation(options.VizOrientation.HORIZONTAL)
        .with_target(_now(expression, legend))
        .height(_HEIGHT)
        .span(width)
    )


def share_bars(
    title: str, description: str, expression: str, legend: str = _AUTO, width: int = _WIDTH
) -> bargauge.Panel:
    """Bars of shares, from 0 to 100 %."""
    return bars(title, description, "percentunit", expression, legend, width).max(1)


def matrix(title: str, description: str, unit: str, expression: str, row: str, width: int = _WIDTH) -> table.Panel:
    """A table as things stand now: a row for each value of the label `row`, a column for all else that differs."""
    corner, heading = _corner(row, "compared"), row.replace("_", " ").capitalize()
    rename = {"excludeByName": {}, "indexByName": {}, "renameByName": {corner: heading}}
    convert = {"conversions": [{"targetField": corner, "destinationType": "number"}], "fields": {}}
    changes = [_crossed(row, "compared")]
    if row in _NUMBERS:
        changes.append(_change("convertFieldType", **convert))
    return (
        _table(title, description, unit, columns(expression), width)
        .transformations([*changes, _change("organize", **rename)])
        .override_by_name(heading, [DynamicConfigValue("unit", _NUMBERS.get(row, "string"))])
        .sort_by([common.TableSortByFieldState().display_name(heading).desc(False)])
    )


def grouped_bars(
    title: str, description: str, unit: str, expression: str, group: str, bar: str, *, stacked: bool = False
) -> barchart.Panel:
    """Bars as things stand now: a group for each value of the label `group`, in it a bar for each of `bar`."""
    order = _change("sortBy", fields={}, sort=[{"field": _corner(group, bar)}])
    return (
        barchart.Panel()
        .title(title)
        .description(description)
        .unit(unit)
        .datasource(SOURCE)
        .min(0)
        .orientation(options.VizOrientation.HORIZONTAL)
        .stacking(options.StackingMode.NORMAL if stacked else options.StackingMode.NONE)
        .with_target(_now(expression, "").format(PromQueryFormat.TABLE))
        .transformations([_crossed(group, bar), order])
        .height(_HEIGHT)
        .span(_WIDTH)
    )


def _corner(row: str, column: str) -> str:
    """What Grafana calls the field of a matrix's rows."""
    return f"{row}\\{column}"


def _crossed(row: str, column: str) -> DataTransformerConfig:
    """One label's values become rows, another's columns."""
    return _change("groupingToMatrix", columnField=column, rowField=row, valueField="Value")


def facts(title: str, description: str, expression: str, count: str, width: int = _WIDTH) -> table.Panel:
    """A table of labels; `count` names what the value counts."""
    organize = {"excludeByName": {"Time": True}, "indexByName": {}, "renameByName": {"Value": count}}
    return _table(title, description, "short", expression, width).with_transformation(_change("organize", **organize))


def _table(title: str, description: str, unit: str, expression: str, width: int) -> table.Panel:
    return (
        table.Panel()
        .title(title)
        .description(description)
        .unit(unit)
        .datasource(SOURCE)
        .with_target(_now(expression, "").format(PromQueryFormat.TABLE))
        .height(_HEIGHT)
        .span(width)
    )


def _change(name: str, **how: object) -> DataTransformerConfig:
    return DataTransformerConfig(id_val=name, options=how)
