"""Reads what a client has printed, and checks it against the seal."""

import hashlib
import json
from dataclasses import dataclass
from enum import StrEnum

from pydantic import ValidationError

from tierbench.api.contract import CONTRACT_VERSION, Seal, TrialLine


@dataclass(frozen=True)
class Output:
    """The trials in a log, in the order in which they were printed, and how many have begun.

    `problems` says what could not be read.
    """

    trials: tuple[TrialLine, ...]
    problems: tuple[str, ...] = ()
    begun: int = 0


class SealState(StrEnum):
    """What a seal says of a log."""

    COMPLETE = "Complete"
    CUT_SHORT = "CutShort"
    MISSING = "Missing"
    UNKNOWN_VERSION = "UnknownVersion"


@dataclass(frozen=True)
class SealCheck:
    """The seal, if it could be read, and what it says of the log."""

    state: SealState
    message: str
    seal: Seal | None = None


def parse_output(text: str) -> Output:
    """The Trial lines of a log. A last line that is cut off, and lines of anything else, are passed over.

    A log may hold a trial twice, if it was read again: `record` counts it once.
    """
    trials: list[TrialLine] = []
    problems: list[str] = []
    begun = 0
    for number, line in enumerate(_whole_lines(text), start=1):
        body = _json(line)
        begun += body is not None and body.get("record") == "TrialStarted"
        if body is None or body.get("record") != "Trial":
            continue
        if body.get("contract") != CONTRACT_VERSION:
            problems.append(
                f"line {number}: contract {body.get('contract')}, not {CONTRACT_VERSION}: use matching images"
            )
            continue
        try:
            trials.append(TrialLine.model_validate(body))
        except ValidationError as error:
            where = ".".join(str(part) for part in error.errors()[0]["loc"])
            problems.append(f"line {number}: {where}: {error.errors()[0]['msg']}")
    return Output(tuple(trials), tuple(problems), begun)


def _whole_lines(text: str) -> list[str]:
    return [line + "\n" for line in text.split("\n")[:-1]]


def _json(line: str) -> dict[str, object] | None:
    try:
        body = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return body if isinstance(body, dict) else None


def check_seal(text: str, message: str) -> SealCheck:
    """Compares a log with the termination message of the client that printed it."""
    body = _json(message)
    if body is None:
        return SealCheck(SealState.MISSING, "it left no seal, so it was killed or never began.")
    if body.get("contract") != CONTRACT_VERSION:
        version = body.get("contract")
        hint = "the client image and the operator do not match, install both from one release."
        return SealCheck(SealState.UNKNOWN_VERSION, f"its seal has version {version}, not {CONTRACT_VERSION}: {hint}")
    try:
        seal = Seal.model_validate(body)
    except ValidationError as error:
        return SealCheck(SealState.MISSING, f"its seal cannot be read: {error.errors()[0]['msg']}.")
    lines = [line for line in _whole_lines(text) if (_json(line) or {}).get("record") == "Trial"]
    if len(lines) == seal.trials and hashlib.sha256("".join(lines).encode()).hexdigest() == seal.sha256:
        return SealCheck(SealState.COMPLETE, "", seal)
    return SealCheck(
        SealState.CUT_SHORT, f"its log holds {len(lines)} of {seal.trials} trials as it printed them.", seal
    )
