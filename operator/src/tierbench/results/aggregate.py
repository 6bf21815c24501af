"""Aggregates the trials of a case into its result and its trace. Every step is idempotent."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final

from tierbench.api.contract import Engine, Outcome, TrialFields, TrialLine
from tierbench.api.result import (
    MAXIMUM_TRACE_BYTES,
    Counts,
    Display,
    Missing,
    Note,
    ResultPhase,
    ResultSpec,
    ResultStatus,
    ResultTrial,
    Statistic,
    TraceStatus,
    TrialTrace,
)
from tierbench.api.run_policy import TrimBy, trials_of_passes
from tierbench.kinds.registry import kind_of
from tierbench.kube.meta import format_time
from tierbench.results.client_output import merge_distributions
from tierbench.results.quantities import (
    RETRIES,
    counted_trials,
    describe,
    describe_retries,
    good_trials,
    main_quantity,
    quantities,
    quantity_values,
    rate_quantity,
    statistic,
    time_quantity,
    trial_quantities,
)
from tierbench.results.units import show, show_levels
from tierbench.results.validity import facts, invalid
from tierbench.stats.distributions import bucket_quantile, summarize_ratio, summarize_trimmed

_OVERALL: Final = "overall"


def add_trials(spec: ResultSpec, status: ResultStatus, lines: Iterable[TrialLine], attempt: int) -> ResultStatus:
    """Adds the trials that the result does not have yet. `attempt` is the number of the client that printed them."""
    measures = kind_of(spec.benchmark.kind).measures
    known = {_key(trial) for trial in status.trials}
    trials, totals = list(status.trials), status
    for line in lines:
        if _key(line) in known or line.trial > (spec.warmup if line.warmup else spec.trials):
            continue
        known.add(_key(line))
        fields = {name: getattr(line, name) for name in TrialFields.model_fields}
        if not spec.server.node:  # the server is external: the agent ran on a node of a client
            fields["server"] = None
        trials.append(ResultTrial(**fields, **measures.condense(line), attempt=attempt))
        if line.outcome is Outcome.COMPLETED and not line.warmup:
            distributions = merge_distributions((totals.distributions, line.distributions))
            update = {"distributions": distributions, **measures.accumulate(totals, line)}
            totals = totals.model_copy(update=update)
    if len(trials) == len(status.trials):
        return status
    trials.sort(key=lambda trial: (not trial.warmup, trial.trial))
    return summarize(spec, totals.model_copy(update={"trials": tuple(trials)}))


def _key(trial: TrialFields) -> tuple[bool, int]:
    return trial.warmup, trial.trial


def missing_trials(spec: ResultSpec, status: ResultStatus) -> tuple[int, ...]:
    """Returns the numbers of the counted trials that the result does not have yet, ascending."""
    there = {trial.trial for trial in counted_trials(status.trials)}
    return tuple(number for number in range(1, spec.trials + 1) if number not in there)


def newest_attempt(trials: Iterable[ResultTrial], share: range) -> int:
    """Returns the number of the newest client that ran trials of a pass, from 1 in each pass; 0 if there is none."""
    return max((trial.attempt for trial in counted_trials(trials) if trial.trial in share), default=0)


def conclude(
    spec: ResultSpec, status: ResultStatus, now: datetime, engine: Engine | None, cause: Note | None = None
) -> ResultStatus:
    """Returns the status of a case that has ended.

    The phase is Measured if there is a good trial, otherwise Failed with the most frequent reason of its trials.
    `cause` is why the case ended early, if it did.
    """
    counted, good = counted_trials(status.trials), good_trials(status.trials)
    if not good:
        reason, message = _most_frequent_failure(counted)
        return fail(spec, status, now, reason, message).model_copy(update={"engine": engine})
    status = summarize(spec, status)
    notes = invalid(spec, counted, good, status.statistics, cause)
    left = len(missing_trials(spec, status))
    return status.model_copy(
        update={
            "phase": ResultPhase.MEASURED,
            "completion_time": format_time(now),
            "missing": Missing(trials=left, reason=cause.reason, message=cause.message) if left and cause else None,
            "valid": not notes,
            "invalid": notes,
            "facts": facts(spec, good, status.counts.interruptions),
            "engine": engine,
            "display": display(spec, status, notes[0].reason if notes else "Yes"),
        }
    )


def _most_frequent_failure(counted: Sequence[ResultTrial]) -> tuple[str, str]:
    """Returns the most frequent reason of failed trials, and the first message with that reason."""
    failures = [trial.failure for trial in counted if trial.failure is not None]
    if not failures:
        return "NoTrial", "No trial was run."
    reason = Counter(failure.reason for failure in failures).most_common(1)[0][0]
    return reason, next(failure.message for failure in failures if failure.reason == reason)


def fail(spec: ResultSpec, status: ResultStatus, now: datetime, reason: str, message: str) -> ResultStatus:
    """Returns the status of a case that has ended without a good trial. It keeps the failed trials."""
    status = summarize(spec, status)
    return status.model_copy(
        update={
            "phase": ResultPhase.FAILED,
            "reason": reason,
            "message": message[:1024],
            "completion_time": format_time(now),
            "facts": facts(spec, good_trials(status.trials), status.counts.interruptions),
            "display": display(spec, status, reason),
        }
    )


def select_traces(lines: Iterable[TrialLine]) -> TraceStatus:
    """Returns the traces of the first trials, as far as all traces of a trial fit. Warm-up trials come first."""
    kept: list[TrialTrace] = []
    size = trials = left_out = 0
    for line in sorted(lines, key=lambda line: (not line.warmup, line.trial)):
        if not line.traces:
            continue
        needed = sum(len(trace.data) for trace in line.traces)
        if size + needed > MAXIMUM_TRACE_BYTES:
            left_out += 1
            continue
        size, trials = size + needed, trials + 1
        kept += [
            TrialTrace(trial=line.trial, warmup=line.warmup, side=trace.side, client=trace.client, data=trace.data)
            for trace in line.traces
        ]
    return TraceStatus(trials=trials, left_out=left_out, traces=tuple(kept))


def with_stored_bytes(status: ResultStatus, trace: TraceStatus | None = None) -> ResultStatus:
    """Returns the status with the size that it and the trace of its case have as JSON."""
    parts = [status] if trace is None else [status, trace]
    stored = sum(len(json.dumps(part.to_json())) for part in parts)
    return status.model_copy(update={"stored_bytes": stored})


def summarize(spec: ResultSpec, status: ResultStatus) -> ResultStatus:
    """Returns the status with the counts, the statistics and the display of its trials."""
    kind, good = spec.benchmark.kind, good_trials(status.trials)
    main = main_quantity(kind, quantities(kind, good))
    own = _trimmed_statistics(spec, good, main)
    statistics = _statistics(spec, _trim_trials(spec, good, main)) | own
    untrimmed = _statistics(spec, good) if own else {}
    retries = quantity_values(kind, counted_trials(status.trials), "retries")
    if retries:
        statistics[RETRIES] = describe_retries(retries)
    status = status.model_copy(
        update={"counts": _counts(spec, status.trials), "statistics": statistics, "untrimmed": untrimmed}
    )
    return status.model_copy(update={"display": display(spec, status, "")})


def _statistics(spec: ResultSpec, trials: Sequence[ResultTrial]) -> dict[str, Statistic]:
    columns = quantities(spec.benchmark.kind, trials)
    each = {name: describe(values) for name, values in columns.items() if name != "retries"}
    return each | describe_overall(columns, kind_of(spec.benchmark.kind).measures.times)


def is_overall(quantity: str) -> bool:
    """Whether a quantity is a ratio of sums over all trials, and not a mean of trials."""
    return quantity.startswith(_OVERALL)


def describe_overall(columns: Mapping[str, Sequence[float]], times: Mapping[str, str]) -> dict[str, Statistic]:
    """Returns the overall rates of a case: the sum of the amounts divided by the sum of the times.

    `columns` hold the values of every quantity, one per trial. `times` name for each rate the time by which its amount
    is divided. The result has no rate of which some trial lacks the value or the time.
    """
    known = {rate: time for rate, time in times.items() if rate in columns and time in columns}
    return {
        f"{_OVERALL}{rate[0].upper()}{rate[1:]}": statistic(summarize_ratio(columns[rate], columns[time]))
        for rate, time in known.items()
        if len(columns[rate]) == len(columns[time])
    }


def _trim_trials(spec: ResultSpec, trials: Sequence[ResultTrial], quantity: str) -> Sequence[ResultTrial]:
    """Returns the trials without those with the lowest and the highest values of `quantity`, in their order.

    It returns all trials if too few have the quantity, or if each client is trimmed by its own rates.
    """
    trim = spec.trim
    if trim is None or trim.by is TrimBy.CLIENT:
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
        if (is_client_rate(name) if trim.by is TrimBy.CLIENT else name == main)
        and len(values) > trim.lowest + trim.highest
    }


def _counts(spec: ResultSpec, trials: Sequence[ResultTrial]) -> Counts:
    counted = counted_trials(trials)
    return Counts(
        completed=len(good_trials(trials)),
        failed=len(counted) - len(good_trials(trials)),
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
        p99="" if time is None else show(name, _p99(spec, status, name, time)),
        throughput="" if rate is None else show(rate_quantity(kind), rate.mean),
        valid=valid,
    )


def _p99(spec: ResultSpec, status: ResultStatus, quantity: str, time: Statistic) -> float:
    """Returns the 99th percentile over operations if there is a distribution of them, otherwise over trials."""
    name = kind_of(spec.benchmark.kind).measures.distributions.get(quantity)
    found = None if name is None else getattr(status.distributions, name)
    return time.p99 if found is None else bucket_quantile(found, 0.99)
