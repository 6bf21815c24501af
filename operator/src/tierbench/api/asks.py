"""What a benchmark asks for that an administrator may refuse, and where its spec says so."""

from dataclasses import dataclass
from typing import Final

NOTHING: Final = "[]"


@dataclass(frozen=True, kw_only=True)
class Asks:
    """What a spec asks for. Addresses are those of servers that are there already; `plain_secrets` are the user's that
    would be sent to them without encryption."""

    access: str
    node_classes: tuple[str, ...]
    host_paths: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()
    plain_secrets: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class AsksInCel:
    """The same of an `object`, each a list in CEL, and what of a user's its clients are given: the API server
    alone knows who may read that."""

    access: str = "[object.spec.access]"
    node_classes: str = "object.spec.servers.nodeClasses + object.spec.clients.nodeClasses"
    host_paths: str = NOTHING
    addresses: str = NOTHING
    plain_secrets: str = NOTHING
    secrets: str = NOTHING
    config_maps: str = NOTHING
