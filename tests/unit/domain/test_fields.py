"""The operator keeps the fields of watched objects that it reads. Other fields take no memory."""

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from pydantic.alias_generators import to_camel

from tests.unit.domain.objects import benchmark
from tierbench.api.benchmark import Access
from tierbench.api.model import Metadata
from tierbench.api.node_class import NODE_CLASSES
from tierbench.controller.context import benchmark_of, controller_of, needs_reconcile
from tierbench.controller.snapshot import ControllerRefManager
from tierbench.domain.fields import LABELS, MOST_LABELS, fields, project
from tierbench.domain.views import job_view, lease_view, pod_view
from tierbench.kinds.file_transfer.spec import FileTransferBenchmark
from tierbench.kube.meta import JOBS, LEASES, PODS, SERVICES, ResourceType, name_of
from tierbench.workloads.manifests import agent_url
from tierbench.workloads.networking import address
from tierbench.workloads.workload import CHILD_LABELS, LABEL_ROLE, Owner, RunningServer

Raw = dict[str, Any]
Path = tuple[str, ...]
OWNER = Owner("FileTransferBenchmark", "default", "demo", "uid-1")
RESOURCE = FileTransferBenchmark.KIND.resource
TEXT = "x" * 5_000


class Recording(dict[str, Any]):
    """A mapping that records which names are read, by their path."""

    def __init__(self, raw: Mapping[str, Any], path: Path, reads: set[Path]) -> None:
        super().__init__({name: recording(value, (*path, name), reads) for name, value in raw.items()})
        self._path = path
        self._reads = reads

    def __getitem__(self, name: str) -> Any:
        self._reads.add((*self._path, name))
        return super().__getitem__(name)

    def __contains__(self, name: object) -> bool:
        self._reads.add((*self._path, str(name)))
        return super().__contains__(name)

    def get(self, name: str, default: Any = None) -> Any:
        self._reads.add((*self._path, name))
        return super().get(name, default)


def recording(value: Any, path: Path, reads: set[Path]) -> Any:
    """Returns a value that records what is read of it. An item of a list has the path of the list."""
    if isinstance(value, dict):
        return Recording(value, path, reads)
    return [recording(item, path, reads) for item in value] if isinstance(value, list) else value


def metadata(**more: Any) -> Raw:
    references = [{"kind": OWNER.kind, "name": OWNER.name, "uid": OWNER.uid, "controller": True}]
    roles = {"tierbench.io/role": "server", "tierbench.io/part-role": "Whole", "tierbench.io/results": "Push"}
    labels = {**dict.fromkeys(CHILD_LABELS, "1"), **OWNER.selector, **roles, "other": "v"}
    return {
        "name": "one",
        "namespace": "default",
        "uid": "u",
        "resourceVersion": "7",
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "ownerReferences": references,
        "labels": labels,
        "annotations": {"a": TEXT},
        "managedFields": [{"manager": TEXT}],
        **more,
    }


def container(name: str, **states: Any) -> Raw:
    last = {"lastState": {"terminated": {"exitCode": 1, "reason": "Error", "message": TEXT}}}
    return {"name": name, "imageID": "i", "restartCount": 2, "state": states, **last}


WAITING = {"waiting": {"reason": "CrashLoopBackOff", "message": "m"}}
ENDED = {"terminated": {"exitCode": 0, "reason": "Completed", "message": "m"}}
POD: Raw = {
    "metadata": metadata(),
    "spec": {
        "nodeName": "n",
        "containers": [{"name": "c", "env": [{"name": "A", "value": TEXT}], "resources": {"limits": {"cpu": "1"}}}],
    },
    "status": {
        "phase": "Failed",
        "reason": "r",
        "podIP": "10.0.0.1",
        "startTime": "2026-01-01T00:00:02Z",
        "conditions": [
            {"type": "PodScheduled", "status": "False", "reason": "Other", "lastTransitionTime": "2026-01-01T00:00:01Z"}
        ],
        "initContainerStatuses": [container("init", running={})],
        "containerStatuses": [container("c", **WAITING), container("d", **ENDED)],
    },
}
KAFKA: Raw = {**POD, "metadata": metadata(labels={**POD["metadata"]["labels"], LABEL_ROLE: "strimzi"})}
FAILED: Raw = {**POD, "status": {"phase": "Failed", "reason": "Evicted", "message": "disk"}}
FAILED_JOB = {"type": "Failed", "status": "True", "reason": "DeadlineExceeded"}
FAILED_JOB |= {"lastTransitionTime": "2026-01-01T00:00:03Z"}
JOB: Raw = {
    "metadata": metadata(),
    "spec": {"template": TEXT},
    "status": {"conditions": [FAILED_JOB]},
}
SERVICE: Raw = {
    "metadata": metadata(),
    "spec": {"clusterIP": "10.1.0.1", "ports": [{"name": "http", "nodePort": 30000}], "selector": {"a": TEXT}},
}
LEASE: Raw = {
    "metadata": metadata(),
    "spec": {"holderIdentity": "h", "acquireTime": "2026-01-01T00:00:00Z", "leaseDurationSeconds": 1},
}
BENCHMARK: Raw = {**benchmark().to_json(), "metadata": metadata(generation=1)}


def claim(kind: str) -> Callable[[Raw], object]:
    def claimed(raw: Raw) -> object:
        children = ControllerRefManager(OWNER).claim({kind: [raw]})
        assert not children.unowned
        return children.pods, children.jobs, children.uids

    return claimed


def unowned(raw: Raw) -> object:
    return ControllerRefManager(OWNER).claim({"Pod": [raw]}).unowned


def reach(raw: Raw) -> object:
    instance: Any = None
    server = RunningServer(instance, "10.0.0.1", "10.0.0.2", raw, raw)
    ways = (Access.NODE_PORT, Access.CLUSTER_IP)
    return [*(address(way, server, "http", 80) for way in ways), agent_url(Access.CLUSTER_IP, server)]


READERS: list[tuple[ResourceType, Raw, Callable[[Raw], object]]] = [
    *((PODS, pod, view) for pod in (POD, FAILED) for view in (pod_view, claim("Pod"), benchmark_of, controller_of)),
    (PODS, KAFKA, unowned),
    *((JOBS, JOB, view) for view in (job_view, claim("Job"), benchmark_of, name_of)),
    *((SERVICES, SERVICE, view) for view in (reach, claim("Service"), benchmark_of)),
    (LEASES, LEASE, lease_view),
    (RESOURCE, BENCHMARK, needs_reconcile),
]


def is_kept(fields: Any, path: Path) -> bool:
    for name in path:
        if not isinstance(fields, Mapping):
            return True
        if name not in fields:
            return False
        fields = fields[name]
    return True


@pytest.mark.parametrize(("resource", "raw", "view"), READERS)
def test_every_field_that_is_read_is_kept(resource: ResourceType, raw: Raw, view: Callable[[Raw], object]) -> None:
    """A view reads a field that is missing as if the object did not have it."""
    reads: set[Path] = set()
    view(recording(raw, (), reads))
    assert reads
    assert not [path for path in reads if not is_kept(fields()[resource], path)]
    assert view(dict(project(resource, raw))) == view(raw)


@pytest.mark.parametrize("resource", [RESOURCE, NODE_CLASSES])
def test_all_metadata_of_a_model_is_kept(resource: ResourceType) -> None:
    assert {to_camel(name) for name in Metadata.model_fields} <= set(fields()[resource]["metadata"])
    assert fields()[resource]["metadata"]["labels"] == LABELS


@pytest.mark.parametrize(
    ("resource", "raw"), [(PODS, POD), (JOBS, JOB), (SERVICES, SERVICE), (LEASES, LEASE), (RESOURCE, BENCHMARK)]
)
def test_fields_that_are_not_read_take_no_memory(resource: ResourceType, raw: Raw) -> None:
    kept = project(resource, raw)
    assert project(resource, kept) == kept
    assert len(json.dumps(kept)) < 14_000
    assert not {"annotations", "managedFields"} & set(kept["metadata"])


def test_texts_lists_and_labels_are_bounded() -> None:
    many = {**POD, "spec": {"containers": [{"name": TEXT}] * 1_000}, "status": {"message": TEXT}}
    kept = project(PODS, many)
    assert len(kept["spec"]["containers"]) == 64
    assert len(kept["status"]["message"]) == 4_096
    labelled = {"metadata": {"labels": {f"l{number:03d}": "v" for number in range(100)}}}
    assert list(project(RESOURCE, labelled)["metadata"]["labels"]) == [
        f"l{number:03d}" for number in range(MOST_LABELS)
    ]
