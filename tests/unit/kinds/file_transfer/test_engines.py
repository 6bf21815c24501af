"""Engines of file transfers: wget and curl in an image of their own, and what their trials do not tell."""

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


def by_wget(number: int) -> TrialLine:
    """Returns a trial of wget, which tells little."""
    given = json.loads(line(number).model_dump_json(by_alias=True, exclude_none=True))
    transfer = {name: value for name, value in given["transfer"].items() if name not in NATIVE_ONLY}
    return TrialLine.model_validate({**given, "transfer": transfer})


def test_an_engine_is_a_factor_only_where_others_are_named() -> None:
    for engines in (["Native"], ["Wget"], ALL):
        given = workload(clients=clients(*engines))
        cases = plan(given.spec, given.server_placements(), given.factors)
        levels = list(dict.fromkeys(case.levels.get("engine") for case in cases))
        assert levels == ([None] if engines == ["Native"] else engines)


@pytest.mark.parametrize("engine", ALL)
def test_each_engine_is_run_by_an_image_that_has_it(engine: str) -> None:
    given = workload(clients=clients(*ALL), links=[{"name": "late", "up": {"delayMicroseconds": 9}}], access="PodIP")
    cases = plan(given.spec, given.server_placements(), given.factors)
    made = job(given, next(case for case in cases if case.levels["engine"] == engine))
    pod = made["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert container["image"] == ("client:1" if engine == "Native" else "transfer:1")
    assert pod["initContainers"][0]["image"] == "client:1"
    assert plan_of(made).get("engine", "") == {"Native": "", "Wget": "wget", "Curl": "curl"}[engine]
    assert container["securityContext"]["readOnlyRootFilesystem"] is True


def test_machines_outside_have_the_client_alone() -> None:
    assert not_from_outside(workload().spec) == ""
    assert "spec.clients.engines" in not_from_outside(workload(clients=clients(*ALL)).spec)


def test_results_without_an_engine_are_of_the_client_itself() -> None:
    native, wget = recorded([line(1)]), recorded([by_wget(1)], engine="Wget")
    assert levels_and_parameters(native)["engine"] == "Native"
    assert levels_and_parameters(wget)["engine"] == "Wget"
    text = "".join(render([result_samples(native), result_samples(wget)]))
    assert text.count('engine="Native"') == text.count('engine="Wget"') > 0


def test_what_an_engine_does_not_tell_is_absent() -> None:
    status = measured([by_wget(1), by_wget(2)], engine="Wget")
    assert status.display.case == "1Gi Wget"
    assert not {"connectNanoseconds", "firstByteNanoseconds"} & set(status.statistics)
    assert status.statistics["throughputBytesPerSecond"].mean == 2**20
    (run,) = runs([recorded([by_wget(1)], engine="Wget")])
    assert len(trial_rows(run)) == 1
