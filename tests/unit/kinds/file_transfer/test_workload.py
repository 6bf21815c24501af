"""Deployment of a file transfer: least rights, one node, and the plan of the client."""

import re
from dataclasses import replace
from typing import Any

import pytest

from tests.plans import plan_of
from tests.unit.domain.objects import IMAGES, OWNER, benchmark
from tierbench.api.benchmark import Tls
from tierbench.api.node_class import NodeClass
from tierbench.api.policy import Policy
from tierbench.kinds.file_transfer.server import Files, configuration
from tierbench.kinds.file_transfer.workload import FileTransfer
from tierbench.workloads.plan import Case, ScheduledTrial, ServerPlacement, plan
from tierbench.workloads.workload import ClientInstance, ClientPart, Manifest, RunningServer, ServerInstance, Target

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
INSTANCE = ServerInstance("ft-demo-r1-s1", "ft-demo-r1-s1-uid-1", 1, 0, ServerPlacement("jetson", 0), "j1", CLASS)
SERVICE = {
    "metadata": {"name": INSTANCE.name, "namespace": "default"},
    "spec": {"ports": [{"name": "http", "nodePort": 30123}, {"name": "https-tls13", "nodePort": 30124}]},
}
RUNNING = RunningServer(INSTANCE, "10.0.0.5", "192.0.2.7", SERVICE, {"spec": {"clusterIP": "10.96.0.9"}})


def workload(**spec: Any) -> FileTransfer:
    return FileTransfer(OWNER, benchmark(**spec).spec, IMAGES)


def first_case(given: FileTransfer) -> Case:
    return plan(given.spec, given.server_placements(), given.factors)[0]


def job(given: FileTransfer, case: Case | None = None) -> Manifest:
    schedule = (ScheduledTrial(1, 2), ScheduledTrial(1, 3))
    instance = ClientInstance("ft-demo-r1-c001-a2", 1, 1, 2, ClientPart(0, "user"), "u1", CLASS, schedule, 600)
    return given.client(instance, [Target(case or first_case(given), RUNNING, 60)])


def pod_specs(given: FileTransfer) -> list[dict[str, Any]]:
    server = next(item for item in given.server(INSTANCE) if item["kind"] == "Pod")
    return [server["spec"], job(given)["spec"]["template"]["spec"]]


def test_server_runs_the_requested_image() -> None:
    given = workload(servers={"nodeClassNames": ["jetson"], "images": ["default", "1.19.6", "1.18.0"]})
    ran = []
    for placement in given.server_placements()[::2]:
        *_, pod = given.server(replace(INSTANCE, placement=placement))
        ran.append(pod["spec"]["containers"][0]["image"])
    assert ran == ["nginx:1", "nginx:1.19.6"]
    assert [bool(given.image_problem(placement)) for placement in given.server_placements()] == [False, True, False]


def test_equal_sizes_are_one_level() -> None:
    given = workload(fileSizes=["1Ki", 1024, "1M", "1000k", "1Mi"])
    sizes = [case.levels["fileSize"] for case in plan(given.spec, given.server_placements(), given.factors)]
    assert list(dict.fromkeys(sizes)) == ["1Ki", "1M", "1Mi"]


STORAGES: list[dict[str, Any]] = [
    {"emptyDir": {}},
    {"hostPath": {"path": "/var/lib/tierbench"}},
    {"volumeClaimTemplate": {"storageClassName": "fast"}},
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


def preparation(storage: dict[str, Any], instance: ServerInstance = INSTANCE, *, keep: bool = False) -> dict[str, Any]:
    asked = benchmark(storage=storage)
    pod = FileTransfer(OWNER, asked.spec, IMAGES, Policy(keep_files=keep)).server(instance)[-1]
    container: dict[str, Any] = pod["spec"]["initContainers"][0]
    return container


@pytest.mark.parametrize("storage", STORAGES, ids=lambda storage: next(iter(storage)))
def test_files_on_the_nodes_disk_have_bounds(storage: dict[str, Any]) -> None:
    bounded = preparation(storage, replace(INSTANCE, free_bytes=5 * 2**30, most_file_bytes=2**30))["args"]
    bounds = [["--most-bytes", str(2**30)], ["--reserve-bytes", str(5 * 2**30)]]
    given = [bounded[bounded.index(flag) : bounded.index(flag) + 2] for flag, _ in bounds if flag in bounded]
    assert given == ([["--reserve-bytes", "0"]] if "volumeClaimTemplate" in storage else bounds)
    assert ("--reserve-bytes" in preparation(storage)["args"]) == ("volumeClaimTemplate" in storage)


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("storage", STORAGES, ids=lambda storage: next(iter(storage)))
def test_host_path_files_are_removed_with_their_server_unless_the_policy_keeps_them(
    storage: dict[str, Any], keep: bool
) -> None:
    container = preparation(storage, keep=keep)
    holds = "hostPath" in storage and not keep
    assert container.get("restartPolicy") == ("Always" if holds else None)
    assert ("--hold" in container["args"]) == holds
    if holds:
        marker = container["args"][container["args"].index("--hold") + 1]
        assert container["startupProbe"]["exec"]["command"] == ["/tierbench-client", "prepared", marker]
        assert {"name": "tmp", "mountPath": "/tmp"} in container["volumeMounts"]


def test_a_server_has_time_to_remove_its_files() -> None:
    grace = [pod_specs(workload(storage=storage))[0]["terminationGracePeriodSeconds"] for storage in STORAGES]
    assert grace == [30 if "hostPath" in storage else 2 for storage in STORAGES]


def test_pods_are_pinned_to_one_node_of_their_class() -> None:
    for spec, node in zip(pod_specs(workload()), ("j1", "u1"), strict=True):
        required = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        (term,) = required["nodeSelectorTerms"]
        assert term["matchFields"] == [{"key": "metadata.name", "operator": "In", "values": [node]}]
        assert {"key": "hw", "operator": "In", "values": ["jetson"]} in term["matchExpressions"]
        assert {"key": "gpu", "operator": "Exists", "values": []} in term["matchExpressions"]
        edge, *not_ready = spec["tolerations"]
        assert edge == {"key": "edge", "operator": "Exists", "effect": "NoSchedule"}
        assert not_ready == [
            {"key": f"node.kubernetes.io/{state}", "operator": "Exists", "effect": "NoExecute"}
            for state in ("not-ready", "unreachable")
        ]


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
def test_client_uses_the_url_of_the_access(access: str, tls: str, url: str) -> None:
    plan = plan_of(job(workload(access=access, tls=[tls])))
    assert plan["targets"][0].items() >= {"url": f"{url}/1048576.bin", "case": 1, "deadlineSeconds": 60}.items()
    assert plan["schedule"] == [{"case": 1, "trial": 2}, {"case": 1, "trial": 3}]
    assert (plan["serverName"] == "server.tierbench.internal") == (tls != "None")


@pytest.mark.parametrize(
    ("tls", "copies"),
    [(["None"], False), (["TLSv1.3"], False), (["None", "TLSv1.3"], True), (["TLSv1.2", "None"], True)],
)
def test_client_copies_content_if_plain_and_tls_are_compared(tls: list[str], copies: bool) -> None:
    assert plan_of(job(workload(tls=tls)))["copyContent"] == copies


@pytest.mark.parametrize(("retry", "most"), [({}, 0), ({"maxWaitMilliseconds": 10000}, 10000)])
def test_client_gets_the_first_and_the_longest_retry_wait(retry: dict[str, int], most: int) -> None:
    plan = plan_of(job(workload(retry=retry)))
    assert (plan["waitMilliseconds"], plan["maxWaitMilliseconds"]) == (1000, most)


def test_deadline_leaves_time_after_a_trial_that_never_ends() -> None:
    made = workload(warmupTrials=1, timeouts={"trialSeconds": 70})
    assert plan_of(job(made))["trialSeconds"] == 70
    assert made.deadline_seconds(2) > 3 * 70 + 120


def test_job_never_retries_and_has_a_deadline() -> None:
    spec = job(workload())["spec"]
    assert (spec["backoffLimit"], spec["activeDeadlineSeconds"]) == (0, 600)
    assert spec["template"]["spec"]["restartPolicy"] == "Never"


def test_the_client_gets_no_private_key() -> None:
    volume = job(workload(tls=["TLSv1.3"]))["spec"]["template"]["spec"]["volumes"][0]["projected"]["sources"][0][
        "secret"
    ]
    assert [item["key"] for item in volume["items"]] == ["agent-token", "agent-pin", "ca.crt"]


def test_pods_use_the_host_network_only_with_access_host_network() -> None:
    """A node without CNI can run no other pod."""
    for access in ("PodIP", "ClusterIP", "NodePort"):
        assert not any("hostNetwork" in spec for spec in pod_specs(workload(access=access)))
    assert [spec["hostNetwork"] for spec in pod_specs(workload(access="HostNetwork"))] == [True, True]


def test_the_claim_holds_all_files() -> None:
    given = workload(storage=STORAGES[2], fileSizes=["1Gi", "2Gi"])
    claim = next(item for item in given.server(INSTANCE) if item["kind"] == "PersistentVolumeClaim")
    assert int(claim["spec"]["resources"]["requests"]["storage"]) > 3 * 2**30
    assert claim["spec"]["storageClassName"] == "fast"


@pytest.mark.parametrize(
    ("user", "owner"), [(10_000, ["--owner", "10000:10000"]), (None, [])], ids=["named", "assigned"]
)
def test_host_path_files_belong_to_the_user_that_serves_them(user: int | None, owner: list[str]) -> None:
    for storage in STORAGES:
        given = FileTransfer(OWNER, benchmark(storage=storage).spec, replace(IMAGES, user=user))
        arguments = pod_specs(given)[0]["initContainers"][0]["args"]
        place = arguments.index("--owner") if "--owner" in arguments else len(arguments)
        assert arguments[place : place + 2] == (owner if "hostPath" in storage else [])


def data_mounts(storage: dict[str, Any]) -> dict[str, dict[str, Any]]:
    server = pod_specs(workload(storage=storage))[0]
    containers = (*server["initContainers"], *server["containers"])
    return {item["name"]: mount for item in containers for mount in item["volumeMounts"] if mount["name"] == "data"}


@pytest.mark.parametrize(
    ("storage", "whole", "folder"),
    [
        (STORAGES[0], "", "_tierbench"),
        (STORAGES[2], "", "_tierbench"),
        (STORAGES[1], "", "_tierbench"),
        ({"hostPath": {"path": "/var/lib/tierbench/ssd/1"}}, "ssd/1", "ssd/1/_tierbench"),
    ],
)
def test_server_and_agent_mount_only_the_folder_of_the_files(storage: dict[str, Any], whole: str, folder: str) -> None:
    mounts = data_mounts(storage)
    assert mounts["prepare"] == {"name": "data", "mountPath": "/data", "subPath": whole}
    for name in ("nginx", "agent"):
        assert mounts[name] == {"name": "data", "mountPath": "/data", "subPath": folder, "readOnly": True}


@pytest.mark.parametrize(
    ("path", "prefix", "folder"),
    [
        ("/srv", "/srv", ""),
        ("/srv/a/b", "/srv", "a/b"),
        ("/srv/ssd", "/srv/ssd", ""),
        ("/srv/ssd/a", "/srv/ssd", "a"),
        ("/srv/ssd-2", "/srv", "ssd-2"),
    ],
)
def test_volume_is_the_folder_that_the_policy_allows(path: str, prefix: str, folder: str) -> None:
    asked = benchmark(storage={"hostPath": {"path": path}})
    given = FileTransfer(OWNER, asked.spec, IMAGES, Policy(host_paths=("/srv", "/srv/ssd")))
    (pod,) = pod_specs(given)[:1]
    (volume,) = (item for item in pod["volumes"] if "hostPath" in item)
    assert volume == {"name": "data", "hostPath": {"path": prefix, "type": "DirectoryOrCreate"}}
    (mount,) = (item for item in pod["initContainers"][0]["volumeMounts"] if item["name"] == "data")
    assert mount["subPath"] == folder


@pytest.mark.parametrize(
    "path",
    ["/.", "/", "/etc", "/var/lib/tierbench-cluster", "/var/lib/tierbench/../kubelet", "/var/lib/tierbench/.", "//etc"],
)
def test_host_path_that_is_not_allowed_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match="is not allowed"):
        workload(storage={"hostPath": {"path": path}}).server(INSTANCE)


def test_nginx_serves_the_files_of_the_spec_by_their_names() -> None:
    manifests = workload(fileSizes=["1Ki", "2M"], tls=["TLSv1.2"]).server(INSTANCE)
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


def test_refinement_server_has_only_the_files_of_its_levels() -> None:
    config, *_, pod = workload(fileSizes=["1Gi", "2Gi"]).server(replace(INSTANCE, refined_levels=("1450Mi",)))
    for text in config["data"].values():
        assert set(re.findall(r"location = /(\w+)\.bin ", text)) == {str(1450 * 2**20)}
    arguments = pod["spec"]["initContainers"][0]["args"]
    assert arguments[arguments.index("--sizes") + 1] == str(1450 * 2**20)
    given = workload(storage=STORAGES[2], fileSizes=["1Gi", "20Gi"]).server(replace(INSTANCE, refined_levels=("2Gi",)))
    claim = next(item for item in given if item["kind"] == "PersistentVolumeClaim")
    assert 2 * 2**30 < int(claim["spec"]["resources"]["requests"]["storage"]) < 4 * 2**30


def test_nginx_listens_for_measured_tls_levels_and_readiness() -> None:
    text = configuration([Tls.TLS13], Files((1024,)))
    assert "listen 8080;" in text
    assert "listen 8444 ssl;" in text
    assert "ssl_protocols TLSv1.3;" in text
    assert "8443" not in text


def test_nginx_listens_on_ipv6_if_the_kernel_supports_it() -> None:
    assert "listen [::]:8444 ssl;" in configuration([Tls.TLS13], Files((1024,)))
    assert "[::]" not in configuration([Tls.TLS13], Files((1024,)), ipv6=False)
    manifests = workload().server(INSTANCE)
    files = next(item for item in manifests if item["kind"] == "ConfigMap")["data"]
    command = " ".join(manifests[-1]["spec"]["containers"][0]["command"])
    assert all(name in command for name in files)


def test_everything_is_owned_by_the_benchmark() -> None:
    given = workload(access="NodePort", storage=STORAGES[2])
    for manifest in (*given.server(INSTANCE), job(given), given.credentials(INSTANCE).manifest):
        assert manifest["metadata"]["ownerReferences"][0]["uid"] == "uid-1"
        assert manifest["metadata"]["labels"]["tierbench.io/benchmark"] == "demo"


def test_names_fit_into_labels() -> None:
    owner = type(OWNER)(OWNER.kind, "default", "n" * 40, "uid")
    case = first_case(workload())
    assert len(owner.job(99999, case, 10, 3, 31)) <= 63
    assert len(f"{owner.server(99999, 127, 9)}-agent") <= 63
    assert len(f"{owner.server(999, 127, 199)}-agent") <= 63
