"""Compares the CustomResourceDefinitions that the API server serves with those of this version of the operator."""

import asyncio
import hashlib
import json
import logging
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from tierbench.api.model import API_VERSION, GROUP, VERSION
from tierbench.api.schema import outline, resource_types
from tierbench.domain import reasons
from tierbench.kube.client import REQUEST_ERRORS, Kube
from tierbench.kube.meta import Raw, format_time, wait_for_event
from tierbench.metrics.operator import OperatorMetrics

Schema = Mapping[str, Any]

_PATH: Final = f"apis/{API_VERSION}"
_PERIOD_SECONDS: Final = 5.0
_PAUSE_SECONDS: Final = 1.0
_PARTS: Final = ("spec", "status")
_SINGLE: Final = (("items", "[]"), ("additionalProperties", ".*"))
_OPEN: Final = "x-kubernetes-preserve-unknown-fields"
_MOST_NAMES: Final = 5
_UPGRADE: Final = "kubectl apply --server-side --force-conflicts -f crds"
_logger = logging.getLogger(__name__)


class DefinitionCheck:
    """Whether the served definitions have everything that this version reads and writes. If not, runs wait."""

    def __init__(self) -> None:
        self.missing: tuple[str, ...] = ()
        """The fields and enum values that the served definitions lack, as `Kind path`."""
        self.digest = ""
        """Changes with the served definitions. Empty until they are read."""
        self._edition = ""
        self.in_doubt = asyncio.Event()
        """Set when the API server has rejected an object, so that the definitions are read again."""

    async def read(self, kube: Kube) -> bool:
        """Reads the served definitions if they have changed. Returns whether they have. Raises ApiError."""
        index = await kube.request("GET", "/openapi/v3")
        edition = str(index["paths"].get(_PATH, {}).get("serverRelativeURL", ""))
        if edition == self._edition:
            return False
        served = _schemas(await kube.request("GET", f"/openapi/v3/{_PATH}"))
        digest = hashlib.sha256(json.dumps(served, sort_keys=True).encode()).hexdigest()
        self._edition = edition
        if digest == self.digest:
            return False
        own = {model.KIND.kind: outline(model) for model in resource_types()}
        before, self.missing = self.missing, tuple(missing_fields(own, served))
        self.digest = digest
        if self.missing and self.missing != before:
            fields = {"missing": _shortened(self.missing), "command": _UPGRADE}
            _logger.warning("CustomResourceDefinitions are older than the operator; runs wait", extra=fields)
        elif before and not self.missing:
            _logger.info("CustomResourceDefinitions match the operator; runs continue")
        return True

    @property
    def message(self) -> str:
        """Why runs wait, and what to do."""
        return (
            f"The CustomResourceDefinitions are older than the operator: they lack {_shortened(self.missing)}. Runs "
            f"wait until they match. Upgrade them: `helm upgrade`, or `{_UPGRADE}` of the operator's version."
        )

    def conditions(self, benchmark: Raw, now: datetime) -> list[Raw] | None:
        """Returns the conditions of a benchmark with DefinitionsDiffer set, or None if it is set already."""
        conditions = benchmark.get("status", {}).get("conditions", [])
        before: Raw = next((item for item in conditions if item["type"] == reasons.DEFINITIONS_DIFFER), {})
        if (before.get("status"), before.get("message")) == ("True", self.message):
            return None
        condition = {
            "type": reasons.DEFINITIONS_DIFFER,
            "status": "True",
            "reason": reasons.DEFINITIONS_OLDER,
            "message": self.message,
            "lastTransitionTime": before["lastTransitionTime"] if before.get("status") == "True" else format_time(now),
            "observedGeneration": benchmark["metadata"]["generation"],
        }
        return [*(item for item in conditions if item is not before), condition]


async def run_definition_check(
    kube: Kube, check: DefinitionCheck, metrics: OperatorMetrics, on_change: Callable[[], None]
) -> None:
    """Reads the definitions again when they are in doubt and, while they do not match, every five seconds.

    While they match, no request is sent.
    """
    while True:
        await wait_for_event(check.in_doubt, _PERIOD_SECONDS if check.missing or not check.digest else None)
        check.in_doubt.clear()
        with metrics.track("definitions"):
            if await check_definitions(kube, check, metrics):
                on_change()
        await asyncio.sleep(_PAUSE_SECONDS)


async def check_definitions(kube: Kube, check: DefinitionCheck, metrics: OperatorMetrics) -> bool:
    """Returns whether the definitions have changed. If they cannot be read, the last ones count."""
    try:
        changed = await check.read(kube)
    except REQUEST_ERRORS as error:
        _logger.warning("cannot read the CustomResourceDefinitions; retrying", extra={"error": str(error)})
        return False
    metrics.set_definitions_differ(bool(check.missing))
    return changed


def missing_fields(own: Mapping[str, Schema], served: Mapping[str, Schema]) -> Iterator[str]:
    """Yields the kinds, fields and enum values in `own` that `served` lacks. Both map kinds to schemas."""
    for kind, schema in own.items():
        if kind not in served:
            yield kind
            continue
        for part in _PARTS:
            theirs = served[kind]["properties"].get(part, {})
            yield from (f"{kind} {path}" for path in _missing(part, schema["properties"].get(part, {}), theirs))


def _missing(path: str, schema: Schema, other: Schema) -> Iterator[str]:
    values = other.get("enum")
    if values is not None:
        yield from (f"{path}: {value}" for value in schema.get("enum", ()) if value not in values)
    theirs = other.get("properties", {})
    for name, child in schema.get("properties", {}).items():
        if name in theirs:
            yield from _missing(f"{path}.{name}", child, theirs[name])
        elif not other.get(_OPEN):
            yield f"{path}.{name}"
    for keyword, suffix in _SINGLE:
        if isinstance(schema.get(keyword), Mapping) and isinstance(other.get(keyword), Mapping):
            yield from _missing(path + suffix, schema[keyword], other[keyword])


def _schemas(document: Mapping[str, Any]) -> dict[str, Schema]:
    """Returns the schema of each kind in an OpenAPI document."""
    return {
        known["kind"]: schema
        for schema in document["components"]["schemas"].values()
        for known in schema.get("x-kubernetes-group-version-kind", ())
        if (known["group"], known["version"]) == (GROUP, VERSION) and "spec" in schema.get("properties", {})
    }


def _shortened(paths: tuple[str, ...]) -> str:
    more = f" and {len(paths) - _MOST_NAMES} more" if len(paths) > _MOST_NAMES else ""
    return ", ".join(paths[:_MOST_NAMES]) + more
