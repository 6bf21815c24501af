"""Which Strimzi there is, and its objects of one benchmark."""

import asyncio
from typing import Any, Final

from tierbench.domain.strimzi import StrimziView
from tierbench.kube.client import Kube, NotFoundError, type_of
from tierbench.workloads.names import Owner
from tierbench.workloads.strimzi import GROUP, KINDS

_VERSIONS: Final = ("v1", "v1beta2")


async def list_strimzi(kube: Kube, owner: Owner) -> tuple[StrimziView, dict[str, list[dict[str, Any]]]]:
    """Strimzi as the API server has it now, and objects that bear the benchmark's labels, by kind.

    A Strimzi that lacks any of the kinds is too old: it has no version.
    """
    try:
        group = await kube.request("GET", f"/apis/{GROUP}")
    except NotFoundError:
        return StrimziView(), {}
    served = {item["version"] for item in group["versions"]}
    version = next((version for version in _VERSIONS if version in served), "")
    if not version:
        return StrimziView(installed=True), {}
    types = [type_of(f"{GROUP}/{version}", kind) for kind in KINDS]
    try:
        found = await asyncio.gather(*(kube.list(kind, owner.namespace, owner.selector) for kind in types))
    except NotFoundError:
        return StrimziView(installed=True), {}
    return StrimziView(installed=True, version=version), dict(zip(KINDS, found, strict=True))
