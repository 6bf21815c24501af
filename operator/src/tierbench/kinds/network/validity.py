"""What could have spoiled the numbers of a network's case, and what explains them."""

from collections.abc import Sequence
from statistics import fmean
from typing import Final

from tierbench.api.contract import Flow
from tierbench.api.result import Note, ResultSpec, ResultTrial
from tierbench.results.shares import fairness
from tierbench.results.units import show

SATURATED_SHARE: Final = 0.9
EVEN_FAIRNESS: Final = 0.95
TOGETHER_PARTS_PER_MILLION: Final = 950_000


def facts(spec: ResultSpec, good: Sequence[ResultTrial]) -> list[Note]:
    """What explains the numbers and spoils nothing: what was lost, and who took the bandwidth."""
    notes = _taken(spec, good)
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


def _taken(spec: ResultSpec, good: Sequence[ResultTrial]) -> list[Note]:
    """Who took most, where the shares were not even."""
    trials = [trial.network.shares for trial in good if trial.network is not None and trial.network.shares]
    if not trials:
        return []
    rates = [fmean(share.bits_per_second for share in shares) for shares in zip(*trials, strict=True)]
    total, most = sum(rates), max(range(len(rates)), key=rates.__getitem__)
    if not total or fairness(rates) >= EVEN_FAIRNESS:
        return []
    node = spec.clients[most] if most < len(spec.clients) else spec.client
    message = (
        f"Client {most + 1} ({node.node}, {node.node_class}) had {show('throughputBitsPerSecond', rates[most])}, "
        f"{100 * rates[most] / total:.0f} % of what they had in all; even shares are {100 / len(rates):.0f} %."
    )
    return [Note(reason="UnevenShares", message=message)]


def invalid(good: Sequence[ResultTrial]) -> list[Note]:
    """What could have spoiled the numbers: a server that was the limit, clients that were not at once what they were to
    be. That a client was the limit is said for every kind."""
    notes = []
    saturated = sum(map(_server_saturated, good))
    if saturated:
        message = (
            f"In {saturated} of {len(good)} trials an iperf3 server used all its CPU: it may be what was measured."
        )
        notes.append(Note(reason="ServerSaturated", message=message))
    overlaps = [
        trial.network.overlap_parts_per_million
        for trial in good
        if trial.network is not None and trial.network.overlap_parts_per_million is not None
    ]
    apart = [overlap for overlap in overlaps if overlap < TOGETHER_PARTS_PER_MILLION]
    if apart:
        message = (
            f"In {len(apart)} of {len(good)} trials clients sent together for less than 95 % of the time, "
            f"in the worst for {min(apart) / 1e4:.0f} %."
        )
        notes.append(Note(reason="NotSimultaneous", message=message))
    return notes


def _flows(trial: ResultTrial) -> list[Flow]:
    network = trial.network
    return [] if network is None else [flow for flow in (network.upload, network.download) if flow is not None]


def _server_saturated(trial: ResultTrial) -> bool:
    """Whether the busiest server used 90 % of what it could: of its quota, of its node, and of as many CPUs as it has
    threads. Not said where that is unknown."""
    sample = trial.server
    if trial.network is None or sample is None:
        return False
    used, limit = sample.process_cpu_nanoseconds, sample.cpu_limit_millicores
    if used is None or not limit:
        return False
    return used >= SATURATED_SHARE * limit / 1000 * trial.duration_nanoseconds
