"""The statuses of benchmarks and advices: conditions, phase, progress, and the assessment of a run that has ended."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from typing import Final

from tierbench.advice.advise import advise, unanswered
from tierbench.advice.comparison import Change, Place, Results, by_place, compare_places, differences
from tierbench.advice.requirements import Violation, group_by_workload, violations, workload_items
from tierbench.api.advice_answer import PlacementAdviceStatus
from tierbench.api.benchmark import Benchmark, BenchmarkStatus, CaseCounts, CurrentCase, Phase
from tierbench.api.model import Condition
from tierbench.api.node_class import NodeClass
from tierbench.api.placement_advice import PlacementAdvice
from tierbench.api.result import BenchmarkResult, Counts, ResultPhase
from tierbench.api.run_policy import Constraints
from tierbench.domain import reasons
from tierbench.domain.decision import Event, Steps
from tierbench.domain.run import Run
from tierbench.kube.meta import format_time
from tierbench.results.quantities import counted_trials, good_trials, main_quantity, rate_quantity
from tierbench.results.units import join_words, percent, show, show_levels, title
from tierbench.workloads.plan import Case

_MAXIMUM_MESSAGE: Final = 4096
_MAXIMUM_NAME: Final = 253
_CLIENT_START_SECONDS: Final = 3.0
_LISTED: Final = 3

ClassPair = tuple[str, str]
"""Server class and client class."""


@dataclass(frozen=True)
class ConditionUpdate:
    """The desired value of one status condition. A status of None is written as Unknown."""

    type: str
    status: bool | None
    reason: str
    message: str


def set_conditions(
    resource: Benchmark | NodeClass, updates: Iterable[ConditionUpdate], now: datetime
) -> tuple[Condition, ...]:
    """Returns the conditions of an object with `updates` applied. A transition time changes only with its status."""
    known = {condition.type: condition for condition in resource.status.conditions}
    for update in updates:
        before = known.get(update.type)
        status = "Unknown" if update.status is None else str(update.status)
        since = before.last_transition_time if before is not None and before.status == status else format_time(now)
        known[update.type] = Condition(
            type=update.type,
            status=status,
            reason=update.reason,
            message=update.message[:_MAXIMUM_MESSAGE],
            last_transition_time=since,
            observed_generation=resource.metadata.generation,
        )
    return tuple(known.values())


def build_status(
    run: Run, phase: Phase, *updates: ConditionUpdate, current: Sequence[Case] = (), finished_trials: int | None = None
) -> BenchmarkStatus:
    """Returns the status of a benchmark during a run, in which the `current` cases are measured.

    Their finished trials are those that are stored, unless they are given.
    """
    benchmark = run.observed.benchmark
    counts = _count(run)
    return BenchmarkStatus(
        **(benchmark.status.model_extra or {}),
        observed_generation=benchmark.metadata.generation,
        phase=phase,
        progress=f"{counts.finished}/{counts.total}",
        remaining_seconds=remaining_seconds(run),
        cases=counts,
        current=_current(run, current, finished_trials) if current else None,
        run=run.status,
        best=benchmark.status.best,
        answer=benchmark.status.answer,
        conditions=set_conditions(benchmark, updates, run.now),
    )


def status_changes(before: BenchmarkStatus, after: BenchmarkStatus) -> tuple[bool, bool]:
    """Returns whether the status changes, and whether nothing does but the number of trials.

    The remaining time alone is no change.
    """
    old, new = before.to_json(), after.to_json()
    for status in (old, new):
        status.pop("remainingSeconds", None)
    if old == new:
        return False, False
    for status in (old, new):
        status.get("current", {}).pop("finishedTrials", None)
    return old != new, old == new


def _count(run: Run) -> CaseCounts:
    statuses = [result.status for result in run.results]
    return CaseCounts(
        total=len(run.cases),
        finished=len(run.cases) - len(run.due),
        failed=sum(status.phase is ResultPhase.FAILED for status in statuses),
        invalid=sum(status.phase is ResultPhase.COMPLETE and status.valid is False for status in statuses),
    )


def describe_cases(*cases: Case) -> str:
    """Returns a short description of one case, or of cases that differ only in their server."""
    servers = dict.fromkeys(case.server.node_class for case in cases)
    return f"{show_levels(cases[0].levels)}, {', '.join(servers)} to {cases[0].client}"


def _current(run: Run, cases: Sequence[Case], finished: int | None) -> CurrentCase:
    of_passes = f", pass {run.pass_number} of {run.passes}" if run.passes > 1 else ""
    return CurrentCase(
        name=(describe_cases(*cases) + of_passes)[:_MAXIMUM_NAME],
        result=run.result_name(cases[0]),
        finished_trials=sum(_measured(run, case)[0] for case in cases) if finished is None else finished,
        total_trials=run.spec.repetitions * len(cases),
    )


def _measured(run: Run, case: Case) -> tuple[int, int]:
    """Returns the number of counted trials of a case, and the nanoseconds of the good ones."""
    counted = counted_trials(run.record(case).trials)
    if counted:
        return len(counted), sum(trial.duration_nanoseconds for trial in good_trials(counted))
    result = run.result(case)
    counts = Counts() if result is None else result.status.counts
    return counts.completed + counts.failed, counts.good_nanoseconds


def remaining_seconds(run: Run) -> int | None:
    """Returns an estimate of the seconds left, or None before the first trial.

    Each missing trial takes as long as the trials so far, by the load of their cases. Each block adds the start of one
    client.
    """
    spent = weight = left = 0.0
    for case in run.cases:
        result, of_trial = run.result(case), run.observed.workload.load(case).duration()
        measured, nanoseconds = _measured(run, case)
        if not run.ended(case):
            left += of_trial * (run.spec.repetitions - measured)
        if result is None or result.status.phase is not ResultPhase.FAILED:
            spent += nanoseconds / 1e9
            weight += of_trial * measured
    if not weight:
        return None
    return round(spent / weight * left + _CLIENT_START_SECONDS * len(run.due_blocks))


def advice_status(
    advice: PlacementAdvice, results: Iterable[BenchmarkResult], classes: Sequence[NodeClass], now: datetime
) -> PlacementAdviceStatus:
    """Returns the status of an advice for these results. A transition time changes only with its status."""
    return _with_known_times(advice, advise(advice.spec, results, now, classes))


def excess_advice_status(advice: PlacementAdvice, most: int, now: datetime) -> PlacementAdviceStatus:
    """Returns the status of an advice that is not answered, because its namespace has too many."""
    message = (
        f"The namespace has more than {most} advices, and the oldest {most} are answered. Delete an advice that you do "
        "not need, or ask an administrator to raise the chart value limits.advices."
    )
    return _with_known_times(advice, unanswered("TooManyAdvices", message, now))


def _with_known_times(advice: PlacementAdvice, status: PlacementAdviceStatus) -> PlacementAdviceStatus:
    known = {condition.type: condition for condition in advice.status.conditions}
    generation = advice.metadata.generation
    conditions = tuple(_keep_time(condition, known.get(condition.type), generation) for condition in status.conditions)
    return status.model_copy(update={"observed_generation": generation, "conditions": conditions})


def _keep_time(condition: Condition, before: Condition | None, generation: int) -> Condition:
    same = before is not None and before.status == condition.status
    since = before.last_transition_time if before is not None and same else condition.last_transition_time
    return condition.model_copy(update={"last_transition_time": since, "observed_generation": generation})


def advice_events(before: PlacementAdviceStatus, after: PlacementAdviceStatus) -> tuple[Event, ...]:
    """Returns an event if another alternative is best, or none is any more."""
    if before.best == after.best:
        return ()
    return (Event(reasons.BEST_CHANGED, after.answer, warning=not after.best),)


@dataclass(frozen=True)
class Assessment:
    """The conditions that assess a run, and their events."""

    updates: tuple[ConditionUpdate, ...]
    events: tuple[Event, ...]


def assess(run: Run) -> Steps[Assessment]:
    """Returns the conditions Passed (if the run has constraints) and Regressed of a run that has ended."""
    passed = _passed(run)
    yield
    regressed = yield from _regressed(run)
    updates = (regressed,) if passed is None else (passed, regressed)
    events = [] if passed is None else [Event(passed.reason, passed.message, warning=not passed.status)]
    if regressed.status or regressed.reason == reasons.BASELINE_NOT_FOUND:
        events.append(Event(regressed.reason, regressed.message, warning=True))
    return Assessment(updates, tuple(events))


def verdicts_in_progress(run: Run) -> tuple[ConditionUpdate, ...]:
    """Resets Passed, Regressed and ScheduleValid, so that no client that waits for them sees those of the previous
    run."""
    message = "The run is in progress."
    policy = run.spec.run_policy
    updates = [ConditionUpdate(reasons.REGRESSED, False, reasons.RUNNING, message)]
    if policy.constraints != Constraints():
        updates.append(ConditionUpdate(reasons.PASSED, False, reasons.RUNNING, message))
    if policy.schedule is not None:
        message += " The next run is scheduled when it ends."
        updates.append(ConditionUpdate(reasons.SCHEDULE_VALID, True, reasons.RUNNING, message))
    return tuple(updates)


def _results(run: Run, number: int) -> tuple[BenchmarkResult, ...]:
    known = run.observed.results if number == run.status.number else run.observed.earlier or {}
    return tuple(result for _, result in sorted(known.items()) if result.spec.run == number)


def _passed(run: Run) -> ConditionUpdate | None:
    constraints = run.spec.run_policy.constraints
    if constraints == Constraints():
        return None
    results = _results(run, run.status.number)
    failed = sum(result.status.phase is ResultPhase.FAILED for result in results)
    found = [(f"{' to '.join(pair)}: {violation.message}", violation) for pair, violation in _violations(run, results)]
    broken = [f"{failed} cases failed."] if failed else []
    broken += [text for text, violation in found if not violation.unknown and not violation.uncertain]
    if broken:
        return ConditionUpdate(reasons.PASSED, False, reasons.CONSTRAINTS_BROKEN, _first(broken))
    unknown = [text for text, violation in found if violation.unknown]
    if unknown:
        return ConditionUpdate(reasons.PASSED, None, reasons.CONSTRAINTS_UNKNOWN, _first(unknown))
    return ConditionUpdate(
        reasons.PASSED, True, reasons.CONSTRAINTS_MET, "Every case meets spec.runPolicy.constraints."
    )


def _violations(run: Run, results: Sequence[BenchmarkResult]) -> Iterator[tuple[ClassPair, Violation]]:
    kind, constraints = run.observed.owner.kind, run.spec.run_policy.constraints
    by_pair: dict[ClassPair, list[BenchmarkResult]] = {}
    for result in results:
        by_pair.setdefault(_pair(result), []).append(result)
    for pair, found in by_pair.items():
        for violation in violations(
            group_by_workload(found, workload_items(None)), pair[0], constraints, kind, workload_items(None)
        ):
            yield pair, violation


def _regressed(run: Run) -> Steps[ConditionUpdate]:
    policy, number = run.spec.run_policy, run.status.number
    known = run.observed.known_results
    kept = sorted({result.run for result in known} - {number})
    superseded = {result.run for result in known if result.superseded}
    before = [each for each in kept if each < number and each not in superseded]
    baseline = () if policy.baseline_run is None or policy.baseline_run == number else (policy.baseline_run,)
    if baseline and baseline[0] not in kept:
        message = f"Run {baseline[0]} has no results, so this run cannot be compared with it."
        if kept:
            message += f" Set spec.runPolicy.baselineRun to one of: {', '.join(map(str, kept))}."
        return ConditionUpdate(reasons.REGRESSED, False, reasons.BASELINE_NOT_FOUND, message)
    if not before and not baseline:
        message = "There is no other run to compare with."
        return ConditionUpdate(reasons.REGRESSED, False, reasons.NO_EARLIER_RUN, message)
    now = by_place(_results(run, number))
    alike: dict[int, Results] = {}
    for other in (*before, *baseline):
        yield
        found = by_place(_results(run, other))
        alike[other] = {place: results for place, results in found.items() if place in now}
    before_alike = [other for other in before if alike[other]]
    references = [found for found in dict.fromkeys((tuple(before_alike), baseline)) if found]
    current = _environments(_results(run, number))
    worse: list[str] = []
    for reference in references:
        worse += yield from _worse(run, now, {other: alike[other] for other in reference}, current)
    if worse:
        return ConditionUpdate(reasons.REGRESSED, True, reasons.WORSE_THAN_BEFORE, _first(list(dict.fromkeys(worse))))
    changed = [
        _unlike(run, other) for other in (*(before[-1:] if not before_alike else ()), *baseline) if not alike[other]
    ]
    for other in (*before_alike[-1:], *baseline):
        changed += _changed(other, _environments(chain.from_iterable(alike[other].values())), current)
    if changed:
        message = f"{_first(changed)} To compare later runs with this one, set spec.runPolicy.baselineRun to {number}."
        return ConditionUpdate(reasons.REGRESSED, None, reasons.NOT_COMPARABLE, message)
    compared = tuple(dict.fromkeys((*before_alike, *baseline)))
    message = f"No case is shown to be more than {policy.tolerance_percent}% worse than in {_runs(compared)}."
    return ConditionUpdate(reasons.REGRESSED, False, reasons.NOT_WORSE, message)


def _unlike(run: Run, other: int) -> str:
    """Returns why no case of another run can be compared with one of this run."""
    names = (f"run {other}", "this run")
    found = differences(_results(run, other), _results(run, run.status.number), names)
    return f"No case of run {other} was measured as those of this run: {'; '.join(found[:_LISTED])}."


def _environments(results: Iterable[BenchmarkResult]) -> dict[ClassPair, frozenset[str]]:
    """Returns the nodes and engine versions of each pair of classes: a change of them may explain a change of the
    measured values."""
    found: dict[ClassPair, frozenset[str]] = {}
    for result in results:
        spec, engine = result.spec, result.status.engine
        if result.status.phase is ResultPhase.COMPLETE and engine is not None:
            nodes = {place.node for place in (spec.server, spec.client, *spec.clients) if place.node}
            pair = _pair(result)
            found[pair] = found.get(pair, frozenset()) | nodes | {f"{engine.name} {engine.version}"}
    return found


def _changed(
    other: int, before: Mapping[ClassPair, frozenset[str]], current: Mapping[ClassPair, frozenset[str]]
) -> Iterator[str]:
    for pair, environment in before.items():
        now = current.get(pair, environment)
        if now != environment:
            removed, added = (
                ", ".join(sorted(names)) or "nothing else" for names in (environment - now, now - environment)
            )
            yield f"{' to '.join(pair)}: run {other} used {removed}, this run uses {added}."


def _worse(
    run: Run, now: Results, earlier: Mapping[int, Results], current: Mapping[ClassPair, frozenset[str]]
) -> Steps[list[str]]:
    """Describes each case that is worse than the earlier runs in the same environment, beyond how these vary."""
    kind, tolerance = run.observed.owner.kind, run.spec.run_policy.tolerance_percent / 100
    found, before, numbers, quantities = list[str](), dict[Place, list[BenchmarkResult]](), set[int](), set[str]()
    for number, places in earlier.items():
        yield
        environments = _environments(chain.from_iterable(places.values()))
        for place, results in places.items():
            for result in results:
                if environments.get(_pair(result)) == current.get(_pair(result)):
                    before.setdefault(place, []).append(result)
                    numbers.add(number)
                    quantities.update(result.status.statistics)
    for quantity in dict.fromkeys((main_quantity(kind, quantities), rate_quantity(kind))):
        for change in compare_places(before, now, quantity):
            yield
            if change.worse(tolerance):
                found.append(_describe(change, sorted(numbers)))
    return found


def _pair(result: BenchmarkResult) -> ClassPair:
    return result.spec.server.node_class, result.spec.client.node_class


def _describe(change: Change, others: Sequence[int]) -> str:
    levels, share = show_levels(change.levels), change.share
    by = "" if share is None else f", {percent(abs(share))} worse"
    values = f"{show(change.quantity, change.second.mean)} instead of {show(change.quantity, change.first.mean)}"
    one = " (one earlier run)" if change.runs == 1 else ""
    what = title(change.quantity).lower()
    return f"{levels}, {change.server} to {change.client}: {what} {values} in {_runs(others)}{by}{one}."


def _runs(numbers: Sequence[int]) -> str:
    return f"run{'s' * (len(numbers) > 1)} {join_words([str(number) for number in numbers])}"


def _first(sentences: Sequence[str]) -> str:
    rest = len(sentences) - _LISTED
    return " ".join([*sentences[:_LISTED], *([f"And {rest} more."] if rest > 0 else [])])
