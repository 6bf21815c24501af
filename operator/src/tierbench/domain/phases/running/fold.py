"""Folds what the parts of a client have printed into trials."""

from collections.abc import Callable, Iterator

from tierbench.api.contract import TrialLine
from tierbench.domain.phases.running.client import Client
from tierbench.domain.views import PodView
from tierbench.results.output import PrintedTrial
from tierbench.results.parts import PartOutput, merge_parts
from tierbench.workloads.plan import Case
from tierbench.workloads.workload import Part, Role

Wanted = Callable[[PrintedTrial], bool]


def fold(client: Client, case: Case, wanted: Wanted = lambda _: True) -> Iterator[tuple[int, tuple[TrialLine, ...]]]:
    """The trials of a case that all parts have printed, by attempt: of all of them those that are wanted."""
    for attempt in sorted({pod.attempt for pod in client.pods}):
        pods = {pod.part: pod for pod in client.pods if pod.attempt == attempt}
        parts = [_output(client, case, part, pods.get(part.index), wanted) for part in client.parts]
        yield attempt, merge_parts(parts)


def _output(client: Client, case: Case, part: Part, pod: PodView | None, wanted: Wanted) -> PartOutput:
    """What a part has printed of a case. One that measures beside others is lost once it is known that it prints no
    more. Lines without a number are of the case by which the client is known."""
    if pod is None:
        return PartOutput((), part.role is Role.ECHO)
    log = client.log(pod)
    failed = pod.terminated is not None and pod.terminated.exit_code != 0 and log.complete
    lost = part.role is Role.SHARE and failed
    of_case = (trial for trial in log.output.printed if (trial.case or client.first.number) == case.number)
    return PartOutput(tuple(trial.line for trial in of_case if wanted(trial)), part.role is Role.ECHO, lost)
