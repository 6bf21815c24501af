"""Reads what a client prints, as it comes, and checks it against the seal. Nothing of it is trusted."""

import hashlib
import json
import zlib
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from pydantic import ValidationError

from tierbench.api.contract import CONTRACT_VERSION, Seal, TrialLine

LONGEST_LINE: Final = 1 << 20
"""Bytes; longer lines are passed over."""
LARGEST_OUTPUT: Final = 8 << 20
"""Bytes; what comes after them is not read."""
_MOST_PROBLEMS: Final = 8
_INTEGER_BITS: Final = 63


@dataclass(frozen=True, slots=True)
class PrintedTrial:
    """A trial that a client has printed, in a twentieth of the space that it takes as an object."""

    case: int
    warmup: bool
    trial: int
    traced: bool
    packed: bytes

    @property
    def key(self) -> tuple[bool, int]:
        """Which of its case it is, whichever part printed it."""
        return self.warmup, self.trial

    @property
    def line(self) -> TrialLine:
        """The whole of it."""
        return TrialLine.model_validate(_json(zlib.decompress(self.packed)))


@dataclass(frozen=True)
class Output:
    """The trials that a client has printed, each once, in the order in which they came, and how many have begun.

    The Trial lines, as they were printed, are `lines` with the digest `sha256`. `problems` says what could not be read.
    """

    printed: tuple[PrintedTrial, ...] = ()
    problems: tuple[str, ...] = ()
    begun: int = 0
    lines: int = 0
    sha256: str = hashlib.sha256().hexdigest()

    @property
    def trials(self) -> tuple[TrialLine, ...]:
        """The same in full."""
        return tuple(trial.line for trial in self.printed)


@dataclass
class OutputReader:
    """A log, read piece by piece. A last line that is cut off, and lines of anything else, are passed over."""

    _printed: dict[tuple[int, bool, int], PrintedTrial] = field(default_factory=dict)
    _problems: list[str] = field(default_factory=list)
    _begun: int = 0
    _lines: int = 0
    _digest: Any = field(default_factory=hashlib.sha256)
    _number: int = 0
    _size: int = 0
    _rest: bytes = b""
    _overlong: bool = False

    @property
    def is_full(self) -> bool:
        """Whether more of it is not read."""
        return self._size > LARGEST_OUTPUT

    @property
    def output(self) -> Output:
        """What has been read."""
        values, problems = tuple(self._printed.values()), tuple(self._problems)
        return Output(values, problems, self._begun, self._lines, self._digest.hexdigest())

    def feed(self, piece: bytes) -> bool:
        """Reads on; whether that ended a line of the contract."""
        before = self._begun + self._lines
        room = LARGEST_OUTPUT - self._size
        self._size += len(piece)
        if len(piece) > room >= 0:
            self._problem(f"it is larger than {LARGEST_OUTPUT >> 20} MiB, and is read no further")
        *ended, last = piece[: max(room, 0)].split(b"\n")
        for line in ended:
            whole, overlong = self._rest + line, self._overlong
            self._rest, self._overlong = b"", False
            self._number += 1
            if overlong or len(whole) > LONGEST_LINE:
                self._problem(f"line {self._number} is longer than {LONGEST_LINE >> 20} MiB")
            else:
                self._read(whole)
        self._rest += last
        if len(self._rest) > LONGEST_LINE:
            self._rest, self._overlong = b"", True
        return self._begun + self._lines > before

    def _read(self, line: bytes) -> None:
        body = _json(line)
        if body is None:
            return
        self._begun += body.get("record") == "TrialStarted"
        if body.get("record") != "Trial":
            return
        self._lines += 1
        self._digest.update(line + b"\n")
        if body.get("contract") != CONTRACT_VERSION:
            version = str(body.get("contract"))[:16]
            self._problem(f"line {self._number}: contract {version}, not {CONTRACT_VERSION}: use matching images")
            return
        try:
            trial = TrialLine.model_validate(body)
        except (ValidationError, RecursionError) as error:
            self._problem(f"line {self._number}: {_first_problem(error)}")
        else:
            key = (trial.case, trial.warmup, trial.trial)
            self._printed.setdefault(key, PrintedTrial(*key, bool(trial.traces), zlib.compress(line)))

    def _problem(self, message: str) -> None:
        if len(self._problems) < _MOST_PROBLEMS:
            self._problems.append(message)


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


def parse_output(log: str) -> Output:
    """A log as a whole."""
    reader = OutputReader()
    reader.feed(log.encode(errors="surrogateescape"))
    return reader.output


def _json(text: str | bytes) -> dict[str, Any] | None:
    try:
        body = json.loads(text, parse_int=_integer)
    except (ValueError, RecursionError):
        return None
    return body if isinstance(body, dict) else None


def _integer(digits: str) -> int:
    value = int(digits)
    if value.bit_length() > _INTEGER_BITS:
        raise ValueError("an integer of more than 64 bits")
    return value


def _first_problem(error: ValidationError | RecursionError) -> str:
    if isinstance(error, RecursionError):
        return "nested too deeply"
    first = error.errors(include_input=False, include_url=False)[0]
    return f"{'.'.join(str(part)[:32] for part in first['loc'])[:128]}: {first['msg'][:256]}"


def check_seal(output: Output, message: str) -> SealCheck:
    """Compares what was read with the termination message of the client that printed it."""
    body = _json(message)
    if body is None:
        return SealCheck(SealState.MISSING, "it left no seal, so it was killed or never began.")
    if body.get("contract") != CONTRACT_VERSION:
        version = str(body.get("contract"))[:16]
        hint = "the client image and the operator do not match, install both from one release."
        return SealCheck(SealState.UNKNOWN_VERSION, f"its seal has version {version}, not {CONTRACT_VERSION}: {hint}")
    try:
        seal = Seal.model_validate(body)
    except (ValidationError, RecursionError) as error:
        return SealCheck(SealState.MISSING, f"its seal cannot be read: {_first_problem(error)}.")
    if (output.lines, output.sha256) == (seal.trials, seal.sha256):
        return SealCheck(SealState.COMPLETE, "", seal)
    short = f"its log holds {output.lines} of {seal.trials} trials as it printed them."
    return SealCheck(SealState.CUT_SHORT, short, seal)
