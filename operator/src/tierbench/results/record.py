"""A result, built up trial by trial. Every step can be done again without counting anything twice."""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from tierbench.api.contract import Distributions, Engine, Histogram, Outcome, TrialFields, TrialLine
from tierbench.api.result import (
    Counts,
    Display,
    Missing,
    Note,
    ResultPhase,
    ResultSpec,
    ResultStatus,
    ResultTrial,
    Spread,
    Statistic,
)
from tierbench.api.run_policy import shares
from tierbench.kinds.registry import kind_of
from tierbench.kube.clock import format_time
from tierbench.results.levels import levels_in_short
from tierbench.results.overall import describe_overall
from tierbench.results.pairs import add_trial, pair_fairness
from tierbench.results.parts import merge_distributions
from tierbench.results.quantities import (
    RETRIES,
    describe,
    describe_retries,
    main_quantity,
    quantities,
    rate_quantity,
    time_quantity,
    times_of_rates,
)
from tierbench.results.trimming import kept, trimmed
from tierbench.results.units import show
from tierbench.results.validity import facts, invalid
from tierbench.stats import histogram


def record(spec: ResultSpec, status: ResultStatus, lines: Iterable[TrialLine], attempt: int) -> ResultStatus:
    """Adds the trials that are not there yet; `attempt` is which client of the case printed them."""
    known = {_key(trial) for trial in status.trials}
    trials, distributions, pairs = list(status.trials), status.distributions, status.pair_shares
    for line in lines:
        if _key(line) in known or line.trial > (spec.warmup if line.warmup else spec.trials):
            continue
        known.add(_key(line))
        fields = {name: getattr(line, name) for name in TrialFields.model_fields}
        if not spec.server.node:  # an external server's: the agent is on a client's node
            fields["server"] = None
        trials.append(ResultTrial(**fields, **_condensed(line), attempt=attempt))
        if line.outcome is Outcome.COMPLETED and not line.warmup:
            distributions = merge_distributions((distributions, line.distributions))
            pairs = add_trial(pairs, line.pair_shares)
    if len(trials) == len(status.trials):
        return status
    trials.sort(key=lambda trial: (not trial.warmup, trial.trial))
    added = {"trials": tuple(trials), "distributions": distributions, "pair_shares": pairs}
    return summarize(spec, status.model_copy(update=added))


def _key(trial: TrialFields) -> tuple[bool, int]:
    return trial.warmup, trial.trial


def _condensed(line: TrialLine) -> dict[str, Any]:
    """What is kept of a trial instead of its distributions and its pairs."""
    fair = pair_fairness(line.pair_shares)
    return {
        "round_trip": _spread(_round_trips(line.distributions)),
        "acknowledge": _spread(line.distributions.acknowledge),
        "pair_fairness_parts_per_million": None if fair is None else round(1e6 * fair),
    }


def _round_trips(distributions: Distributions) -> Histogram | None:
    """Of messages, or of echo requests."""
    return distributions.round_trip or distributions.ping


def _spread(found: Histogram | None) -> Spread | None:
    if found is None or not found.count:
        return None
    p50, p90, p99 = (round(histogram.quantile(found, share)) for share in (0.5, 0.9, 0.99))
    return Spread(mean=round(found.sum_nanoseconds / found.count), p50=p50, p90=p90, p99=p99)


def _counted(trials: Iterable[ResultTrial]) -> list[ResultTrial]:
    return [trial for trial in trials if not trial.warmup]


def _good(trials: Iterable[ResultTrial]) -> list[ResultTrial]:
    return [trial for trial in _counted(trials) if trial.outcome is Outcome.COMPLETED]


def summarize(spec: ResultSpec, status: ResultStatus) -> ResultStatus:
    """What the trials say together."""
    good = _good(status.trials)
    main = main_quantity(spec.benchmark.kind, quantities(good))
    own = trimmed(good, spec.trim, main)
    statistics = _statistics(spec, kept(good, spec.trim, main)) | own
    untrimmed = _statistics(spec, good) if own else {}
    retries = quantities(_counted(status.trials)).get("retries")
    if retries:
        statistics[RETRIES] = describe_retries(retries)
    status = status.model_copy(
        update={"counts": _counts(spec, status.trials), "statistics": statistics, "untrimmed": untrimmed}
    )
    return status.model_copy(update={"display": display(spec, status, "")})


def _statistics(spec: ResultSpec, trials: Sequence[ResultTrial]) -> dict[str, Statistic]:
    columns = quantities(trials)
    each = {name: describe(numbers) for name, numbers in columns.items() if name != "retries"}
    return each | describe_overall(columns, times_of_rates(spec.benchmark.kind))


def _counts(spec: ResultSpec, trials: Sequence[ResultTrial]) -> Counts:
    counted = _counted(trials)
    return Counts(
        completed=len(_good(trials)),
        failed=len(counted) - len(_good(trials)),
        retries=round(sum(quantities(counted).get("retries", ()))),
        **kind_of(spec.benchmark.kind).measures.counts(counted),
        interruptions=sum(max(newest_attempt(trials, share) - 1, 0) for share in shares(spec.trials, spec.passes)),
    )


def newest_attempt(trials: Iterable[ResultTrial], share: range) -> int:
    """The newest client that ran trials of a pass; each pass counts from 1, and 0 is none."""
    return max((trial.attempt for trial in _counted(trials) if trial.trial in share), default=0)


def display(spec: ResultSpec, status: ResultStatus, valid: str) -> Display:
    """The numbers as `kubectl get` shows them."""
    kind, statistics = spec.benchmark.kind, status.statistics
    name = time_quantity(kind, statistics)
    time, rate = statistics.get(name), statistics.get(rate_quantity(kind))
    return Display(
        case=levels_in_short(spec.levels),
        mean="" if time is None else show(name, time.mean),
        p99="" if time is None else show(name, _p99(status, time)),
        throughput="" if rate is None else show(rate_quantity(kind), rate.mean),
        valid=valid,
    )


def _p99(status: ResultStatus, time: Statistic) -> float:
    """Of all operations where there is a distribution of them, else of the trials."""
    found = _round_trips(status.distributions) or status.distributions.acknowledge
    return time.p99 if found is None else histogram.quantile(found, 0.99)


def due(spec: ResultSpec, status: ResultStatus) -> tuple[int, ...]:
    """The numbers of the counted trials that are missing, ascending."""
    there = {trial.trial for trial in _counted(status.trials)}
    return tuple(number for number in range(1, spec.trials + 1) if number not in there)


def conclude(
    spec: ResultSpec, status: ResultStatus, now: datetime, engine: Engine | None, why: Note | None = None
) -> ResultStatus:
    """The case has ended: Measured if a trial was good, else Failed for the reason that most trials failed for.

    `why` is what ended it early, if anything did.
    """
    counted, good = _counted(status.trials), _good(status.trials)
    if not good:
        reason, message = _usual_failure(counted)
        return fail(spec, status, now, reason, message).model_copy(update={"engine": engine})
    status = summarize(spec, status)
    notes = invalid(spec, counted, good, status.statistics, why)
    left = len(due(spec, status))
    return status.model_copy(
        update={
            "phase": ResultPhase.MEASURED,
            "completion_time": format_time(now),
            "missing": Missing(trials=left, reason=why.reason, message=why.message) if left and why else None,
            "valid": not notes,
            "invalid": notes,
            "facts": facts(spec, good, status.counts.interruptions),
            "engine": engine,
            "display": display(spec, status, notes[0].reason if notes else "Yes"),
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
    status = summarize(spec, status)
    return status.model_copy(
        update={
            "phase": ResultPhase.FAILED,
            "reason": reason,
            "message": message[:1024],
            "completion_time": format_time(now),
            "facts": facts(spec, _good(status.trials), status.counts.interruptions),
            "display": display(spec, status, reason),
        }
    )
