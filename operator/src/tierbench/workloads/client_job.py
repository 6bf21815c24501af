"""The Job of a part of a client: one pod, and no second try by the Job controller."""

from collections.abc import Sequence
from typing import Any

from tierbench.workloads.agent import CREDENTIALS_MOUNT
from tierbench.workloads.names import (
    CLIENT,
    LABEL_ATTEMPT,
    LABEL_CASE,
    LABEL_PART,
    LABEL_ROLE,
    LABEL_RUN,
    ROLE_CLIENT,
    Owner,
)
from tierbench.workloads.plan import Case
from tierbench.workloads.pods import NO_SIDECARS, POD_SECURITY, RESTRICTED, ScratchDirectory, placement, pod_basics
from tierbench.workloads.workload import ClientSite, Images, Manifest


def client_job(
    owner: Owner,
    images: Images,
    site: ClientSite,
    case: Case,
    image: str,
    arguments: Sequence[str],
    credentials: Sequence[dict[str, Any]],
    sysctls: Sequence[dict[str, str]] = (),
    scratch: Sequence[ScratchDirectory] = (),
) -> Manifest:
    """The Job; `credentials` are the sources of a projected volume. The operator goes on with the next trial itself."""
    labels = {
        LABEL_RUN: str(site.run),
        LABEL_ROLE: ROLE_CLIENT,
        LABEL_CASE: str(case.number),
        LABEL_ATTEMPT: str(site.attempt),
        LABEL_PART: str(site.part.index),
    }
    metadata = owner.metadata(site.name, labels)
    container = {
        "name": CLIENT,
        "image": image,
        "args": list(arguments),
        "resources": {"requests": {"cpu": "50m", "memory": "32Mi"}},
        "securityContext": RESTRICTED,
        "volumeMounts": [CREDENTIALS_MOUNT, *(directory.mount for directory in scratch)],
    }
    volume = {"name": "credentials", "projected": {"sources": list(credentials), "defaultMode": 0o440}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata,
        "spec": {
            "backoffLimit": 0,
            "activeDeadlineSeconds": site.deadline_seconds,
            "template": {
                "metadata": {"labels": metadata["labels"], "annotations": NO_SIDECARS},
                "spec": {
                    **pod_basics(images.pull_secrets),
                    **placement(site.node, site.node_class),
                    "restartPolicy": "Never",
                    "securityContext": {**POD_SECURITY, **({"sysctls": list(sysctls)} if sysctls else {})},
                    "containers": [container],
                    "volumes": [volume, *(directory.volume for directory in scratch)],
                },
            },
        },
    }


def secret_items(secret: str, *keys: str) -> dict[str, Any]:
    """Some keys of a Secret, as files of their names."""
    return {"secret": {"name": secret, "items": [{"key": key, "path": key} for key in keys]}}
