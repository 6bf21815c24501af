"""Foreign files in a folder of the node are neither served nor changed. No symbolic link leads out of it."""

import signal
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.cluster import Cluster
from tests.cluster.node import NodeMachine
from tests.e2e.benchmarks import Running, assert_every_trial_once, assert_nothing_left, file_transfer
from tests.e2e.kubectl import Kubectl, wait_for
from tests.e2e.strike import strike

pytestmark = pytest.mark.privileged
SIZE = 64 * 2**20
SECRET = "a-foreign-secret"
FOREIGN = (".", "secret", "passwd", f"{SIZE}.bin")

# A shell can send the request, and does not change the path.
GET = "exec 3<>/dev/tcp/{host}/{port}; printf 'GET {path} HTTP/1.0\\r\\n\\r\\n' >&3; head -c 4096 <&3 | cat -v"


@dataclass(frozen=True)
class Folder:
    """A folder on the server's node, and another one elsewhere. `path` does not exist yet."""

    node: NodeMachine
    path: str
    elsewhere: str

    def shell(self, script: str) -> str:
        """Runs a script on the node, and returns its output."""
        return self.node.machine.output("sh", "-ec", script)

    def facts(self, *paths: str) -> list[str]:
        """Returns mode and owner of each path, without following a symbolic link."""
        return self.shell(f"stat --format='%A %u:%g %N' {' '.join(paths)}").splitlines()


@pytest.fixture
def folder(kubectl: Kubectl, cluster: Cluster) -> Iterator[Folder]:
    """Yields a folder for the test, and removes it at the end."""
    name = kubectl.namespace
    folder = Folder(cluster.node("cloud-1"), f"/var/lib/tierbench/{name}", f"/srv/{name}")
    folder.shell(f"mkdir --mode=700 {folder.elsewhere}")
    yield folder
    folder.shell(f"rm -rf {folder.path} {folder.elsewhere}")


@pytest.mark.release
@pytest.mark.timing
def test_foreign_files_are_neither_served_nor_changed(kubectl: Kubectl, cluster: Cluster, folder: Folder) -> None:
    folder.shell(
        f"mkdir --mode=711 {folder.path}; cd {folder.path}; echo {SECRET} >secret; chmod 600 secret\n"
        f"ln -s /etc/passwd passwd; ln -s /etc/passwd {SIZE}.bin"
    )
    foreign = [f"{folder.path}/{name}" for name in FOREIGN]
    before = folder.facts(*foreign)
    storage = {"hostPath": {"path": folder.path}}
    kubectl.apply(file_transfer(storage=storage, access="NodePort", fileSizes=["64Mi"]))
    running = Running(kubectl)

    def get(path: str) -> str:
        services = kubectl.list("services", f"tierbench.io/benchmark={running.name}")
        (port,) = (item["spec"]["ports"][0]["nodePort"] for item in services if item["spec"]["type"] == "NodePort")
        script = GET.format(host=folder.node.address, port=port, path=path)
        return cluster.node("user-1").machine.output("bash", "-ec", script)

    def check_responses() -> None:
        served = get(f"/{SIZE}.bin")
        assert "200 OK" in served.splitlines()[0]
        assert f"Content-Length: {SIZE}" in served
        for path in ("/passwd", "/../secret"):
            answer = get(path)
            assert answer.split()[1] in {"400", "404"}, (path, answer)
            assert SECRET not in answer
            assert "root:" not in answer

    strike(running, cluster, check_responses, slow="cloud-1")
    assert_every_trial_once(running)
    assert_nothing_left(running)
    assert folder.facts(*foreign) == before
    assert folder.shell(f"cat {folder.path}/secret") == f"{SECRET}\n"
    (own,) = folder.facts(f"{folder.path}/_tierbench")
    assert own.startswith("drwxr-xr-x 0:0 ")
    assert folder.shell(f"ls {folder.path}/_tierbench") == ""


@pytest.mark.release
@pytest.mark.timing
def test_files_survive_a_power_cut_of_the_node_and_are_removed_at_the_end(
    kubectl: Kubectl, cluster: Cluster, folder: Folder
) -> None:
    kubectl.apply(file_transfer(storage={"hostPath": {"path": folder.path}}, fileSizes=["64Mi"]))
    running, node = Running(kubectl), folder.node.profile.name

    def lose_power() -> None:
        cluster.signal(node, signal.SIGKILL)
        wait_for(f"{node} is not Ready", lambda: not cluster.ready(), 60)
        cluster.start(node)
        wait_for(f"{node} is Ready again", cluster.ready, 150)
        assert folder.shell(f"ls {folder.path}/_tierbench").split() == [f"{SIZE}.bin", f"{SIZE}.bin.sha256"]

    strike(running, cluster, lose_power, slow=node)
    assert_every_trial_once(running, outage=True)
    assert_nothing_left(running)
    assert folder.shell(f"ls -A {folder.path}/_tierbench") == ""


@pytest.mark.parametrize(
    ("link", "reason", "text"),
    [
        pytest.param("", "ContainerRefused", "subPath", id="folder"),
        pytest.param(
            *("/_tierbench", "ForeignFile", "delete it on the node"),
            marks=pytest.mark.release,
            id="folder-of-the-files",
        ),
    ],
)
def test_a_symbolic_link_out_of_the_storage_is_refused(
    kubectl: Kubectl, folder: Folder, link: str, reason: str, text: str
) -> None:
    folder.shell(f"mkdir -p $(dirname {folder.path}{link}); ln -s {folder.elsewhere} {folder.path}{link}")
    before = folder.facts(folder.elsewhere)
    storage = {"hostPath": {"path": folder.path}}
    kubectl.apply(file_transfer(storage=storage, timeouts={"schedulingSeconds": 10}))
    running = Running(kubectl)
    running.wait_for_phase("Failed")
    status = running.results[0]["status"]
    assert status["reason"] == reason
    assert text in status["message"]
    assert folder.shell(f"ls -A {folder.elsewhere}") == ""
    assert folder.facts(folder.elsewhere) == before
    assert_nothing_left(running)
