"""The operator runs with the permissions of the chart."""

from pathlib import Path

import pytest

from tests.api.objects import collection, smallest
from tests.api.server import ApiServer
from tests.api.waiting import SECONDS, wait_for
from tests.chart.helm import Helm
from tests.operator.process import Operator, operator
from tierbench.api.result import BenchmarkResult
from tierbench.kinds.file_transfer.spec import FileTransferBenchmark

pytestmark = [pytest.mark.apiserver, pytest.mark.timing]

DEPLOYMENT = "/apis/apps/v1/namespaces/bench/deployments/one-tierbench"


def test_one_pod_is_leader_another_standby_and_another_release_waits(
    cluster_helm: Helm, server: ApiServer, tmp_path: Path
) -> None:
    """The standby leads after the first leader has ended. The other release leads after both have ended."""
    cluster_helm.install("one", "bench", {"watchNamespaces": ["team-a"], "metrics": {"authorization": False}})
    deployment = server.request("GET", DEPLOYMENT)
    with (
        operator(server, tmp_path, deployment, POD_NAME="one-1") as first,
        operator(server, tmp_path, deployment, POD_NAME="one-2") as second,
    ):
        ways = ((first, "one-1", second), (second, "one-2", first))

        def led() -> list[tuple[Operator, Operator]]:
            return [
                (one, other)
                for one, name, other in ways
                if one.readiness() == "ok\n" and other.readiness() == f"standby; the leader is {name}\n"
            ]

        ((leader, standby),) = wait_for(led, "a leader and a standby")
        body = smallest(FileTransferBenchmark, "nowhere")
        body["spec"]["timeouts"] = {"schedulingSeconds": 5}
        server.request("POST", collection(FileTransferBenchmark, "team-a"), body)
        leader.process.terminate()
        wait_for(lambda: standby.readiness() == "ok\n", "the standby continues")
        with operator(server, tmp_path, deployment, TIERBENCH_RELEASE="elsewhere/other") as other:
            waits = "Another operator watches the same namespaces: release bench/one-tierbench"
            wait_for(lambda: other.readiness().startswith(waits), "the other release says that it is not alone")

            def reasons() -> list[str]:
                results = server.request("GET", collection(BenchmarkResult, "team-a"))["items"]
                return [result.get("status", {}).get("reason", "") for result in results]

            wait_for(lambda: reasons() == ["NodeClassNotFound"], "its result is written")
            standby.process.terminate()
            assert standby.process.wait(SECONDS) == 0
            wait_for(lambda: other.readiness() == "ok\n", "the other release continues")
