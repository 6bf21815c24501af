"""The structure of our kinds as the API server serves it: anybody who may ask it anything may read that."""

from typing import Any

from tierbench.api.model import API_VERSION, GROUP, VERSION
from tierbench.kube.client import Kube

_PATH = f"apis/{API_VERSION}"


async def edition(kube: Kube) -> str:
    """What changes with the structure, and is cheap to read; empty while nothing of ours is served."""
    index = await kube.request("GET", "/openapi/v3")
    return str(index["paths"].get(_PATH, {}).get("serverRelativeURL", ""))


async def served_structure(kube: Kube) -> dict[str, dict[str, Any]]:
    """The schema of each kind, by its name. Raises ApiError."""
    document = await kube.request("GET", f"/openapi/v3/{_PATH}")
    return {
        known["kind"]: schema
        for schema in document["components"]["schemas"].values()
        for known in schema.get("x-kubernetes-group-version-kind", ())
        if (known["group"], known["version"]) == (GROUP, VERSION) and "spec" in schema.get("properties", {})
    }
