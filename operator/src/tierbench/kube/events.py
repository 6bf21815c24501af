"""Events, for `kubectl describe`."""

from tierbench.api.model import API_VERSION, format_time
from tierbench.domain.actions import Event
from tierbench.kube.client import EVENTS, Kube
from tierbench.workloads.names import Owner


async def post(kube: Kube, owner: Owner, event: Event) -> None:
    """An event on the object. Raises ApiError."""
    stamp = format_time(kube.now())
    reference = {
        "apiVersion": API_VERSION,
        "kind": owner.kind,
        "name": owner.name,
        "namespace": owner.namespace,
        "uid": owner.uid,
    }
    body = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"generateName": f"{owner.name}.", "namespace": owner.namespace},
        "involvedObject": reference,
        "reason": event.reason,
        "message": event.message[:1024],
        "type": "Warning" if event.warning else "Normal",
        "source": {"component": "tierbench"},
        "reportingComponent": "tierbench.io/operator",
        "firstTimestamp": stamp,
        "lastTimestamp": stamp,
        "count": 1,
    }
    await kube.create(EVENTS, owner.namespace, body)
