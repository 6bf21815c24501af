"""The operator itself, with the rights that the chart gives it and no others."""

from pathlib import Path

import pytest

from tests.api.objects import smallest
from tests.api.server import ApiServer
from tests.chart.helm import Helm
from tests.cluster.processes import wait
from tests.operator.process import operator
from tierbench.api.file_transfer import FileTransferBenchmark

pytestmark = pytest.mark.apiserver

DEPLOYMENT = "/apis/apps/v1/namespaces/team-a/deployments/one-tierbench"
OURS = "/apis/tierbench.io/v1alpha1/namespaces/team-a"


def test_one_works_and_another_waits_until_it_has_ended(
    cluster_helm: Helm, shared_server: ApiServer, tmp_path: Path
) -> None:
    cluster_helm.install("one", "team-a", {"watchNamespaces": ["team-a"]})
    deployment = shared_server.request("GET", DEPLOYMENT)
    with operator(shared_server, tmp_path, deployment) as first:
        wait(lambda: first.readiness() == "ok\n", "the operator is ready", 60)
        with operator(shared_server, tmp_path, deployment, TIERBENCH_RELEASE="elsewhere/other") as second:
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
    deployment = shared_server.request("GET", DEPLOYMENT)
    with (
        operator(shared_server, tmp_path, deployment, POD_NAME="one-1") as first,
        operator(shared_server, tmp_path, deployment, POD_NAME="one-2") as second,
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
