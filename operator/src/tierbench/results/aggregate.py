"""Aggregates the trials of a case into its result. Every step is idempotent."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Final

from tierbench.api.contract import Engine, Histogram, Outcome, TrialFields, TrialLine
from tierbench.api.measurements import Failure
from tierbench.api.record import CollectedBy, RecordEnd, RecordStatus, ResultTrial
from tierbench.api.result import (
    CoarseHistogram,
    Counts,
    Display,
    Missing,
    Note,
    Percentile,
    ResultPhase,
    ResultSpec,
    ResultStatus,
    Statistic,
)
from tierbench.api.run_policy import TrimScope, trials_of_passes
from tierbench.kinds.registry import kind_of
from tierbench.kube.meta import format_time
from tierbench.results.client_output import merge_distributions
from tierbench.results.quantities import (
    PERCENTILES,
    RETRIES,
    TIMED_OUT,
    compared_quantities,
    counted_trials,
    describe,
    describe_overall,
    describe_percentile,
    describe_retries,
    good_trials,
    main_quantity,
    percentile_name,
    quantities,
    quantity_values,
    rate_quantity,
    statistic,
    time_quantity,
    trial_quantities,
)
from tierbench.results.units import show, show_levels
from tierbench.results.validity import facts, invalid
from tierbench.stats.distributions import exponent_of, summarize_trimmed, upper_bound

_MOST_REPEATED: Final = 2
_MAXIMUM_MESSAGE: Final = 512


def add_trials(
    spec: ResultSpec,
    record: RecordStatus,
    lines: Iterable[TrialLine],
    attempt: int,
    collected: Mapping[tuple[bool, int], CollectedBy] = MappingProxyType({}),
    interrupted: Callable[[TrialFields], str] = lambda _: "",
) -> RecordStatus:
    """Adds the trials that the record does not have yet. `attempt` is the number of the client that printed them,
    `collected` says how they came if not by its log. Those that were `interrupted` are kept, and do not count."""
    measures = kind_of(spec.benchmark.kind).measures
    known = {_key(trial) for trial in record.trials if not trial.interrupted or trial.attempt == attempt}
    trials, totals = list(record.trials), record
    for line in lines:
        if _key(line) in known or line.trial > (spec.warmup_trials if line.warmup else spec.trials):
            continue
        known.add(_key(line))
        why = _interruption(record, line, interrupted)
        fields = {name: getattr(line, name) for name in TrialFields.model_fields}
        if not spec.server.node:  # the server is external: the agent ran on a node of a client
            fields["server"] = None
        by = collected.get(_key(line), CollectedBy.LOGS)
        trial = ResultTrial(**fields, **measures.condense(line), attempt=attempt, collected_by=by)
        trials.append(_set_aside(trial, why) if why else trial)
        if line.outcome is Outcome.COMPLETED and not line.warmup and not why:
            distributions = merge_distributions((totals.distributions, line.distributions))
            update = {"distributions": distributions, **measures.accumulate(totals, line)}
            totals = totals.model_copy(update=update)
    if len(trials) == len(record.trials):
        return record
    trials.sort(key=lambda trial: (not trial.warmup, trial.trial, trial.attempt))
    return totals.model_copy(update={"trials": tuple(trials)})


def set_aside(record: RecordStatus, attempt: int, interrupted: Callable[[TrialFields], str]) -> RecordStatus:
    """Marks the failed trials of a client that were interrupted, as became known later."""
    reasons = [
        _interruption(record, trial, interrupted)
        if trial.attempt == attempt and trial.outcome is Outcome.FAILED and not trial.interrupted
        else ""
        for trial in record.trials
    ]
    if not any(reasons):
        return record
    trials = (_set_aside(trial, why) if why else trial for trial, why in zip(record.trials, reasons, strict=True))
    return record.model_copy(update={"trials": tuple(trials)})


def _interruption(record: RecordStatus, trial: TrialFields, interrupted: Callable[[TrialFields], str]) -> str:
    """Returns why a trial is to be measured again. A trial is repeated twice at most."""
    before = sum(one.interrupted and one.trial == trial.trial for one in record.trials)
    return interrupted(trial) if before < _MOST_REPEATED and not trial.warmup else ""


def _set_aside(trial: ResultTrial, why: str) -> ResultTrial:
    cause = "" if trial.failure is None else f" {trial.failure.reason}: {trial.failure.message}"
    failure = Failure(reason="Interrupted", message=f"{why}{cause}"[:_MAXIMUM_MESSAGE])
    return trial.model_copy(update={"outcome": Outcome.FAILED, "failure": failure, "interrupted": True})


def _key(trial: TrialFields) -> tuple[bool, int]:
    return trial.warmup, trial.trial


def missing_trials(spec: ResultSpec, record: RecordStatus) -> tuple[int, ...]:
    """Returns the numbers of the counted trials that the record does not have yet, ascending."""
    there = {trial.trial for trial in counted_trials(record.trials)}
    return tuple(number for number in range(1, spec.trials + 1) if number not in there)


def newest_attempt(trials: Iterable[ResultTrial], share: range) -> int:
    """Returns the number of the newest client that ran trials of a pass, from 1 in each pass; 0 if there is none."""
    return max((trial.attempt for trial in trials if not trial.warmup and trial.trial in share), default=0)


def conclude(
    spec: ResultSpec, record: RecordStatus, now: datetime, engine: Engine | None, cause: Note | None = None
) -> ResultStatus:
    """Returns the status of a case that has ended.

    The phase is Complete if there is a good trial, otherwise Failed with the most frequent reason of its trials.
    `cause` is why the case ended early, if it did.
    """
    counted, good = counted_trials(record.trials), good_trials(record.trials)
    if not good:
        reason, message = _most_frequent_failure(counted)
        return fail(spec, record, now, reason, message).model_copy(update={"engine": engine})
    status = summarize(spec, record)
    notes = invalid(spec, counted, good, status.statistics, cause)
    left = len(missing_trials(spec, record))
    return status.model_copy(
        update={
            "phase": ResultPhase.COMPLETE,
            "completion_time": format_time(now),
            "missing": Missing(trials=left, reason=cause.reason, message=cause.message) if left and cause else None,
            "valid": not notes,
            "invalid": notes,
            "facts": facts(spec, record.trials, status.counts.interruptions),
            "engine": engine,
            "display": display(spec, status, notes[0].reason if notes else "Yes"),
        }
    )


def conclude_record(spec: ResultSpec, record: RecordStatus, end: RecordEnd) -> ResultStatus:
    """Returns the status of a case that has ended in this way. It always follows from the record."""
    now = datetime.fromisoformat(end.time)
    if end.failed or (end.reason and not good_trials(record.trials)):
        return fail(spec, record, now, end.reason, end.message).model_copy(update={"engine": end.engine})
    cause = Note(reason=end.reason, message=end.message[:512]) if end.reason else None
    return conclude(spec, record, now, end.engine, cause)


def _most_frequent_failure(counted: Sequence[ResultTrial]) -> tuple[str, str]:
    """Returns the most frequent reason of failed trials, and the first message with that reason."""
    failures = [trial.failure for trial in counted if trial.failure is not None]
    if not failures:
        return "NoTrial", "No trial was run."
    reason = Counter(failure.reason for failure in failures).most_common(1)[0][0]
    return reason, next(failure.message for failure in failures if failure.reason == reason)


def fail(spec: ResultSpec, record: RecordStatus, now: datetime, reason: str, message: str) -> ResultStatus:
    """Returns the status of a case that has ended without a good trial."""
    status = summarize(spec, record)
    return status.model_copy(
        update={
            "phase": ResultPhase.FAILED,
            "reason": reason,
            "message": message[:1024],
            "completion_time": format_time(now),
            "facts": facts(spec, record.trials, status.counts.interruptions),
            "display": display(spec, status, reason),
        }
    )


def summarize(spec: ResultSpec, record: RecordStatus) -> ResultStatus:
    """Returns the status of a case that is measured, with the statistics of the trials of its record."""
    kind, good = spec.benchmark.kind, good_trials(record.trials)
    columns = quantities(kind, good)
    main = main_quantity(kind, columns)
    own = _trimmed_statistics(spec, good, main)
    statistics = _statistics(spec, _trim_trials(spec, good, main)) | own
    retries = quantity_values(kind, counted_trials(record.trials), "retries")
    if retries:
        statistics[RETRIES] = describe_retries(retries)
    full = compared_quantities(kind) | own.keys()
    status = ResultStatus(
        counts=_counts(spec, record.trials),
        statistics={name: one if name in full else _short(one) for name, one in statistics.items()},
        untrimmed={name: describe(columns[name]) for name in (*own, rate_quantity(kind)) if own and name in columns},
        percentiles=_percentiles(spec, record, columns),
        histograms=_histograms(spec, record, columns),
        totals=kind_of(kind).measures.totals(spec, record),
    )
    return status.model_copy(update={"display": display(spec, status, "")})


def _short(statistic: Statistic) -> Statistic:
    return Statistic(count=statistic.count, mean=statistic.mean, standard_deviation=statistic.standard_deviation)


def _percentiles(
    spec: ResultSpec, record: RecordStatus, columns: Mapping[str, Sequence[float]]
) -> dict[str, Percentile]:
    """Returns the percentiles of the time that the kind compares."""
    kind = spec.benchmark.kind
    quantity = time_quantity(kind, columns)
    found, values = _distribution(kind, record, quantity), sorted(columns.get(quantity, ()))
    return {
        which: percentile
        for which, share in PERCENTILES.items()
        if (percentile := describe_percentile(found, values, share, columns.get(percentile_name(quantity, which), ())))
    }


def _distribution(kind: str, record: RecordStatus, quantity: str) -> Histogram | None:
    """Returns the distribution of a quantity with many values per trial, if there is one."""
    name = kind_of(kind).measures.distributions.get(quantity)
    found: Histogram | None = None if name is None else getattr(record.distributions, name)
    return found if found is not None and found.count else None


def _histograms(
    spec: ResultSpec, record: RecordStatus, columns: Mapping[str, Sequence[float]]
) -> dict[str, CoarseHistogram]:
    """Returns the distribution of each quantity that metrics expose as a histogram."""
    kind, found = spec.benchmark.kind, {}
    for quantity in kind_of(kind).metrics.histograms:
        distribution = _distribution(kind, record, quantity)
        if distribution is not None:
            bounds = map(upper_bound, distribution.indexes)
            found[quantity] = _coarse(zip(bounds, distribution.counts, strict=True), distribution.sum_nanoseconds)
        elif columns.get(quantity):
            values = columns[quantity]
            found[quantity] = _coarse(((value, 1) for value in values), round(sum(values)))
    return found


def _coarse(values: Iterable[tuple[float, int]], total: int) -> CoarseHistogram:
    counts: Counter[int] = Counter()
    for nanoseconds, count in values:
        counts[exponent_of(nanoseconds)] += count
    exponents = tuple(sorted(counts))
    return CoarseHistogram(
        sum_nanoseconds=total, exponents=exponents, counts=tuple(counts[exponent] for exponent in exponents)
    )


def _statistics(spec: ResultSpec, trials: Sequence[ResultTrial]) -> dict[str, Statistic]:
    columns = quantities(spec.benchmark.kind, trials)
    each = {name: describe(values) for name, values in columns.items() if name != "retries"}
    return each | describe_overall(columns, kind_of(spec.benchmark.kind).measures.times)


def _trim_trials(spec: ResultSpec, trials: Sequence[ResultTrial], quantity: str) -> Sequence[ResultTrial]:
    """Returns the trials without those with the lowest and the highest values of `quantity`, in their order.

    It returns all trials if too few have the quantity, or if each client is trimmed by its own rates.
    """
    trim = spec.trim
    if trim is None or trim.scope is TrimScope.CLIENT:
        return trials
    values = ((trial_quantities(spec.benchmark.kind, trial).get(quantity), trial.trial) for trial in trials)
    ranked = sorted((value, number) for value, number in values if value is not None)
    if len(ranked) <= trim.lowest + trim.highest:
        return trials
    kept = {number for _, number in ranked[trim.lowest : len(ranked) - trim.highest]}
    return [trial for trial in trials if trial.trial in kept]


def _trimmed_statistics(spec: ResultSpec, trials: Sequence[ResultTrial], main: str) -> dict[str, Statistic]:
    """Returns the statistics of the quantities that are trimmed by their own values, if there are enough values.

    These are the main quantity, or the rate of each client.
    """
    trim = spec.trim
    if trim is None or not trim.lowest + trim.highest:
        return {}
    is_client_rate = kind_of(spec.benchmark.kind).measures.is_client_rate
    return {
        name: statistic(summarize_trimmed(values, trim.lowest, trim.highest))
        for name, values in quantities(spec.benchmark.kind, trials).items()
        if (is_client_rate(name) if trim.scope is TrimScope.CLIENT else name == main)
        and len(values) > trim.lowest + trim.highest
    }


def _counts(spec: ResultSpec, trials: Sequence[ResultTrial]) -> Counts:
    counted, good = counted_trials(trials), good_trials(trials)
    return Counts(
        completed=len(good),
        failed=len(counted) - len(good),
        timed_out=sum(trial.failure is not None and trial.failure.reason == TIMED_OUT for trial in counted),
        good_nanoseconds=sum(trial.duration_nanoseconds for trial in good),
        retries=round(sum(quantity_values(spec.benchmark.kind, counted, "retries"))),
        **kind_of(spec.benchmark.kind).measures.counts(counted),
        interruptions=sum(
            max(newest_attempt(trials, share) - 1, 0) for share in trials_of_passes(spec.trials, spec.passes)
        ),
    )


def display(spec: ResultSpec, status: ResultStatus, valid: str) -> Display:
    """Returns the numbers as `kubectl get` prints them."""
    kind, statistics = spec.benchmark.kind, status.statistics
    name = time_quantity(kind, statistics)
    time, rate = statistics.get(name), statistics.get(rate_quantity(kind))
    return Display(
        case=show_levels(spec.levels),
        mean="" if time is None else show(name, time.mean),
        p99=show(name, status.percentiles["P99"].value) if "P99" in status.percentiles else "",
        throughput="" if rate is None else show(rate_quantity(kind), rate.mean),
        valid=valid,
    )
