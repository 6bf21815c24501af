"""A node: containerd, kubelet and kube-proxy on a machine with folders, memory and processors of its own."""

import json
import math
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from tests.cluster import cgroups
from tests.cluster.addresses import Addresses
from tests.cluster.control_plane import ControlPlane
from tests.cluster.machine import Machine
from tests.cluster.processes import output
from tests.cluster.profiles import Node

DAEMONS = ("containerd", "kubelet", "kube-proxy")
SOCKET = "/run/containerd/containerd.sock"

# Each node has these folders to itself. /var/lib comes last: it hides the folder that the others are taken from.
_OWN = ("run", "mnt", "srv", "var/log", "var/lib")
# The kubelet sets these for the whole kernel; a file of the node's own takes the write, and the host keeps its values.
_KERNEL = {
    "vm/overcommit_memory": "1",
    "vm/panic_on_oom": "0",
    "kernel/panic": "10",
    "kernel/panic_on_oops": "1",
    "kernel/keys/root_maxkeys": "1000000",
    "kernel/keys/root_maxbytes": "25000000",
}


@dataclass(frozen=True)
class NodeMachine:
    """Node `index` of the cluster; `folder` holds its files."""

    machine: Machine
    profile: Node
    index: int
    folder: Path
    control_plane: ControlPlane

    @property
    def root(self) -> Path:
        """Where the node's own folders lie on the host: root/var/lib/tierbench is /var/lib/tierbench on the node."""
        return self.folder / "root"

    @property
    def address(self) -> str:
        return self.control_plane.addresses.node(self.index)

    @property
    def disk(self) -> str:
        """The block device of the node's files, MAJOR:MINOR."""
        return cgroups.device_of(self.folder)

    def prepare(self) -> None:
        """Write the node's files and make its control group; what a node forgets when it is switched off is removed."""
        shutil.rmtree(self.root / "run", ignore_errors=True)
        for name in (*_OWN, "run/tierbench/bin", "var/lib/tierbench", "var/lib/kubelet"):
            (self.root / name).mkdir(parents=True, exist_ok=True)
        self.machine.cgroups.make(self.profile, self.disk)
        write = {
            "run/tierbench/containerd.toml": self._containerd(),
            "run/tierbench/kubelet.yaml": json.dumps(self._kubelet(), indent=1),
            "run/tierbench/kubelet.kubeconfig": self.control_plane.kubeconfig(self.profile.name).read_text(),
            "run/tierbench/proxy.kubeconfig": self.control_plane.kubeconfig("proxy").read_text(),
            "run/tierbench/ca.crt": (self.control_plane.folder / "pki" / "ca.crt").read_text(),
            "run/tierbench/cni/10-bridge.conflist": json.dumps(self._cni(), indent=1),
            "run/tierbench/meminfo": self._meminfo(),
            "run/tierbench/cpus": f"0-{self._cpus() - 1}\n",
            **{f"run/tierbench/sys/{name}": f"{value}\n" for name, value in _KERNEL.items()},
        }
        if self.profile.disk_read and not cgroups.version2():
            write["run/tierbench/container.json"] = self._container()
        for name, text in write.items():
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            (self.root / name).write_text(text)

    def boot(self) -> None:
        """Boot the machine with the node's own folders in place."""
        self.machine.boot()
        own = self.root / "run/tierbench"
        files = {"/proc/meminfo": "meminfo", "/sys/devices/system/cpu/online": "cpus"} | {
            f"/proc/sys/{name}": f"sys/{name}" for name in _KERNEL if Path("/proc/sys", name).exists()
        }
        lines = [f"mount --bind '{self.control_plane.binaries}' '{own}/bin'"]
        lines += [f"mount --bind '{own}/{file}' {place}" for place, file in files.items()]
        lines += [f"mount --rbind '{self.root}/{name}' /{name}" for name in _OWN]
        self.machine.run("sh", "-e", stdin="\n".join([*lines, "mount --make-rshared /"]) + "\n")

    def start(self, daemon: str) -> None:
        """Start one of DAEMONS unless it runs."""
        programs = "/run/tierbench/bin"
        commands = {
            "containerd": ["containerd", "--config=/run/tierbench/containerd.toml", "--log-level=warn"],
            "kubelet": [
                f"{programs}/kubelet",
                "--config=/run/tierbench/kubelet.yaml",
                "--kubeconfig=/run/tierbench/kubelet.kubeconfig",
                "--cert-dir=/var/lib/kubelet/pki",
                f"--hostname-override={self.profile.name}",
                f"--node-ip={self.address}",
                f"--node-labels={','.join(f'{key}={value}' for key, value in self.profile.labels.items())}",
                "--housekeeping-interval=10s",
            ],
            "kube-proxy": [
                f"{programs}/kube-proxy",
                "--kubeconfig=/run/tierbench/proxy.kubeconfig",
                f"--hostname-override={self.profile.name}",
                "--proxy-mode=iptables",
                f"--cluster-cidr={self.control_plane.addresses.pods}",
                "--conntrack-max-per-core=0",
                "--conntrack-min=0",
            ],
        }
        self.machine.start(daemon, *commands[daemon])

    def containerd_answers(self) -> bool:
        return (self.root / SOCKET.removeprefix("/")).exists() and self.machine.daemon("containerd") is not None

    def ctr(self, *arguments: str) -> list[str]:
        """The command line of containerd's client, in the namespace that the kubelet uses."""
        return self.machine.inside("ctr", "--address", SOCKET, "--namespace", "k8s.io", *arguments)

    def _cpus(self) -> int:
        """Whole processors that the node shows; it cannot show more than the host has."""
        host = os.cpu_count() or 1
        return min(math.ceil(self.profile.cpus), host) if self.profile.cpus else host

    def _meminfo(self) -> str:
        text = Path("/proc/meminfo").read_text()
        if self.profile.memory is None:
            return text
        lines = [line for line in text.splitlines() if not line.startswith("MemTotal:")]
        return "\n".join([f"MemTotal:       {self.profile.memory >> 10} kB", *lines]) + "\n"

    def _kubelet(self) -> dict[str, object]:
        missing = max(0, round(1000 * (self._cpus() - self.profile.cpus))) if self.profile.cpus else 0
        return {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "containerRuntimeEndpoint": f"unix://{SOCKET}",
            "cgroupDriver": "cgroupfs",
            "cgroupRoot": self.machine.cgroups.path(self.profile.name),
            "authentication": {"anonymous": {"enabled": False}, "webhook": {"enabled": True},
                               "x509": {"clientCAFile": "/run/tierbench/ca.crt"}},
            "authorization": {"mode": "Webhook"},
            "clusterDNS": [self.control_plane.addresses.control_plane],
            "clusterDomain": "cluster.local",
            "resolvConf": "",
            "volumePluginDir": "/var/lib/kubelet/volumeplugins",
            "failSwapOn": False,
            "systemReserved": {"cpu": f"{missing}m"} if missing else {},
            # What the kubelet would compare is the whole machine's memory and disk, which say nothing about this node.
            "evictionHard": {signal: "0%" for signal in ("memory.available", "nodefs.available", "nodefs.inodesFree",
                                                         "imagefs.available", "imagefs.inodesFree")},
            "imageGCHighThresholdPercent": 100,
            "nodeStatusUpdateFrequency": "5s",
            "nodeLeaseDurationSeconds": 20,
        }  # fmt: skip

    def _cni(self) -> dict[str, object]:
        ranges = [[{"subnet": self.control_plane.addresses.node_pods(self.index)}]]
        bridge = {"type": "bridge", "bridge": "cni0", "isGateway": True, "ipMasq": False, "hairpinMode": True,
                  "ipam": {"type": "host-local", "ranges": ranges, "routes": [{"dst": "0.0.0.0/0"}]}}  # fmt: skip
        return {"cniVersion": "0.4.0", "name": "tierbench",
                "plugins": [bridge, {"type": "portmap", "capabilities": {"portMappings": True}}]}  # fmt: skip

    def _containerd(self) -> str:
        base = 'base_runtime_spec = "/run/tierbench/container.json"' if self._throttled() else ""
        # restrict_oom_score_adj: without CAP_SYS_RESOURCE runc cannot lower the score, and dies without a word.
        return f"""version = 2
disabled_plugins = ["io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.zfs",
  "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.aufs"]
[grpc]
  address = "{SOCKET}"
[plugins."io.containerd.internal.v1.opt"]
  path = "/var/lib/containerd/opt"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "registry.k8s.io/pause:3.10"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "/run/tierbench/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    {base}
"""

    def _throttled(self) -> bool:
        return self.profile.disk_read is not None and not cgroups.version2()

    def _container(self) -> str:
        """The specification that every container starts from: containerd's own, and the read throttle."""
        spec = json.loads(output("ctr", "oci", "spec"))
        major, minor = self.disk.split(":")
        throttle = {"major": int(major), "minor": int(minor), "rate": self.profile.disk_read}
        spec["linux"]["resources"]["blockIO"] = {"throttleReadBpsDevice": [throttle]}
        return json.dumps(spec)
