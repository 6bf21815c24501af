"""`kubectl tierbench doctor` reports what a class lacks, and leaves no objects."""

import json
import subprocess
import sys
from dataclasses import replace

import pytest

from tests.e2e.benchmarks import HARDWARE, node_class
from tests.e2e.kubectl import Kubectl, wait_for
from tests.operator.kubelet import NOWHERE
from tests.operator.site import Json, Site
from tierbench.api.benchmark import Access
from tierbench.api.node_class import NodeClassSpec
from tierbench.cli.main import PROGRAM
from tierbench.workloads.check import LABEL_CHECK, CheckRun, Place
from tierbench.workloads.workload import Images

CHECKS = ("logs", "ports", "udp", "services", "nodeports", "dns", "ping")
_MAIN = "import sys; from tierbench.cli.main import main; sys.exit(main(sys.argv[1:]))"


def doctor(kubectl: Kubectl, *arguments: str) -> tuple[int, dict[str, Json], str]:
    """Runs the command. Returns its exit code, the classes by name, and its standard error."""
    command = [sys.executable, "-c", _MAIN, "doctor", *arguments, "--namespace", kubectl.namespace, "--output=json"]
    done = subprocess.run(
        [*command, "--timeout=5m"], env=kubectl.environment, capture_output=True, text=True, check=False
    )
    assert done.stdout, f"{PROGRAM}: {done.stderr}"
    wait_for("nothing is left", lambda: not leftovers(kubectl))
    return done.returncode, {each["name"]: each for each in json.loads(done.stdout)["classes"]}, done.stderr


def leftovers(kubectl: Kubectl) -> list[Json]:
    return [
        item for plural in ("jobs", "pods", "services", "networkpolicies") for item in kubectl.list(plural, LABEL_CHECK)
    ]


def state(found: Json, check: str) -> str:
    return str(found["checks"][check]["state"])


def test_doctor_finds_no_problem_in_the_classes_of_the_cluster(site: Site) -> None:
    with site.namespace("doctor", "restricted") as kubectl:
        code, found, _ = doctor(kubectl, *HARDWARE)
    assert found.keys() == HARDWARE.keys()
    for name in HARDWARE:
        assert {check: state(found[name], check) for check in CHECKS} == dict.fromkeys(CHECKS, "Ok"), found[name]
        assert state(found[name], "memory") == state(found[name], "clock") == "Ok", found[name]
        assert found[name]["usable"]
    assert code == 0


def test_doctor_reports_a_closed_log_port_and_what_to_do(site: Site, kubectl: Kubectl) -> None:
    with site.without_logs("user-1"):
        code, found, _ = doctor(kubectl, "user", "cloud")
    assert (state(found["user"], "logs"), state(found["cloud"], "logs")) == ("Blocked", "Ok")
    assert "user-1" in found["user"]["checks"]["logs"]["whatToDo"]
    assert "collector.enabled" in found["user"]["checks"]["logs"]["whatToDo"]
    assert state(found["user"], "services") == "Ok", found["user"]
    assert code == 1


@pytest.mark.release
def test_doctor_reports_an_image_that_cannot_be_pulled(site: Site, kubectl: Kubectl) -> None:
    code, found, _ = doctor(kubectl, "cloud", f"--image={NOWHERE}client:none")
    assert state(found["cloud"], "image") == "Blocked"
    assert found["cloud"]["checks"]["image"]["detail"] == "ImagePullFailed"
    assert code == 1


@pytest.mark.release
def test_doctor_reports_a_class_without_a_node(site: Site, kubectl: Kubectl) -> None:
    kubectl.apply(node_class("nowhere", hw="nowhere"))
    try:
        code, found, _ = doctor(kubectl, "nowhere", "cloud")
    finally:
        kubectl("delete", "nodeclass.tierbench.io", "nowhere")
    assert found["nowhere"]["checks"]["node"]["detail"] == "NoSuchNode"
    assert found["cloud"]["usable"]
    assert code == 1


@pytest.mark.release
def test_doctor_reports_that_pod_security_forbids_the_host_network(site: Site) -> None:
    with site.namespace("host-network", "restricted") as kubectl:
        code, found, _ = doctor(kubectl, "cloud", "--host-network")
    assert "violates PodSecurity" in found["cloud"]["checks"]["pod"]["whatToDo"]
    assert code == 1


@pytest.mark.release
def test_objects_of_a_killed_doctor_are_deleted(site: Site, kubectl: Kubectl) -> None:
    """The Job that owns them ends at its deadline, and is deleted with them."""
    run = CheckRun("tierbench-check-killed", kubectl.namespace, Images("example.invalid/client", {}), 1)
    owner = run.owner()
    owner["spec"]["activeDeadlineSeconds"] = 1
    kubectl.apply(owner)
    uid = kubectl.get("job", run.name)["metadata"]["uid"]
    spec = NodeClassSpec.model_validate(node_class("cloud", hw="cloud")["spec"])
    kubectl.apply(replace(run, uid=uid).service(Place("cloud", spec, "cloud-1", 0), Access.CLUSTER_IP))
    wait_for("nothing is left", lambda: not leftovers(kubectl))
