"""What could have spoiled the numbers of a network's case, and what explains them."""

from collections.abc import Sequence
from typing import Final

from tierbench.api.contract import Flow
from tierbench.api.result import Note, ResultTrial

SATURATED_CORE_SHARE: Final = 0.9


def network_facts(good: Sequence[ResultTrial]) -> list[Note]:
    """What explains the numbers and spoils nothing: what was lost."""
    notes = []
    flows = [flow for trial in good for flow in _flows(trial)]
    lost = sum(flow.lost_packets or 0 for flow in flows)
    if lost:
        packets = sum(flow.packets or 0 for flow in flows)
        message = f"{lost} of {packets} UDP packets were lost: more was sent than the network carried."
        notes.append(Note(reason="PacketsLost", message=message))
    echoes = [trial.network.ping for trial in good if trial.network is not None and trial.network.ping is not None]
    unanswered = sum(one.sent - one.received for one in echoes)
    if unanswered:
        message = f"{unanswered} of {sum(one.sent for one in echoes)} echo requests were not answered."
        notes.append(Note(reason="PingLost", message=message))
    return notes


def network_invalid(good: Sequence[ResultTrial]) -> list[Note]:
    """What could have spoiled the numbers: a server that was the limit. Of clients the same is said for every kind."""
    saturated = sum(map(_server_saturated, good))
    if not saturated:
        return []
    message = f"In {saturated} of {len(good)} trials the iperf3 server used all of a CPU: it may be what was measured."
    return [Note(reason="ServerSaturated", message=message)]


def _flows(trial: ResultTrial) -> list[Flow]:
    network = trial.network
    return [] if network is None else [flow for flow in (network.upload, network.download) if flow is not None]


def _server_saturated(trial: ResultTrial) -> bool:
    if trial.network is None or trial.server is None:
        return False
    return (trial.server.process_cpu_nanoseconds or 0) >= SATURATED_CORE_SHARE * trial.duration_nanoseconds
