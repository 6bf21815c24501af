"""Starts and removes the cluster, and changes it for tests."""

import fcntl
import json
import shutil
import signal
import time
from collections.abc import Callable, Container, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import cached_property
from pathlib import Path

from tests.cluster import (
    binaries,
    control_plane,
    dns,
    edge,
    images,
    network,
    node,
    policies,
    preflight,
    profiles,
    stalls,
    volumes,
)
from tests.cluster.addresses import Addresses, first_free
from tests.cluster.cgroups import Cgroups
from tests.cluster.control_plane import ControlPlane
from tests.cluster.errors import ClusterError
from tests.cluster.hardware import Hardware
from tests.cluster.namespace_node import NamespaceNode
from tests.cluster.namespaces import Namespaces
from tests.cluster.network import Port
from tests.cluster.node import NodeMachine
from tests.cluster.preflight import STATE
from tests.cluster.processes import Process, output, wait
from tests.cluster.profiles import Link, Node
from tests.cluster.virtual_node import VirtualNode

CONTROL_PLANE = "control-plane"
MACHINES: dict[str, type[Hardware]] = {"namespaces": NamespaceNode, "vm": VirtualNode}
_LINES = 10  # lines of a log in an error
_SLOWEST = 900  # seconds, because processors may be emulated
_LOOK_SECONDS = 5


class Cluster:
    """The built-in cluster with this name. It keeps no state in memory: every call reads the current state."""

    def __init__(self, name: str = "tierbench") -> None:
        preflight.check_name(name)
        self.name = name
        self.folder = STATE / name
        self.cgroups = Cgroups(name)
        self._control_plane_machine = Namespaces(name, CONTROL_PLANE, self.folder / "log", self.cgroups)

    @property
    def exists(self) -> bool:
        """Returns whether the cluster's control plane has a machine, with or without daemons."""
        return self._control_plane_machine.init is not None and (self.folder / "created").exists()

    @property
    def kubeconfig(self) -> Path:
        """Returns the administrator's kubeconfig. Raises ClusterError if there is no such cluster."""
        return self.control_plane.kubeconfig("admin")

    @cached_property
    def binaries(self) -> Path:
        return binaries.build(self._kubernetes)

    @property
    def _kubernetes(self) -> str:
        """Returns the minor version of the cluster. If it does not exist, returns the one that `up` would create."""
        if not self.exists:
            return binaries.asked()
        try:
            return (self.folder / "kubernetes").read_text()
        except FileNotFoundError as error:
            raise self._of_another_version(error) from error

    @property
    def addresses(self) -> Addresses:
        try:
            return Addresses(int((self.folder / "number").read_text()))
        except FileNotFoundError as error:
            raise ClusterError(
                f"there is no cluster '{self.name}': python3 -m tests.cluster --name {self.name} up"
            ) from error

    @property
    def control_plane(self) -> ControlPlane:
        return ControlPlane(self._control_plane_machine, self.folder, self.binaries, self.addresses)

    @property
    def nodes(self) -> list[NodeMachine]:
        """Returns all nodes. Raises ClusterError if there is no such cluster."""
        plane = self.control_plane
        return [
            NodeMachine(self._hardware(profile, index), profile, self.folder / "nodes" / profile.name, plane)
            for index, profile in enumerate(self._declared())
        ]

    def _hardware(self, profile: Node, index: int) -> Hardware:
        return MACHINES[profile.machine](
            self.name,
            profile.name,
            self.folder / "log",
            self.cgroups,
            profile,
            self.folder / "nodes" / profile.name,
            binaries.build(self._kubernetes, profile.architecture),
            Port(self._control_plane_machine, self.addresses, index),
        )

    def _declared(self) -> list[Node]:
        try:
            return profiles.load(self.folder / "nodes.toml")
        except ClusterError as error:
            raise self._of_another_version(error) from error

    def _of_another_version(self, error: Exception) -> ClusterError:
        return ClusterError(f"cluster '{self.name}' is of another version: take it down first ({error})")

    def node(self, name: str) -> NodeMachine:
        """Returns the node with this name."""
        for one in self.nodes:
            if one.profile.name == name:
                return one
        raise ClusterError(f"no node '{name}'; there are {', '.join(one.profile.name for one in self.nodes)}")

    def up(self, nodes: Path = profiles.DEFAULT, audited: str = "") -> bool:
        """Starts the cluster, or the parts of it that are down. Returns False if everything was up already.

        The API server of a new cluster logs the requests of the user `audited`.
        """
        wanted = profiles.load(nodes)
        preflight.check(wanted)
        preflight.raise_limits(wanted)
        for profile in wanted:
            MACHINES[profile.machine].prepare(profile)
        self._check_kubernetes()
        self.binaries.exists()
        pause = images.build("pause")
        with self.lock(self.name):
            if self.exists:
                if self._declared() != wanted:
                    raise ClusterError(f"cluster '{self.name}' is up with other nodes than {nodes}: take it down first")
                if self._complete():
                    volumes.recycle(self)
                    return False
            else:
                self._remove()
                self._create(nodes, audited)
            self._start_everything(pause)
        return True

    def _check_kubernetes(self) -> None:
        if self.exists and self._kubernetes != binaries.asked():
            raise ClusterError(
                f"cluster '{self.name}' is up with Kubernetes {self._kubernetes}, not {binaries.asked()}: "
                f"take it down first, or say KUBERNETES={self._kubernetes}"
            )

    def down(self) -> bool:
        """Removes the cluster with everything that it created. Returns False if there was none."""
        preflight.check_root()
        with self.lock(self.name):
            there = self.folder.exists()
            self._remove()
        return there

    def ready(self) -> bool:
        """Returns whether every node is Ready."""
        path = "{range .items[*]}{.status.conditions[?(@.type=='Ready')].status} {end}"
        try:
            return self.kubectl("get", "nodes", "-o", f"jsonpath={path}").split() == ["True"] * len(self.nodes)
        except ClusterError:
            return False

    def resolves(self, service: str, namespace: str) -> bool:
        """Returns whether the cluster's DNS has a Service. It gets new ones late after an outage of the API server."""
        return dns.resolves(self.addresses.control_plane, f"{service}.{namespace}.svc.cluster.local")

    def kubectl(self, *arguments: str) -> str:
        """Runs kubectl as the cluster's administrator, and returns its output."""
        return output(f"{self.binaries}/kubectl", f"--kubeconfig={self.kubeconfig}", *arguments)

    def load(self, archives: list[Path]) -> list[str]:
        """Loads OCI archives into every node. Returns a line per archive and node that lacked it."""
        with ThreadPoolExecutor() as pool:
            lines = pool.map(lambda one: images.load(one, archives), self.nodes)
        return [line for some in lines for line in some]

    def status(self) -> list[tuple[str, bool]]:
        """Returns all components, COMPONENT or NODE/COMPONENT, and whether they run."""
        machine = self._control_plane_machine
        found = [(daemon, machine.daemon(daemon) is not None) for daemon in control_plane.DAEMONS]
        for one in self.nodes:
            found += [
                (f"{one.profile.name}/{daemon}", one.machine.daemon(daemon) is not None) for daemon in node.DAEMONS
            ]
        return found

    def start(self, component: str) -> None:
        """Starts a component (apiserver, jetson-1/kubelet) or boots a node (jetson-1)."""
        with self.lock(self.name):
            one, daemon = self._component(component)
            if one is None:
                self.control_plane.start(daemon)
            elif daemon:
                one.start(daemon)
            else:
                self._boot_node(one)
                self._start_node(one)

    def stop(self, component: str) -> None:
        """Ends a component, and waits until it has ended. A node ends as in a power cut."""
        self.signal(component, signal.SIGTERM)

    def signal(self, component: str, number: signal.Signals) -> None:
        """Sends a signal to a component: SIGTERM, SIGKILL, SIGSTOP, SIGCONT. A node accepts only the first two."""
        one, daemon = self._component(component)
        if daemon:
            (one.machine if one else self._control_plane_machine).signal(daemon, number)
        elif one and number in (signal.SIGTERM, signal.SIGKILL):
            one.machine.kill()
        else:
            raise ClusterError(f"name one component of the node, such as {component}/kubelet")

    def stalls(self, on: bool) -> None:
        """Switches disk stalls of nodes that declare them on or off."""
        with self.lock(self.name):
            stalls.switch(on, self._control_plane_machine, self.nodes)

    def network_policies(self, on: bool) -> None:
        """Switches the enforcement of NetworkPolicies on every node on or off."""
        with self.lock(self.name):
            policies.switch(on, self.nodes)

    def trust_registry(self, port: int) -> str:
        """Lets every node pull over plain HTTP from a registry at this port of the host. Returns its HOST:PORT."""
        with self.lock(self.name):
            address = f"{self.addresses.host}:{port}"
            (self.folder / node.REGISTRY).write_text(address)
            for one in self.nodes:
                if one.booted:
                    one.trust_registry(address)
        return address

    @contextmanager
    def link(self, name: str, rate: str) -> Iterator[None]:
        """Sets the rate of a node's link in each direction in the context, in tc's notation (100mbit)."""
        machine = self.node(name).machine
        network.shape(machine, Link(rate))
        try:
            yield
        finally:
            network.shape(machine, machine.shaped)

    @contextmanager
    def edge(self, profile: str, *names: str) -> Iterator[None]:
        """Gives nodes one of the networks of `edge.PROFILES` in the context."""
        with ExitStack() as stack:
            for name in names:
                stack.enter_context(edge.PROFILES[profile](self.node(name)))
            yield

    def pod_processes(self, namespace: str, pod: str) -> list[Process]:
        """Returns every process of a running pod, including the pause process, by its pid on the host."""
        found = json.loads(self.kubectl("get", "pod", "-n", namespace, pod, "-o", "json"))
        return self.cgroups.pod(found["spec"]["nodeName"], found["metadata"]["uid"])

    def _component(self, component: str) -> tuple[NodeMachine | None, str]:
        """Returns the node (None for the control plane) and its daemon (empty for the whole node)."""
        if component in control_plane.DAEMONS:
            return None, component
        name, _, daemon = component.partition("/")
        names = [one.profile.name for one in self.nodes]
        if name not in names or (daemon and daemon not in node.DAEMONS):
            known = [*control_plane.DAEMONS, *names, *(f"{names[0]}/{daemon}" for daemon in node.DAEMONS)]
            raise ClusterError(f"no component '{component}'; there are {', '.join(known)} …")
        return self.node(name), daemon

    def _create(self, nodes: Path, audited: str) -> None:
        self.folder.mkdir(parents=True)
        self.folder.chmod(0o700)
        shutil.copyfile(nodes, self.folder / "nodes.toml")
        (self.folder / "kubernetes").write_text(binaries.asked())
        with self.lock(""):
            addresses = first_free()
            (self.folder / "number").write_text(str(addresses.number))
            self._control_plane_machine.boot()
            network.connect_host(self._control_plane_machine, addresses)
        self.control_plane.prepare([one.profile.name for one in self.nodes])
        if audited:
            self.control_plane.audit(audited)
        (self.folder / "created").touch()

    def _start_everything(self, pause: Path) -> None:
        plane, nodes = self.control_plane, self.nodes
        for daemon in control_plane.API:
            plane.start(daemon)
        with ThreadPoolExecutor(len(nodes)) as pool:
            list(pool.map(self._boot_node, nodes))
            list(pool.map(lambda one: images.load(one, [pause]), nodes))
            self.wait_for_api()  # without an API server the other daemons end, and they slow down its start
            self.kubectl("apply", "--validate=false", "-f", str(Path(__file__).parent / "manifests"))
            volumes.apply(self)
            for daemon in control_plane.DAEMONS:
                plane.start(daemon)
            list(pool.map(self._start_node, nodes))
        self._wait(self._complete, f"every node to be Ready (logs in {self.folder / 'log'})")

    def _complete(self) -> bool:
        return self.ready() and all(running for _, running in self.status())

    def _wait(self, condition: Callable[[], bool], what: str, components: Container[str] = ()) -> None:
        """Waits for a condition that depends on these components, by default all. Fails when one of them has ended."""

        looked = time.monotonic()

        def holds() -> bool:
            nonlocal looked
            if condition():
                return True
            if time.monotonic() < looked + _LOOK_SECONDS:  # reading all processes takes long
                return False
            looked = time.monotonic()
            for component, running in self.status():
                if not running and (not components or component in components):
                    one, daemon = self._component(component)
                    log = (one.machine if one else self._control_plane_machine).log(daemon)
                    last = "\n".join(log.read_text(errors="replace").splitlines()[-_LINES:])
                    raise ClusterError(f"{component} has ended; the last lines of {log}:\n{last}")
            return False

        wait(holds, what, _SLOWEST)

    def wait_for_api(self) -> None:
        """Waits until the API server is ready."""

        def answers() -> bool:
            try:
                return self.kubectl("get", "--raw=/readyz") == "ok"
            except ClusterError:
                return False

        log = self._control_plane_machine.log("apiserver")
        self._wait(answers, f"the API server (see {log})", control_plane.API)

    def _boot_node(self, one: NodeMachine) -> None:
        if not one.booted:
            one.machine.kill()
            one.boot(len(self.nodes))
        one.start("containerd")
        wait(one.containerd_answers, f"containerd of {one.profile.name} (see {one.machine.log('containerd')})", 120)

    def _start_node(self, one: NodeMachine) -> None:
        one.start("kubelet")
        one.start("kube-proxy")

    def _remove(self) -> None:
        self.cgroups.remove()  # everything in their namespaces is removed with the processes
        if (self.folder / "number").exists():
            network.disconnect_host(self.addresses, self.name)
        shutil.rmtree(self.folder, ignore_errors=True)

    @contextmanager
    def lock(self, name: str) -> Iterator[None]:
        """Waits until no other process of this machine holds the lock of this name."""
        with Path("/run", f"tierbench.{name}.lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield
