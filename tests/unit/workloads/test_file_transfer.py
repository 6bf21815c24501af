"""What is deployed for a file transfer: least rights, one node, and the command line that the client understands."""

import re
from typing import Any

import pytest

from tests.unit.domain.world import IMAGES, OWNER, benchmark
from tierbench.api.benchmark import Tls
from tierbench.api.node_class import NodeClass
from tierbench.workloads.file_transfer import FileTransfer
from tierbench.workloads.nginx import configuration
from tierbench.workloads.plan import Case, Slot, plan
from tierbench.workloads.workload import ClientSite, Manifest, Part, RunningServer, ServerSite

CLASS = NodeClass.model_validate(
    {
        "metadata": {"name": "jetson"},
        "spec": {
            "nodeSelector": {
                "matchLabels": {"hw": "jetson"},
                "matchExpressions": [{"key": "gpu", "operator": "Exists"}],
            },
            "tolerations": [{"key": "edge", "operator": "Exists", "effect": "NoSchedule"}],
        },
    }
).spec
SITE = ServerSite("ft-demo-r1-s1", "ft-demo-r1-s1-uid-1", 1, 0, Slot("jetson", 0), "j1", CLASS)
SERVICE = {
    "metadata": {"name": SITE.name, "namespace": "default"},
    "spec": {"ports": [{"name": "http", "nodePort": 30123}, {"name": "https-tls13", "nodePort": 30124}]},
}
RUNNING = RunningServer(SITE, "10.0.0.5", "192.0.2.7", SERVICE, {"spec": {"clusterIP": "10.96.0.9"}})


def workload(**spec: Any) -> FileTransfer:
    return FileTransfer(OWNER, benchmark(**spec).spec, IMAGES)


def first_case(given: FileTransfer) -> Case:
    return plan(given.spec, given.slots(), given.factors)[0]


def job(given: FileTransfer, case: Case | None = None) -> Manifest:
    site = ClientSite("ft-demo-r1-c001-a2", 1, 2, Part(0, "user"), "u1", CLASS, (2, 3), 600)
    return given.client(site, case or first_case(given), RUNNING)


def pod_specs(given: FileTransfer) -> list[dict[str, Any]]:
    server = next(item for item in given.server(SITE) if item["kind"] == "Pod")
    return [server["spec"], job(given)["spec"]["template"]["spec"]]


STORAGES: list[dict[str, Any]] = [
    {"emptyDir": {}},
    {"hostPath": {"path": "/var/lib/tierbench"}},
    {"persistentVolumeClaim": {"storageClassName": "fast"}},
]


@pytest.mark.parametrize("storage", STORAGES, ids=lambda storage: next(iter(storage)))
def test_every_container_is_restricted(storage: dict[str, Any]) -> None:
    for spec in pod_specs(workload(storage=storage)):
        assert spec["automountServiceAccountToken"] is False
        assert spec["securityContext"]["runAsNonRoot"] is True
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        for container in (*spec.get("initContainers", []), *spec["containers"]):
            context = container["securityContext"]
            assert context["readOnlyRootFilesystem"] is True
            assert context["allowPrivilegeEscalation"] is False
            assert context["capabilities"]["drop"] == ["ALL"]
            root = context.get("runAsUser") == 0
            assert root == (container["name"] == "prepare" and "hostPath" in storage)
            assert context["capabilities"].get("add", []) == (["CHOWN"] if root else [])
            assert "memory" not in container.get("resources", {}).get("limits", {})


def test_pods_are_pinned_to_one_node_that_is_still_of_the_class() -> None:
    for spec, node in zip(pod_specs(workload()), ("j1", "u1"), strict=True):
        required = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        (term,) = required["nodeSelectorTerms"]
        assert term["matchFields"] == [{"key": "metadata.name", "operator": "In", "values": [node]}]
        assert {"key": "hw", "operator": "In", "values": ["jetson"]} in term["matchExpressions"]
        assert {"key": "gpu", "operator": "Exists", "values": []} in term["matchExpressions"]
        assert spec["tolerations"] == [{"key": "edge", "operator": "Exists", "effect": "NoSchedule"}]


@pytest.mark.parametrize(
    ("access", "tls", "url"),
    [
        ("PodIP", "None", "http://10.0.0.5:8080"),
        ("ClusterIP", "None", "http://ft-demo-r1-s1.default.svc:8080"),
        ("NodePort", "None", "http://192.0.2.7:30123"),
        ("NodePort", "TLSv1.3", "https://192.0.2.7:30124"),
        ("HostNetwork", "TLSv1.2", "https://192.0.2.7:8443"),
    ],
)
def test_the_client_goes_where_the_access_says(access: str, tls: str, url: str) -> None:
    arguments = job(workload(access=access, tls=[tls]))["spec"]["template"]["spec"]["containers"][0]["args"]
    assert f"--url={url}/1048576.bin" in arguments
    assert "--trials=2-3" in arguments
    assert ("--server-name=server.tierbench.internal" in arguments) == (tls != "None")


def test_a_job_is_tried_once_and_ends() -> None:
    spec = job(workload())["spec"]
    assert (spec["backoffLimit"], spec["activeDeadlineSeconds"]) == (0, 600)
    assert spec["template"]["spec"]["restartPolicy"] == "Never"


def test_the_client_gets_no_private_key() -> None:
    volume = job(workload(tls=["TLSv1.3"]))["spec"]["template"]["spec"]["volumes"][0]["projected"]["sources"][0][
        "secret"
    ]
    assert [item["key"] for item in volume["items"]] == ["agent-token", "ca.crt"]


def test_host_network_is_asked_for_only_by_its_access() -> None:
    assert "hostNetwork" not in pod_specs(workload(access="NodePort"))[0]
    assert pod_specs(workload(access="HostNetwork"))[0]["hostNetwork"] is True


def test_the_claim_holds_all_files() -> None:
    given = workload(storage=STORAGES[2], fileSizes=["1Gi", "2Gi"])
    claim = next(item for item in given.server(SITE) if item["kind"] == "PersistentVolumeClaim")
    assert int(claim["spec"]["resources"]["requests"]["storage"]) > 3 * 2**30
    assert claim["spec"]["storageClassName"] == "fast"


def data_mounts(storage: dict[str, Any]) -> dict[str, dict[str, Any]]:
    server = pod_specs(workload(storage=storage))[0]
    containers = (*server["initContainers"], *server["containers"])
    return {item["name"]: mount for item in containers for mount in item["volumeMounts"] if mount["name"] == "data"}


@pytest.mark.parametrize(
    ("storage", "whole", "folder"),
    [
        (STORAGES[0], "", "_tierbench"),
        (STORAGES[2], "", "_tierbench"),
        (STORAGES[1], ".", "_tierbench"),
        ({"hostPath": {"path": "/var/lib/tierbench/ssd/1"}}, "ssd/1", "ssd/1/_tierbench"),
    ],
)
def test_server_and_agent_see_nothing_but_the_folder_of_the_files(
    storage: dict[str, Any], whole: str, folder: str
) -> None:
    mounts = data_mounts(storage)
    assert mounts["prepare"] == {"name": "data", "mountPath": "/data", "subPath": whole}
    for name in ("nginx", "agent"):
        assert mounts[name] == {"name": "data", "mountPath": "/data", "subPath": folder, "readOnly": True}


@pytest.mark.parametrize("path", ["/.", "/etc", "/var/lib/tierbench-cluster", "/var/lib/tierbench/../kubelet", "//etc"])
def test_a_path_elsewhere_that_an_older_version_took_is_no_mount_that_the_api_server_takes(path: str) -> None:
    given = workload(storage={"hostPath": {"path": path}})
    (volume,) = (item for item in pod_specs(given)[0]["volumes"] if "hostPath" in item)
    assert volume["hostPath"] == {"path": "/var/lib/tierbench", "type": "DirectoryOrCreate"}
    for mount in data_mounts({"hostPath": {"path": path}}).values():
        assert mount["subPath"].startswith("..")


def test_nginx_serves_the_files_of_the_spec_by_their_names() -> None:
    manifests = workload(fileSizes=["1Ki", "2M"], tls=["TLSv1.2"]).server(SITE)
    text = next(item for item in manifests if item["kind"] == "ConfigMap")["data"]["nginx.conf"]
    for server in text.split("server {")[1:]:
        assert re.findall(r"location (.*?) \{", server) == [
            "= /1024.bin",
            "= /1024.bin.sha256",
            "= /2000000.bin",
            "= /2000000.bin.sha256",
            "= /ready",
            "/",
        ]
        assert "location / { return 404; }" in server


def test_nginx_listens_for_what_is_measured_and_for_readiness() -> None:
    text = configuration([Tls.TLS13], [1024])
    assert "listen 8080;" in text
    assert "listen 8444 ssl;" in text
    assert "ssl_protocols TLSv1.3;" in text
    assert "8443" not in text


def test_everything_is_owned_by_the_benchmark() -> None:
    given = workload(access="NodePort", storage=STORAGES[2])
    for manifest in (*given.server(SITE), job(given), given.credentials(SITE).manifest):
        assert manifest["metadata"]["ownerReferences"][0]["uid"] == "uid-1"
        assert manifest["metadata"]["labels"]["tierbench.io/benchmark"] == "demo"


def test_names_fit_into_labels() -> None:
    owner = type(OWNER)(OWNER.kind, "default", "n" * 40, "uid")
    case = first_case(workload())
    assert len(owner.job(99999, case, 3, 31)) <= 63
    assert len(f"{owner.server(99999, 127)}-agent") <= 63
