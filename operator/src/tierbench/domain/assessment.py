"""What a run is held to when it has ended: its constraints, the run before it, and the baseline. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tierbench.advice.comparison import Change, compare_runs
from tierbench.advice.constraints import Violation, violations
from tierbench.advice.workload import group_by_workload, workload_items
from tierbench.api.result import BenchmarkResult, ResultPhase
from tierbench.api.run_policy import Constraints
from tierbench.domain import reasons
from tierbench.domain.actions import Event
from tierbench.domain.run import Run
from tierbench.domain.status import ConditionUpdate
from tierbench.results.levels import levels_in_short
from tierbench.results.quantities import main_quantity, rate_quantity
from tierbench.results.units import join_words, percent, show, title, words

_NAMED: Final = 3

Pair = tuple[str, str]
"""Server class and client class."""


@dataclass(frozen=True)
class Assessment:
    """Conditions, and the events that go with them."""

    said: tuple[ConditionUpdate, ...]
    events: tuple[Event, ...]


def assess(run: Run) -> Assessment:
    """The conditions Passed (if there are constraints) and Regressed of a run that has ended."""
    passed, regressed = _passed(run), _regressed(run)
    said = (regressed,) if passed is None else (passed, regressed)
    events = [] if passed is None else [Event(passed.reason, passed.message, warning=not passed.status)]
    if regressed.status or regressed.reason == reasons.BASELINE_NOT_FOUND:
        events.append(Event(regressed.reason, regressed.message, warning=True))
    return Assessment(said, tuple(events))


def begun(run: Run) -> tuple[ConditionUpdate, ...]:
    """The same conditions while the run is under way: nobody who waits for them must see those of the run before."""
    message = "The run is under way."
    policy = run.spec.run_policy
    said = [ConditionUpdate(reasons.REGRESSED, False, reasons.RUNNING, message)]
    if policy.constraints != Constraints():
        said.append(ConditionUpdate(reasons.PASSED, False, reasons.RUNNING, message))
    if policy.schedule is not None:
        said.append(
            ConditionUpdate(
                reasons.RECURRING, True, reasons.RUNNING, f"{message} The next is planned when it has ended."
            )
        )
    return tuple(said)


def _results(run: Run, number: int) -> tuple[BenchmarkResult, ...]:
    known = {**(run.observed.earlier or {}), **run.observed.results}
    return tuple(result for _, result in sorted(known.items()) if result.spec.run == number)


def _passed(run: Run) -> ConditionUpdate | None:
    constraints = run.spec.run_policy.constraints
    if constraints == Constraints():
        return None
    results = _results(run, run.status.number)
    failed = sum(result.status.phase is ResultPhase.FAILED for result in results)
    found = [(f"{place}: {breach.message}", breach) for place, breach in _breaches(run, results)]
    broken = [f"{failed} cases failed."] if failed else []
    broken += [words for words, breach in found if not breach.unknown and not breach.uncertain]
    if broken:
        return ConditionUpdate(reasons.PASSED, False, reasons.CONSTRAINTS_BROKEN, _first(broken))
    unknown = [words for words, breach in found if breach.unknown]
    if unknown:
        return ConditionUpdate(reasons.PASSED, None, reasons.CONSTRAINTS_UNKNOWN, _first(unknown))
    return ConditionUpdate(
        reasons.PASSED, True, reasons.CONSTRAINTS_MET, "Every case keeps to spec.runPolicy.constraints."
    )


def _breaches(run: Run, results: Sequence[BenchmarkResult]) -> Iterator[tuple[str, Violation]]:
    kind, constraints = run.observed.owner.kind, run.spec.run_policy.constraints
    places: dict[tuple[str, str], list[BenchmarkResult]] = {}
    for result in results:
        places.setdefault((result.spec.server.node_class, result.spec.client.node_class), []).append(result)
    for (server, client), found in places.items():
        for breach in violations(
            group_by_workload(found, workload_items(None)), server, constraints, kind, workload_items(None)
        ):
            yield f"{server} to {client}", breach


def _regressed(run: Run) -> ConditionUpdate:
    policy, number = run.spec.run_policy, run.status.number
    kept = sorted({result.run for result in run.observed.known_results} - {number})
    before = [each for each in kept if each < number]
    baseline = policy.baseline_run if policy.baseline_run != number else None
    if baseline is not None and baseline not in kept:
        there = f"; these are: {', '.join(map(str, kept))}" if kept else ""
        message = f"Run {baseline} is not kept, so nothing can be compared with it{there}. See runPolicy.baselineRun."
        return ConditionUpdate(reasons.REGRESSED, False, reasons.BASELINE_NOT_FOUND, message)
    against = dict.fromkeys([*before, *([baseline] if baseline is not None else [])])
    if not against:
        return ConditionUpdate(
            reasons.REGRESSED, False, reasons.NO_EARLIER_RUN, "There is no other run to compare with."
        )
    now = _circumstances(_results(run, number))
    earlier = {other: _circumstances(_results(run, other)) for other in against}
    references = dict.fromkeys([tuple(before), *([(baseline,)] if baseline is not None else [])])
    worse = [words for others in references if others for words in _worse(run, others, earlier, now)]
    if worse:
        return ConditionUpdate(reasons.REGRESSED, True, reasons.WORSE_THAN_BEFORE, _first(list(dict.fromkeys(worse))))
    unlike = [
        words
        for other in [*before[-1:], *([baseline] if baseline is not None else [])]
        for words in _unlike(other, earlier[other], now)
    ]
    if unlike:
        message = f"{_first(unlike)} Pin runPolicy.baselineRun to a run of now, and later ones are compared with that."
        return ConditionUpdate(reasons.REGRESSED, None, reasons.NOT_COMPARABLE, message)
    message = (
        f"No case is shown to be worse than in {_named(tuple(against))} by more than {policy.tolerance_percent} %."
    )
    return ConditionUpdate(reasons.REGRESSED, False, reasons.NOT_WORSE, message)


def _circumstances(results: Iterable[BenchmarkResult]) -> dict[Pair, frozenset[str]]:
    """Nodes, versions of engines and conditions: where they differ, they may be why the numbers do."""
    found: dict[Pair, frozenset[str]] = {}
    for result in results:
        spec, engine = result.spec, result.status.engine
        if result.status.phase is ResultPhase.MEASURED and engine is not None:
            nodes = {place.node for place in (spec.server, spec.client, *spec.clients) if place.node}
            pair = (spec.server.node_class, spec.client.node_class)
            conditions = {f"{words(name).lower()} {level}" for name, level in spec.conditions.items()}
            found[pair] = found.get(pair, frozenset()) | nodes | {f"{engine.name} {engine.version}"} | conditions
    return found


def _unlike(other: int, were: Mapping[Pair, frozenset[str]], now: Mapping[Pair, frozenset[str]]) -> Iterator[str]:
    for pair, before in were.items():
        if pair in now and now[pair] != before:
            gone, come = (", ".join(sorted(names)) or "nothing" for names in (before - now[pair], now[pair] - before))
            yield f"{' to '.join(pair)}: run {other} was of {gone} where this is of {come}."


def _worse(
    run: Run,
    others: Sequence[int],
    were: Mapping[int, Mapping[Pair, frozenset[str]]],
    now: Mapping[Pair, frozenset[str]],
) -> Iterator[str]:
    """Where this run is beyond what these earlier ones, as far as they are alike, differ by."""
    kind, tolerance = run.observed.owner.kind, run.spec.run_policy.tolerance_percent / 100
    alike = [
        result
        for other in others
        for result in _results(run, other)
        if were[other].get(_pair(result)) == now.get(_pair(result))
    ]
    numbers = tuple(sorted({result.spec.run for result in alike}))
    there = {name for result in alike for name in result.status.statistics}
    for quantity in dict.fromkeys((main_quantity(kind, there), rate_quantity(kind))):
        for change in compare_runs(alike, _results(run, run.status.number), quantity):
            if change.worse(tolerance):
                yield _words(change, numbers)


def _pair(result: BenchmarkResult) -> Pair:
    return result.spec.server.node_class, result.spec.client.node_class


def _words(change: Change, others: Sequence[int]) -> str:
    levels, share = levels_in_short(change.levels), change.share
    by = "" if share is None else f", {percent(abs(share))} worse"
    values = f"{show(change.quantity, change.second.mean)} instead of {show(change.quantity, change.first.mean)}"
    one = " (one earlier run)" if change.runs == 1 else ""
    what = title(change.quantity).lower()
    return f"{levels}, {change.server} to {change.client}: {what} {values} in {_named(others)}{by}{one}."


def _named(others: Sequence[int]) -> str:
    return f"run{'s' * (len(others) > 1)} {join_words([str(other) for other in others])}"


def _first(sentences: Sequence[str]) -> str:
    rest = len(sentences) - _NAMED
    return " ".join([*sentences[:_NAMED], *([f"And {rest} more."] if rest > 0 else [])])
