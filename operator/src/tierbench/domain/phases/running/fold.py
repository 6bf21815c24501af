"""Folds what the parts of a client have printed into trials."""

from collections.abc import Iterator

from tierbench.api.contract import TrialLine
from tierbench.domain.phases.running.client import Client
from tierbench.domain.views import PodView
from tierbench.results.parts import PartOutput, merge_parts
from tierbench.workloads.workload import Part, Role


def fold(client: Client) -> Iterator[tuple[int, tuple[TrialLine, ...]]]:
    """The trials that all parts have printed, by attempt."""
    for attempt in sorted({pod.attempt for pod in client.pods}):
        pods = {pod.part: pod for pod in client.pods if pod.attempt == attempt}
        yield attempt, merge_parts([_output(client, part, pods.get(part.index)) for part in client.parts])


def _output(client: Client, part: Part, pod: PodView | None) -> PartOutput:
    """What a part has printed. One that measures beside others is lost once it is known that it prints no more."""
    if pod is None:
        return PartOutput((), part.role is Role.ECHO)
    log = client.log(pod)
    failed = pod.terminated is not None and pod.terminated.exit_code != 0 and log.complete
    lost = part.role is Role.SHARE and failed
    return PartOutput(log.output.trials, part.role is Role.ECHO, lost)
