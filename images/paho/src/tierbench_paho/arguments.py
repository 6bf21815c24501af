"""The command line, the same as the native engine's: the trial plan, and how to report."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NoReturn
from urllib.parse import urlsplit

from .agent import Agent
from .contract import FailureError, Json
from .envelope import KEY_BYTES, parse_compression
from .options import Barrier, Load, Message, Options, Pacing, Target
from .payload import CONTENTS
from .plan import read
from .pool import POOL_BYTES
from .reach import parse as parse_networks
from .reach import resolve
from .series import Series, Turn
from .tls import Context, client_context

DELIVERIES: Final = ("AtMostOnce", "AtLeastOnce", "ExactlyOnce")

_PORTS: Final = {"mqtt": 1883, "mqtts": 8883}
_MAXIMUM_PAIRS: Final = 150  # paho waits with select(2), which knows 1024 files: three for each of two connections


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise _usage(f"{message}: see tierbench-paho measure --help")


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
        return _series(read(flags.plan)), flags.output
    except (ValueError, OSError) as error:
        raise _usage(f"--plan: {error}") from error


def _parser() -> argparse.ArgumentParser:
    program = _Parser(prog="tierbench-paho", description="Makes load on message brokers with Python's paho-mqtt.")
    commands = program.add_subparsers(required=True, metavar="COMMAND", parser_class=_Parser)
    parser = commands.add_parser("measure", help="measure what a trial plan says", allow_abbrev=False)
    parser.add_argument("--plan", required=True, help="the trial plan: a JSON document")
    parser.add_argument("--output", default="text", choices=("text", "json"))
    parser.add_argument("--termination-log", type=Path, help="file for the seal of --output json")
    return program


def _series(plan: Json) -> Series:
    cases = [target["case"] for target in plan["targets"]]
    if len(set(cases)) != len(cases):
        raise ValueError(f"the cases of the targets are {cases}: write another number for each")
    warmup = (Turn(index, trial, True) for trial in range(1, plan["warmupTrials"] + 1) for index in range(len(cases)))
    for turn in plan["schedule"]:
        if turn["case"] not in cases:
            raise ValueError(f"the schedule has case {turn['case']}: no target has this case")
    turns = (Turn(cases.index(turn["case"]), turn["trial"], False) for turn in plan["schedule"])
    return Series([_options(plan, target) for target in plan["targets"]], (*warmup, *turns))


def _options(plan: Json, target: Json) -> Options:
    if plan["pairs"] > _MAXIMUM_PAIRS:
        raise ValueError(f"pairs is {plan['pairs']}: one process carries {_MAXIMUM_PAIRS}; spread them over more pods")
    if plan["content"] not in CONTENTS:
        raise ValueError(f"content is {plan['content']!r}: write {', '.join(CONTENTS)}")
    parse_compression(plan["compression"])
    agent = _agent(target)
    return Options(
        target=_target(plan, target),
        topic=_topic(target["topic"]),
        case=target["case"],
        deadline_seconds=target["deadlineSeconds"] or None,
        pairs=range(plan["firstPair"], plan["firstPair"] + plan["pairs"]),
        role=plan["role"],
        message=Message(
            Path(plan["contentFolder"]) if plan["contentFolder"] else None,
            plan["sizeBytes"],
            plan["content"],
            plan["seed"],
            DELIVERIES.index(plan["delivery"]),
            plan["compression"],
            _key(plan),
        ),
        pacing=_pacing(plan),
        load=_load(plan["load"]),
        timeout_nanoseconds=plan["deliveryTimeoutMilliseconds"] * 1_000_000,
        ready_seconds=plan["readyMilliseconds"] / 1000,
        warm_rounds=plan["warmRounds"],
        agent=agent,
        tuning=plan["tuning"],
        keeps_connections=plan["keepConnections"],
        barrier=_barrier(plan, agent),
    )


def _topic(text: str) -> str:
    if set(text) & set("+#\0"):
        raise ValueError(f"topic is {text!r}: write a topic without wildcards, for example tierbench/test")
    return text


def _target(plan: Json, target: Json) -> Target:
    url, address = target["url"], urlsplit(target["url"])
    if address.scheme not in _PORTS or not address.hostname:
        raise ValueError(f"url is {url!r}: write mqtt://HOST:PORT or mqtts://HOST:PORT")
    if (address.scheme == "mqtts") != (plan["tls"] != "None"):
        raise ValueError(f"url is {url!r} and tls {plan['tls']}: mqtts needs a version of TLS, mqtt needs None")
    if target["passwordFile"] and not target["usernameFile"]:
        raise ValueError("passwordFile is of no use without usernameFile")
    return Target(
        resolve(address.hostname, parse_networks(plan["refusedNetworks"])),
        address.port or _PORTS[address.scheme],
        _tls(plan, target, address.hostname),
        _secret(target["usernameFile"]),
        _secret(target["passwordFile"]),
        POOL_BYTES if plan["contentFolder"] else plan["sizeBytes"],
    )


def _tls(plan: Json, target: Json, host: str) -> Context | None:
    if plan["tls"] == "None":
        return None
    authority = Path(target["caFile"]) if target["caFile"] else None
    try:
        return client_context(plan["tls"], authority, plan["serverName"] or host)
    except OSError as error:
        raise ValueError(f"caFile {authority}: {error}") from error


def _secret(file: str) -> str | None:
    return Path(file).read_text().rstrip("\n") if file else None


def _key(plan: Json) -> bytes | None:
    if plan["encryption"] == "None":
        return None
    if not plan["keyFile"]:
        raise ValueError(f"encryption {plan['encryption']} needs keyFile")
    key = Path(plan["keyFile"]).read_bytes()
    if len(key) != KEY_BYTES:
        raise ValueError(f"keyFile has {len(key)} bytes: {plan['encryption']} takes {KEY_BYTES}")
    return key


def _pacing(plan: Json) -> Pacing:
    pacing, alone = plan["pacing"], plan["role"] == "Alone"
    kind, in_flight, interval = pacing["type"], pacing["inFlight"], pacing["intervalNanoseconds"]
    if (kind in ("ClosedLoop", "Acknowledged")) != (in_flight > 0):
        raise ValueError("ClosedLoop and Acknowledged need inFlight, no other type of pacing has it")
    if (kind == "OpenLoop") != (interval > 0):
        raise ValueError("OpenLoop needs intervalNanoseconds, no other type of pacing has it")
    if alone and kind == "ClosedLoop":
        raise ValueError("ClosedLoop waits for messages to come back: with role Alone write Acknowledged")
    if kind == "Acknowledged" and plan["delivery"] == DELIVERIES[0]:
        raise ValueError("Acknowledged waits for acknowledgements, and AtMostOnce has none: write AsFastAsPossible")
    limits = kind == "ClosedLoop" or (kind == "Acknowledged" and alone)
    window = min(plan["maxInFlight"], in_flight) if limits else plan["maxInFlight"]
    return Pacing(window, float(interval) if interval else None, in_flight if kind == "Acknowledged" else None)


def _load(load: Json) -> Load:
    if (load["messages"] > 0) == (load["durationSeconds"] > 0):
        raise ValueError("load has exactly one of messages and durationSeconds")
    return Load(load["messages"] or None, load["durationSeconds"] or None)


def _agent(target: Json) -> Agent | None:
    access: Any = target.get("agent")
    if access is None:
        return None
    token, pin = _secret(access["tokenFile"]), _secret(access["pinFile"])
    if token is None or pin is None:
        raise ValueError("agent needs tokenFile and pinFile")
    if urlsplit(access["url"]).scheme != "https":
        raise ValueError(f"agent.url is {access['url']!r}: write https://HOST:PORT")
    return Agent(access["url"].rstrip("/"), token, pin)


def _barrier(plan: Json, agent: Agent | None) -> Barrier:
    name, part, parts = plan["barrier"], plan["part"], plan["parts"]
    if part >= parts:
        raise ValueError(f"part is {part} of {parts} parts: they count from 0")
    if parts > 1 and not (name and agent):
        raise ValueError("several parts need barrier and agent: there they wait for one another")
    if parts == 1 and plan["role"] in ("Publisher", "Echo"):
        raise ValueError(f"role {plan['role']} needs several parts: publishers and echoes are parts of their own")
    return Barrier(name, part, parts)
