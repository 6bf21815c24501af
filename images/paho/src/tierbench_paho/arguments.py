"""The command line, the same as the native engine's."""

import argparse
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NoReturn
from urllib.parse import urlsplit

from .agent import Agent
from .contract import FailureError
from .envelope import KEY_BYTES, parse_compression
from .options import Barrier, Load, Message, Options, Pacing, Target
from .payload import CONTENTS
from .pool import POOL_BYTES
from .reach import parse as parse_networks
from .reach import resolve
from .series import Series, Turn
from .tls import VERSIONS, Context, client_context
from .warm import ROUNDS

DELIVERIES: Final = ("AtMostOnce", "AtLeastOnce", "ExactlyOnce")
ROLES: Final = ("Both", "Publisher", "Echo", "Alone")
TUNINGS: Final = ("Light", "Heavy")

_PORTS: Final = {"mqtt": 1883, "mqtts": 8883}
_MAXIMUM_WINDOW: Final = 65_000  # a message of QoS 1 and 2 has one of 65535 numbers until it is acknowledged
_MAXIMUM_PAIRS: Final = 150  # paho waits with select(2), which knows 1024 files: three for each of two connections


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise _usage(f"{message}: see tierbench-paho broker --help")


def _usage(message: str) -> FailureError:
    return FailureError("InvalidArguments", message)


def seal_file(arguments: Sequence[str]) -> Path | None:
    """--termination-log, even of a command line that says nonsense otherwise."""
    parser = _Parser(add_help=False, allow_abbrev=False)
    parser.add_argument("--termination-log", type=Path)
    try:
        found: Path | None = parser.parse_known_args(arguments)[0].termination_log
    except FailureError:
        return None
    return found


def parse(arguments: Sequence[str]) -> tuple[Series, str]:
    """What is asked for, and the form of the output: text or json.

    Raises:
        FailureError: InvalidArguments.
    """
    flags = _parser().parse_args(arguments)
    try:
        return _series(flags), flags.output
    except (ValueError, OSError) as error:
        raise _usage(str(error)) from error


def _parser() -> argparse.ArgumentParser:
    program = _Parser(prog="tierbench-paho", description="Makes load on message brokers with Python's paho-mqtt.")
    commands = program.add_subparsers(required=True, metavar="COMMAND", parser_class=_Parser)
    parser = commands.add_parser(
        "broker", help="publish and receive, trial after trial, and measure each", allow_abbrev=False
    )
    again: dict[str, Any] = {"action": "append"}  # once for each target, or once for all
    parser.add_argument(
        "--url", required=True, help="mqtt://HOST:PORT or mqtts://HOST:PORT; again for each target", **again
    )
    parser.add_argument("--case", type=_at_least(1), help="number that tells a target's trials from others'", **again)
    parser.add_argument("--deadline-seconds", type=_at_least(1), help="of a target's trials together", **again)
    parser.add_argument("--username-file", type=Path, **again)
    parser.add_argument("--password-file", type=Path, **again)
    parser.add_argument("--tls", default="None", choices=("None", *VERSIONS), help="exactly this version")
    parser.add_argument("--ca-file", type=Path, help="trust this CA instead of the system's", **again)
    parser.add_argument("--server-name", default="", help="name in the broker's certificate (default: the URL's host)")
    parser.add_argument(
        "--refused-networks", type=parse_networks, default=(), help="that no broker's name may lead to, with commas"
    )
    parser.add_argument("--topic", help="messages of pair p of trial K go to TOPIC/tK/p, TOPIC/kept/p", **again)
    parser.add_argument(
        "--trials", default="1-1", help="in order: FIRST-LAST of each target in turn, or CASE:TRIAL,CASE:TRIAL,…"
    )
    parser.add_argument("--warmup", type=_at_least(0), default=0, help="of each target before them, that do not count")
    parser.add_argument("--pairs", type=_at_least(1), default=1, help="publishers, each with a subscriber")
    parser.add_argument("--first-pair", type=_at_least(0), default=0, help="number of the first one")
    parser.add_argument("--role", default="Both", choices=ROLES)
    parser.add_argument("--size", type=_at_least(2), default=1024, help="bytes, before compression and encryption")
    parser.add_argument("--content", default="Random", choices=CONTENTS)
    parser.add_argument(
        "--content-folder", type=Path, help="send its files in turn instead of --size bytes of --content"
    )
    parser.add_argument("--seed", type=_at_least(0), default=1, help="of the content")
    parser.add_argument("--delivery", default="AtLeastOnce", choices=DELIVERIES, help="QoS 0, 1 and 2")
    parser.add_argument("--compression", default="None", help="None, Gzip[:LEVEL] or Zstd[:LEVEL]")
    parser.add_argument("--encryption", default="None", choices=("None", "AES128GCM"))
    parser.add_argument("--key-file", type=Path, help=f"{KEY_BYTES} bytes")
    pacing = parser.add_mutually_exclusive_group(required=True)
    pacing.add_argument("--in-flight", type=_at_least(1), help="closed loop: the next message when one came back")
    pacing.add_argument("--unacknowledged", type=_at_least(1), help="the next message when one was acknowledged")
    pacing.add_argument("--as-fast-as-possible", action="store_true")
    pacing.add_argument("--interval-milliseconds", type=_at_least(1), help="between messages of a publisher")
    pacing.add_argument("--messages-per-second", type=_at_least(1), help="of each publisher")
    parser.add_argument(
        "--window", type=_at_least(1), default=512, help="maximum number of messages of a publisher in flight"
    )
    load = parser.add_mutually_exclusive_group(required=True)
    load.add_argument("--messages", type=_at_least(1), help="of each publisher")
    load.add_argument("--duration-seconds", type=_at_least(1))
    parser.add_argument("--patience-milliseconds", type=_at_least(1), default=10_000)
    parser.add_argument("--ready-milliseconds", type=_at_least(1), default=60_000)
    parser.add_argument(
        "--warm-rounds", type=_at_least(0), default=ROUNDS, help="of messages before the first trial, at most"
    )
    parser.add_argument("--tuning", default="Heavy", choices=TUNINGS, help="for the record: Python knows one")
    parser.add_argument(
        "--keep-connections", action="store_true", help="keep the connections of a target from trial to trial"
    )
    parser.add_argument("--agent", help="URL of the agent of the broker", **again)
    parser.add_argument("--agent-token-file", type=Path, **again)
    parser.add_argument("--agent-pin-file", type=Path, help="the pin of its key, sha256//BASE64", **again)
    parser.add_argument("--barrier", default="", metavar="NAME", help="where the parts of a client meet")
    parser.add_argument("--part", type=_at_least(0), default=0)
    parser.add_argument("--parts", type=_at_least(1), default=1)
    parser.add_argument("--output", default="text", choices=("text", "json"))
    parser.add_argument("--termination-log", type=Path, help="file for the seal of --output json")
    return program


def _at_least(least: int) -> Callable[[str], int]:
    def number(text: str) -> int:
        if not text.isdecimal() or int(text) < least:
            raise argparse.ArgumentTypeError(f"{text!r} is no whole number of at least {least}")
        return int(text)

    return number


def _series(flags: argparse.Namespace) -> Series:
    number = len(flags.url)
    cases = tuple(flags.case or (range(1, number + 1) if number > 1 else [0]))
    if len(set(cases)) != number:
        raise ValueError(f"--case is {cases}: write another number for each of the {number} targets")
    warmup = (Turn(index, trial, True) for trial in range(1, flags.warmup + 1) for index in range(number))
    turns = (Turn(cases.index(case), trial, False) for case, trial in _turns(flags.trials, cases))
    targets = [_options(_of_target(flags, index), case) for index, case in enumerate(cases)]
    return Series(targets, (*warmup, *turns))


def _of_target(flags: argparse.Namespace, index: int) -> argparse.Namespace:
    """The flags as if only this target had been given."""
    found = {}
    for name, values in vars(flags).items():
        if not isinstance(values, list):
            found[name] = values
        elif len(values) in (1, len(flags.url)):
            found[name] = values[index if len(values) > 1 else 0]
        else:
            flag = f"--{name.replace('_', '-')}"
            raise ValueError(f"{flag} is given {len(values)} times for {len(flags.url)} targets: once, or for each")
    return argparse.Namespace(**found)


def _turns(text: str, cases: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Case and number of each trial."""
    for item in text.split(","):
        case, colon, trials = item.rpartition(":")
        if colon and case not in map(str, cases):
            raise ValueError(f"--trials has {item!r}: there is no --case {case}")
        first, last = _trials(trials)
        for trial in range(first, last + 1):
            yield from ((number, trial) for number in ([int(case)] if colon else cases))


def _options(flags: argparse.Namespace, case: int) -> Options:
    if flags.window > _MAXIMUM_WINDOW:
        raise ValueError(f"--window is {flags.window}: write at most {_MAXIMUM_WINDOW}")
    if flags.pairs > _MAXIMUM_PAIRS:
        raise ValueError(f"--pairs is {flags.pairs}: one process carries {_MAXIMUM_PAIRS}; spread them over more pods")
    parse_compression(flags.compression)
    return Options(
        target=_target(flags),
        topic=_topic("tierbench" if flags.topic is None else flags.topic),
        case=case,
        deadline_seconds=flags.deadline_seconds,
        pairs=range(flags.first_pair, flags.first_pair + flags.pairs),
        role=flags.role,
        message=Message(
            flags.content_folder,
            flags.size,
            flags.content,
            flags.seed,
            DELIVERIES.index(flags.delivery),
            flags.compression,
            _key(flags),
        ),
        pacing=_pacing(flags),
        load=Load(flags.messages, flags.duration_seconds),
        timeout_nanoseconds=flags.patience_milliseconds * 1_000_000,
        ready_seconds=flags.ready_milliseconds / 1000,
        warm_rounds=flags.warm_rounds,
        agent=_agent(flags),
        tuning=flags.tuning,
        keeps_connections=flags.keep_connections,
        barrier=_barrier(flags),
    )


def _trials(text: str) -> tuple[int, int]:
    first, hyphen, last = text.partition("-")
    numbers = (first, last if hyphen else first)
    if not all(number.isdecimal() for number in numbers) or not 1 <= int(numbers[0]) <= int(numbers[1]):
        raise ValueError(f"--trials is {text!r}: write FIRST-LAST, for example 1-10")
    return int(numbers[0]), int(numbers[1])


def _topic(text: str) -> str:
    if not text or set(text) & set("+#\0"):
        raise ValueError(f"--topic is {text!r}: write a topic without wildcards, for example tierbench/test")
    return text


def _target(flags: argparse.Namespace) -> Target:
    address = urlsplit(flags.url)
    if address.scheme not in _PORTS or not address.hostname:
        raise ValueError(f"--url is {flags.url!r}: write mqtt://HOST:PORT or mqtts://HOST:PORT")
    if (address.scheme == "mqtts") != (flags.tls != "None"):
        raise ValueError(f"--url is {flags.url!r} and --tls {flags.tls}: mqtts needs a version of TLS, mqtt needs None")
    if flags.password_file is not None and flags.username_file is None:
        raise ValueError("--password-file is of no use without --username-file")
    return Target(
        resolve(address.hostname, flags.refused_networks),
        address.port or _PORTS[address.scheme],
        _tls(flags, address.hostname),
        _secret(flags.username_file),
        _secret(flags.password_file),
        POOL_BYTES if flags.content_folder is not None else flags.size,
    )


def _tls(flags: argparse.Namespace, host: str) -> Context | None:
    if flags.tls == "None":
        return None
    try:
        return client_context(flags.tls, flags.ca_file, flags.server_name or host)
    except OSError as error:
        raise ValueError(f"--ca-file {flags.ca_file}: {error}") from error


def _secret(file: Path | None) -> str | None:
    return None if file is None else file.read_text().rstrip("\n")


def _key(flags: argparse.Namespace) -> bytes | None:
    if flags.encryption == "None":
        return None
    if flags.key_file is None:
        raise ValueError(f"--encryption {flags.encryption} needs --key-file")
    key: bytes = flags.key_file.read_bytes()
    if len(key) != KEY_BYTES:
        raise ValueError(f"--key-file has {len(key)} bytes: {flags.encryption} takes {KEY_BYTES}")
    return key


def _pacing(flags: argparse.Namespace) -> Pacing:
    alone = flags.role == "Alone"
    if alone and flags.in_flight:
        raise ValueError("--in-flight waits for messages to come back: with --role Alone write --unacknowledged")
    if flags.unacknowledged and flags.delivery == DELIVERIES[0]:
        raise ValueError(
            f"--unacknowledged waits for acknowledgements, and {flags.delivery} has none: write --as-fast-as-possible"
        )
    most = flags.unacknowledged if alone else flags.in_flight
    return Pacing(min(flags.window, most or flags.window), _interval(flags), flags.unacknowledged)


def _interval(flags: argparse.Namespace) -> float | None:
    if flags.interval_milliseconds is not None:
        return float(flags.interval_milliseconds * 1_000_000)
    return None if flags.messages_per_second is None else 1e9 / flags.messages_per_second


def _agent(flags: argparse.Namespace) -> Agent | None:
    if not flags.agent:
        return None
    token, pin = _secret(flags.agent_token_file), _secret(flags.agent_pin_file)
    if token is None or pin is None:
        raise ValueError("--agent needs --agent-token-file and --agent-pin-file")
    if urlsplit(flags.agent).scheme != "https":
        raise ValueError(f"--agent is {flags.agent!r}: write https://HOST:PORT")
    return Agent(flags.agent.rstrip("/"), token, pin)


def _barrier(flags: argparse.Namespace) -> Barrier:
    if flags.part >= flags.parts:
        raise ValueError(f"--part is {flags.part} of {flags.parts} --parts: they count from 0")
    if flags.parts > 1 and not (flags.barrier and flags.agent):
        raise ValueError("several --parts need --barrier and --agent: there they wait for one another")
    if flags.parts == 1 and flags.role in ("Publisher", "Echo"):
        raise ValueError(
            f"--role {flags.role} needs --parts of at least 2: publishers and echoes are parts of their own"
        )
    return Barrier(flags.barrier, flags.part, flags.parts)
