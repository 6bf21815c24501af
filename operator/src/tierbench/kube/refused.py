"""Why a Job has no pod. Only the Job controller is told, so the API server is asked what it would say to that pod."""

from collections.abc import Iterable
from datetime import timedelta
from typing import Any, Final

from tierbench.api.model import parse_time
from tierbench.domain.observed import FailedRequest
from tierbench.domain.views import Raw
from tierbench.kube.client import PODS, REFUSED, ApiError, Kube

_USUAL: Final = timedelta(seconds=10)


async def refused_pods(kube: Kube, namespace: str, jobs: Iterable[Raw]) -> dict[str, FailedRequest]:
    """Of Jobs without a pod what forbids it, since they are there, by their names; nothing of what is only late."""
    found = {}
    for job in jobs:
        since = parse_time(job["metadata"]["creationTimestamp"])
        if kube.now() - since < _USUAL:
            continue
        try:
            await kube.create(PODS, namespace, _pod(job), dry_run=True)
        except ApiError as error:
            if error.status not in REFUSED:
                raise
            found[job["metadata"]["name"]] = FailedRequest(since, error.message)
    return found


def _pod(job: Raw) -> dict[str, Any]:
    template = job["spec"]["template"]
    metadata = {**template["metadata"], "generateName": f"{job['metadata']['name']}-"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}
