"""The output of clients: parses it while it arrives, checks it against the seal, merges the parts, selects traces.

The output is not trusted. What the parts of a client measured together is one trial.
"""

import hashlib
import json
import zlib
from base64 import b64decode
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Final

from pydantic import ValidationError
from pydantic_core import from_json

from tierbench.api.contract import (
    CONTRACT_VERSION,
    MAXIMUM_OUTPUT_BYTES,
    MAXIMUM_TRIALS,
    ClientSample,
    Distributions,
    Histogram,
    Outcome,
    Seal,
    TrialLine,
)
from tierbench.api.model import without_controls
from tierbench.api.record import MAXIMUM_TRACE_BYTES, CollectedBy, RecordStatus, TrialTrace
from tierbench.kinds.registry import kinds
from tierbench.stats.distributions import merge_buckets

MAXIMUM_LINE_BYTES: Final = 1 << 20
"""Longer lines are skipped."""
_COMPRESSION_LEVEL: Final = 1
_KEPT_PARSED_BYTES: Final = 16 << 10
_MAXIMUM_PROBLEMS: Final = 8
_PROGRAM: Final = "tierbench-client: "
_MAXIMUM_REFUSAL: Final = 300
_INTEGER_BITS: Final = 63
_ZEROS: Final = bytes.maketrans(b"123456789", b"000000000")
_LONG_NUMBER: Final = 19 * b"0"  # it may have more than 63 bits
_ESCAPE: Final = b"\\u"  # it may be half a character


@dataclass(frozen=True, slots=True)
class PrintedTrial:
    """A trial as a client printed it, compressed to about a twentieth of the memory that the object takes."""

    case: int
    warmup: bool
    trial: int
    traced: bool
    packed: bytes
    collected_by: CollectedBy = CollectedBy.LOGS
    parsed: TrialLine | None = field(default=None, compare=False, repr=False)
    """The whole trial, while it is the newest one of its client and not large."""

    @property
    def number(self) -> tuple[int, bool, int]:
        """What identifies the trial in the output of its client."""
        return self.case, self.warmup, self.trial

    @property
    def key(self) -> tuple[bool, int]:
        """What identifies the trial within its case, whichever part printed it."""
        return self.warmup, self.trial

    @property
    def line(self) -> TrialLine:
        """The whole trial."""
        if self.parsed is not None:
            return self.parsed
        return TrialLine.model_validate(_parse_object(zlib.decompress(self.packed)))


@dataclass(frozen=True)
class Output:
    """The output of a client: each trial once, in the order of arrival, and how many trials have begun.

    `lines` is the number of Trial lines as they were printed, `sha256` their digest. `problems` lists what could not be
    parsed. The rest of an output that is `full` was not read.
    """

    printed: tuple[PrintedTrial, ...] = ()
    problems: tuple[str, ...] = ()
    begun: int = 0
    lines: int = 0
    sha256: str = hashlib.sha256().hexdigest()
    full: bool = False

    @property
    def trials(self) -> tuple[TrialLine, ...]:
        """The whole trials."""
        return tuple(trial.line for trial in self.printed)

    @property
    def traced(self) -> tuple[PrintedTrial, ...]:
        """The trials with traces, or whose traces are left out."""
        return tuple(trial for trial in self.printed if trial.traced)


@dataclass
class OutputParser:
    """Parses a log piece by piece. It skips an incomplete last line, and lines that are not of the contract.

    `collected_by` says how the log came.
    """

    collected_by: CollectedBy = CollectedBy.LOGS
    _printed: dict[tuple[int, bool, int], PrintedTrial] = field(default_factory=dict)
    _problems: list[str] = field(default_factory=list)
    _begun: int = 0
    _lines: int = 0
    _digest: Any = field(default_factory=hashlib.sha256)
    _number: int = 0
    _size: int = 0
    _rest: bytes = b""
    _overlong: bool = False
    is_full: bool = False
    """Whether the rest of the log is not read: it is too large, or has more trials than any client is given."""

    @property
    def output(self) -> Output:
        """The output so far."""
        values, problems = tuple(self._printed.values()), tuple(self._problems)
        return Output(values, problems, self._begun, self._lines, self._digest.hexdigest(), self.is_full)

    def feed(self, piece: bytes) -> bool:
        """Parses the next piece. Returns whether the output has changed."""
        before = (self._begun, self._lines, self.is_full)
        room = MAXIMUM_OUTPUT_BYTES - self._size
        self._size += len(piece)
        self.is_full = self.is_full or len(piece) > room
        *ended, last = piece[: max(room, 0)].split(b"\n")
        for line in ended:
            whole, overlong = self._rest + line, self._overlong
            self._rest, self._overlong = b"", False
            self._number += 1
            if overlong or len(whole) > MAXIMUM_LINE_BYTES:
                self._add_problem(f"line {self._number} is longer than {MAXIMUM_LINE_BYTES >> 20} MiB")
            else:
                self._parse_line(whole)
        self._rest += last
        if len(self._rest) > MAXIMUM_LINE_BYTES:
            self._rest, self._overlong = b"", True
        return (self._begun, self._lines, self.is_full) != before

    def _parse_line(self, line: bytes) -> None:
        body = _parse_object(line)
        if body is None:
            return
        self._begun += body.get("record") == "TrialStarted"
        if body.get("record") != "Trial":
            return
        self._lines += 1
        self._digest.update(line + b"\n")
        if body.get("contract") != CONTRACT_VERSION:
            version = str(body.get("contract"))[:16]
            self._add_problem(f"line {self._number}: contract {version}, not {CONTRACT_VERSION}: use matching images")
            return
        try:
            trial = TrialLine.model_validate(body)
        except (ValidationError, RecursionError) as error:
            self._add_problem(f"line {self._number}: {_first_problem(error)}")
        else:
            self._keep(trial, line)

    def _keep(self, trial: TrialLine, line: bytes) -> None:
        key = (trial.case, trial.warmup, trial.trial)
        if key in self._printed:
            return
        if len(self._printed) == MAXIMUM_TRIALS:
            self.is_full = True
            return
        if self._printed:
            newest = next(reversed(self._printed))
            self._printed[newest] = replace(self._printed[newest], parsed=None)
        traced = bool(trial.traces) or trial.traces_left_out
        parsed = trial if len(line) <= _KEPT_PARSED_BYTES else None
        packed = zlib.compress(line, _COMPRESSION_LEVEL)
        self._printed[key] = PrintedTrial(*key, traced, packed, self.collected_by, parsed)

    def _add_problem(self, message: str) -> None:
        if len(self._problems) < _MAXIMUM_PROBLEMS:
            self._problems.append(message)


def parse_output(log: str) -> Output:
    """Parses a whole log."""
    parser = OutputParser()
    parser.feed(log.encode(errors="surrogateescape"))
    return parser.output


class SealState(StrEnum):
    """What the seal shows about a log, or about a client that has none because it is of another version."""

    COMPLETE = "Complete"
    CUT_SHORT = "CutShort"
    MISSING = "Missing"
    OTHER_VERSION = "OtherVersion"


@dataclass(frozen=True)
class SealCheck:
    """The result of a check against the seal. `message` says what is wrong; `seal` is None if it cannot be parsed."""

    state: SealState
    message: str
    seal: Seal | None = None


def check_seal(output: Output, message: str) -> SealCheck:
    """Compares an output with the termination message of the client that printed it."""
    body = _parse_object(message.encode())
    if body is None or "record" in body:  # of a client that was killed, Kubernetes keeps the end of the log
        refusal = _refusal(message)
        if refusal:
            return SealCheck(SealState.OTHER_VERSION, f"does not know what the operator asks of it ({refusal})")
        return SealCheck(SealState.MISSING, "it left no seal: it was killed, or it never started.")
    if body.get("contract") != CONTRACT_VERSION:
        version = str(body.get("contract"))[:16]
        return SealCheck(SealState.OTHER_VERSION, f"speaks contract {version}, the operator {CONTRACT_VERSION}")
    try:
        seal = Seal.model_validate(body)
    except (ValidationError, RecursionError) as error:
        return SealCheck(SealState.OTHER_VERSION, f"ends with another seal ({_first_problem(error)})")
    if (output.lines, output.sha256) == (seal.trials, seal.sha256) or _is_complete(output, seal):
        return SealCheck(SealState.COMPLETE, "", seal)
    short = f"{len(output.printed)} of the {seal.trials} trials that it printed have arrived."
    return SealCheck(SealState.CUT_SHORT, short, seal)


def _refusal(message: str) -> str:
    """Returns what a client says that refuses its arguments before it knows where to write a seal."""
    last = message.strip().rpartition("\n")[2]
    return without_controls(last.removeprefix(_PROGRAM)[:_MAXIMUM_REFUSAL]) if last.startswith(_PROGRAM) else ""


def _is_complete(output: Output, seal: Seal) -> bool:
    """Whether the log and the termination message together have all trials."""
    sealed = any(trial.collected_by is CollectedBy.STATUS for trial in output.printed)
    return sealed and len(output.printed) == seal.trials


def add_sealed(output: Output, message: str) -> Output:
    """Returns the output with the trials of the termination message that the log did not bring."""
    seal = check_seal(output, message).seal
    if seal is None or not seal.lines:
        return output
    parser = OutputParser(CollectedBy.STATUS)
    try:
        parser.feed(zlib.decompressobj().decompress(b64decode(seal.lines)))  # at most 3 MiB
    except (ValueError, zlib.error):
        return output
    known = {trial.number for trial in output.printed}
    further = (trial for trial in parser.output.printed if trial.number not in known)
    return replace(output, printed=(*output.printed, *further))


def _parse_object(text: bytes) -> dict[str, Any] | None:
    try:
        # To check each integer takes ten times as long as to parse them.
        is_unusual = _LONG_NUMBER in text.translate(_ZEROS) or _ESCAPE in text
        body = json.loads(text, parse_int=_parse_integer) if is_unusual else from_json(text)
    except (ValueError, RecursionError):
        return None
    return body if isinstance(body, dict) else None


def _parse_integer(digits: str) -> int:
    value = int(digits)
    if value.bit_length() > _INTEGER_BITS:
        raise ValueError("an integer of more than 64 bits")
    return value


def _first_problem(error: ValidationError | RecursionError) -> str:
    if isinstance(error, RecursionError):
        return "nested too deeply"
    first = error.errors(include_input=False, include_url=False)[0]
    return f"{'.'.join(str(part)[:32] for part in first['loc'])[:128]}: {first['msg'][:256]}"


@dataclass(frozen=True)
class PartOutput:
    """The trials that one part of a client printed.

    The part is an `echo` if it only returns messages: its costs count, but the senders count its messages. A part that
    is `lost` prints no more, and the trials of the other parts count without it.
    """

    trials: Sequence[TrialLine]
    echo: bool = False
    lost: bool = False


def merge_parts(parts: Sequence[PartOutput]) -> tuple[TrialLine, ...]:
    """Returns the trials that all parts have printed except those that are lost, in the order of the first part."""
    if len(parts) == 1:
        return tuple(parts[0].trials)
    lines = [{(line.warmup, line.trial): line for line in part.trials} for part in parts]
    required = [known for known, part in zip(lines, parts, strict=True) if not part.lost]
    complete = [key for key in (required[0] if required else ()) if all(key in known for known in required)]
    return tuple(_merge_trial([known.get(key) for known in lines], parts) for key in complete)


def _merge_trial(lines: Sequence[TrialLine | None], parts: Sequence[PartOutput]) -> TrialLine:
    echoes = [part.echo for part in parts]
    merged = _merge_common([(line, echo) for line, echo in zip(lines, echoes, strict=True) if line is not None])
    for kind in kinds():
        merged = kind.measures.merge(merged, lines, echoes)
    return merged


def _merge_common(lines: Sequence[tuple[TrialLine, bool]]) -> TrialLine:
    """Merges what every kind has.

    Trials start together, so the longest one is the duration. The client sample is that of the part that most probably
    distorted the trial. It is the throttled part, or otherwise the one nearest to its CPU limit.
    """
    senders = [line for line, echo in lines if not echo]
    failed = next((line for line, _ in lines if line.outcome is Outcome.FAILED), None)
    return senders[0].model_copy(
        update={
            "outcome": Outcome.COMPLETED if failed is None else Outcome.FAILED,
            "failure": None if failed is None else failed.failure,
            "duration_nanoseconds": max(line.duration_nanoseconds for line in senders),
            "client": max((line.client for line, _ in lines), key=_strain),
            "server": next((line.server for line, _ in lines if line.server is not None), None),
            "distributions": merge_distributions(line.distributions for line in senders),
        }
    )


def _strain(sample: ClientSample) -> tuple[int, float]:
    """Returns how often the client was throttled, and the share of its CPU limit that it used; 0 without a limit."""
    throttles = 0 if sample.computer is None else sample.computer.thermal_throttles or 0
    return throttles, 0 if not sample.cpu_limit_millicores else sample.cpu_nanoseconds / sample.cpu_limit_millicores


def merge_distributions(many: Iterable[Distributions]) -> Distributions:
    """Returns the distributions of all observations, each with those of the same name."""
    known = tuple(many)
    merged: dict[str, Histogram] = {}
    for name in Distributions.model_fields:
        parts = [part for one in known if (part := getattr(one, name)) is not None]
        if parts:
            merged[name] = merge_histograms(parts)
    return Distributions(**merged)


def merge_histograms(histograms: Iterable[Histogram]) -> Histogram:
    """Returns the histogram of all observations."""
    known = tuple(histograms)
    indexes, counts = merge_buckets(known)
    total = sum(each.sum_nanoseconds for each in known)
    return Histogram(count=sum(counts), sum_nanoseconds=total, indexes=indexes, counts=counts)


def add_traces(record: RecordStatus, lines: Iterable[TrialLine]) -> RecordStatus:
    """Adds the traces that the record does not have yet, as far as all traces of a trial fit into 256 KiB."""
    kept, left_out = list(record.traces), set(record.traces_left_out)
    known = {(trace.warmup, trace.trial) for trace in kept}
    size = sum(len(trace.data) for trace in kept)
    for line in sorted(lines, key=lambda line: (not line.warmup, line.trial)):
        if (line.warmup, line.trial) in known or not (line.traces or line.traces_left_out):
            continue
        needed = sum(len(trace.data) for trace in line.traces)
        if line.traces_left_out or size + needed > MAXIMUM_TRACE_BYTES:
            left_out |= set() if line.warmup else {line.trial}
            continue
        size += needed
        kept += [
            TrialTrace(trial=line.trial, warmup=line.warmup, side=trace.side, client=trace.client, data=trace.data)
            for trace in line.traces
        ]
    return record.model_copy(update={"traces": tuple(kept), "traces_left_out": tuple(sorted(left_out))})
