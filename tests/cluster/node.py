"""Runs a node: containerd, kubelet and kube-proxy on its own machine."""

from dataclasses import dataclass
from pathlib import Path

from tests.cluster import network, node_files
from tests.cluster.control_plane import ControlPlane
from tests.cluster.errors import ClusterError
from tests.cluster.hardware import Hardware
from tests.cluster.node_files import SETTINGS, SOCKET
from tests.cluster.profiles import Node

REGISTRY = "registry"
"""The file of the cluster that has the address of a registry that nodes trust."""
DAEMONS = ("containerd", "kubelet", "kube-proxy")


@dataclass(frozen=True)
class NodeMachine:
    """A node of the cluster. `folder` has its files."""

    machine: Hardware
    profile: Node
    folder: Path
    control_plane: ControlPlane

    @property
    def address(self) -> str:
        return self.machine.port.address

    @property
    def disk(self) -> str:
        """Returns the block device of the node's disk, MAJOR:MINOR."""
        return self.machine.disk

    def boot(self, nodes: int) -> None:
        """Boots the machine and connects it with the other `nodes` of the cluster. Its /run is empty."""
        self._mark.unlink(missing_ok=True)
        self.machine.boot()
        self.machine.write(SETTINGS, self._files())
        network.connect_node(self.machine, nodes)
        self._mark.touch()

    @property
    def booted(self) -> bool:
        """Returns whether the machine runs, has booted completely, and is connected."""
        return self.machine.init is not None and self._mark.exists() and self.machine.connected

    @property
    def _mark(self) -> Path:
        return self.folder / "booted"

    def start(self, daemon: str) -> None:
        """Starts one of DAEMONS unless it runs."""
        commands = {
            "containerd": ["containerd", f"--config={SETTINGS}/containerd.toml", "--log-level=warn"],
            "kubelet": [
                f"{SETTINGS}/bin/kubelet",
                f"--config={SETTINGS}/kubelet.yaml",
                f"--kubeconfig={SETTINGS}/kubelet.kubeconfig",
                "--cert-dir=/var/lib/kubelet/pki",
                f"--hostname-override={self.profile.name}",
                f"--node-ip={self.address}",
                f"--node-labels={','.join(f'{key}={value}' for key, value in self.profile.labels.items())}",
                "--housekeeping-interval=10s",
            ],
            "kube-proxy": [
                f"{SETTINGS}/bin/kube-proxy",
                f"--kubeconfig={SETTINGS}/proxy.kubeconfig",
                f"--hostname-override={self.profile.name}",
                "--proxy-mode=iptables",
                f"--cluster-cidr={self.control_plane.addresses.pods}",
                "--conntrack-max-per-core=0",
                "--conntrack-min=0",
            ],
        }
        # On emulated processors, threads that look for work take more time than the work itself.
        self.machine.start(daemon, "env", "GOMAXPROCS=1", *commands[daemon])

    def trust_registry(self, address: str) -> None:
        """Makes containerd pull from the registry. It reads the file at each pull."""
        self.machine.write(SETTINGS, node_files.registry(address))

    def containerd_answers(self) -> bool:
        try:
            self.machine.run("test", "-S", SOCKET)
        except ClusterError:
            return False
        return self.machine.daemon("containerd") is not None

    def ctr(self, *arguments: str) -> list[str]:
        """Returns the command line of containerd's client, in the kubelet's namespace."""
        return self.machine.inside("ctr", "--address", SOCKET, "--namespace", "k8s.io", *arguments)

    def _files(self) -> dict[str, str]:
        plane, container = self.control_plane, self.machine.container()
        registry = plane.folder / REGISTRY
        return {
            "containerd.toml": node_files.containerd(container is not None),
            "kubelet.yaml": node_files.kubelet(self.profile, plane.addresses, self.machine.pods),
            "kubelet.kubeconfig": plane.kubeconfig(self.profile.name).read_text(),
            "proxy.kubeconfig": plane.kubeconfig("proxy").read_text(),
            "ca.crt": (plane.folder / "pki" / "ca.crt").read_text(),
            "cni/10-bridge.conflist": node_files.cni(
                plane.addresses.node_pods(self.machine.port.index), self.profile.congestion_control
            ),
            **({"container.json": container} if container else {}),
            **(node_files.registry(registry.read_text()) if registry.exists() else {}),
        }
