"""The assessment of a run that has ended: by its constraints, by earlier runs and by the baseline run."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tierbench.advice.comparison import Change, compare_runs
from tierbench.advice.requirements import Violation, group_by_workload, violations, workload_items
from tierbench.api.result import BenchmarkResult, ResultPhase
from tierbench.api.run_policy import Constraints
from tierbench.domain import reasons
from tierbench.domain.actions import Event
from tierbench.domain.run import Run
from tierbench.domain.status import ConditionUpdate
from tierbench.results.quantities import main_quantity, rate_quantity
from tierbench.results.units import humanize, join_words, percent, show, show_levels, title

_LISTED: Final = 3

ClassPair = tuple[str, str]
"""Server class and client class."""


@dataclass(frozen=True)
class Assessment:
    """The conditions that assess a run, and their events."""

    updates: tuple[ConditionUpdate, ...]
    events: tuple[Event, ...]


def assess(run: Run) -> Assessment:
    """Returns the conditions Passed (if the run has constraints) and Regressed of a run that has ended."""
    passed, regressed = _passed(run), _regressed(run)
    updates = (regressed,) if passed is None else (passed, regressed)
    events = [] if passed is None else [Event(passed.reason, passed.message, warning=not passed.status)]
    if regressed.status or regressed.reason == reasons.BASELINE_NOT_FOUND:
        events.append(Event(regressed.reason, regressed.message, warning=True))
    return Assessment(updates, tuple(events))


def verdicts_in_progress(run: Run) -> tuple[ConditionUpdate, ...]:
    """Resets Passed, Regressed and Recurring, so that no client that waits for them sees those of the previous run."""
    message = "The run is in progress."
    policy = run.spec.run_policy
    updates = [ConditionUpdate(reasons.REGRESSED, False, reasons.RUNNING, message)]
    if policy.constraints != Constraints():
        updates.append(ConditionUpdate(reasons.PASSED, False, reasons.RUNNING, message))
    if policy.schedule is not None:
        message += " The next run is scheduled when it ends."
        updates.append(ConditionUpdate(reasons.RECURRING, True, reasons.RUNNING, message))
    return tuple(updates)


def _results(run: Run, number: int) -> tuple[BenchmarkResult, ...]:
    known = {**(run.observed.earlier or {}), **run.observed.results}
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


def _regressed(run: Run) -> ConditionUpdate:
    policy, number = run.spec.run_policy, run.status.number
    kept = sorted({result.run for result in run.observed.known_results} - {number})
    before = [each for each in kept if each < number]
    baseline = () if policy.baseline_run is None or policy.baseline_run == number else (policy.baseline_run,)
    if baseline and baseline[0] not in kept:
        message = f"Run {baseline[0]} has no results, so this run cannot be compared with it."
        if kept:
            message += f" Set spec.runPolicy.baselineRun to one of: {', '.join(map(str, kept))}."
        return ConditionUpdate(reasons.REGRESSED, False, reasons.BASELINE_NOT_FOUND, message)
    others = tuple(dict.fromkeys([*before, *baseline]))
    if not others:
        message = "There is no other run to compare with."
        return ConditionUpdate(reasons.REGRESSED, False, reasons.NO_EARLIER_RUN, message)
    current = _environments(_results(run, number))
    earlier = {other: _environments(_results(run, other)) for other in others}
    references = dict.fromkeys([tuple(before), baseline])
    worse = [text for reference in references if reference for text in _worse(run, reference, earlier, current)]
    if worse:
        return ConditionUpdate(reasons.REGRESSED, True, reasons.WORSE_THAN_BEFORE, _first(list(dict.fromkeys(worse))))
    changed = [text for other in (*before[-1:], *baseline) for text in _changed(other, earlier[other], current)]
    if changed:
        message = f"{_first(changed)} To compare later runs with this one, set spec.runPolicy.baselineRun to {number}."
        return ConditionUpdate(reasons.REGRESSED, None, reasons.NOT_COMPARABLE, message)
    message = f"No case is shown to be more than {policy.tolerance_percent}% worse than in {_runs(others)}."
    return ConditionUpdate(reasons.REGRESSED, False, reasons.NOT_WORSE, message)


def _environments(results: Iterable[BenchmarkResult]) -> dict[ClassPair, frozenset[str]]:
    """Returns the nodes, engine versions and settings of each pair of classes: a change of them may explain a change of
    the measured values."""
    found: dict[ClassPair, frozenset[str]] = {}
    for result in results:
        spec, engine = result.spec, result.status.engine
        if result.status.phase is ResultPhase.MEASURED and engine is not None:
            nodes = {place.node for place in (spec.server, spec.client, *spec.clients) if place.node}
            settings = {f"{humanize(name).lower()} {level}" for name, level in spec.conditions.items()}
            pair = _pair(result)
            found[pair] = found.get(pair, frozenset()) | nodes | {f"{engine.name} {engine.version}"} | settings
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
    run: Run,
    others: Sequence[int],
    earlier: Mapping[int, Mapping[ClassPair, frozenset[str]]],
    current: Mapping[ClassPair, frozenset[str]],
) -> Iterator[str]:
    """Describes each case that is worse than the earlier runs in the same environment, beyond how these vary."""
    kind, tolerance = run.observed.owner.kind, run.spec.run_policy.tolerance_percent / 100
    comparable = [
        result
        for other in others
        for result in _results(run, other)
        if earlier[other].get(_pair(result)) == current.get(_pair(result))
    ]
    numbers = tuple(sorted({result.spec.run for result in comparable}))
    quantities = {name for result in comparable for name in result.status.statistics}
    for quantity in dict.fromkeys((main_quantity(kind, quantities), rate_quantity(kind))):
        for change in compare_runs(comparable, _results(run, run.status.number), quantity):
            if change.worse(tolerance):
                yield _describe(change, numbers)


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
