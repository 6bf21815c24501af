"""The operator itself, with the rights that the chart gives it and no others."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import urlopen

import pytest

from tests.api.objects import smallest
from tests.api.server import ApiServer
from tests.chart.helm import Helm
from tests.cluster.processes import wait
from tests.ports import free_ports
from tierbench.api.file_transfer import FileTransferBenchmark

pytestmark = pytest.mark.apiserver

DEPLOYMENT = "/apis/apps/v1/namespaces/team-a/deployments/one-tierbench"
TOKEN = "/api/v1/namespaces/team-a/serviceaccounts/one-tierbench/token"
OURS = "/apis/tierbench.io/v1alpha1/namespaces/team-a"


class Operator:
    """The program of the release's Deployment, as its account, on this machine."""

    def __init__(self, server: ApiServer, folder: Path, **changed: str) -> None:
        token = server.request("POST", TOKEN, {"spec": {}})["status"]["token"]
        kubeconfig = json.loads(server.kubeconfig.read_text())
        kubeconfig["users"][0]["user"]["token"] = token
        path = folder / "operator.kubeconfig"
        path.write_text(json.dumps(kubeconfig))
        (container,) = server.request("GET", DEPLOYMENT)["spec"]["template"]["spec"]["containers"]
        (self._port,) = free_ports(1)
        given = {variable["name"]: variable.get("value", "") for variable in container["env"]} | changed
        place = {"KUBECONFIG": str(path), "TIERBENCH_HTTP_PORT": str(self._port)}
        command = [sys.executable, "-c", "from tierbench.controller.main import main; main()"]
        self.process = subprocess.Popen(command, env=os.environ | given | place)

    def readiness(self) -> str:
        """What /readyz says."""
        try:
            with urlopen(f"http://127.0.0.1:{self._port}/readyz", timeout=5) as answer:
                said: str = answer.read().decode()
        except HTTPError as error:
            return error.read().decode()
        except URLError:
            return ""
        return said


@contextmanager
def operator(server: ApiServer, folder: Path, **changed: str) -> Iterator[Operator]:
    running = Operator(server, folder, **changed)
    try:
        yield running
    finally:
        running.process.kill()
        running.process.wait()


def test_one_works_and_another_waits_until_it_has_ended(
    cluster_helm: Helm, shared_server: ApiServer, tmp_path: Path
) -> None:
    cluster_helm.install("one", "team-a", {"watchNamespaces": ["team-a"]})
    with operator(shared_server, tmp_path) as first:
        wait(lambda: first.readiness() == "ok\n", "the operator is ready", 60)
        with operator(shared_server, tmp_path, TIERBENCH_RELEASE="elsewhere/other") as second:
            said = "Another operator runs these benchmarks: release team-a/one-tierbench"
            wait(lambda: second.readiness().startswith(said), "the second operator says that it is not alone", 60)
            body = smallest(FileTransferBenchmark, "nowhere")
            body["spec"]["timeouts"] = {"schedulingSeconds": 5}
            shared_server.request("POST", f"{OURS}/filetransferbenchmarks", body)

            def reasons() -> list[str]:
                results = shared_server.request("GET", f"{OURS}/benchmarkresults")["items"]
                return [result.get("status", {}).get("reason", "") for result in results]

            wait(lambda: reasons() == ["NodeClassNotFound"], "the first operator writes its result", 60)
            first.process.terminate()
            assert first.process.wait(30) == 0
            wait(lambda: second.readiness() == "ok\n", "the second operator goes on", 60)


def test_one_leads_another_of_its_release_stands_by_and_goes_on_when_the_first_was_killed(
    cluster_helm: Helm, shared_server: ApiServer, tmp_path: Path
) -> None:
    cluster_helm.install("one", "team-a", {"watchNamespaces": ["team-a"]})
    with (
        operator(shared_server, tmp_path, POD_NAME="one-1") as first,
        operator(shared_server, tmp_path, POD_NAME="one-2") as second,
    ):
        both = (first, second)

        def said() -> list[str]:
            return sorted(one.readiness() for one in both)

        wait(
            lambda: said() in (["ok\n", f"stands by for one-{number}\n"] for number in (1, 2)),
            "one leads, one stands by",
            60,
        )
        leader = next(one for one in both if one.readiness() == "ok\n")
        (standby,) = (one for one in both if one is not leader)
        leader.process.kill()
        wait(lambda: standby.readiness() == "ok\n", "the other goes on", 60)
