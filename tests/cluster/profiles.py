"""What nodes.toml declares: the nodes and the hardware each of them imitates."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.cluster.errors import ClusterError

DEFAULT = Path(__file__).parent / "nodes.toml"
MOST_NODES = 15
SMALLEST_MEMORY = 64 << 20

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_QUANTITY = re.compile(r"([0-9]+)(Ki|Mi|Gi)?")
_LINK = re.compile(r"[1-9][0-9]*(kbit|mbit|gbit)")
_FACTORS = {None: 1, "Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30}


@dataclass(frozen=True)
class Stall:
    """The disk answers no read for `length` seconds, after every `every` bytes read."""

    every: int
    length: float


@dataclass(frozen=True)
class Node:
    """One node; None: not limited.

    Memory and disk_size in bytes, cpus in processors, disk_read in bytes a second, link as tc writes it.
    """

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    memory: int | None = None
    cpus: float | None = None
    disk_size: int | None = None
    disk_read: int | None = None
    link: str | None = None
    stall: Stall | None = None


def load(path: Path) -> list[Node]:
    """The nodes that the file declares, in its order. Raises ClusterError for a file that cannot be used."""
    try:
        text = path.read_text()
    except OSError as error:
        raise ClusterError(f"{path}: {error.strerror}; name a readable file with --nodes") from error
    return parse(text, str(path))


def parse(text: str, source: str) -> list[Node]:
    """The nodes that the TOML text declares; `source` is named in errors."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ClusterError(f"{source}: not TOML: {error}") from error
    tables = document.pop("node", [])
    if document:
        raise ClusterError(f"{source}: unknown key '{next(iter(document))}'; a node is a table [[node]]")
    if not isinstance(tables, list) or not tables:
        raise ClusterError(f"{source}: no node; write a table [[node]] with a name for each")
    if len(tables) > MOST_NODES:
        raise ClusterError(f"{source}: {len(tables)} nodes; at most {MOST_NODES} have addresses")
    nodes = [_node(table, f"{source}: node {number}") for number, table in enumerate(tables, start=1)]
    for index, node in enumerate(nodes):
        if any(other.name == node.name for other in nodes[:index]):
            raise ClusterError(f"{source}: two nodes are named '{node.name}'; give each its own name")
    return nodes


def quantity(value: object, where: str) -> int:
    """Bytes of a whole number above 0 with Ki, Mi or Gi."""
    match = _QUANTITY.fullmatch(str(value)) if isinstance(value, str | int) else None
    if match is None or int(match[1]) == 0:
        raise ClusterError(f'{where} = {value!r}: write a whole number above 0 with Ki, Mi or Gi, such as "384Mi"')
    return int(match[1]) * _FACTORS[match[2]]


def _node(table: Mapping[str, object], where: str) -> Node:
    if not isinstance(table, dict):
        raise ClusterError(f"{where}: write it as a table [[node]]")
    unknown = set(table) - set(Node.__dataclass_fields__)
    if unknown:
        raise ClusterError(f"{where}: unknown key '{min(unknown)}'; known are {', '.join(Node.__dataclass_fields__)}")
    name = table.get("name")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ClusterError(f"{where}: name = {name!r}: write lower-case letters, digits and '-', such as \"cloud-1\"")
    where = f"{where} ({name})"
    return Node(
        name=name,
        labels=_labels(table.get("labels", {}), f"{where}: labels"),
        memory=_memory(table.get("memory"), f"{where}: memory"),
        cpus=_positive_or_none(table.get("cpus"), f"{where}: cpus"),
        disk_size=_quantity_or_none(table.get("disk_size"), f"{where}: disk_size"),
        disk_read=_quantity_or_none(table.get("disk_read"), f"{where}: disk_read"),
        link=_link(table.get("link"), f"{where}: link"),
        stall=_stall(table.get("stall"), f"{where}: stall"),
    )


def _quantity_or_none(value: object, where: str) -> int | None:
    return None if value is None else quantity(value, where)


def _labels(value: object, where: str) -> Mapping[str, str]:
    if not isinstance(value, dict) or not all(isinstance(text, str) for text in value.values()):
        raise ClusterError(f'{where}: write a table of texts, such as {{ hw = "cloud" }}')
    return dict(value)


def _memory(value: object, where: str) -> int | None:
    if value is None:
        return None
    size = quantity(value, where)
    if size < SMALLEST_MEMORY:
        raise ClusterError(f"{where} = {value!r}: no pod runs in less than 64Mi")
    return size


def _positive_or_none(value: object, where: str) -> float | None:
    return None if value is None else _positive(value, where)


def _positive(value: object, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e6:
        raise ClusterError(f"{where} = {value!r}: write a number above 0")
    return float(value)


def _link(value: object, where: str) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str) or not _LINK.fullmatch(value):
        raise ClusterError(f'{where} = {value!r}: write a whole number with kbit, mbit or gbit, such as "950mbit"')
    return value


def _stall(value: object, where: str) -> Stall | None:
    if value is None:
        return None
    if not isinstance(value, dict) or set(value) != {"every", "length"}:
        raise ClusterError(f'{where}: write bytes and seconds, such as {{ every = "512Mi", length = 1.5 }}')
    return Stall(quantity(value["every"], f"{where}.every"), _positive(value["length"], f"{where}.length"))
