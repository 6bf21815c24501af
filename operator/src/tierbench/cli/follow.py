"""What happens to objects, as it happens: a list, then a watch, again after every fault of the API server."""

import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kubernetes.client import ApiException
from kubernetes.watch import Watch
from urllib3.exceptions import HTTPError

from tierbench.api.model import Kind
from tierbench.cli.cluster import Cluster, reason
from tierbench.cli.errors import UserError

Raw = Mapping[str, Any]
_WATCH_SECONDS: Final = 30
_REQUEST_SECONDS: Final = (5, _WATCH_SECONDS + 15)
_PAUSE_SECONDS: Final = 1.0
_new_watch: Callable[[], Any] = Watch  # the client's own has no types


@dataclass(frozen=True)
class Listed:
    """All objects of a kind that there are now."""

    kind: str
    items: tuple[Raw, ...]


@dataclass(frozen=True)
class Changed:
    """One object is new, changed or gone."""

    kind: str
    item: Raw
    deleted: bool


@dataclass(frozen=True)
class Trouble:
    """The API server does not answer; it is asked again."""

    message: str


News = Listed | Changed | Trouble


def follow(cluster: Cluster, kind: Kind, ended: threading.Event, **selectors: str) -> Iterator[News]:
    """Until `ended` is set. Every fault is told as Trouble, and what was missed meanwhile comes with the next list."""
    version: str | None = None
    while not ended.is_set():
        try:
            if version is None:
                listing = cluster.list(kind, **selectors)
                version = str(listing["metadata"]["resourceVersion"])
                yield Listed(kind.kind, tuple(listing["items"]))
            for event in _events(cluster, kind, version, selectors):
                version = event["object"]["metadata"]["resourceVersion"]
                yield Changed(kind.kind, event["object"], deleted=event["type"] == "DELETED")
        except (ApiException, HTTPError) as error:
            version = None
            yield Trouble(reason(error))
            ended.wait(_PAUSE_SECONDS)
        except UserError as problem:
            yield Trouble(str(problem))
            ended.wait(_PAUSE_SECONDS)


def _events(cluster: Cluster, kind: Kind, version: str, selectors: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    events: Iterator[dict[str, Any]] = _new_watch().stream(
        cluster.lister(kind),
        resource_version=version,
        timeout_seconds=_WATCH_SECONDS,
        _request_timeout=_REQUEST_SECONDS,
        **selectors,
    )
    return events
