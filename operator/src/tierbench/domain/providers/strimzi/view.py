"""What Strimzi says of its objects, reduced to what a decision needs."""

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from tierbench.api.timestamps import parse_time
from tierbench.domain import reasons
from tierbench.domain.provided import ProvidedObject
from tierbench.domain.views import Problem, Raw
from tierbench.workloads.names import LABEL_RUN, LABEL_SLOT

# After a while Strimzi says that it took too long, and goes on trying: how long that may be is the benchmark's to say.
_GOING_ON: Final = frozenset({"Creating", "TimeoutException"})
_LASTING: Final = frozenset(
    {"InvalidConfigurationException", "InvalidResourceException", "UnsupportedKafkaVersionException"}
)
_LONGEST_MESSAGE: Final = 600


def strimzi_object(kind: str, raw: Raw) -> ProvidedObject:
    """One of Strimzi's objects that bears the labels of `workloads.names`."""
    metadata, status = raw["metadata"], raw.get("status", {})
    labels, deleted = metadata["labels"], metadata.get("deletionTimestamp")
    conditions = status.get("conditions", ())
    current = status.get("observedGeneration") == metadata.get("generation")
    refused = _refused(conditions) if current else None
    return ProvidedObject(
        kind=kind,
        name=metadata["name"],
        run=int(labels[LABEL_RUN]),
        slot=int(labels[LABEL_SLOT]),
        created=parse_time(metadata["creationTimestamp"]),
        deleted=None if deleted is None else parse_time(deleted),
        answered=bool(status),
        ready=current and any((item["type"], item["status"]) == ("Ready", "True") for item in conditions),
        refusal=None if refused is None else _problem(kind, metadata["name"], refused),
        refused_since=None if refused is None else _since(refused),
        listeners=_listeners(status),
        versions=_versions(status),
    )


def _refused(conditions: Iterable[Raw]) -> Raw | None:
    """The condition that says no. Kafka says NotReady, and a topic that Ready is False."""
    no = {("NotReady", "True"), ("Ready", "False")}
    found = (item for item in conditions if (item["type"], item["status"]) in no)
    return next((item for item in found if item.get("reason") not in _GOING_ON), None)


def _problem(kind: str, name: str, condition: Raw) -> Problem:
    reason = condition.get("reason", "")
    said = f"{kind} {name}: {reason}: {condition.get('message', '')}"[:_LONGEST_MESSAGE]
    message = f"{said} (see `kubectl describe {kind.lower()}`, and correct spec.brokers[].kafka)"
    return Problem(reasons.STRIMZI_REFUSED, message, transient=reason not in _LASTING)


def _since(condition: Raw) -> datetime | None:
    since = condition.get("lastTransitionTime")
    return None if since is None else parse_time(since)


def _listeners(status: Raw) -> dict[str, str]:
    """host:port of each listener: of several, which are of one broker, the first."""
    found = {item.get("name", ""): item.get("bootstrapServers", "") for item in status.get("listeners", ())}
    return {name: servers.split(",")[0] for name, servers in found.items() if servers}


def _versions(status: Raw) -> dict[str, str]:
    names = {"kafkaVersion": "kafkaVersion", "strimziVersion": "operatorLastSuccessfulVersion"}
    return {name: status[field] for name, field in names.items() if status.get(field)}
