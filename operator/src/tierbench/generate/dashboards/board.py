"""A dashboard: its rows of panels, and the variables that choose what they show."""

from collections.abc import Mapping, Sequence
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
from tierbench.generate.dashboards.queries import benchmarks

_TAG: Final = "tierbench"
_UID: Final = "tierbench-"
_ALL: Final = model.VariableOption(selected=True, text="All", value="$__all")
Variable = Builder[model.VariableModel]
Panels = Sequence[Builder[model.Panel]]


def board(
    name: str, title: str, description: str, variables: Sequence[Variable], rows: Mapping[str, Panels]
) -> model.Dashboard:
    """A dashboard of these rows, by their titles. It opens at the last day, and bears links to the others."""
    links = DashboardLink("tierbench").type(model.DashboardLinkType.DASHBOARDS).tags([_TAG]).keep_time(True)
    built = (
        Dashboard(f"tierbench / {title}")
        .uid(f"{_UID}{name}")
        .description(description)
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
    for heading, panels in rows.items():
        built = built.with_row(Row(heading))
        for panel in panels:
            built = built.with_panel(panel)
    return _numbered(built.build())


def name_of(board: model.Dashboard) -> str:
    """The name that it was made with."""
    return (board.uid or "").removeprefix(_UID)


def _numbered(dashboard: model.Dashboard) -> model.Dashboard:
    """Links to single panels need numbers that stay."""
    for number, panel in enumerate(dashboard.panels or (), start=1):
        panel.id_val = number
    return dashboard


def result_variables(kind: str = "") -> tuple[Variable, ...]:
    """Namespace, benchmark of this kind (or any), classes, and whether invalid results show."""
    of_kind = f'tierbench_benchmark_phase{{benchmark_kind=~"{kind or ".+"}"'
    of_benchmarks = benchmarks("tierbench_result_measured")
    return (
        label_variable("namespace", "Namespace", f"{of_kind}}}", "benchmark_namespace"),
        label_variable("benchmark", "Benchmark", f'{of_kind},benchmark_namespace=~"$namespace"}}'),
        label_variable("server_class", "Server class", of_benchmarks),
        label_variable("client_class", "Client class", of_benchmarks),
        CustomVariable("validity")
        .label("Results")
        .values("all : 0, valid only : 1")
        .current(model.VariableOption(selected=True, text="all", value="0")),
    )


def label_variable(name: str, label: str, series: str, metric_label: str = "") -> Variable:
    """The values that a label has in some series, all of them at first."""
    return (
        QueryVariable(name)
        .label(label)
        .datasource(SOURCE)
        .query(f"label_values({series}, {metric_label or name})")
        .refresh(model.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(model.VariableSort.ALPHABETICAL_ASC)
        .multi(True)
        .include_all(True)
        .all_value(".*")
        .current(_ALL)
    )
