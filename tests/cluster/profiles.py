"""Reads nodes.toml, which declares the nodes and their hardware."""

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from images.architectures import KNOWN, Architecture, host
from tests.cluster.errors import ClusterError
from tests.cluster.vm.board import BOARDS

DEFAULT = Path(__file__).parent / "nodes.toml"
MOST_NODES = 15
SMALLEST_MEMORY = {"namespaces": 64 << 20, "vm": 512 << 20}

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_QUANTITY = re.compile(r"([0-9]+)(Ki|Mi|Gi)?")
_RATE = re.compile(r"([1-9][0-9]*)(kbit|mbit|gbit)")
_DELAY = re.compile(r"([0-9]+(?:\.[0-9]+)?)(us|ms|s)")
_CLOCK = re.compile(r"([+-][0-9]{1,5})(s|m|h)")
_LOSS = re.compile(r"[0-9]{1,2}(\.[0-9]+)?%")
_FACTORS = {None: 1, "Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30}
_BITS = {"kbit": 1e3, "mbit": 1e6, "gbit": 1e9}
_SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0}
_AHEAD = {"s": 1, "m": 60, "h": 3600}
_ALGORITHM = re.compile(r"[a-z][a-z0-9_]{0,15}")
_UNLIMITED = 10e9  # bits per second, more than any link here


@dataclass(frozen=True)
class Stall:
    """A stall: the disk answers no read for `length` seconds after every `every` bytes read."""

    every: int
    length: float


@dataclass(frozen=True)
class Link:
    """A node's link in tc's notation, such as 100mbit, 20ms, 0.1%. None means no limit, delay or loss.

    `queue` is the longest time that packets wait for those before them. `trace` is a file with a recorded rate. `down`
    is the direction to the node, if it differs.
    """

    rate: str | None = None
    delay: str | None = None
    jitter: str | None = None
    loss: str | None = None
    queue: str = "50ms"
    trace: str | None = None
    down: "Link | None" = None

    @property
    def directions(self) -> "tuple[Link, Link]":
        """Returns the link from the node, and the link to it."""
        return self, self.down or self

    @property
    def emulated(self) -> bool:
        """Returns whether packets are late or lost in one of the directions."""
        return self.recorded or any(one.delay is not None or one.loss is not None for one in self.directions)

    @property
    def recorded(self) -> bool:
        """Returns whether the rate of one of the directions is recorded. Only the pump can follow such a rate."""
        return any(one.trace is not None for one in self.directions)

    @property
    def queue_seconds(self) -> float:
        """Returns the queue in seconds."""
        return _in_seconds(self.queue)

    @property
    def bits_per_second(self) -> float:
        match = _RATE.fullmatch(self.rate or "")
        return int(match[1]) * _BITS[match[2]] if match else _UNLIMITED

    @property
    def seconds(self) -> float:
        """Returns the delay in seconds."""
        return _in_seconds(self.delay)

    @property
    def jitter_seconds(self) -> float:
        return _in_seconds(self.jitter)

    @property
    def share(self) -> float:
        """Returns the share of packets that are lost."""
        return float((self.loss or "0%").removesuffix("%")) / 100


def _in_seconds(text: str | None) -> float:
    match = _DELAY.fullmatch(text or "")
    return float(match[1]) * _SECONDS[match[2]] if match else 0


@dataclass(frozen=True)
class Node:
    """One node. None means no limit, or this machine's architecture.

    `memory` and `disk_size` are in bytes, `cpus` in processors, and `disk_read` in bytes per second. `clock` is the
    number of seconds that the clock is ahead after the machine has booted.
    """

    name: str
    machine: str = "namespaces"
    arch: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    memory: int | None = None
    cpus: float | None = None
    disk_size: int | None = None
    disk_read: int | None = None
    link: Link | None = None
    stall: Stall | None = None
    congestion_control: str = "cubic"
    clock: int = 0

    @property
    def architecture(self) -> Architecture:
        return KNOWN[self.arch] if self.arch else host()


def load(path: Path) -> list[Node]:
    """Returns the nodes that the file declares, in order. Raises ClusterError for an invalid file."""
    try:
        text = path.read_text()
    except OSError as error:
        raise ClusterError(f"{path}: {error.strerror}; name a readable file with --nodes") from error
    return parse(text, str(path))


def parse(text: str, source: str) -> list[Node]:
    """Returns the nodes that the TOML text declares. Errors name `source`."""
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
    folder = Path(source).absolute().parent
    return [replace(node, link=_located(node.link, folder)) if node.link else node for node in nodes]


def _located(link: Link, folder: Path) -> Link:
    """Returns the link with the full names of its traces, which are in the folder."""
    trace = str(folder / link.trace) if link.trace else None
    return replace(link, trace=trace, down=_located(link.down, folder) if link.down else None)


def quantity(value: object, where: str) -> int:
    """Parses a positive whole number with Ki, Mi or Gi, and returns the bytes."""
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
    machine = _one_of(table.get("machine", "namespaces"), SMALLEST_MEMORY, f"{where}: machine")
    node = Node(
        name=name,
        machine=machine,
        arch=None if "arch" not in table else _one_of(table["arch"], BOARDS, f"{where}: arch"),
        labels=_labels(table.get("labels", {}), f"{where}: labels"),
        memory=_memory(table.get("memory"), SMALLEST_MEMORY[machine], f"{where}: memory"),
        cpus=_positive_or_none(table.get("cpus"), f"{where}: cpus"),
        disk_size=_quantity_or_none(table.get("disk_size"), f"{where}: disk_size"),
        disk_read=_quantity_or_none(table.get("disk_read"), f"{where}: disk_read"),
        link=_link(table.get("link"), f"{where}: link"),
        stall=_stall(table.get("stall"), f"{where}: stall"),
        congestion_control=_algorithm(table.get("congestion_control", "cubic"), f"{where}: congestion_control"),
        clock=_clock(table.get("clock", "+0s"), f"{where}: clock"),
    )
    _check_machine(node, where)
    return node


def _check_machine(node: Node, where: str) -> None:
    """Raises ClusterError for a property that a machine of this kind cannot have."""
    if node.machine != "vm":
        if node.architecture != host():
            raise ClusterError(f'{where}: arch = "{node.arch}" is not this machine\'s: write machine = "vm" as well')
        if node.clock:
            raise ClusterError(f'{where}: clock: only a vm has a clock of its own: write machine = "vm" as well')
        return
    if node.memory is None:
        raise ClusterError(f'{where}: a vm has memory of its own: write how much, such as memory = "2Gi"')
    if node.cpus and node.cpus != int(node.cpus):
        raise ClusterError(f"{where}: cpus = {node.cpus}: a vm has whole processors")
    if node.link and node.link.recorded:
        raise ClusterError(f"{where}: link.trace: netem knows no traces; leave it out, or leave out machine")
    if node.stall:
        raise ClusterError(f"{where}: stall: the disk of a vm cannot stall; leave it out, or leave out machine")


def _one_of(value: object, known: Iterable[str], where: str) -> str:
    if not isinstance(value, str) or value not in known:
        raise ClusterError(f"{where} = {value!r}: known are {', '.join(known)}")
    return value


def _algorithm(value: object, where: str) -> str:
    if not isinstance(value, str) or not _ALGORITHM.fullmatch(value):
        raise ClusterError(f'{where} = {value!r}: write the name of an algorithm, such as "cubic" or "bbr"')
    return value


def _clock(value: object, where: str) -> int:
    """Returns the seconds by which a clock is ahead."""
    match = _CLOCK.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise ClusterError(f'{where} = {value!r}: write how far it is ahead or behind in s, m or h, such as "-1h"')
    return int(match[1]) * _AHEAD[match[2]]


def _quantity_or_none(value: object, where: str) -> int | None:
    return None if value is None else quantity(value, where)


def _labels(value: object, where: str) -> Mapping[str, str]:
    if not isinstance(value, dict) or not all(isinstance(text, str) for text in value.values()):
        raise ClusterError(f'{where}: write a table of texts, such as {{ hw = "cloud" }}')
    return dict(value)


def _memory(value: object, smallest: int, where: str) -> int | None:
    if value is None:
        return None
    size = quantity(value, where)
    if size < smallest:
        raise ClusterError(f"{where} = {value!r}: no pod runs in less than {smallest >> 20}Mi")
    return size


def _positive_or_none(value: object, where: str) -> float | None:
    return None if value is None else _positive(value, where)


def _positive(value: object, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e6:
        raise ClusterError(f"{where} = {value!r}: write a number above 0")
    return float(value)


def _link(value: object, where: str) -> Link | None:
    if value is None:
        return None
    if not isinstance(value, dict):
        return Link(_rate(value, where))
    up, down = {name: text for name, text in value.items() if name != "down"}, value.get("down")
    link = _direction(up, where)
    return link if down is None else replace(link, down=_direction(down, f"{where}.down"))


def _direction(table: object, where: str) -> Link:
    parts = {"rate": _rate, "delay": _delay, "jitter": _delay, "loss": _loss, "queue": _delay, "trace": _file}
    if not isinstance(table, dict) or not table or set(table) - set(parts):
        raise ClusterError(f'{where}: write some of {", ".join(parts)}, such as {{ rate = "100mbit", delay = "20ms" }}')
    if "jitter" in table and "delay" not in table:
        raise ClusterError(f'{where}.jitter: write the delay too, such as delay = "20ms"')
    found = {name: parts[name](text, f"{where}.{name}") for name, text in table.items()}
    queue, trace = found.get("queue", Link.queue), found.get("trace")
    link = Link(found.get("rate"), found.get("delay"), found.get("jitter"), found.get("loss"), queue, trace)
    if "rate" in found and "trace" in found:
        raise ClusterError(f"{where}: a trace is a rate: leave out rate or trace")
    if "queue" in found and not {"rate", "trace"} & set(found):
        raise ClusterError(f"{where}.queue: packets wait for a rate: write one, or leave out queue")
    if link.jitter_seconds > link.seconds:
        raise ClusterError(f'{where}.jitter = "{link.jitter}": write at most the delay, {link.delay}')
    return link


def _rate(value: object, where: str) -> str:
    return _written(
        value, _RATE, f'{where} = {value!r}: write a whole number with kbit, mbit or gbit, such as "950mbit"'
    )


def _delay(value: object, where: str) -> str:
    return _written(value, _DELAY, f'{where} = {value!r}: write a number with us, ms or s, such as "20ms"')


def _loss(value: object, where: str) -> str:
    return _written(value, _LOSS, f'{where} = {value!r}: write a number below 100 with %, such as "0.1%"')


def _file(value: object, where: str) -> str:
    if not isinstance(value, str) or not value:
        raise ClusterError(f'{where} = {value!r}: write the name of a file next to this one, such as "drive.csv"')
    return value


def _written(value: object, form: re.Pattern[str], otherwise: str) -> str:
    if not isinstance(value, str) or not form.fullmatch(value):
        raise ClusterError(otherwise)
    return value


def _stall(value: object, where: str) -> Stall | None:
    if value is None:
        return None
    if not isinstance(value, dict) or set(value) != {"every", "length"}:
        raise ClusterError(f'{where}: write bytes and seconds, such as {{ every = "512Mi", length = 1.5 }}')
    return Stall(quantity(value["every"], f"{where}.every"), _positive(value["length"], f"{where}.length"))
