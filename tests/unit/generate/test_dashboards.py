"""Queries of dashboards and alerts use existing metrics and labels. The end-to-end tests run them."""

import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
import yaml
from grafana_foundation_sdk.models import units
from prometheus_client.parser import text_string_to_metric_families

from tests.dashboards import Dashboard, alerts, dashboards, variables_in
from tests.unit.metrics.everything import metrics_text

SELECTOR = re.compile(r"\b((?:tierbench|process)_\w+)(?:\{([^}]*)\})?")
MATCHER = re.compile(r'(\w+)(?:=~|!~|!=|=)"')
GROUPING = re.compile(r"\b(?:by|without|on|ignoring|group_left) \(([^)]*)\)")
NEW_LABEL = re.compile(r', "(\w+)", "')
LEGEND_LABEL = re.compile(r"\{\{(\w+)\}\}")
DESCRIPTION = re.compile(r"[A-Z][^.?:;]+\? [A-Z].*\. See docs/([\w/.-]+\.md), (.+)\.")
DOCS = Path(__file__).parents[3] / "docs"
TARGET_LABELS = {"instance", "job"}
UNITS = {value for name, value in vars(units).items() if not name.startswith("_") and isinstance(value, str)}

each_dashboard = pytest.mark.parametrize("dashboard", dashboards(), ids=lambda dashboard: dashboard.name)


@cache
def known_labels() -> dict[str, set[str]]:
    """Returns the labels of each metric, by the name of its samples."""
    found: dict[str, set[str]] = {}
    for family in text_string_to_metric_families(metrics_text()):
        for sample in family.samples:
            found.setdefault(sample.name, set()).update(sample.labels)
    return found


def check(expression: str) -> set[str]:
    """Asserts that metrics and labels of an expression exist, and returns the labels of its metrics."""
    labels = {*TARGET_LABELS, *NEW_LABEL.findall(expression)}
    for name, matchers in SELECTOR.findall(expression):
        assert name in known_labels(), f"no metric {name}"
        wrong = set(MATCHER.findall(matchers)) - known_labels()[name] - TARGET_LABELS
        assert not wrong, f"{name} has no label {wrong}"
        labels |= known_labels()[name]
    grouped = {label for group in GROUPING.findall(expression) for label in group.replace(",", " ").split()}
    assert grouped <= labels, f"no label {grouped - labels} in {expression}"
    return labels


def expressions() -> Iterator[str]:
    """Yields every query of panels, variables and alerts."""
    for dashboard in dashboards():
        yield from (dashboard.shown(target["expr"]) for _, target in dashboard.targets)
        yield from (dashboard.shown(series) for series, _ in dashboard.label_queries.values())
        yield from (dashboard.shown(query) for query in filter(None, [dashboard.varying]))
    yield from (rule["expr"] for rule in alerts())


@each_dashboard
def test_queries_use_metrics_and_labels_that_exist(dashboard: Dashboard) -> None:
    for _, target in dashboard.targets:
        labels = check(dashboard.shown(target["expr"]))
        assert set(LEGEND_LABEL.findall(target["legendFormat"])) <= labels
    for series, label in dashboard.label_queries.values():
        assert label in check(series)
    if dashboard.varying is not None:
        check(dashboard.shown(dashboard.varying))


def test_alerts_use_metrics_and_labels_that_exist() -> None:
    for rule in alerts():
        check(rule["expr"])


def test_every_metric_is_in_some_panel() -> None:
    shown = {
        name for dashboard in dashboards() for _, t in dashboard.targets for name, _ in SELECTOR.findall(t["expr"])
    }
    families = {re.sub(r"_(bucket|count|sum)$", "", name) for name in shown}
    metrics = {
        f"{family.name}_total" if family.type == "counter" else family.name
        for family in text_string_to_metric_families(metrics_text())
        if family.name.startswith("tierbench") and not family.name.endswith("_created")
    }
    assert metrics <= families


@each_dashboard
def test_every_panel_answers_a_documented_question(dashboard: Dashboard) -> None:
    for panel in dashboard.panels:
        match = DESCRIPTION.fullmatch(panel["description"])
        assert match is not None, panel["description"]
        document, section = match.groups()
        assert re.search(rf"^(## |\*\*){section}(\.?\*\*|$)", (DOCS / document).read_text(), re.MULTILINE), section


@each_dashboard
def test_no_two_panels_answer_the_same_question(dashboard: Dashboard) -> None:
    questions = [panel["description"].partition("?")[0] for panel in dashboard.panels]
    assert len(set(questions)) == len(questions), sorted(questions)


def test_documents_list_every_panel_and_question() -> None:
    text = (DOCS / "reference/dashboards.md").read_text()
    for dashboard in dashboards():
        assert dashboard.body["title"].removeprefix("tierbench / ") in (DOCS / "how-to/use-dashboards.md").read_text()
        for panel in dashboard.panels:
            assert f"| {panel['title']} | {panel['description'].partition('?')[0]}? |" in text


@each_dashboard
def test_every_panel_has_a_unit(dashboard: Dashboard) -> None:
    for panel in dashboard.panels:
        assert panel["title"]
        assert panel["fieldConfig"]["defaults"]["unit"] in UNITS
        assert panel["datasource"]["uid"] == "${datasource}"


@each_dashboard
def test_panels_do_not_overlap(dashboard: Dashboard) -> None:
    taken: set[tuple[int, int]] = set()
    for panel in dashboard.body["panels"]:
        place = panel["gridPos"]
        cells = {(place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])}
        assert place["x"] + place["w"] <= 24
        assert not cells & taken
        taken |= cells


@each_dashboard
def test_variables_are_defined_and_used(dashboard: Dashboard) -> None:
    texts = [target["expr"] for _, target in dashboard.targets]
    texts += [series for series, _ in dashboard.label_queries.values()]
    texts += filter(None, [dashboard.varying])
    used = set().union(*map(variables_in, texts)) - {"__rate_interval"}
    assert used | {"datasource"} == set(dashboard.variables)


def test_dashboards_have_unique_ids_and_titles() -> None:
    found = dashboards()
    assert len(found) >= 4
    assert len({dashboard.body["uid"] for dashboard in found}) == len(found)
    assert len({dashboard.body["title"] for dashboard in found}) == len(found)


def test_prometheus_can_parse_every_query(tmp_path: Path) -> None:
    rules = [{"record": f"query:{number}", "expr": text} for number, text in enumerate(expressions())]
    file = tmp_path / "queries.yaml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "queries", "rules": rules}]}))
    done = subprocess.run(["promtool", "check", "rules", file], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert f"{len(rules)} rules found" in done.stdout


def test_documents_list_every_alert() -> None:
    text = (DOCS / "how-to/use-dashboards.md").read_text()
    assert re.findall(r"^\| `(Tierbench\w+)`", text, re.MULTILINE) == [alert["alert"] for alert in alerts()]
