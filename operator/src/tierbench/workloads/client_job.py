"""The Job of one part of a client: one pod, without retries by the Job controller."""

from collections.abc import Mapping, Sequence
from typing import Any

from tierbench.api.quantity import Resources
from tierbench.workloads.agent import CLIENT_KEYS, agent_url
from tierbench.workloads.names import (
    CLIENT,
    LABEL_ATTEMPT,
    LABEL_CASE,
    LABEL_LAYOUT,
    LABEL_PART,
    LABEL_PASS,
    LABEL_ROLE,
    LABEL_RUN,
    LAYOUT,
    ROLE_CLIENT,
    Owner,
)
from tierbench.workloads.plan import Case
from tierbench.workloads.pods import (
    CREDENTIALS,
    CREDENTIALS_MOUNT,
    NO_SIDECARS,
    RESTRICTED,
    Directory,
    measured_resources,
    pin_to_node,
    pod_basics,
    pod_security,
)
from tierbench.workloads.workload import ClientInstance, Images, Manifest, Target


def client_job(
    owner: Owner,
    images: Images,
    instance: ClientInstance,
    targets: Sequence[Target],
    image: str,
    arguments: Sequence[str],
    resources: Resources | None,
    credentials: Sequence[Sequence[dict[str, Any]]],
    sysctls: Sequence[dict[str, str]] = (),
    directories: Sequence[Directory] = (),
) -> Manifest:
    """Returns the Job of one part of a client.

    `credentials` are the sources of a projected volume per target. There is no backoff limit, because the operator
    continues with the next trial itself. The Job has the number of the first case of its block.
    """
    labels = {
        LABEL_RUN: str(instance.run),
        LABEL_ROLE: ROLE_CLIENT,
        LABEL_CASE: str(instance.block),
        LABEL_PASS: str(instance.pass_number),
        LABEL_ATTEMPT: str(instance.attempt),
        LABEL_PART: str(instance.part.index),
        LABEL_LAYOUT: LAYOUT,
    }
    metadata = owner.metadata(instance.name, labels)
    container = {
        "name": CLIENT,
        **images.pulled(image),
        "args": list(arguments),
        "resources": measured_resources(resources),
        "securityContext": RESTRICTED,
        "volumeMounts": [CREDENTIALS_MOUNT, *(directory.mount for directory in directories)],
    }
    sources = [
        _under(_folder(target.case), source)
        for target, found in zip(targets, credentials, strict=True)
        for source in found
    ]
    volume = {"name": "credentials", "projected": {"sources": sources, "defaultMode": 0o440}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata,
        "spec": {
            "backoffLimit": 0,
            "activeDeadlineSeconds": instance.deadline_seconds,
            "template": {
                "metadata": {"labels": metadata["labels"], "annotations": NO_SIDECARS},
                "spec": {
                    **pod_basics(images),
                    **pin_to_node(instance.node, instance.node_class),
                    "restartPolicy": "Never",
                    "securityContext": {**pod_security(images.user), **({"sysctls": list(sysctls)} if sysctls else {})},
                    "containers": [container],
                    "volumes": [volume, *(directory.volume for directory in directories)],
                },
            },
        },
    }


def series_options(instance: ClientInstance, warmup: int, targets: Sequence[Target]) -> dict[str, Any]:
    """Returns the options of every engine: its targets, with one value per target, and the schedule of trials."""
    return {
        "case": [target.case.number for target in targets],
        "deadline-seconds": [target.deadline_seconds for target in targets],
        "trials": ",".join(f"{scheduled.case}:{scheduled.trial}" for scheduled in instance.schedule),
        "warmup": warmup,
        "agent": [agent_url(target.server) for target in targets],
        **{f"{key}-file": credential_files(targets, key) for key in CLIENT_KEYS},
        "output": "json",
        "termination-log": "/dev/termination-log",
    }


def credential_files(targets: Sequence[Target], key: str) -> list[str]:
    """Returns the path of the credential with this key for each target."""
    return [f"{CREDENTIALS}/{_folder(target.case)}/{key}" for target in targets]


def flags(options: Mapping[str, Any]) -> list[str]:
    """Returns options as flags. An option with a value per target is repeated."""
    given = ((name, value if isinstance(value, list) else [value]) for name, value in options.items())
    return [f"--{name}={value}" for name, values in given for value in values]


def _folder(case: Case) -> str:
    return str(case.number)


def _under(folder: str, source: dict[str, Any]) -> dict[str, Any]:
    secret = source["secret"]
    items = [{**item, "path": f"{folder}/{item['path']}"} for item in secret["items"]]
    return {"secret": {**secret, "items": items}}
