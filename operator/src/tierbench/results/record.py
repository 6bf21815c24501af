"""A result, built up trial by trial. Every step can be done again without counting anything twice."""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from tierbench.api.contract import Distributions, Engine, Histogram, Outcome, TrialFields, TrialLine
from tierbench.api.result import Counts, Display, ResultPhase, ResultSpec, ResultStatus, ResultTrial, Statistic
from tierbench.results import display, histogram
from tierbench.results.quantities import quantities
from tierbench.results.statistics import describe
from tierbench.results.validity import facts, invalid


def record(spec: ResultSpec, status: ResultStatus, lines: Iterable[TrialLine], attempt: int) -> ResultStatus:
    """Adds the trials that are not there yet; `attempt` is which client of the case printed them."""
    known = {_key(trial) for trial in status.trials}
    trials, distributions = list(status.trials), status.distributions
    for line in lines:
        if _key(line) in known or line.trial > (spec.warmup if line.warmup else spec.trials):
            continue
        known.add(_key(line))
        fields = {name: getattr(line, name) for name in TrialFields.model_fields}
        trials.append(ResultTrial(**fields, attempt=attempt))
        if line.outcome is Outcome.COMPLETED and not line.warmup:
            distributions = _merge(distributions, line.distributions)
    if len(trials) == len(status.trials):
        return status
    trials.sort(key=lambda trial: (not trial.warmup, trial.trial))
    return _summarize(spec, status.model_copy(update={"trials": tuple(trials), "distributions": distributions}))


def _key(trial: TrialFields) -> tuple[bool, int]:
    return trial.warmup, trial.trial


def _merge(one: Distributions, other: Distributions) -> Distributions:
    merged: dict[str, Histogram] = {}
    for name in Distributions.model_fields:
        parts = [part for part in (getattr(one, name), getattr(other, name)) if part is not None]
        if parts:
            merged[name] = histogram.merge(parts)
    return Distributions(**merged)


def _counted(trials: Iterable[ResultTrial]) -> list[ResultTrial]:
    return [trial for trial in trials if not trial.warmup]


def _good(trials: Iterable[ResultTrial]) -> list[ResultTrial]:
    return [trial for trial in _counted(trials) if trial.outcome is Outcome.COMPLETED]


def _summarize(spec: ResultSpec, status: ResultStatus) -> ResultStatus:
    good = _good(status.trials)
    values = quantities(good)
    statistics = {name: describe(numbers) for name, numbers in values.items()}
    return status.model_copy(
        update={
            "counts": _counts(status.trials),
            "statistics": statistics,
            "display": _display(spec, statistics, ""),
        }
    )


def _counts(trials: Sequence[ResultTrial]) -> Counts:
    counted = _counted(trials)
    transfers = [trial.transfer for trial in counted if trial.transfer is not None]
    causes: Counter[str] = Counter()
    for transfer in transfers:
        causes.update(transfer.retry_causes.model_dump(by_alias=True))
    return Counts(
        completed=len(_good(trials)),
        failed=len(counted) - len(_good(trials)),
        retries=sum(transfer.retries for transfer in transfers),
        retry_causes={cause: number for cause, number in sorted(causes.items()) if number},
        errors=sum(transfer.errors for transfer in transfers),
        interruptions=max([1, *(trial.attempt for trial in trials)]) - 1,
    )


def _display(spec: ResultSpec, statistics: dict[str, Statistic], valid: str) -> Display:
    duration = statistics.get("durationNanoseconds")
    throughput = statistics.get("throughputBytesPerSecond")
    return Display(
        case=display.case_words(spec.levels),
        mean="" if duration is None else display.duration(duration.mean),
        p99="" if duration is None else display.duration(duration.p99),
        throughput="" if throughput is None else display.byte_rate(throughput.mean),
        valid=valid,
    )


def due(spec: ResultSpec, status: ResultStatus) -> tuple[int, ...]:
    """The numbers of the counted trials that are missing, ascending."""
    there = {trial.trial for trial in _counted(status.trials)}
    return tuple(number for number in range(1, spec.trials + 1) if number not in there)


def conclude(spec: ResultSpec, status: ResultStatus, now: datetime, engine: Engine | None) -> ResultStatus:
    """The case has ended: Measured if a trial was good, else Failed for the reason that most trials failed for."""
    counted, good = _counted(status.trials), _good(status.trials)
    if not good:
        reason, message = _usual_failure(counted)
        return fail(spec, status, now, reason, message).model_copy(update={"engine": engine})
    status = _summarize(spec, status)
    notes = invalid(spec, counted, good, status.statistics.get("durationNanoseconds"))
    return status.model_copy(
        update={
            "phase": ResultPhase.MEASURED,
            "completion_time": _time(now),
            "valid": not notes,
            "invalid": notes,
            "facts": facts(spec, good, status.counts.interruptions),
            "engine": engine,
            "display": _display(spec, status.statistics, notes[0].reason if notes else "Yes"),
        }
    )


def _usual_failure(counted: Sequence[ResultTrial]) -> tuple[str, str]:
    """The reason that most trials failed for, and the message of the first of them."""
    failures = [trial.failure for trial in counted if trial.failure is not None]
    if not failures:
        return "NoTrial", "No trial was run."
    reason = Counter(failure.reason for failure in failures).most_common(1)[0][0]
    return reason, next(failure.message for failure in failures if failure.reason == reason)


def fail(spec: ResultSpec, status: ResultStatus, now: datetime, reason: str, message: str) -> ResultStatus:
    """The case has ended without a good trial. Trials that failed are kept."""
    status = _summarize(spec, status)
    return status.model_copy(
        update={
            "phase": ResultPhase.FAILED,
            "reason": reason,
            "message": message[:1024],
            "completion_time": _time(now),
            "facts": facts(spec, _good(status.trials), status.counts.interruptions),
            "display": _display(spec, status.statistics, reason),
        }
    )


def _time(now: datetime) -> str:
    return now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
