"""Installs the CustomResourceDefinitions in an API server, and removes objects of their kinds."""

import copy
import hashlib
from collections.abc import Iterable
from functools import cache

from tests.api.objects import item
from tests.api.server import CRDS, ApiServer, Json, RefusedError
from tests.api.waiting import wait_for
from tierbench.api.model import API_VERSION, GROUP, Resource
from tierbench.api.schema import resource_types
from tierbench.generate.schemas import custom_resource_definition

MERGE = {"Content-Type": "application/merge-patch+json"}
APPLY = {"Content-Type": "application/apply-patch+yaml"}
_AS_HELM = "fieldManager=helm&force=true"
"""Helm changes what it applied earlier."""


def ours() -> list[Json]:
    """Returns this version's definitions of all kinds."""
    return copy.deepcopy(_ours())


@cache
def _ours() -> list[Json]:
    return [custom_resource_definition(model) for model in resource_types()]


def put_definitions(server: ApiServer, crds: Iterable[Json]) -> None:
    """Creates or replaces these definitions, and waits until the API server publishes their schemas. Others stay.

    The description of a schema identifies a definition, so definitions of other versions get another description.
    """
    existing, wanted, own = {name: _description(crd) for name, crd in defined(server).items()}, {}, ours()
    for given in crds:
        crd, name = copy.deepcopy(given), given["metadata"]["name"]
        if given not in own:
            _schema(crd)["description"] = hashlib.sha256(repr(given).encode()).hexdigest()
        wanted[crd["spec"]["names"]["kind"]] = _description(crd)
        if existing.get(name) != _description(crd):
            server.request("PATCH", f"{CRDS}/{name}?{_AS_HELM}", crd, APPLY)
    wait_for(
        lambda: (
            wanted.items() <= _published(server).items()
            and all(_is_served(server, model) for model in resource_types())
        ),
        "our kinds",
    )


def remove_definitions(server: ApiServer) -> None:
    """Removes the definitions of our kinds, with all objects."""
    empty(server)
    for name in defined(server):
        server.request("DELETE", f"{CRDS}/{name}")
    wait_for(lambda: not defined(server), "the removal of the CRDs")


def defined(server: ApiServer) -> dict[str, Json]:
    """Returns the definitions of our group, by name."""
    found = {crd["metadata"]["name"]: crd for crd in server.request("GET", CRDS)["items"]}
    return {name: crd for name, crd in found.items() if crd["spec"]["group"] == GROUP}


def empty(server: ApiServer) -> None:
    """Removes all objects of our kinds, even those with finalizers."""
    for model in resource_types():
        for body in server.request("GET", f"/apis/{API_VERSION}/{model.KIND.plural}")["items"]:
            metadata = body["metadata"]
            path = item(model, metadata["name"], metadata.get("namespace", ""))
            if metadata.get("finalizers"):
                server.request("PATCH", path, {"metadata": {"finalizers": None}}, MERGE)
            if "deletionTimestamp" not in metadata:
                server.request("DELETE", path)


def _schema(crd: Json) -> Json:
    (version,) = crd["spec"]["versions"]
    schema: Json = version["schema"]["openAPIV3Schema"]
    return schema


def _description(crd: Json) -> str:
    return str(_schema(crd)["description"])


def _is_served(server: ApiServer, model: type[Resource]) -> bool:
    """Returns whether objects of this kind can be listed.

    A definition that is removed earlier stays for minutes.
    """
    try:
        server.request("GET", f"/apis/{API_VERSION}/{model.KIND.plural}")
    except RefusedError:
        return False
    return True


def _published(server: ApiServer) -> dict[str, str]:
    """Returns the descriptions of our kinds, by kind."""
    try:
        schemas = server.request("GET", f"/openapi/v3/apis/{API_VERSION}")["components"]["schemas"]
    except RefusedError:  # none of our kinds is served
        return {}
    return {
        known["kind"]: schema["description"]
        for schema in schemas.values()
        for known in schema.get("x-kubernetes-group-version-kind", ())
        if f"{known['group']}/{known['version']}" == API_VERSION and "spec" in schema.get("properties", {})
    }
