"""Reads the operator's requests from the audit log of the API server.

The operator's metric does not distinguish a relist from another list, or the renewal of its own Lease.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

_OWN_LEASE: Final = "operator."
_CLAIMS: Final = "tierbench.io/operator"
_STREAMS: Final = "ResponseStarted"


@dataclass(frozen=True)
class Request:
    """One request. `what` is the path of a collection and its selectors. A watch and the list that starts it share it.

    `following` is true for the pages of a list after the first one.
    """

    verb: str
    resource: str
    name: str
    what: tuple[str, str, str]
    following: bool

    @property
    def of_own_lease(self) -> bool:
        """Returns whether the request is about the Lease of the leader."""
        return self.resource == "leases" and (self.name.startswith(_OWN_LEASE) or _CLAIMS in self.what[1])

    def __str__(self) -> str:
        return f"{self.verb} {self.resource}"


class Audit:
    """Reads the audit log of the API server."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._read = 0

    def new_requests(self) -> list[Request]:
        """Returns all requests that were added since the last call."""
        with self._log.open("rb") as file:
            file.seek(self._read)
            *lines, _ = file.read().split(b"\n")
        self._read += sum(len(line) + 1 for line in lines)
        return list(requests_of(json.loads(line) for line in lines))


def requests_of(events: Iterable[dict[str, Any]]) -> Iterator[Request]:
    """Yields each request once. A stream has one event when it begins, and others when it ends."""
    for event in events:
        target = event.get("objectRef", {})
        resource = "/".join(filter(None, (target.get("resource"), target.get("subresource"))))
        streams = event["verb"] == "watch" or resource == "pods/log"
        if streams != (event["stage"] == _STREAMS):
            continue
        url = urlsplit(event["requestURI"])
        query = parse_qs(url.query)
        labels, fields = ("".join(query.get(key, ())) for key in ("labelSelector", "fieldSelector"))
        yield Request(event["verb"], resource, target.get("name", ""), (url.path, labels, fields), "continue" in query)


def counted(requests: Iterable[Request]) -> Counter[str]:
    """Counts requests by verb and resource, without watches, relists and the requests for the operator's own Lease.

    A relist is a list that starts a watch. There are at most as many relists as watches.
    """
    known = list(requests)
    begun = Counter(request.what for request in known if request.verb == "watch")
    found: Counter[str] = Counter()
    for request in known:
        if request.verb == "watch" or request.of_own_lease or (request.following and request.what in begun):
            continue
        if request.verb == "list" and begun.get(request.what):
            begun[request.what] -= 1
            continue
        found[str(request)] += 1
    return found
