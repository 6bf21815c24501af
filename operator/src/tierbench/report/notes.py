"""Notes on a run: cautions for the whole run, and notes on single cases."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from tierbench.advice.tables import RunResults
from tierbench.api.measurements import NodeNetwork
from tierbench.api.result import BenchmarkResult, ResultPhase
from tierbench.results.quantities import is_bare_mean
from tierbench.results.units import join_words, show_level

_ENOUGH_TRIALS: Final = 10


@dataclass(frozen=True)
class CaseNote:
    """A note on one case. `kind` is Failed, Not valid or Fact."""

    kind: str
    case: str
    reason: str
    message: str


def case_name(run: RunResults, result: BenchmarkResult) -> str:
    """Returns the name of a case, from the levels that vary and its classes."""
    varying = [show_level(name, level) for name, level in result.spec.levels.items() if name not in run.fixed]
    return f"{', '.join([*varying, result.spec.server.node_class])} to {result.spec.client.node_class}"


def case_notes(run: RunResults) -> tuple[CaseNote, ...]:
    """Returns the notes on cases: failures, then what may have distorted results, then what explains them."""
    failed, invalid, facts = [], [], []
    for result in run.results:
        name, status = case_name(run, result), result.status
        if status.phase is ResultPhase.FAILED:
            failed.append(CaseNote("Failed", name, status.reason, status.message))
        invalid += [CaseNote("Not valid", name, note.reason, note.message) for note in status.invalid]
        facts += [CaseNote("Fact", name, note.reason, note.message) for note in status.facts]
    return (*failed, *invalid, *facts)


def networks(run: RunResults) -> tuple[NodeNetwork, ...]:
    """Returns what the preflight of a run measured, one entry per pair of nodes."""
    return tuple(dict.fromkeys(network for result in run.results for network in result.spec.networks))


def cautions(run: RunResults) -> tuple[str, ...]:
    """Returns what limits the results of a run."""
    rules = (_running, _failed, _invalid, _means_alone, _few_trials, _one_node)
    return tuple(text for rule in rules if (text := rule(run)))


def _count(run: RunResults, matches: Callable[[BenchmarkResult], bool]) -> str:
    """Returns how many cases match, such as "2 of 10 cases"; empty if there are none."""
    count = sum(map(matches, run.results))
    return f"{count} of {len(run.results)} cases" if count else ""


def _running(run: RunResults) -> str:
    count = _count(run, lambda result: result.status.phase is ResultPhase.RUNNING)
    return f"The run is not finished: {count} that started are still running." if count else ""


def _failed(run: RunResults) -> str:
    count = _count(run, lambda result: result.status.phase is ResultPhase.FAILED)
    return f"{count} failed; see the notes on single cases." if count else ""


def _invalid(run: RunResults) -> str:
    count = _count(run, lambda result: result.status.valid is False)
    return f"{count} are not valid: their results may be distorted." if count else ""


def _means_alone(run: RunResults) -> str:
    count = _count(run, is_bare_mean)
    if not count:
        return ""
    return (
        f"{count} are published means without the number of trials or the standard deviation: they are shown, and no "
        "verdict uses them."
    )


def _few_trials(run: RunResults) -> str:
    counted = (result.spec.trials for result in run.results if not is_bare_mean(result))
    fewest = min(counted, default=_ENOUGH_TRIALS)
    if fewest >= _ENOUGH_TRIALS:
        return ""
    trials = f"{fewest} trial{'s' * (fewest != 1)}"
    return f"A case has only {trials}: intervals are imprecise with fewer than {_ENOUGH_TRIALS} trials."


def _one_node(run: RunResults) -> str:
    nodes: dict[str, set[str]] = {}
    for result in run.results:
        nodes.setdefault(result.spec.server.node_class, set()).add(result.spec.server.node)
    single = [name for name, members in nodes.items() if len(members) == 1]
    if not single:
        return ""
    verb, each = ("were", " each") if len(single) > 1 else ("was", "")
    return f"{join_words(single)} {verb} measured on one node{each}: how much nodes of a class differ is unknown."
