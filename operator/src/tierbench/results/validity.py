"""What could have spoiled the numbers of a case, and what explains them: rules of all kinds of benchmark."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from tierbench.api.contract import Computer
from tierbench.api.measurements import TcpRate
from tierbench.api.result import Note, ResultSpec, ResultTrial, Statistic
from tierbench.kinds.registry import kind_of, probe
from tierbench.results.quantities import main_quantity
from tierbench.results.units import show

SATURATED_SHARE: Final = 0.9
WIDE_VARIATION: Final = 0.3
NARROW_NANOSECONDS: Final = 10_000_000
HELD_BACK_SHARE: Final = 0.01
FULL_FREQUENCY_SHARE: Final = 0.9
_FIXED_GOVERNOR: Final = "performance"
BOUND_SHARE: Final = 0.9
# A burst, or another network than the one before: then it was not the limit.
BEYOND_SHARE: Final = 1.1


def facts(spec: ResultSpec, good: Sequence[ResultTrial], interruptions: int) -> tuple[Note, ...]:
    """What explains the numbers and spoils nothing."""
    notes = [
        *kind_of(spec.benchmark.kind).measures.facts(spec, good),
        *_preflight_facts(spec, good),
        *_computer_facts(good),
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
        *kind_of(spec.benchmark.kind).measures.invalid(spec, good),
        *_computer_invalid(good),
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


def _computer_facts(good: Sequence[ResultTrial]) -> list[Note]:
    """That processors which were to run at their highest frequency did not; with all cores busy that is usual."""
    slow = sum(any(_is_below_maximum(computer) for _, computer in _computers(trial)) for trial in good)
    if not slow:
        return []
    message = (
        f"In {slow} of {len(good)} trials processors ran below {100 * FULL_FREQUENCY_SHARE:.0f} % of their highest "
        f"frequency, though their governor is {_FIXED_GOVERNOR}."
    )
    return [Note(reason="FrequencyBelowMaximum", message=message)]


def _computer_invalid(good: Sequence[ResultTrial]) -> list[Note]:
    """That processors were slowed for their heat, or a quota of CPU time held a process back."""
    causes = [tuple(_throttled(trial)) for trial in good]
    throttled = sum(map(bool, causes))
    if not throttled:
        return []
    named = sorted({cause for found in causes for cause in found})
    message = f"In {throttled} of {len(good)} trials a computer was slowed: {', '.join(named)}."
    return [Note(reason="Throttled", message=message)]


def _throttled(trial: ResultTrial) -> Iterator[str]:
    for side, computer in _computers(trial):
        if computer.thermal_throttles:
            yield f"the {side}'s for its heat"
        if (computer.quota_throttled_nanoseconds or 0) > HELD_BACK_SHARE * trial.duration_nanoseconds:
            yield f"the {side}'s by a quota of CPU time"


def _computers(trial: ResultTrial) -> Iterator[tuple[str, Computer]]:
    """Those that told of themselves, with their side."""
    if trial.client.computer is not None:
        yield "client", trial.client.computer
    if trial.server is not None and trial.server.computer is not None:
        yield "server", trial.server.computer


def _is_below_maximum(computer: Computer) -> bool:
    now, highest = computer.cpu_frequency_kilohertz, computer.cpu_maximum_kilohertz
    if now is None or highest is None or computer.cpu_governor != _FIXED_GOVERNOR:
        return False
    return now < FULL_FREQUENCY_SHARE * highest


def _preflight_facts(spec: ResultSpec, good: Sequence[ResultTrial]) -> list[Note]:
    """That trials went as fast as the network between the nodes, where the preflight has measured that."""
    if len(spec.networks) != 1:
        return []
    network, taken = spec.networks[0], kind_of(spec.benchmark.kind).measures.bits_per_second
    for name, way in (("down", network.download), ("up", network.upload)):
        rates = [rate for trial in good if way is not None and (rate := taken(trial, name)) is not None]
        bound = [rate for rate in rates if way is not None and _is_bound(rate, way)]
        if way is not None and bound:
            message = (
                f"In {len(bound)} of {len(good)} trials at least {100 * BOUND_SHARE:.0f} % of the "
                f"{show('throughputBitsPerSecond', way.bits_per_second)} {name} that {probe().program} got before: "
                "the network was the limit."
            )
            return [Note(reason="NetworkBound", message=message)]
    return []


def _is_bound(rate: float, way: TcpRate) -> bool:
    return BOUND_SHARE <= rate / max(way.bits_per_second, 1) <= BEYOND_SHARE
