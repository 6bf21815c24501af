"""Builds the smallest objects that the API server accepts, and changes them."""

import copy
import re
from typing import Any

from tests.api.server import CRDS, ApiServer, Json
from tierbench.api.model import API_VERSION, Resource
from tierbench.api.node_class import NodeClass
from tierbench.api.placement_advice import PlacementAdvice
from tierbench.api.record import BenchmarkRecord
from tierbench.api.result import BenchmarkResult
from tierbench.kinds.broker.spec import BrokerBenchmark
from tierbench.kinds.file_transfer.spec import FileTransferBenchmark
from tierbench.kinds.network.spec import NetworkBenchmark

_PLACEMENT: Json = {"servers": {"nodeClassNames": ["cloud"]}, "clients": {"nodeClassNames": ["user"]}}
_NODE: Json = {"nodeClass": "cloud", "node": "cloud-1"}
SPECS: dict[type[Resource], Json] = {
    NodeClass: {"nodeSelector": {"matchLabels": {"hw": "cloud"}}},
    FileTransferBenchmark: {**_PLACEMENT, "fileSizes": ["1Mi"]},
    BrokerBenchmark: {**_PLACEMENT, "brokers": [{"name": "mosquitto", "mosquitto": {}}]},
    NetworkBenchmark: _PLACEMENT,
    BenchmarkResult: {
        "benchmark": {"kind": "FileTransferBenchmark", "name": "files"},
        "run": 1,
        "case": 1,
        "levels": {"fileSize": "1Mi"},
        "server": _NODE,
        "client": _NODE,
        "trials": 10,
    },
    BenchmarkRecord: {"benchmark": {"kind": "NetworkBenchmark", "name": "networks"}, "run": 1, "case": 1},
    PlacementAdvice: {"clientClassName": "user"},
}


def smallest(model: type[Resource], name: str) -> Json:
    """Returns an object with only the required fields."""
    spec = copy.deepcopy(SPECS[model])
    return {"apiVersion": API_VERSION, "kind": model.KIND.kind, "metadata": {"name": name}, "spec": spec}


def changed(body: Json, path: str, value: Any) -> Json:
    """Returns a copy with another value at a path such as spec.servers.nodeClassNames. None removes the field."""
    body = copy.deepcopy(body)
    *parents, last = path.split(".")
    place = body
    for parent in parents:
        place = place.setdefault(parent, {})
    if value is None:
        del place[last]
    else:
        place[last] = value
    return body


def crd_path(model: type[Resource]) -> str:
    return f"{CRDS}/{model.KIND.plural}.tierbench.io"


def collection(model: type[Resource], namespace: str = "default") -> str:
    scope = f"/namespaces/{namespace}" if model.KIND.namespaced else ""
    return f"/apis/{API_VERSION}{scope}/{model.KIND.plural}"


def item(model: type[Resource], name: str, namespace: str = "default") -> str:
    return f"{collection(model, namespace)}/{name}"


def create(server: ApiServer, model: type[Resource], body: Json) -> Json:
    return server.request("POST", f"{collection(model)}?fieldValidation=Strict", body)


def schema_path(field: str) -> str:
    """Returns the schema's path for a field that the API server names: spec.fileSizes[] for spec.fileSizes[0]."""
    if field == "<nil>":
        return ""
    return re.sub(r"\[([^]]*)]", lambda match: "[]" if match[1].isdigit() else ".*", field)
