"""Engines of file transfers: the image of wget and curl, and what their trials do not report."""

import json
from typing import Any

import pytest

from tests.plans import plan_of
from tests.unit.kinds.file_transfer.test_workload import job, workload
from tests.unit.results.trials import line, measured, recorded
from tierbench.advice.tables import runs
from tierbench.api.contract import TrialLine
from tierbench.kinds.file_transfer.workload import not_from_outside
from tierbench.metrics.results import render, result_samples
from tierbench.report.tables import trial_rows
from tierbench.results.quantities import levels_and_parameters
from tierbench.workloads.plan import plan

ALL = ["Native", "Wget", "Curl"]
NATIVE_ONLY = (
    "connectNanoseconds",
    "tlsNanoseconds",
    "firstByteNanoseconds",
    "longestStallNanoseconds",
    "copied",
    "cipher",
)


def clients(*engines: str) -> dict[str, Any]:
    return {"nodeClassNames": ["user"], "engines": list(engines)}


def wget_trial(number: int) -> TrialLine:
    """Returns a trial of wget, which reports little."""
    given = json.loads(line(number).model_dump_json(by_alias=True, exclude_none=True))
    transfer = {name: value for name, value in given["transfer"].items() if name not in NATIVE_ONLY}
    return TrialLine.model_validate({**given, "transfer": transfer})


def test_engine_is_a_factor_unless_only_native_is_named() -> None:
    for engines in (["Native"], ["Wget"], ALL):
        given = workload(clients=clients(*engines))
        cases = plan(given.spec, given.server_placements(), given.factors)
        levels = list(dict.fromkeys(case.levels.get("engine") for case in cases))
        assert levels == ([None] if engines == ["Native"] else engines)


@pytest.mark.parametrize("engine", ALL)
def test_each_engine_runs_in_an_image_that_has_it(engine: str) -> None:
    given = workload(clients=clients(*ALL), links=[{"name": "late", "up": {"delayMicroseconds": 9}}], access="PodIP")
    cases = plan(given.spec, given.server_placements(), given.factors)
    made = job(given, next(case for case in cases if case.levels["engine"] == engine))
    pod = made["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert container["image"] == ("client:1" if engine == "Native" else "transfer:1")
    assert pod["initContainers"][0]["image"] == "client:1"
    assert plan_of(made).get("engine", "") == {"Native": "", "Wget": "wget", "Curl": "curl"}[engine]
    assert container["securityContext"]["readOnlyRootFilesystem"] is True


def test_external_classes_cannot_use_other_engines() -> None:
    assert not_from_outside(workload().spec) == ""
    assert "spec.clients.engines" in not_from_outside(workload(clients=clients(*ALL)).spec)


def test_results_without_an_engine_count_as_native() -> None:
    native, wget = recorded([line(1)]), recorded([wget_trial(1)], engine="Wget")
    assert levels_and_parameters(native)["engine"] == "Native"
    assert levels_and_parameters(wget)["engine"] == "Wget"
    text = "".join(render([result_samples(native), result_samples(wget)]))
    assert text.count('engine="Native"') == text.count('engine="Wget"') > 0


def test_quantities_that_an_engine_does_not_report_are_absent() -> None:
    status = measured([wget_trial(1), wget_trial(2)], engine="Wget")
    assert status.display.case == "1Gi Wget"
    assert not {"connectNanoseconds", "firstByteNanoseconds"} & set(status.statistics)
    assert status.statistics["throughputBytesPerSecond"].mean == 2**20
    (run,) = runs([recorded([wget_trial(1)], engine="Wget")])
    assert len(trial_rows(run)) == 1
