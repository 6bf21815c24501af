"""Which version of another operator's API there is, and its objects of one benchmark."""

import asyncio
from typing import Any

from tierbench.domain.views import ProviderApi, ProviderState
from tierbench.kube.client import Kube, NotFoundError, type_of
from tierbench.workloads.names import Owner


async def list_provided(
    kube: Kube, owner: Owner, api: ProviderApi
) -> tuple[ProviderState, dict[str, list[dict[str, Any]]]]:
    """The operator as the API server has it now, and objects that bear the benchmark's labels, by kind.

    One that lacks any of the kinds is too old: it has no version.
    """
    try:
        group = await kube.request("GET", f"/apis/{api.group}")
    except NotFoundError:
        return ProviderState(), {}
    served = {item["version"] for item in group["versions"]}
    version = next((version for version in api.versions if version in served), "")
    if not version:
        return ProviderState(installed=True), {}
    types = [type_of(f"{api.group}/{version}", kind) for kind in api.kinds]
    try:
        found = await asyncio.gather(*(kube.list(kind, owner.namespace, owner.selector) for kind in types))
    except NotFoundError:
        return ProviderState(installed=True), {}
    return ProviderState(installed=True, version=version), dict(zip(api.kinds, found, strict=True))
