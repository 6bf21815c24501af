"""The fields that the operator keeps of the objects that it watches: those that it reads, each with a bound.

What a tenant writes elsewhere into an object, such as an annotation, takes no memory.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from tierbench.api.node_class import NODE_CLASSES
from tierbench.api.placement_advice import ADVICES
from tierbench.domain.servers import known_apis
from tierbench.kinds.registry import BENCHMARKS
from tierbench.kube.meta import JOBS, LEASES, PODS, SERVICES, Raw, ResourceType
from tierbench.workloads.workload import CHILD_LABELS

MOST_LABELS: Final = 32
"""The labels of a benchmark. An admission policy refuses more."""
_MOST_ITEMS: Final = 64
_MOST_CHARACTERS: Final = 4096
"""The length of a container's termination message, which is the longest text that is read."""

Fields = Mapping[str, Any]
"""The fields of an object, or of each object of a list, with what is kept of them: VALUE, ALL, LABELS or Fields."""
VALUE: Final = "value"
"""A number, or a text that is cut to a length, or some of these."""
ALL: Final = "all"
"""Everything. The schema of a definition bounds it."""
LABELS: Final = "labels"
"""The first labels by name."""


def _values(*names: str) -> Fields:
    return dict.fromkeys(names, VALUE)


_HEAD: Final = _values("apiVersion", "kind")
_METADATA: Final = {
    **_values("name", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp"),
    **_values("finalizers"),
    "ownerReferences": _values("kind", "name", "uid", "controller"),
}
_CHILD: Final = {**_HEAD, "metadata": {**_METADATA, "labels": _values(*CHILD_LABELS)}}
_ENDED: Final = {"terminated": _values("exitCode", "reason", "message")}
_CONTAINER: Final = {
    **_values("name", "imageID", "restartCount"),
    "state": {"running": {}, "waiting": _values("reason", "message"), **_ENDED},
    "lastState": _ENDED,
}
_POD: Final = {
    **_HEAD,
    "spec": {
        "nodeName": VALUE,
        "containers": {"name": VALUE, "resources": {"limits": _values("cpu", "memory", "ephemeral-storage")}},
    },
    "status": {
        **_values("phase", "reason", "message", "podIP", "hostIP", "startTime"),
        "conditions": _values("type", "status", "reason", "message", "lastTransitionTime"),
        "containerStatuses": _CONTAINER,
        "initContainerStatuses": _CONTAINER,
    },
}
_JOB: Final = {**_CHILD, "status": {"conditions": _values("type", "status", "reason", "lastTransitionTime")}}
_SERVICE: Final = {**_CHILD, "spec": {"clusterIP": VALUE, "ports": _values("name", "nodePort")}}
_LEASE: Final = {
    **_HEAD,
    "metadata": _METADATA,
    "spec": _values("holderIdentity", "acquireTime", "renewTime", "leaseDurationSeconds"),
}
_OWN: Final = {**_HEAD, "metadata": {**_METADATA, "labels": LABELS}, "spec": ALL, "status": ALL}
# An advice is read in full when it is answered.
_ADVICE: Final = {**_HEAD, "metadata": _METADATA, "status": _values("observedGeneration")}


@cache
def fields() -> Mapping[ResourceType, Fields]:
    """Returns the fields that are kept, by type."""
    labels = _values(*CHILD_LABELS, *(api.pod_label for api in known_apis()))
    own = (NODE_CLASSES, *(model.KIND.resource for model in BENCHMARKS.values()))
    return {
        PODS: {**_POD, "metadata": {**_METADATA, "labels": labels}},
        JOBS: _JOB,
        SERVICES: _SERVICE,
        LEASES: _LEASE,
        ADVICES: _ADVICE,
        **dict.fromkeys(own, _OWN),
    }


def project(resource: ResourceType, raw: Raw) -> Raw:
    """Returns the fields of an object that are kept. Returns an object of another type as it is."""
    kept: Raw = _project(raw, fields().get(resource, ALL))
    return kept


def _project(value: Any, kept: Any) -> Any:
    if kept is ALL:
        return value
    if kept is LABELS:
        return dict(sorted(value.items())[:MOST_LABELS])
    if isinstance(value, list):
        return [_project(item, kept) for item in value[:_MOST_ITEMS]]
    if isinstance(value, Mapping):
        named = kept.items() if isinstance(kept, Mapping) else ()
        return {name: _project(value[name], inner) for name, inner in named if name in value}
    return value[:_MOST_CHARACTERS] if isinstance(value, str) else value
