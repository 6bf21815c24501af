"""Records real runs on the built-in cluster, which simulated nodes replay: `python3 -m benchmarks.scale.record [NAME]`.

A recording has the benchmark, its results, and the log and the termination message of each pod of its client.
"""

import json
import os
import secrets
import subprocess
import sys
from typing import Any

from benchmarks.peers.watch import Pod, Watch, succeeded, watching
from tests.cluster import Cluster, images
from tests.e2e.benchmarks import HARDWARE, HOST_PATH, Running, broker, file_transfer, network, node_class
from tests.e2e.kubectl import Kubectl, wait_for
from tests.e2e.operator_release import Release
from tests.operator.recorded import FOLDER

TRIALS = 10
FEW = 3
SLOW_LOAD: dict[str, Any] = {
    "pacing": {"type": "OpenLoop", "messagesPerSecond": 40},
    "repetitions": FEW,
    "warmupTrials": 0,
}
"""A load that is long enough for the clock ticks of the nodes' processors."""
PODS = 5
_IMAGES = ("operator", "client", "nginx", "mosquitto", "kafka", "network", "pause")
_BENCHMARKS = (
    file_transfer("files", fileSizes=["16Mi"], repetitions=TRIALS, warmupTrials=0, storage=HOST_PATH),
    broker(
        "brokers",
        clients={"nodeClassNames": ["user"], "pods": PODS},
        pairs=[PODS],
        pacing={"type": "OpenLoop", "messagesPerSecond": 50},
        load={"durationSeconds": 2},
        repetitions=TRIALS,
        warmupTrials=0,
    ),
    broker("mosquitto", **SLOW_LOAD),
    broker("kafka", brokers=[{"name": "kafka", "kafka": {}}], pairs=[2], **SLOW_LOAD),
    network("tcp", directions=["Bidirectional"], repetitions=FEW, warmupTrials=0),
    network(
        "udp",
        directions=["Bidirectional"],
        protocols=["UDP"],
        udp={"kilobitsPerSecond": 1000},
        repetitions=FEW,
        warmupTrials=0,
    ),
)


def main() -> None:
    """Records one run of each benchmark, or of those that are named."""
    cluster = Cluster(os.environ.get("CLUSTER_NAME", "tierbench"))
    cluster.up()
    cluster.load([images.build(name) for name in _IMAGES])
    path = f"{cluster.binaries}:{os.environ['PATH']}"
    environment = {**os.environ, "KUBECONFIG": str(cluster.kubeconfig), "PATH": path}
    Release("tierbench", Kubectl(environment, "tierbench")).install()
    kubectl = Kubectl(environment, f"record-{secrets.token_hex(3)}")
    kubectl.apply(*(node_class(name, hw=hardware) for name, hardware in HARDWARE.items()))
    kubectl.create_namespace()
    for benchmark in _BENCHMARKS:
        name, kind = benchmark["metadata"]["name"], benchmark["kind"].lower()
        if name not in (sys.argv[1:] or [name]):
            continue
        with watching(kubectl) as watch:
            kubectl.apply(benchmark)
            clients = _clients(kubectl, watch, name)
            running = Running(kubectl, name, kind)
            running.wait_for_phase("Complete", seconds=300)
        recorded = {"benchmark": running.object, "results": running.results, "clients": clients}
        (FOLDER / f"{name}.json").write_text(json.dumps(recorded, indent=1) + "\n")
        kubectl("delete", kind, name, "--wait")
    kubectl("delete", "namespace", kubectl.namespace, "--wait=false")


def _clients(kubectl: Kubectl, watch: Watch, name: str) -> list[dict[str, Any]]:
    """Follows the log of each pod of the client to its end, and returns it with the termination message."""
    labels = {"tierbench.io/benchmark": name, "tierbench.io/role": "client"}

    def started() -> dict[str, Pod]:
        pods = {pod["metadata"]["name"]: pod for _, pod in watch.seen if pod["status"]["phase"] == "Running"}
        mine = {key: pod for key, pod in pods.items() if labels.items() <= pod["metadata"]["labels"].items()}
        return mine if len(mine) == (PODS if name == "brokers" else 1) else {}

    names = sorted(wait_for(f"the clients of {name} run", started, 120))
    follow = ["kubectl", "--namespace", kubectl.namespace, "logs", "--follow"]
    followed = [
        subprocess.Popen([*follow, pod], env=kubectl.environment, stdout=subprocess.PIPE, text=True) for pod in names
    ]
    logs = [process.communicate()[0] for process in followed]
    return [
        {"log": log.splitlines(), "termination": _termination_message(watch, pod)}
        for pod, log in zip(names, logs, strict=True)
    ]


def _termination_message(watch: Watch, name: str) -> str:
    """Waits until a pod has succeeded, and returns its termination message."""

    def ended(pod: Pod) -> bool:
        return pod["metadata"]["name"] == name and succeeded(pod)

    watch.first(ended, 30)
    pod = next(pod for _, pod in watch.seen if ended(pod))
    message: str = pod["status"]["containerStatuses"][0]["state"]["terminated"]["message"]
    return message


if __name__ == "__main__":
    main()
