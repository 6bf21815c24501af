"""Which folders of a node a server's pod may have: the last word where a benchmark is older than its rules."""

import pytest

from tests.api.server import ApiServer, Json, RefusedError
from tests.unit.workloads.test_file_transfer import pod_specs, workload

pytestmark = pytest.mark.apiserver
ELSEWHERE = ["/.", "/etc", "//etc", "/var/lib/tierbench-cluster", "/var/lib/tierbench/../kubelet"]


def create(server: ApiServer, path: str) -> None:
    """A template is held to what a pod is, and needs no service account."""
    template = {
        "metadata": {"labels": {"app": "files"}},
        "spec": pod_specs(workload(storage={"hostPath": {"path": path}}))[0],
    }
    body: Json = {"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": "files"}, "template": template}
    server.request("POST", "/api/v1/namespaces/default/podtemplates?fieldValidation=Strict&dryRun=All", body)


@pytest.mark.parametrize("path", ["/var/lib/tierbench", "/var/lib/tierbench/ssd/1"])
def test_a_folder_of_the_storage_is_mounted(server: ApiServer, path: str) -> None:
    create(server, path)


@pytest.mark.parametrize("path", ELSEWHERE)
def test_a_folder_elsewhere_is_refused(server: ApiServer, path: str) -> None:
    with pytest.raises(RefusedError) as refused:
        create(server, path)
    assert refused.value.code == 422
    assert {message for _, message in refused.value.causes} == {"must not contain '..'"}
    assert len(refused.value.causes) == 3
