"""Folds what the parts of a client have printed into trials."""

from collections.abc import Iterator

from tierbench.api.contract import TrialLine
from tierbench.domain.phases.running.client import Client
from tierbench.domain.views import PodView
from tierbench.results.parts import PartOutput, merge_parts
from tierbench.workloads.plan import Case
from tierbench.workloads.workload import Part, Role


def fold(client: Client, case: Case) -> Iterator[tuple[int, tuple[TrialLine, ...]]]:
    """The trials of a case that all parts have printed, by attempt."""
    for attempt in sorted({pod.attempt for pod in client.pods}):
        pods = {pod.part: pod for pod in client.pods if pod.attempt == attempt}
        yield attempt, merge_parts([_output(client, case, part, pods.get(part.index)) for part in client.parts])


def _output(client: Client, case: Case, part: Part, pod: PodView | None) -> PartOutput:
    """What a part has printed of a case. One that measures beside others is lost once it is known that it prints no
    more. Lines without a number are of the case by which the client is known."""
    if pod is None:
        return PartOutput((), part.role is Role.ECHO)
    log = client.log(pod)
    failed = pod.terminated is not None and pod.terminated.exit_code != 0 and log.complete
    lost = part.role is Role.SHARE and failed
    trials = tuple(line for line in log.output.trials if (line.case or client.first.number) == case.number)
    return PartOutput(trials, part.role is Role.ECHO, lost)
