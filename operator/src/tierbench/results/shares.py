"""Clients that measured at once: what they got together, and each of it."""

import math
from collections import Counter
from collections.abc import Sequence
from statistics import fmean

from tierbench.api.contract import ClientShare, Echoes, Failure, Flow, Network, TcpActivity, Trace, TrialLine

CLIENT_LOST = "ClientLost"


def lost_client(lines: Sequence[TrialLine | None]) -> Failure | None:
    """Why a trial failed of which some clients, counted from 0, have no line."""
    lost = [str(client + 1) for client, line in enumerate(lines) if line is None]
    if not lost:
        return None
    message = f"client {', '.join(lost)} of {len(lines)} was lost in mid-trial: the others' figures are kept"
    return Failure(reason=CLIENT_LOST, message=message)


def merge_networks(lines: Sequence[TrialLine | None]) -> Network:
    """What the clients, in their order, got together; those without a line were lost."""
    known = [line for line in lines if line is not None and line.network is not None]
    networks = [line.network for line in known if line.network is not None]
    return Network(
        upload=_add(
            [(network.start_nanoseconds, network.upload) for network in networks if network.upload is not None]
        ),
        download=_add(
            [(network.start_nanoseconds, network.download) for network in networks if network.download is not None]
        ),
        ping=_pool([network.ping for network in networks if network.ping is not None]),
        shares=tuple(_share(client, line) for client, line in enumerate(lines)),
        overlap_parts_per_million=_overlap(known),
    )


def merge_traces(lines: Sequence[TrialLine | None]) -> tuple[Trace, ...]:
    """The clients' traces, each with its client's number. The server's has all clients in it, by their ports."""
    return tuple(
        trace.model_copy(update={"client": client})
        for client, line in enumerate(lines)
        if line is not None
        for trace in line.traces
    )


def fairness(rates: Sequence[float]) -> float:
    """Jain's index: 1 where all have the same, 1/n where one has everything (Jain, Chiu and Hawe, DEC-TR-301, 1984).

    Raises:
        ValueError: nobody has anything.
    """
    squares = sum(rate * rate for rate in rates)
    if not squares:
        raise ValueError("nobody has anything to share")
    return sum(rates) ** 2 / (len(rates) * squares)


def _share(client: int, line: TrialLine | None) -> ClientShare:
    if line is None or line.network is None:
        return ClientShare(client=client, failure=Failure(reason=CLIENT_LOST, message="It was lost in mid-trial."))
    flows = [flow for flow in (line.network.upload, line.network.download) if flow is not None]
    return ClientShare(
        client=client,
        bits_per_second=sum(flow.bits_per_second for flow in flows),
        retransmits=_sum([flow.retransmits for flow in flows]),
        lost_packets=_sum([flow.lost_packets for flow in flows]),
        failure=line.failure,
    )


def _overlap(lines: Sequence[TrialLine]) -> int | None:
    """The time in which all loads ran, as a share of the longest; None if it is not known of all."""
    spans = [
        (line.network.start_nanoseconds, line.duration_nanoseconds)
        for line in lines
        if line.network is not None and line.network.start_nanoseconds is not None
    ]
    longest = max((duration for _, duration in spans), default=0)
    if len(spans) < len(lines) or not longest:
        return None
    together = min(start + duration for start, duration in spans) - max(start for start, _ in spans)
    return round(1e6 * max(together, 0) / longest)


def _add(started: Sequence[tuple[int | None, Flow]]) -> Flow | None:
    """All flows together, each with its start in nanoseconds, if that is known."""
    if not started:
        return None
    flows = [flow for _, flow in started]
    jitters = [flow.jitter_nanoseconds for flow in flows if flow.jitter_nanoseconds is not None]
    sums = {name: _sum([getattr(flow, name) for flow in flows]) for name in Flow.model_fields if name != "tcp"}
    activities = [flow.tcp for flow in flows if flow.tcp is not None]
    jitter = round(fmean(jitters)) if jitters else None
    received = _rate([(start, flow.received_bytes, flow.bits_per_second) for start, flow in started])
    sent = _rate([(start, flow.sent_bytes, flow.sent_bits_per_second) for start, flow in started])
    together = {"bits_per_second": received or 0, "sent_bits_per_second": sent, "jitter_nanoseconds": jitter}
    return Flow(**(sums | together), tcp=_all_activity(activities))


def _rate(started: Sequence[tuple[int | None, int, int | None]]) -> int | None:
    """All bytes, each client's with its start and its rate, from the first start to the last end, in bits a second.

    Rates do not add up: the receiver whose last segments come late has for itself what the others have left.
    """
    starts = [start for start, _, _ in started if start is not None]
    if len(starts) < len(started):
        starts = [0] * len(started)
    ends = [start + 8e9 * moved / rate for start, (_, moved, rate) in zip(starts, started, strict=True) if rate]
    return round(8e9 * sum(moved for _, moved, _ in started) / (max(ends) - min(starts))) if ends else None


def _all_activity(activities: Sequence[TcpActivity]) -> TcpActivity | None:
    """All samples and all events together."""
    samples = sum(activity.samples for activity in activities)
    if not samples:
        return None
    states: dict[str, float] = {}
    events: Counter[str] = Counter()
    for activity in activities:
        events.update(activity.events)
        for name, share in activity.states_parts_per_million.items():
            states[name] = states.get(name, 0) + share * activity.samples / samples
    rounded = {name: round(share) for name, share in states.items()}
    return TcpActivity(samples=samples, states_parts_per_million=rounded, events=dict(events))


def _pool(many: Sequence[Echoes]) -> Echoes | None:
    """All echo requests as if one ping had sent them: the moments are exact, of figures that ping has rounded."""
    if not many:
        return None
    counts = {name: sum(getattr(one, name) for one in many) for name in ("sent", "received", "duplicated")}
    answered = [
        (one.received, one.mean_nanoseconds, one.standard_deviation_nanoseconds or 0)
        for one in many
        if one.mean_nanoseconds is not None
    ]
    if not answered:
        return Echoes(**counts)
    total = sum(count for count, _, _ in answered)
    mean = sum(count * value for count, value, _ in answered) / total
    variance = sum(count * (spread**2 + (value - mean) ** 2) for count, value, spread in answered) / total
    return Echoes(
        **counts,
        minimum_nanoseconds=min(one.minimum_nanoseconds for one in many if one.minimum_nanoseconds is not None),
        mean_nanoseconds=round(mean),
        maximum_nanoseconds=max(one.maximum_nanoseconds for one in many if one.maximum_nanoseconds is not None),
        standard_deviation_nanoseconds=round(math.sqrt(variance)),
    )


def _sum(values: Sequence[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None
