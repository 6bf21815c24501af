"""The link of a client: the container that carries the packets of its pod, and what the plan says of it."""

import json
from math import inf
from typing import Any, Final
from zlib import crc32

from tierbench.api.benchmark import BenchmarkSpec
from tierbench.api.link import LINK, Link, LinkPath
from tierbench.api.quantity import Resources
from tierbench.api.trial_plan import PlannedLink
from tierbench.workloads.plan import Case, Factor
from tierbench.workloads.pods import RESTRICTED, SERVER_READY_PERIOD_SECONDS, sidecar_resources
from tierbench.workloads.workload import Images, Manifest

_READY: Final = "/link/ready"
_TRACE: Final = "/trace"
_REQUESTS: Final = {"cpu": "100m", "memory": "32Mi"}
_CAPABILITIES: Final = ("NET_ADMIN", "NET_RAW", "SYS_NICE")
_INTERFACE: Final = "eth0"  # as every network plugin calls it


def link_factors(spec: BenchmarkSpec) -> tuple[Factor, ...]:
    """Returns the link as a factor. Without links there is none."""
    return (Factor(LINK, tuple(link.name for link in spec.links)),) if spec.links else ()


def link_of(spec: BenchmarkSpec, case: Case) -> Link | None:
    """Returns the link of a case. Returns None if it is the network as it is."""
    named = (link for link in spec.links if link.name == case.levels.get(LINK))
    return next((link for link in named if not link.is_direct), None)


def link_rate(spec: BenchmarkSpec, case: Case) -> float:
    """Returns the bits per second of the slower direction of a case's link; infinity if it has no rate."""
    link = link_of(spec, case)
    rates = () if link is None else (path.kilobits_per_second for path in link.paths)
    return min((1000 * rate for rate in rates if rate is not None), default=inf)


def planned_link(link: Link | None) -> PlannedLink | None:
    """Returns what a client needs to measure its link."""
    if link is None:
        return None
    up, down = (path.kilobits_per_second or 0 for path in link.paths)
    return PlannedLink(name=link.name, up_kilobits_per_second=up, down_kilobits_per_second=down)


def with_link(pod: Manifest, link: Link | None, images: Images, resources: Resources | None, seed: str) -> Manifest:
    """Returns the spec of a client's pod, with the link between its programs and the network.

    The container starts before the others and ends after them. It alone has capabilities. `resources` are those of the
    client, and `seed` decides which packets are lost.

    Raises:
        ValueError: the pod has the network of its node, which the link would take from all others. The API server
            refuses such a benchmark.
    """
    if link is None:
        return pod
    if pod.get("hostNetwork"):
        raise ValueError(f"the link {link.name} cannot be in the network of a node")
    volumes: list[Manifest] = [{"name": LINK, "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}}]
    mounts: list[Manifest] = [{"name": LINK, "mountPath": _READY.rpartition("/")[0]}]
    if link.trace is not None:
        config_map = {"name": link.trace.config_map_ref.name, "optional": True, "defaultMode": 0o440}
        volumes.append({"name": "trace", "configMap": config_map})
        mounts.append({"name": "trace", "mountPath": _TRACE, "readOnly": True})
    container: Manifest = {
        "name": LINK,
        **images.pulled(images.client),
        "restartPolicy": "Always",
        "args": arguments(link, crc32(seed.encode())),
        "startupProbe": {
            "exec": {"command": ["/tierbench-client", "prepared", _READY]},
            "periodSeconds": SERVER_READY_PERIOD_SECONDS,
            "timeoutSeconds": 10,
            "failureThreshold": 60,
        },
        "resources": sidecar_resources(resources, _REQUESTS),
        "securityContext": {
            **RESTRICTED,
            "runAsUser": 0,
            "runAsGroup": 0,
            "runAsNonRoot": False,
            "capabilities": {"drop": ["ALL"], "add": list(_CAPABILITIES)},
        },
        "volumeMounts": mounts,
    }
    return {**pod, "initContainers": [container], "volumes": [*pod["volumes"], *volumes]}


def arguments(link: Link, seed: int) -> list[str]:
    """Returns the arguments of the program that carries the packets."""
    up, down = (
        json.dumps(_path(path, f"{_TRACE}/{key}" if link.trace else ""))
        for path, key in zip(link.paths, ("up", "down"), strict=True)
    )
    ends = [f"--before={_INTERFACE}", f"--ready={_READY}", "--termination-log=/dev/termination-log"]
    return ["link", f"--up={up}", f"--down={down}", f"--seed={seed}", *ends]


def _path(path: LinkPath, trace: str) -> dict[str, Any]:
    values = {
        "bitsPerSecond": (path.kilobits_per_second or 0) * 1000,
        "trace": trace,
        "delayNanoseconds": path.delay_microseconds * 1000,
        "jitterNanoseconds": path.jitter_microseconds * 1000,
        "loss": path.loss_parts_per_million / 1e6,
        "queueNanoseconds": path.queue_milliseconds * 1_000_000,
    }
    return {name: value for name, value in values.items() if value}
