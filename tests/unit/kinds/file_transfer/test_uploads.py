"""Uploads: their cases, their room on a server, and what their trials report."""

import json
import re
from typing import Any

import pytest

from tests.plans import plan_of
from tests.unit.kinds.file_transfer.test_workload import INSTANCE, STORAGES, job, workload
from tests.unit.results.trials import line, measured, recorded, sample
from tierbench.advice.tables import runs
from tierbench.api.contract import TrialLine
from tierbench.kinds.file_transfer.measures import bits_per_second
from tierbench.metrics.results import render, result_samples
from tierbench.report.tables import trial_headings, trial_rows
from tierbench.results.quantities import levels_and_parameters
from tierbench.workloads.plan import plan

BOTH = ["Download", "Upload"]


def upload(number: int, **more: Any) -> TrialLine:
    """Returns the trial of an upload."""
    given = json.loads(line(number, **more).model_dump_json(by_alias=True, exclude_none=True))
    return TrialLine.model_validate({**given, "transfer": {**given["transfer"], "direction": "Upload"}})


def test_a_direction_is_a_factor_only_where_files_are_uploaded() -> None:
    levels = {}
    for directions in (None, ["Download"], ["Upload"], BOTH):
        given = workload(**({} if directions is None else {"directions": directions}))
        cases = plan(given.spec, given.server_placements(), given.factors)
        levels[str(directions)] = {case.levels.get("direction") for case in cases}
    assert levels == {"None": {None}, "['Download']": {None}, "['Upload']": {"Upload"}, str(BOTH): set(BOTH)}


@pytest.mark.parametrize("direction", BOTH)
def test_client_gets_the_direction_and_the_url_of_its_case(direction: str) -> None:
    given = workload(directions=["Upload", "Download"], concurrency=[3], access="PodIP", tls=["TLSv1.3"])
    cases = plan(given.spec, given.server_placements(), given.factors)
    case = next(case for case in cases if case.levels["direction"] == direction)
    found = plan_of(job(given, case))
    assert found["direction"] == direction
    place = {"Download": "1048576.bin", "Upload": "received"}[direction]
    assert found["targets"][0]["url"] == f"https://10.0.0.5:8444/{place}"


@pytest.mark.parametrize("storage", STORAGES, ids=lambda storage: next(iter(storage)))
def test_server_has_room_for_uploads_and_nginx_writes_only_there(storage: dict[str, Any]) -> None:
    given = workload(directions=BOTH, storage=storage, fileSizes=["1Ki", "1Gi"], concurrency=[1, 4])
    manifests = given.server(INSTANCE)
    pod = manifests[-1]["spec"]
    arguments = pod["initContainers"][0]["args"]
    assert arguments[arguments.index("--receive-bytes") + 1] == str(3 * 4 * 2**30)
    containers = {item["name"]: item["volumeMounts"] for item in (*pod["initContainers"], *pod["containers"])}
    writable = {
        name: [mount["mountPath"] for mount in mounts if mount["name"] == "data" and not mount.get("readOnly")]
        for name, mounts in containers.items()
    }
    assert writable == {"prepare": ["/data"], "nginx": ["/srv/received"], "agent": []}
    assert any(mount["subPath"].endswith("_tierbench/received") for mount in containers["nginx"] if "subPath" in mount)
    claims = [item for item in manifests if item["kind"] == "PersistentVolumeClaim"]
    for claim in claims:
        assert int(claim["spec"]["resources"]["requests"]["storage"]) > 13 * 2**30
    for volume in pod["volumes"]:
        if volume["name"] == "data" and "emptyDir" in volume:
            assert int(volume["emptyDir"]["sizeLimit"]) > 13 * 2**30


def test_nginx_receives_one_file_per_concurrent_upload() -> None:
    given = workload(
        directions=BOTH, fileSizes=["1Ki", "2M"], concurrency=[2], tls=["TLSv1.2"],
        retry={"readTimeoutMilliseconds": 700},
    )  # fmt: skip
    text = given.server(INSTANCE)[0]["data"]["nginx.conf"]
    assert "client_body_timeout 1400ms;" in text
    for server in text.split("server {")[1:]:
        assert re.findall(r"location = /(received\S*) ", server) == ["received/0", "received/1"]
        assert server.count("dav_methods PUT DELETE; client_max_body_size 2000000;") == 2


def test_server_without_uploads_accepts_no_writes() -> None:
    config, *_, pod = workload().server(INSTANCE)
    assert "dav_methods" not in config["data"]["nginx.conf"]
    assert "/srv" not in json.dumps(pod)


def test_a_server_that_only_receives_has_no_files() -> None:
    config, *_, pod = workload(directions=["Upload"]).server(INSTANCE)
    assert ".bin" not in config["data"]["nginx.conf"]
    assert "--sizes" not in pod["spec"]["initContainers"][0]["args"]


def test_deadline_includes_the_time_to_read_uploads_back() -> None:
    times = [
        workload(directions=BOTH, verifyDigest=verify, timeouts={"trialSeconds": 100}).deadline_seconds(2)
        for verify in (False, True)
    ]
    assert times[1] - times[0] == 2 * 100


def test_results_without_a_direction_are_downloads() -> None:
    (down, up) = (result for result in published([line(1)], [upload(1)]))
    assert levels_and_parameters(down)["direction"] == "Download"
    assert levels_and_parameters(up)["direction"] == "Upload"
    text = "".join(render([result_samples(down), result_samples(up)]))
    assert text.count('direction="Download"') == text.count('direction="Upload"') > 0


def published(down: list[TrialLine], up: list[TrialLine]) -> Any:
    """Returns a download in the form of an older version, and an upload."""
    return recorded(down), recorded(up, direction="Upload")


def test_case_of_an_upload_names_its_direction() -> None:
    status = measured([upload(1)], direction="Upload")
    assert status.display.case == "1Gi Upload"


def test_uploads_lack_quantities_that_only_downloads_have() -> None:
    """The server reads no file, and sends only acknowledgements."""
    server = sample(tcpRetransmits=3, roundTripNanoseconds=5, deviceReadBytes=2**30, ioPressurePartsPerMillion=900_000)
    lines = [upload(number, server=server) for number in (1, 2)]
    status = measured(lines, direction="Upload", memory=2**20)
    assert not {"tcpRetransmits", "tcpRoundTripNanoseconds", "firstByteNanoseconds"} & set(status.statistics)
    assert status.facts == ()
    assert not status.totals
    assert status.statistics["throughputBytesPerSecond"].mean == 2**20


def test_a_file_goes_in_one_direction() -> None:
    """So an upload is compared with the rate of the network from client to server."""
    trials = [result.recorded.trials[0] for result in (recorded([upload(1)]), recorded([line(1)]))]
    ways = [[bits_per_second(trial, way) for way in ("up", "down")] for trial in trials]
    assert ways == [[8 * 2**20, None], [None, 8 * 2**20]]


def test_report_shows_uploads_in_separate_rows() -> None:
    (run,) = runs(list(published([line(1)], [upload(1)])))
    assert "First byte" in trial_headings(run)
    assert len(trial_rows(run)) == 2
