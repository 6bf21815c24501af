"""What containers ask for, and may use at most.

Nothing that is measured has a limit unless the spec asks for it. Neither has what runs beside it: a limit of memory
caps the page cache, and the files of a server are cached for whoever reads or writes them first. Where the spec limits
the server it limits these, too, for a quota that counts limits wants one of every container.
"""

from collections.abc import Mapping
from typing import Final

from tierbench.api.quantity import Resources, parse_quantity, parse_size
from tierbench.workloads.workload import Manifest, NodeSize

SMALL: Final = {"cpu": "50m", "memory": "32Mi"}
"""What a program asks for that needs next to nothing while it waits."""

_DISK: Final = {"ephemeral-storage": "32Mi"}


def measured(asked: Resources | None, requests: Mapping[str, str] = SMALL) -> Manifest:
    """Of a container that is measured, or measures; `requests` are its own where the spec names none."""
    given = asked or Resources()
    return _within({**requests, **given.requests.to_json()}, given.limits.to_json())


def beside(asked: Resources | None, requests: Mapping[str, str] = SMALL) -> Manifest:
    """Of a container that runs before or beside a server: its requests are its own, its limits the server's."""
    given = asked or Resources()
    counted = given.requests.ephemeral_storage or given.limits.ephemeral_storage
    return _within({**requests, **(_DISK if counted else {})}, given.limits.to_json())


def _within(requests: Mapping[str, str], limits: Mapping[str, str]) -> Manifest:
    fitting = {name: min(amount, limits.get(name, amount), key=parse_quantity) for name, amount in requests.items()}
    return {"requests": fitting, **({"limits": dict(limits)} if limits else {})}


def left(asked: Resources | None, size: NodeSize) -> NodeSize:
    """What a server may use of its node."""
    limits = (asked or Resources()).limits
    return NodeSize(_less(size.memory_bytes, limits.memory), _less(size.storage_bytes, limits.ephemeral_storage))


def _less(known: int, limit: str | None) -> int:
    if limit is None:
        return known
    most = parse_size(limit)
    return min(known, most) if known else most
