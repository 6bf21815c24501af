"""What could have spoiled the numbers of a case, and what explains them: rules of each kind, and of all."""

from collections.abc import Mapping, Sequence
from typing import Final

from tierbench.api.result import Note, ResultSpec, ResultTrial, Statistic
from tierbench.kinds.broker import validity as broker
from tierbench.kinds.file_transfer import validity as file_transfer
from tierbench.kinds.network import validity as network
from tierbench.results.quantities import main_quantity
from tierbench.results.validity import computer, preflight

SATURATED_SHARE: Final = 0.9
WIDE_VARIATION: Final = 0.3
NARROW_NANOSECONDS: Final = 10_000_000


def facts(spec: ResultSpec, good: Sequence[ResultTrial], interruptions: int) -> tuple[Note, ...]:
    """What explains the numbers and spoils nothing."""
    notes = [
        *file_transfer.facts(spec, good),
        *broker.facts(spec, good),
        *network.facts(spec, good),
        *preflight.facts(spec, good),
        *computer.facts(good),
    ]
    if interruptions:
        message = f"The client was lost {interruptions} time(s); a new one went on with the trial that was missing."
        notes.append(Note(reason="Resumed", message=message))
    return tuple(notes)


def invalid(
    spec: ResultSpec,
    counted: Sequence[ResultTrial],
    good: Sequence[ResultTrial],
    statistics: Mapping[str, Statistic],
    why: Note | None = None,
) -> tuple[Note, ...]:
    """What could have spoiled the numbers; `why` is what ended the case early."""
    name = main_quantity(spec.benchmark.kind, statistics)
    main = statistics.get(name)
    notes = [
        *_incomplete(spec, counted, good, why),
        *file_transfer.invalid(spec, good),
        *broker.invalid(good),
        *network.invalid(good),
        *computer.invalid(good),
    ]
    saturated = sum(map(_client_saturated, good))
    if saturated:
        message = f"In {saturated} of {len(good)} trials the client used all its CPU: it may be what was measured."
        notes.append(Note(reason="ClientSaturated", message=message))
    if good and spec.server.node and all(trial.server is None for trial in good):
        message = "The agent beside the server gave no sample: disk, cache and CPU of the server's node are unknown."
        notes.append(Note(reason="ServerNotObserved", message=message))
    if main is not None and _wide(main, name):
        share = 100 * (main.standard_deviation or 0) / main.mean
        message = f"The standard deviation is {share:.0f} % of the mean: repeat more often, or look for other load."
        notes.append(Note(reason="SpreadTooWide", message=message))
    return tuple(notes)


def _incomplete(
    spec: ResultSpec, counted: Sequence[ResultTrial], good: Sequence[ResultTrial], why: Note | None
) -> list[Note]:
    notes = []
    if len(counted) < spec.trials:
        message = f"Only {len(counted)} of {spec.trials} trials were run{'.' if why is None else f': {why.message}'}"
        notes.append(Note(reason="TrialsMissing", message=message[:512]))
    if len(good) < len(counted):
        message = f"{len(counted) - len(good)} of {len(counted)} trials failed and are not in the statistics."
        notes.append(Note(reason="TrialsFailed", message=message))
    return notes


def _client_saturated(trial: ResultTrial) -> bool:
    """Whether it used 90 % of what it could; not said where that is unknown."""
    limit = trial.client.cpu_limit_millicores
    if limit is None:
        return False
    return trial.client.cpu_nanoseconds >= SATURATED_SHARE * limit / 1000 * trial.duration_nanoseconds


def _wide(main: Statistic, quantity: str) -> bool:
    """A spread of a few milliseconds is the noise of any machine, whatever share of a short time it is."""
    spread = main.standard_deviation or 0
    narrow = NARROW_NANOSECONDS if quantity.endswith("Nanoseconds") else 0
    return spread > narrow and spread > WIDE_VARIATION * main.mean
