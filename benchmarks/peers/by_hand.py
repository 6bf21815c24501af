"""Starts the pods and Jobs of a benchmark by hand, each as soon as the previous one is done."""

import time

import yaml

from benchmarks.peers.watch import ready, succeeded, watching
from images.naming import reference
from tests.e2e.benchmarks import node_class
from tests.e2e.kubectl import Kubectl
from tierbench.api.node_class import NodeClassSpec
from tierbench.controller.credentials import fill
from tierbench.generate.values import ChartValues
from tierbench.kinds.file_transfer.spec import FileTransferSpec
from tierbench.kinds.file_transfer.workload import FileTransfer
from tierbench.workloads.plan import ScheduledTrial, plan
from tierbench.workloads.workload import ClientInstance, Images, Manifest, Owner, RunningServer, ServerInstance, Target

_IMAGES = Images(
    client=reference("client"),
    programs={
        name: reference(name) for name in ("nginx", "mosquitto", "kafka", "paho", "sinetstream", "network", "transfer")
    },
    user=ChartValues().workloads.run_as_user,
)
_SECONDS = 60


def run_by_hand(kubectl: Kubectl, spec: FileTransferSpec, nodes: dict[str, str]) -> float:
    """Returns the seconds from the first object to the end of the last client. `nodes` has one node per class."""
    workload = FileTransfer(Owner("FileTransferBenchmark", kubectl.namespace, "by-hand", ""), spec, _IMAGES)
    cases = plan(spec, workload.server_placements(), workload.factors)
    classes = {name: NodeClassSpec.model_validate(node_class(name, hw=name)["spec"]) for name in nodes}
    placement = cases[0].server
    instance = ServerInstance(
        "by-hand", "by-hand", 1, 0, placement, nodes[placement.node_class], classes[placement.node_class]
    )
    with watching(kubectl) as watch:
        started = time.monotonic()
        _create(kubectl, fill(workload.credentials(instance)), *workload.server(instance))
        watch.first(lambda pod: pod["metadata"]["name"] == instance.name and ready(pod), _SECONDS)
        server = _running(kubectl, instance)
        for case in cases:
            name = f"by-hand-{case.number}"
            part = workload.parts(case)[0]
            node, node_class_spec = nodes[part.node_class], classes[part.node_class]
            schedule = [ScheduledTrial(case.number, trial) for trial in range(1, spec.repetitions + 1)]
            client = ClientInstance(name, 1, case.number, 1, part, node, node_class_spec, schedule, 600)
            _create(kubectl, workload.client(client, [Target(case, server, 600)]))

            def done(pod: Manifest, name: str = name) -> bool:
                return pod["metadata"]["labels"].get("job-name") == name and succeeded(pod)

            ended = watch.first(done, _SECONDS)
        return ended - started


def _create(kubectl: Kubectl, *manifests: Manifest) -> None:
    for manifest in manifests:
        manifest["metadata"].pop("ownerReferences", None)
    kubectl("create", "-f", "-", stdin=yaml.safe_dump_all(manifests))


def _running(kubectl: Kubectl, instance: ServerInstance) -> RunningServer:
    pod = kubectl.get("pod", instance.name)["status"]
    service, agent = kubectl.get("service", instance.name), kubectl.get("service", f"{instance.name}-agent")
    return RunningServer(instance, pod["podIP"], pod["hostIP"], service, agent)
