"""Dashboards and alerts as a release ships them."""

import json
import subprocess
from pathlib import Path

import yaml

from tests.chart.helm import Helm, of_kind
from tests.dashboards import ALERTS, alerts, dashboards

ALL = {"allNamespaces": True}


def promtool(*arguments: str | Path) -> None:
    done = subprocess.run(["promtool", *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_dashboards_and_alerts_are_optional(helm: Helm) -> None:
    objects = helm.template(ALL)
    assert of_kind(objects, "ConfigMap") == []
    assert of_kind(objects, "PrometheusRule") == []


def test_each_dashboard_has_a_config_map_for_the_sidecar(helm: Helm) -> None:
    found = of_kind(helm.template(ALL | {"metrics": {"dashboards": {"enabled": True}}}), "ConfigMap")
    assert {file: json.loads(text) for item in found for file, text in item["data"].items()} == {
        f"tierbench-{dashboard.name}.json": dashboard.body for dashboard in dashboards()
    }
    assert len({item["metadata"]["name"] for item in found}) == len(found) == len(dashboards())
    for item in found:
        assert item["metadata"]["namespace"] == "bench"
        assert item["metadata"]["labels"]["grafana_dashboard"] == "1"
        assert item["metadata"]["annotations"] == {"grafana_folder": "tierbench"}
        assert len(json.dumps(item)) < 2**20


def test_labels_and_folder_of_dashboards_can_be_changed(helm: Helm) -> None:
    changed = {"enabled": True, "labels": {"grafana_dashboard": None, "board": "x"}, "annotations": {"folder": "y"}}
    for item in of_kind(helm.template(ALL | {"metrics": {"dashboards": changed}}), "ConfigMap"):
        assert "grafana_dashboard" not in item["metadata"]["labels"]
        assert item["metadata"]["labels"]["board"] == "x"
        assert item["metadata"]["annotations"]["folder"] == "y"


def test_alerts_are_the_rules_of_the_file(helm: Helm) -> None:
    asked = {"metrics": {"prometheusRule": {"enabled": True, "labels": {"release": "prometheus"}}}}
    (rule,) = of_kind(helm.template(ALL | asked), "PrometheusRule")
    assert rule["spec"] == yaml.safe_load(ALERTS.read_text())
    assert rule["metadata"]["labels"]["release"] == "prometheus"


def test_prometheus_accepts_the_alerts() -> None:
    promtool("check", "rules", ALERTS)


def test_alerts_fire_as_their_test_file_says() -> None:
    cases = Path(__file__).parent / "alerts_test.yaml"
    promtool("test", "rules", cases)
    tested = {
        test["alertname"]
        for case in yaml.safe_load(cases.read_text())["tests"]
        for test in case["alert_rule_test"]
        if test.get("exp_alerts")
    }
    assert tested == {rule["alert"] for rule in alerts()}


def test_every_alert_says_what_to_do() -> None:
    for rule in alerts():
        assert rule["annotations"]["summary"].endswith(".")
        assert len(rule["annotations"]["description"]) > 100
