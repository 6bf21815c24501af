"""The objects of the simulated cluster of `world`, and what its clients print."""

import hashlib
import json
import zlib
from base64 import b64encode
from datetime import UTC, datetime
from typing import Any

from tierbench.api.node_class import NodeClass
from tierbench.domain.views import NodeView
from tierbench.kinds.broker.spec import BrokerBenchmark
from tierbench.kinds.file_transfer.spec import FileTransferBenchmark
from tierbench.kinds.network.spec import NetworkBenchmark
from tierbench.kube.meta import format_time
from tierbench.workloads.workload import Images, Owner

START = datetime(2026, 1, 1, tzinfo=UTC)
OWNER = Owner("FileTransferBenchmark", "default", "demo", "uid-1")
IMAGES = Images(
    client="client:1",
    programs={
        name: f"{name}:1" for name in ("nginx", "transfer", "mosquitto", "kafka", "paho", "sinetstream", "network")
    },
    user=10_000,
    alternatives={"nginx": {"1.19.6": "nginx:1.19.6"}, "mosquitto": {"1.6.9": "mosquitto:1.6.9"}},
)
METADATA = {"name": "demo", "namespace": "default", "uid": "uid-1", "generation": 1}
MEASURED: dict[str, dict[str, Any]] = {
    "echo": {"server": {"cpuPartsPerMillion": 10_000}},
    "broker": {
        "exchange": {"pairs": 2, "sent": 200, "received": 198, "lost": 2, "connectNanoseconds": 1000},
        "distributions": {
            "roundTrip": {"schema": 6, "count": 198, "sumNanoseconds": 198_000, "indexes": [638], "counts": [198]}
        },
    },
    "network": {
        "network": {"upload": {"bitsPerSecond": 90_000_000, "receivedBytes": 11_250_000, "sentBytes": 11_300_000}}
    },
    "network Download": {"network": {"download": {"bitsPerSecond": 80_000_000}}},
}
"""The measured values of a trial, by the kind of the client's plan."""
KIND = "FileTransferBenchmark"
TIME = "2026-01-01T00:00:{:02}Z"


def node(name: str, hardware: str, *, ready: bool = True) -> NodeView:
    """A node labelled hw=HARDWARE."""
    return NodeView(
        name=name,
        labels={"hw": hardware},
        ready=ready,
        unready_since=None if ready else START,
        schedulable=True,
        architecture="arm64",
        kernel="6.1",
        os_image="Debian",
        kubelet="v1.34",
        runtime="containerd",
        cpu_millicores=4000,
        memory_bytes=4 * 2**30,
        storage_bytes=32 * 2**30,
    )


def node_class(name: str) -> NodeClass:
    """A class of the nodes labelled hw=NAME."""
    spec = {"nodeSelector": {"matchLabels": {"hw": name}}}
    return NodeClass.model_validate({"metadata": {"name": name}, "spec": spec})


def benchmark(**spec: Any) -> FileTransferBenchmark:
    """A benchmark of two server classes, two sizes and three repetitions, unless the spec says otherwise."""
    body = {
        "servers": {"nodeClassNames": ["cloud", "jetson"]},
        "clients": {"nodeClassNames": ["user"]},
        "fileSizes": ["1Mi", "2Mi"],
        "repetitions": 3,
        **spec,
    }
    return FileTransferBenchmark.model_validate({"metadata": METADATA, "spec": body})


def broker_benchmark(**spec: Any) -> BrokerBenchmark:
    """A benchmark of Mosquitto on two classes, with two payload sizes and clients in two pods."""
    body = {
        "brokers": [{"name": "mosquitto", "mosquitto": {}}],
        "servers": {"nodeClassNames": ["cloud", "jetson"]},
        "clients": {"nodeClassNames": ["user"], "pods": 2},
        "payload": {"sizes": ["100", "1Ki"]},
        "pairs": [4],
        "repetitions": 3,
        **spec,
    }
    given = {name: value for name, value in body.items() if value is not None}
    return BrokerBenchmark.model_validate({"metadata": METADATA, "spec": given})


def network_benchmark(**spec: Any) -> NetworkBenchmark:
    """A benchmark of iperf3 on two classes, in both directions."""
    body = {
        "servers": {"nodeClassNames": ["cloud", "jetson"]},
        "clients": {"nodeClassNames": ["user"]},
        "repetitions": 3,
        **spec,
    }
    return NetworkBenchmark.model_validate({"metadata": METADATA, "spec": body})


def trial_line(
    number: int,
    *,
    outcome: str = "Completed",
    warmup: bool = False,
    nanoseconds: int = 10**9,
    measured: dict[str, Any] | None = None,
    case: int = 0,
    start: datetime = START,
    reason: str = "AttemptsExhausted",
) -> str:
    """Returns the line that a client prints when a trial has ended."""
    body: dict[str, Any] = {
        "contract": 1,
        "record": "Trial",
        "case": case,
        "trial": number,
        "warmup": warmup,
        "outcome": outcome,
        "startTime": format_time(start),
        "durationNanoseconds": nanoseconds,
        "client": {"cpuNanoseconds": nanoseconds // 100},
        **(measured or {"transfer": {"bytes": 2**20, "downloads": 1, "retryCauses": {}}}),
    }
    if outcome == "Failed":
        body["failure"] = {"reason": reason, "message": "20 attempts"}
    return json.dumps(body) + "\n"


def packed(log: str) -> str:
    """Returns Trial lines as a seal holds them."""
    return b64encode(zlib.compress(log.encode())).decode()


def seal(log: str, failure: dict[str, Any] | None = None, version: str = "1", held: str = "") -> str:
    """Returns the termination message for a log. It holds the trials of `held`."""
    lines = log.splitlines(keepends=True)
    body: dict[str, Any] = {
        "contract": 1,
        "trials": len(lines),
        "sha256": hashlib.sha256("".join(lines).encode()).hexdigest(),
        "engine": {"name": "tierbench-client", "version": version, "architecture": "arm64"},
    }
    if failure is not None:
        body["failure"] = failure
    if held:
        body["lines"] = packed(held)
    return json.dumps(body)


def raw_benchmark(name: str, run: int, *, ended: bool = True, **more: Any) -> dict[str, Any]:
    state = {"number": run, "startTime": TIME.format(0), **({"completionTime": TIME.format(1)} if ended else {})}
    policy = {"baselineRun": more.pop("baseline", None)}
    metadata = {"name": name, "namespace": "a", "uid": f"uid-of-{name}"}
    return {"kind": KIND, "metadata": metadata, "spec": {"runPolicy": policy}, "status": {"run": state, **more}}


def raw_result(name: str, benchmark: str, run: int, stored: int = 1000) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "a", "uid": f"uid-of-{name}"}
    place = {"nodeClass": "c", "node": "n"}
    case = {"case": 1, "levels": {}, "server": place, "client": place, "trials": 1}
    spec = {"benchmark": {"kind": KIND, "name": benchmark}, "run": run, **case}
    return {"metadata": metadata, "spec": spec, "status": {"phase": "Complete", "storedBytes": stored}}
