"""What to keep in mind when reading a run: of the run as a whole, and of single cases."""

from dataclasses import dataclass
from typing import Final

from tierbench.advice.tables import RunResults
from tierbench.api.measurements import NodeNetwork
from tierbench.api.result import BenchmarkResult, ResultPhase
from tierbench.results.published import is_bare_mean
from tierbench.results.units import join_words, show_level

_ENOUGH_TRIALS: Final = 10


@dataclass(frozen=True)
class CaseNote:
    """What is known of one case. `kind` is Failed, Not valid or Fact."""

    kind: str
    case: str
    reason: str
    message: str


def case_name(run: RunResults, result: BenchmarkResult) -> str:
    """A case by the levels that vary, and its classes."""
    varying = [show_level(name, level) for name, level in result.spec.levels.items() if name not in run.fixed]
    return f"{', '.join([*varying, result.spec.server.node_class])} to {result.spec.client.node_class}"


def case_notes(run: RunResults) -> tuple[CaseNote, ...]:
    """Failures first, then what may have spoiled numbers, then what explains them."""
    failed, invalid, facts = [], [], []
    for result in run.results:
        name, status = case_name(run, result), result.status
        if status.phase is ResultPhase.FAILED:
            failed.append(CaseNote("Failed", name, status.reason, status.message))
        invalid += [CaseNote("Not valid", name, note.reason, note.message) for note in status.invalid]
        facts += [CaseNote("Fact", name, note.reason, note.message) for note in status.facts]
    return (*failed, *invalid, *facts)


def networks(run: RunResults) -> tuple[NodeNetwork, ...]:
    """What its preflight found, a pair of nodes each."""
    return tuple(dict.fromkeys(network for result in run.results for network in result.spec.networks))


def cautions(run: RunResults) -> tuple[str, ...]:
    """How far the numbers carry."""
    found = (_open(run), _failed(run), _invalid(run), _alone(run), _few_trials(run), _one_node(run))
    return tuple(text for text in found if text)


def _open(run: RunResults) -> str:
    count = sum(result.status.phase is ResultPhase.RUNNING for result in run.results)
    return f"The run is not over: {count} of {len(run.results)} cases begun have not ended." if count else ""


def _failed(run: RunResults) -> str:
    count = sum(result.status.phase is ResultPhase.FAILED for result in run.results)
    return f"{count} of {len(run.results)} cases failed; their reasons are below." if count else ""


def _invalid(run: RunResults) -> str:
    count = sum(result.status.valid is False for result in run.results)
    return (
        f"{count} of {len(run.results)} cases are not valid: something may have spoiled their numbers." if count else ""
    )


def _alone(run: RunResults) -> str:
    count = sum(map(is_bare_mean, run.results))
    return (
        f"{count} of {len(run.results)} cases are published means without the number of their trials or their standard "
        "deviation: they are shown, and in no verdict."
        if count
        else ""
    )


def _few_trials(run: RunResults) -> str:
    counted = (result.spec.trials for result in run.results if not is_bare_mean(result))
    fewest = min(counted, default=_ENOUGH_TRIALS)
    if fewest >= _ENOUGH_TRIALS:
        return ""
    return f"Only {fewest} trial{'s' * (fewest != 1)} a case: intervals are rough below {_ENOUGH_TRIALS}."


def _one_node(run: RunResults) -> str:
    nodes: dict[str, set[str]] = {}
    for result in run.results:
        nodes.setdefault(result.spec.server.node_class, set()).add(result.spec.server.node)
    single = [name for name, members in nodes.items() if len(members) == 1]
    if not single:
        return ""
    each = " each" * (len(single) > 1)
    return f"One node stands for {join_words(single)}{each}: how nodes of a class differ was not seen."
