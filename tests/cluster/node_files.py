"""Generates the configuration files of a node's daemons."""

import json
import math
import os

from tests.cluster.addresses import Addresses
from tests.cluster.profiles import Node

SOCKET = "/run/containerd/containerd.sock"
SETTINGS = "/run/tierbench"

_EVICTION_SIGNALS = (
    "memory.available",
    "nodefs.available",
    "nodefs.inodesFree",
    "imagefs.available",
    "imagefs.inodesFree",
)


def cpus(profile: Node) -> int:
    """Returns the number of whole processors that the node reports, at most the number of the host."""
    host = os.cpu_count() or 1
    return min(math.ceil(profile.cpus), host) if profile.cpus else host


def meminfo(profile: Node, host: str) -> str:
    """Returns the host's /proc/meminfo with the node's memory."""
    if profile.memory is None:
        return host
    lines = [line for line in host.splitlines() if not line.startswith("MemTotal:")]
    return "\n".join([f"MemTotal:       {profile.memory >> 10} kB", *lines]) + "\n"


def kubelet(profile: Node, addresses: Addresses, cgroup: str) -> str:
    """Returns the kubelet's configuration."""
    missing = max(0, round(1000 * (cpus(profile) - profile.cpus))) if profile.cpus else 0
    configuration = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "containerRuntimeEndpoint": f"unix://{SOCKET}",
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": cgroup,
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": f"{SETTINGS}/ca.crt"},
        },
        "authorization": {"mode": "Webhook"},
        "clusterDNS": [addresses.control_plane],
        "clusterDomain": "cluster.local",
        "resolvConf": "",
        "volumePluginDir": "/var/lib/kubelet/volumeplugins",
        "failSwapOn": False,
        "failCgroupV1": False,
        "systemReserved": {"cpu": f"{missing}m"} if missing else {},
        # Eviction would depend on the host's memory and disk, not on those of this node.
        "evictionHard": dict.fromkeys(_EVICTION_SIGNALS, "0%"),
        "imageGCHighThresholdPercent": 100,
        "nodeStatusUpdateFrequency": "5s",
        "nodeStatusReportFrequency": "5m",  # for an unchanged status, which is otherwise reported at each update
        "nodeLeaseDurationSeconds": 20,
    }
    return json.dumps(configuration, indent=1)


def cni(pods: str, congestion_control: str) -> str:
    """Returns the configuration of a bridge for the node's pods. Their connections use this congestion control."""
    ipam = {"type": "host-local", "ranges": [[{"subnet": pods}]], "routes": [{"dst": "0.0.0.0/0"}]}
    bridge = {"type": "bridge", "bridge": "cni0", "isGateway": True, "ipMasq": False, "hairpinMode": True, "ipam": ipam}
    portmap = {"type": "portmap", "capabilities": {"portMappings": True}}
    tuning = {"type": "tuning", "sysctl": {"net.ipv4.tcp_congestion_control": congestion_control}}
    return json.dumps({"cniVersion": "0.4.0", "name": "tierbench", "plugins": [bridge, portmap, tuning]}, indent=1)


def containerd(container: bool) -> str:
    """Returns containerd's configuration. With `container`, containers start from the specification container.json."""
    base = f'base_runtime_spec = "{SETTINGS}/container.json"' if container else ""
    # restrict_oom_score_adj: without CAP_SYS_RESOURCE runc cannot lower the score, and ends without a message.
    return f"""version = 2
disabled_plugins = ["io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs"]
[grpc]
  address = "{SOCKET}"
[plugins."io.containerd.internal.v1.opt"]
  path = "/var/lib/containerd/opt"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "registry.k8s.io/pause:3.10"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".registry]
    config_path = "{SETTINGS}/registries"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "{SETTINGS}/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    {base}
"""


def registry(address: str) -> dict[str, str]:
    """Returns the file that makes containerd pull from this registry over plain HTTP."""
    text = f'[host."http://{address}"]\n  capabilities = ["pull", "resolve"]\n'
    return {f"registries/{address}/hosts.toml": text}


def container(default: str, disk: str, rate: int) -> str:
    """Returns containerd's default specification of containers, with throttled reads of the disk (MAJOR:MINOR)."""
    spec = json.loads(default)
    del spec["process"]["rlimits"]  # for containers that ctr starts by hand
    major, minor = disk.split(":")
    throttle = {"major": int(major), "minor": int(minor), "rate": rate}
    spec["linux"]["resources"]["blockIO"] = {"throttleReadBpsDevice": [throttle]}
    return json.dumps(spec)
