"""A dashboard: its topics of panels, and the variables that choose what they show."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from grafana_foundation_sdk.builders.dashboard import (
    CustomVariable,
    Dashboard,
    DashboardLink,
    DatasourceVariable,
    QueryVariable,
    Row,
)
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.models import dashboard as model

from tierbench.generate.dashboards.panels import SOURCE
from tierbench.generate.dashboards.queries import BY, Results
from tierbench.results.units import words

_TAG: Final = "tierbench"
_UID: Final = "tierbench-"
_ALL: Final = model.VariableOption(selected=True, text="All", value="$__all")
Variable = Builder[model.VariableModel]
Panels = Sequence[Builder[model.Panel]]


@dataclass(frozen=True)
class Topic:
    """A row of panels, and where the documents explain them: a file below docs, and a heading or bold words in it."""

    title: str
    document: str
    section: str
    panels: Panels


def board(name: str, title: str, text: str, variables: Sequence[Variable], topics: Sequence[Topic]) -> model.Dashboard:
    """A dashboard of these topics. It opens at the last day, and bears links to the others."""
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
    """The name that it was made with."""
    return (board.uid or "").removeprefix(_UID)


def _finished(dashboard: model.Dashboard, topics: Sequence[Topic]) -> model.Dashboard:
    """Links to single panels need numbers that stay, and each says where it is explained."""
    for number, each in enumerate(dashboard.panels or (), start=1):
        each.id_val = number
    panels = [each for each in dashboard.panels or () if isinstance(each, model.Panel)]
    explained = [topic for topic in topics for _ in topic.panels]
    for panel, topic in zip(panels, explained, strict=True):
        panel.description = f"{panel.description} See docs/{topic.document}, {topic.section}."
    return dashboard


def result_variables(results: Results) -> tuple[Variable, ...]:
    """Namespace, benchmark of the kind, a level of each factor, whether invalid results show, and by what they are told
    apart."""
    of_kind = f'tierbench_benchmark_phase{{benchmark_kind=~"{results.kind or ".+"}"'
    by = (_told_apart(results),) if results.kind else ()
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
    """The values that a label has in some series, all of them at first."""
    return _several(name, label, f"label_values({series}, {metric_label or name})").all_value(".*")


def _told_apart(results: Results) -> Variable:
    """All labels in which the chosen results differ. There is no word for all: their names are what queries need."""
    labels = _several(BY, "Told apart by", f"query_result({results.varying()})")
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
    return words(label.replace("_", " "))
