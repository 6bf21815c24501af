"""`doctor` starts check pods, reports what is missing, and always removes the pods."""

import json
import os
import signal
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.unit.apiserver.client import serve_in_thread
from tests.unit.apiserver.server import ApiServer, Request
from tests.unit.cli.benchmarks import run_in_background
from tierbench.api.node_class import NODE_CLASSES
from tierbench.cli import check_pods
from tierbench.cli.cluster import ANNOTATION, ANNOTATION_CLIENTS
from tierbench.cli.main import main
from tierbench.domain.diagnosis import Check
from tierbench.kube.client import ApiError
from tierbench.kube.meta import CLUSTER_ROLES, EVENTS, JOBS, NODES, PODS, format_time
from tierbench.workloads.check import ANSWERS, ASKS, LABEL_CHECK_CLASS, LABEL_CHECK_ROLE, PULLS

Capture = pytest.CaptureFixture[str]
Json = dict[str, Any]
IMAGE = "ghcr.io/tierbench/client:1"
PROGRAMS = {name: f"ghcr.io/tierbench/{name}:1" for name in ("kafka", "nginx")}
OPEN = dict.fromkeys(("tcp", "udp", "ping", "service", "nodePort", "dns"), "ok")
_NOT_REACHED = ApiError(502, "", "dial tcp 10.0.0.9:10250: connect: connection refused")


class Kubelets:
    """Acts as the kubelets. Pods run at once, and report what `reports` has for their class."""

    def __init__(self, store: ApiServer, kubeconfig: str) -> None:
        self.store = store
        self.kubeconfig = kubeconfig
        self.reports: dict[str, Json] = {}
        """Fields that replace those in the reports of asking pods, by class."""
        self.statuses: dict[tuple[str, str], Json] = {}
        """The statuses of pods that do not run, by class and role."""
        store.reactor = self.react

    def doctor(self, *arguments: str) -> int:
        """Runs the command, and returns its exit code."""
        return main(["doctor", *arguments, "--kubeconfig", self.kubeconfig])

    async def react(self, request: Request) -> None:
        if request.method == "POST" and request.path.endswith("/services"):
            spec = request.body["spec"]
            spec["clusterIP"] = "10.96.0.1"
            if spec["type"] == "NodePort":
                spec["ports"][0]["nodePort"] = 30007
        if request.method == "GET" and request.path.endswith("/pods"):
            for raw in self.store.matching(PODS.path("default")):
                if "status" not in raw:
                    self._run(raw)

    def _run(self, raw: Json) -> None:
        labels, name = raw["metadata"]["labels"], raw["metadata"]["name"]
        place, role = labels[LABEL_CHECK_CLASS], labels[LABEL_CHECK_ROLE]
        self.store.change(PODS, name, status=self.statuses.get((place, role)) or self._status(raw, place, role))

    def _status(self, raw: Json, place: str, role: str) -> Json:
        if role == ANSWERS:
            running = {"name": "client", "state": {"running": {}}}
            return {
                "phase": "Running",
                "podIP": "10.1.0.7",
                "hostIP": "192.0.2.7",
                "containerStatuses": [running],
            }
        if role == PULLS:
            ended = {"state": {"terminated": {"exitCode": 0}}}
            return {
                "phase": "Succeeded",
                "containerStatuses": [{"name": one["name"], **ended} for one in raw["spec"]["containers"]],
            }
        peers = [json.loads(text.removeprefix("--peer=")) for text in arguments(raw) if text.startswith("--peer=")]
        now = format_time(self.store.now())
        line = {
            "contract": 1,
            "record": "Check",
            "startedAt": now,
            "endedAt": now,
            "architecture": "arm64",
            "ping": "ok",
        }
        line |= {"memoryCgroup": True, "cgroupVersion": 2, "freeBytes": 90 << 30, "sizeBytes": 100 << 30}
        line |= {"peers": [{"name": peer["name"], **OPEN} for peer in peers], **self.reports.get(place, {})}
        text = json.dumps(line)
        self.store.logs.setdefault(raw["metadata"]["name"], text.encode() + b"\n")
        terminated = {"exitCode": 0, "message": text}
        return {"phase": "Succeeded", "containerStatuses": [{"name": "client", "state": {"terminated": terminated}}]}


def arguments(pod: Mapping[str, Any]) -> list[str]:
    found: list[str] = pod["spec"]["containers"][0]["args"]
    return found


def put_class(store: ApiServer, name: str, *, ready: bool = True, node: bool = True, **spec: Any) -> None:
    selector = {"nodeSelector": {"matchLabels": {"hw": name}}}
    store.put(NODE_CLASSES, {"metadata": {"name": name}, "spec": {**selector, **spec}})
    if node:
        condition = {"type": "Ready", "status": str(ready), "lastTransitionTime": "2026-05-04T09:00:00Z"}
        metadata = {"name": f"{name}-1", "labels": {"hw": name}}
        store.put(NODES, {"metadata": metadata, "status": {"conditions": [condition]}})


def put_release(store: ApiServer, watched: str = "", **clients: Any) -> None:
    settings = {"image": IMAGE, "programs": PROGRAMS, "user": 65530, **clients}
    annotations = {ANNOTATION: watched, ANNOTATION_CLIENTS: json.dumps(settings)}
    store.put(CLUSTER_ROLES, {"metadata": {"name": "tierbench:tierbench", "annotations": annotations}})


@pytest.fixture
def kubelets(tmp_path: Path) -> Iterator[Kubelets]:
    api = ApiServer()
    put_release(api)
    put_class(api, "cloud")
    put_class(api, "jetson")
    with serve_in_thread(api, tmp_path) as kubeconfig:
        yield Kubelets(api, kubeconfig)


@pytest.fixture
def store(kubelets: Kubelets) -> ApiServer:
    return kubelets.store


def jobs(store: ApiServer) -> list[str]:
    return store.names("jobs")


def test_class_without_problems_takes_one_line(store: ApiServer, kubelets: Kubelets, capsys: Capture) -> None:
    assert kubelets.doctor() == 0
    output = capsys.readouterr()
    header, cloud, jetson = output.out.splitlines()
    assert header.split() == ["CLASS", *(check.upper() for check in Check)]
    assert cloud.split() == ["cloud", *["ok"] * 4, "–", *["ok"] * 9]
    assert jetson.split()[0] == "jetson"
    assert max(map(len, output.out.splitlines())) <= 120
    assert output.err == "Checking cloud-1 and jetson-1.\n"
    assert not jobs(store)


def test_pods_have_the_settings_of_a_client_and_are_owned_by_the_job(store: ApiServer, kubelets: Kubelets) -> None:
    put_release(store, pullSecrets=["registry"], collector="https://here.tierbench.svc:8443", networkPolicies=True)
    assert kubelets.doctor("jetson", "--timeout", "90s") == 0
    created = {request.path.rpartition("/")[2]: request.body for request in store.writes if request.method == "POST"}
    job = created["jobs"]
    assert job["spec"]["parallelism"] == 0
    assert (job["spec"]["activeDeadlineSeconds"], job["spec"]["ttlSecondsAfterFinished"]) == (210, 0)
    owner = job["metadata"]["name"]
    assert created.keys() == {"jobs", "pods", "services", "networkpolicies"}
    for name in ("pods", "services", "networkpolicies"):
        (reference,) = created[name]["metadata"]["ownerReferences"]
        assert (reference["kind"], reference["name"]) == ("Job", owner)
        assert reference["uid"].startswith(f"uid-{owner}")
    spec = created["pods"]["spec"]
    container = spec["containers"][0]
    assert (container["image"], spec["imagePullSecrets"]) == (IMAGE, [{"name": "registry"}])
    assert not spec["automountServiceAccountToken"]
    assert spec["securityContext"]["runAsNonRoot"]
    assert spec["securityContext"]["runAsUser"] == 65530
    assert container["securityContext"]["readOnlyRootFilesystem"]
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert spec["activeDeadlineSeconds"] == 150
    assert spec["restartPolicy"] == "Never"
    assert "--collector=here.tierbench.svc:8443" in container["args"]
    egress = created["networkpolicies"]["spec"]["egress"]
    open_ports = {port["port"] for rule in egress for port in rule.get("ports", ())}
    assert open_ports >= {8443, 28091, 30007}
    (peer,) = [json.loads(text.removeprefix("--peer=")) for text in container["args"] if text.startswith("--peer=")]
    assert (peer["service"], peer["nodePort"]) == ("10.96.0.1:28091", "192.0.2.7:30007")
    (deleted,) = [request for request in store.writes if request.method == "DELETE"]
    assert deleted.path == JOBS.path("default", owner)


def test_host_network_flag_applies_to_all_check_pods(store: ApiServer, kubelets: Kubelets) -> None:
    put_release(store, networkPolicies=True)
    assert kubelets.doctor("--host-network") == 0
    pods = [request.body for request in store.writes if request.path.endswith("/pods")]
    assert len(pods) == 4
    assert all(pod["spec"]["hostNetwork"] and "sysctls" not in pod["spec"]["securityContext"] for pod in pods)
    assert {text for pod in pods for text in arguments(pod) if "$(POD_IP)" in text} == {
        "$(POD_IP):28091",
        "$(POD_IP):28092",
    }
    assert not [request for request in store.writes if request.path.endswith("/networkpolicies")]


def test_closed_log_port_is_explained_and_the_status_has_the_other_checks(
    store: ApiServer, kubelets: Kubelets, capsys: Capture
) -> None:
    put_class(store, "edge")

    async def refuse(request: Request) -> None:
        if request.path.endswith(f"-2-{ASKS}/log"):
            raise _NOT_REACHED
        await kubelets.react(request)

    store.reactor = refuse
    assert kubelets.doctor("cloud", "jetson", "edge") == 1
    text = capsys.readouterr().out
    rows = {line.split()[0]: line.split() for line in text.splitlines()[1:4]}
    assert rows["cloud"][4] == "ok"
    assert rows["edge"][4:9] == ["no", "–", "ok", "ok", "ok"]
    assert "- edge, Logs: The log of a pod on node edge-1 cannot be read: nothing listens at the port" in text
    assert "collector.enabled" in text


def test_image_that_cannot_be_pulled_does_not_affect_other_classes(
    store: ApiServer, kubelets: Kubelets, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check_pods, "_TRANSIENT_SECONDS", 0)
    waiting = {"reason": "ErrImagePull", "message": "no match for platform in manifest"}
    status = {"phase": "Pending", "containerStatuses": [{"name": "client", "state": {"waiting": waiting}}]}
    kubelets.statuses["jetson", ANSWERS] = status
    assert kubelets.doctor() == 1
    text = capsys.readouterr().out
    assert "- jetson, Image: Node jetson-1 cannot pull the image: container client: no match for platform" in text
    assert text.splitlines()[1].split() == ["cloud", *["ok"] * 4, "–", *["ok"] * 9]


def test_images_of_servers_are_pulled_on_request(store: ApiServer, kubelets: Kubelets, capsys: Capture) -> None:
    put_release(store, pullPolicies={PROGRAMS["kafka"]: "Always"})
    ended = {"exitCode": 128, "reason": "StartError", "message": "exec /bin/true: exec format error"}
    wrong = {"name": "kafka", "state": {"terminated": ended}}
    other = {"name": "nginx", "state": {"terminated": {"exitCode": 128, "message": "executable file not found"}}}
    kubelets.statuses["jetson", PULLS] = {"phase": "Failed", "containerStatuses": [other, wrong]}
    assert kubelets.doctor("--images", "all") == 0
    text = capsys.readouterr().out
    assert [line.split()[2] for line in text.splitlines()[1:3]] == ["ok", "limited"]
    assert "- jetson, Image: Node jetson-1 did not pull all images that `--images` names: container kafka: exec" in text
    pods = [request.body for request in store.writes if request.path.endswith("/pods")]
    pulling = [pod["spec"] for pod in pods if pod["metadata"]["labels"][LABEL_CHECK_ROLE] == PULLS]
    assert len(pulling) == 2
    assert {one["name"]: one["image"] for one in pulling[0]["containers"]} == PROGRAMS
    assert [one.get("imagePullPolicy") for one in pulling[0]["containers"]] == ["Always", None]
    assert kubelets.doctor("cloud", "--images", "kafka,redis") == 2
    assert "no image of redis; it has those of kafka, nginx" in capsys.readouterr().err


def test_an_image_of_a_server_that_cannot_be_pulled_limits_its_class(
    store: ApiServer, kubelets: Kubelets, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check_pods, "_TRANSIENT_SECONDS", 0)
    waiting = {"reason": "ErrImagePull", "message": "kafka:1: not found"}
    status = {"phase": "Pending", "containerStatuses": [{"name": "kafka", "state": {"waiting": waiting}}]}
    kubelets.statuses["cloud", PULLS] = status
    assert kubelets.doctor("cloud", "--images", "kafka") == 0
    assert "container kafka: kafka:1: not found. Provide the image" in capsys.readouterr().out
    assert not jobs(store)


def test_rejected_node_port_limits_only_its_own_check(store: ApiServer, kubelets: Kubelets, capsys: Capture) -> None:
    put_release(store, networkPolicies=True)

    async def refuse(request: Request) -> None:
        if request.path.endswith("/services") and request.body["spec"]["type"] == "NodePort":
            raise ApiError(403, "Forbidden", 'services "x" is forbidden: exceeded quota: team')
        await kubelets.react(request)

    store.reactor = refuse
    kubelets.reports["cloud"] = {"peers": [{"name": "cloud", **OPEN, "nodePort": ""}]}
    assert kubelets.doctor("cloud", "-o", "json") == 0
    (cloud,) = json.loads(capsys.readouterr().out)["classes"]
    assert cloud["checks"]["services"] == {"state": "Ok"}
    assert cloud["checks"]["nodeports"]["state"] == "Limited"
    assert "exceeded quota: team. Change" in cloud["checks"]["nodeports"]["whatToDo"]


def test_rejected_pod_is_reported_with_the_message_of_the_api_server(
    store: ApiServer, kubelets: Kubelets, capsys: Capture
) -> None:
    message = 'pods "x" is forbidden: violates PodSecurity "restricted:latest": host namespaces'
    store.refuse["POST", "/pods"] = ApiError(403, "Forbidden", message)
    assert kubelets.doctor("--host-network") == 1
    text = capsys.readouterr().out
    assert "- cloud, Pod: The check pod on node cloud-1 failed: " in text
    assert "host namespaces. Change the quota, the Pod Security label" in text
    assert not jobs(store)


def test_classes_without_a_node_are_named(store: ApiServer, kubelets: Kubelets, capsys: Capture) -> None:
    put_class(store, "none", node=False)
    put_class(store, "down", ready=False)
    assert kubelets.doctor("none", "down") == 1
    text = capsys.readouterr().out
    assert "- none, Node: No node matches NodeClass none. Label a node, or fix its selector." in text
    assert "- down, Node: None of the 1 nodes of NodeClass down is Ready" in text
    assert not store.writes


def test_pod_that_does_not_start_in_time_is_reported_with_its_newest_warning(
    store: ApiServer, kubelets: Kubelets, capsys: Capture
) -> None:
    """The scheduler wrote the older warning, and a kubelet with a clock an hour late wrote the newer one."""
    kubelets.statuses["cloud", ANSWERS] = {"phase": "Pending"}

    async def react(request: Request) -> None:
        if request.path.endswith("/pods") and request.method == "POST":
            for hour, message in ((9, "older"), (8, "network plugin is not ready: cni config uninitialized")):
                warning = {"message": message, "type": "Warning", "lastTimestamp": f"2026-05-04T0{hour}:00:00Z"}
                about = {"name": request.body["metadata"]["name"]}
                store.put(EVENTS, {"metadata": {"name": f"e{hour}"}, "involvedObject": about, **warning})
        await kubelets.react(request)

    store.reactor = react
    assert kubelets.doctor("cloud", "--timeout", "1s") == 1
    assert "in time: network plugin is not ready: cni config uninitialized. See" in capsys.readouterr().out
    assert not jobs(store)


def test_error_of_a_pod_of_another_version_is_quoted(store: ApiServer, kubelets: Kubelets, capsys: Capture) -> None:
    terminated = {"exitCode": 1, "message": 'tierbench-client: unknown command "check"'}
    kubelets.statuses["cloud", ASKS] = {"containerStatuses": [{"name": "client", "state": {"terminated": terminated}}]}
    assert kubelets.doctor("cloud") == 1
    assert 'exit code 1: tierbench-client: unknown command "check"' in capsys.readouterr().out


def test_json_has_states_and_instructions(store: ApiServer, kubelets: Kubelets, capsys: Capture) -> None:
    kubelets.reports["jetson"] = {
        "peers": [{"name": "cloud", **OPEN, "service": "timed out"}, {"name": "jetson", **OPEN}]
    }
    assert kubelets.doctor("-o", "json") == 1
    cloud, jetson = json.loads(capsys.readouterr().out)["classes"]
    assert (cloud["usable"], jetson["usable"], jetson["architecture"]) == (False, False, "arm64")
    assert cloud["checks"]["services"] == {"state": "Blocked", "detail": "in"}
    assert jetson["checks"]["services"]["detail"] == "out"
    assert "kube-proxy" in jetson["checks"]["services"]["whatToDo"]
    assert jetson["checks"]["udp"] == {"state": "Ok"}


def test_wide_has_nodes_and_details(store: ApiServer, kubelets: Kubelets, capsys: Capture) -> None:
    assert kubelets.doctor("jetson", "-o", "wide") == 0
    header, row = capsys.readouterr().out.splitlines()
    assert header.split()[:3] == ["CLASS", "NODE", "ARCH"]
    assert row.split()[:3] == ["jetson", "jetson-1", "arm64"]
    assert "90 GiB of 100 GiB free" in row


def test_doctor_uses_nodes_of_the_status_if_the_user_may_not_list_nodes(store: ApiServer, kubelets: Kubelets) -> None:
    members = [{"name": "cloud-7", "ready": True, "architecture": "amd64"}]
    store.change(NODE_CLASSES, "cloud", status={"nodes": 1, "readyNodes": 1, "members": members})
    store.refuse["GET", "/nodes"] = ApiError(403, "Forbidden", "User cannot list resource nodes")
    assert kubelets.doctor("cloud") == 0
    pod = next(request.body for request in store.writes if request.path.endswith("/pods"))
    (term,) = pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][
        "nodeSelectorTerms"
    ]
    assert term["matchFields"][0]["values"] == ["cloud-7"]


@pytest.mark.parametrize(
    ("method", "end"), [("POST", "/jobs"), ("POST", "/services"), ("POST", "/pods"), ("GET", "/log")]
)
def test_missing_permission_is_reported_and_no_job_remains(
    store: ApiServer, kubelets: Kubelets, capsys: Capture, method: str, end: str
) -> None:
    store.refuse[method, end] = ApiError(403, "Forbidden", 'User "eve" cannot create resource')
    assert kubelets.doctor("cloud") == 2
    error = capsys.readouterr().err
    assert "you may not check classes in namespace default" in error
    assert "role edit" in error
    assert not jobs(store)


def test_image_is_required_without_a_release(store: ApiServer, kubelets: Kubelets, capsys: Capture) -> None:
    store.delete(CLUSTER_ROLES, "tierbench:tierbench")
    assert kubelets.doctor("cloud") == 2
    assert "--image" in capsys.readouterr().err
    assert kubelets.doctor("cloud", "--image", "here/client:2") == 0
    pods = [request.body for request in store.writes if request.path.endswith("/pods")]
    assert {pod["spec"]["containers"][0]["image"] for pod in pods} == {"here/client:2"}


def test_unwatched_namespaces_and_unknown_classes_are_named(
    store: ApiServer, kubelets: Kubelets, capsys: Capture
) -> None:
    assert kubelets.doctor("moon") == 2
    assert "there is no node class moon; there are cloud, jetson" in capsys.readouterr().err
    put_release(store, "team-a")
    assert kubelets.doctor("cloud") == 2
    assert "only team-a" in capsys.readouterr().err
    for number in range(11):
        put_class(store, f"more-{number}")
    assert kubelets.doctor("-n", "team-a") == 2
    assert "name at most 12" in capsys.readouterr().err
    assert not store.writes


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Lets Ctrl-C interrupt the test. Background jobs of a shell ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_interrupt_deletes_the_job(store: ApiServer, kubelets: Kubelets) -> None:
    kubelets.statuses["cloud", ANSWERS] = {"phase": "Pending"}

    def interrupt() -> None:
        store.wait(lambda api: api.names("pods"))
        os.kill(os.getpid(), signal.SIGINT)

    thread = run_in_background(interrupt)
    assert kubelets.doctor("cloud") == 130
    thread.join()
    assert not jobs(store)


def test_a_job_that_cannot_be_deleted_is_named(store: ApiServer, kubelets: Kubelets, capsys: Capture) -> None:
    store.refuse["DELETE", ""] = ApiError(503, "ServiceUnavailable", "no leader")
    assert kubelets.doctor("cloud") == 0
    (job,) = jobs(store)
    assert f"Warning: Job {job} could not be deleted" in capsys.readouterr().err
