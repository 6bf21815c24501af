"""The measurements of a NetworkBenchmark: quantities, trials of several clients, and what distorts or explains them."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import Final

from tierbench.api.contract import Outcome, ServerSample, Trace, TrialLine
from tierbench.api.measurements import ClientShare, Echoes, Failure, Flow, Network, TcpActivity
from tierbench.api.record import ResultTrial, Spread
from tierbench.api.result import Note, ResultSpec
from tierbench.results.quantities import spread_of
from tierbench.results.units import show
from tierbench.stats.distributions import jain_index, parts_per_million

RATE: Final = "throughputBitsPerSecond"
MAIN: Final = (RATE,)
TIME: Final = ("pingNanoseconds",)
TITLES: Final = {
    "throughputBitsPerSecond": "Throughput",
    "sentBitsPerSecond": "Sent",
    "uploadBitsPerSecond": "Upload",
    "downloadBitsPerSecond": "Download",
    "fairnessPartsPerMillion": "Fairness (Jain's index)",
    "retransmits": "TCP segments retransmitted",
    "tcpNotOpenPartsPerMillion": "TCP not in state Open",
    "lostPartsPerMillion": "UDP packets lost",
    "pingNanoseconds": "Ping",
    "pingLostPartsPerMillion": "Echo requests not answered",
    "pingUnderLoadNanoseconds": "Ping under load",
    "pingUnderLoadLostPartsPerMillion": "Echo requests not answered under load",
    "iperf3CpuPartsPerMillion": "CPU of the iperf3 server",
}
_NO_SAMPLE: Final = ServerSample()
_FLOW: Final = Flow(tcp=TcpActivity(samples=1))
_SPREAD: Final = Spread(mean=0, p50=0, p90=0, p99=0)
_MOST_CLIENTS: Final = 16
EVERYTHING: Final = ResultTrial(
    trial=1,
    outcome=Outcome.COMPLETED,
    start_time="",
    duration_nanoseconds=1,
    round_trip=_SPREAD,
    round_trip_under_load=_SPREAD,
    network=Network(
        upload=_FLOW,
        download=_FLOW,
        ping=Echoes(),
        ping_under_load=Echoes(),
        shares=tuple(ClientShare(client=number, bits_per_second=1) for number in range(_MOST_CLIENTS)),
    ),
)
"""A trial that has all quantities."""
_CLIENT_RATE: Final = re.compile(r"client\d+BitsPerSecond")
SATURATED_SHARE: Final = 0.9
EVEN_FAIRNESS: Final = 0.95
TOGETHER_PARTS_PER_MILLION: Final = 950_000
CLIENT_LOST = "ClientLost"


def quantities(trial: ResultTrial) -> dict[str, float | None]:
    """Returns quantities by name, None if the trial does not have them. Throughput is what receivers got in both
    directions."""
    network, sample = trial.network, trial.server or _NO_SAMPLE
    if network is None:
        return {}
    flows = [flow for flow in (network.upload, network.download) if flow is not None]
    return {
        "throughputBitsPerSecond": sum(flow.bits_per_second for flow in flows) if flows else None,
        "sentBitsPerSecond": _sum(flow.sent_bits_per_second for flow in flows),
        **_each_way(network.upload, network.download),
        **_each_client(network.shares),
        "retransmits": _sum(flow.retransmits for flow in flows),
        **_states([flow.tcp for flow in flows if flow.tcp is not None]),
        "lostPartsPerMillion": parts_per_million(_sum(f.lost_packets for f in flows), _sum(f.packets for f in flows)),
        "outOfOrderPackets": _sum(flow.out_of_order_packets for flow in flows),
        "jitterNanoseconds": _mean(flow.jitter_nanoseconds for flow in flows),
        **_echoes("ping", network.ping, trial.round_trip),
        **_echoes("pingUnderLoad", network.ping_under_load, trial.round_trip_under_load),
        "clientCpuPartsPerMillion": parts_per_million(trial.client.cpu_nanoseconds, trial.duration_nanoseconds),
        "iperf3CpuPartsPerMillion": parts_per_million(sample.process_cpu_nanoseconds, trial.duration_nanoseconds),
        "serverCpuPartsPerMillion": sample.cpu_parts_per_million,
        "tcpRoundTripNanoseconds": sample.round_trip_nanoseconds,
    }


def _each_way(upload: Flow | None, download: Flow | None) -> dict[str, float | None]:
    """Returns the rate of each direction, if data was sent in both at the same time."""
    if upload is None or download is None:
        return {}
    return {"uploadBitsPerSecond": upload.bits_per_second, "downloadBitsPerSecond": download.bits_per_second}


def _each_client(shares: Sequence[ClientShare]) -> dict[str, float | None]:
    """Returns Jain's index and the rate of each client, counted from 1, if several measured at the same time."""
    rates = [share.bits_per_second for share in shares]
    if not any(rates):
        return {}
    each = {f"client{share.client + 1}BitsPerSecond": float(share.bits_per_second) for share in shares}
    return {"fairnessPartsPerMillion": 1e6 * jain_index(rates), **each}


def _states(activities: Sequence[TcpActivity]) -> dict[str, float | None]:
    """Returns the share of samples in which TCP had lost data or was slowed down: all states but Open."""
    samples = sum(activity.samples for activity in activities)
    if not samples:
        return {}
    is_open = sum(activity.states_parts_per_million.get("Open", 0) * activity.samples for activity in activities)
    return {"tcpNotOpenPartsPerMillion": 1e6 - is_open / samples}


def _echoes(name: str, asked: Echoes | None, spread: Spread | None) -> dict[str, float | None]:
    echoes = asked or Echoes()
    return {
        f"{name}Nanoseconds": echoes.mean_nanoseconds,
        f"{name}MinNanoseconds": echoes.min_nanoseconds,
        f"{name}MaxNanoseconds": echoes.max_nanoseconds,
        f"{name}StandardDeviationNanoseconds": echoes.standard_deviation_nanoseconds,
        f"{name}P50Nanoseconds": None if spread is None else spread.p50,
        f"{name}P90Nanoseconds": None if spread is None else spread.p90,
        f"{name}P99Nanoseconds": None if spread is None else spread.p99,
        f"{name}LostPartsPerMillion": parts_per_million(echoes.sent - echoes.received, echoes.sent),
    }


def _sum(values: Iterable[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _mean(values: Iterable[int | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def facts(spec: ResultSpec, good: Sequence[ResultTrial]) -> list[Note]:
    """Returns what explains the numbers without distorting them: losses, and which client got the bandwidth."""
    notes = _uneven_shares(spec, good)
    flows = [flow for trial in good for flow in _flows(trial)]
    lost = sum(flow.lost_packets or 0 for flow in flows)
    if lost:
        packets = sum(flow.packets or 0 for flow in flows)
        message = f"{lost} of {packets} UDP packets were lost: the network carried less than was sent."
        notes.append(Note(reason="PacketsLost", message=message))
    networks = [trial.network for trial in good if trial.network is not None]
    return [
        *notes,
        *_unanswered("PingLost", "echo requests", [network.ping for network in networks]),
        *_unanswered("PingLostUnderLoad", "echo requests under load", [one.ping_under_load for one in networks]),
    ]


def _unanswered(reason: str, requests: str, asked: Sequence[Echoes | None]) -> list[Note]:
    sent = sum(one.sent for one in asked if one is not None)
    unanswered = sent - sum(one.received for one in asked if one is not None)
    if not unanswered:
        return []
    return [Note(reason=reason, message=f"{unanswered} of {sent} {requests} were not answered.")]


def _uneven_shares(spec: ResultSpec, good: Sequence[ResultTrial]) -> list[Note]:
    """Returns which client got the most, if the shares are not even."""
    trials = [trial.network.shares for trial in good if trial.network is not None and trial.network.shares]
    if not trials:
        return []
    rates = [fmean(share.bits_per_second for share in shares) for shares in zip(*trials, strict=True)]
    total, most = sum(rates), max(range(len(rates)), key=rates.__getitem__)
    if not total or jain_index(rates) >= EVEN_FAIRNESS:
        return []
    node = spec.clients[most] if most < len(spec.clients) else spec.client
    message = (
        f"Client {most + 1} ({node.node}, {node.node_class}) got {show('throughputBitsPerSecond', rates[most])}, "
        f"{100 * rates[most] / total:.0f}% of the total; even shares are {100 / len(rates):.0f}%."
    )
    return [Note(reason="UnevenShares", message=message)]


def invalid(spec: ResultSpec, good: Sequence[ResultTrial]) -> list[Note]:
    """Returns what may have distorted the numbers: a saturated server, and clients that did not send at the same time.

    A saturated client is reported for all kinds.
    """
    notes = []
    saturated = sum(map(_server_saturated, good))
    if saturated:
        message = (
            f"In {saturated} of {len(good)} trials an iperf3 server used all its CPU: the numbers may be its limit, "
            "not the network's."
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
            f"In {len(apart)} of {len(good)} trials clients sent together for less than 95% of the time, in the worst "
            f"for {min(apart) / 1e4:.0f}%."
        )
        notes.append(Note(reason="NotSimultaneous", message=message))
    return notes


def _flows(trial: ResultTrial) -> list[Flow]:
    network = trial.network
    return [] if network is None else [flow for flow in (network.upload, network.download) if flow is not None]


def _server_saturated(trial: ResultTrial) -> bool:
    """Returns whether the busiest server used 90% of its limit: of its quota, its node, or as many CPUs as it has
    threads.

    Returns False if the limit is not known.
    """
    sample = trial.server
    if trial.network is None or sample is None:
        return False
    used, limit = sample.process_cpu_nanoseconds, sample.cpu_limit_millicores
    if used is None or not limit:
        return False
    return used >= SATURATED_SHARE * limit / 1000 * trial.duration_nanoseconds


def is_client_rate(quantity: str) -> bool:
    """Whether a quantity is the rate of one of several clients."""
    return _CLIENT_RATE.fullmatch(quantity) is not None


def condense(line: TrialLine) -> dict[str, Spread | None]:
    """Returns the fields of a result's trial that replace its distributions."""
    distributions = line.distributions
    return {
        "round_trip": spread_of(distributions.ping),
        "round_trip_under_load": spread_of(distributions.ping_under_load),
    }


def merge(merged: TrialLine, lines: Sequence[TrialLine | None], echoes: Sequence[bool]) -> TrialLine:
    """Returns the trial of several clients that measured at the same time. A client without a line was lost."""
    if merged.network is None:
        return merged
    failure = lost_client(lines) or merged.failure
    return merged.model_copy(
        update={
            "network": merge_networks(lines),
            "traces": merge_traces(lines),
            "traces_left_out": any(line.traces_left_out for line in lines if line is not None),
            "outcome": Outcome.COMPLETED if failure is None else Outcome.FAILED,
            "failure": failure,
        }
    )


def lost_client(lines: Sequence[TrialLine | None]) -> Failure | None:
    """Returns why a trial failed if clients have no line."""
    lost = [str(client + 1) for client, line in enumerate(lines) if line is None]
    if not lost:
        return None
    message = (
        f"client {', '.join(lost)} of {len(lines)} was lost during the trial; the measurements of the others are kept"
    )
    return Failure(reason=CLIENT_LOST, message=message)


def merge_networks(lines: Sequence[TrialLine | None]) -> Network:
    """Returns what the clients, in their order, got together. A client without a line was lost."""
    known = [line for line in lines if line is not None and line.network is not None]
    networks = [line.network for line in known if line.network is not None]
    return Network(
        upload=_add(
            [(network.start_nanoseconds, network.upload) for network in networks if network.upload is not None]
        ),
        download=_add(
            [(network.start_nanoseconds, network.download) for network in networks if network.download is not None]
        ),
        ping=_pool([network.ping for network in networks]),
        ping_under_load=_pool([network.ping_under_load for network in networks]),
        shares=tuple(_client_share(client, line) for client, line in enumerate(lines)),
        overlap_parts_per_million=_overlap(known),
    )


def merge_traces(lines: Sequence[TrialLine | None]) -> tuple[Trace, ...]:
    """Returns the clients' traces with the number of the client. The server's trace has all clients, by their ports."""
    return tuple(
        trace.model_copy(update={"client": client})
        for client, line in enumerate(lines)
        if line is not None
        for trace in line.traces
    )


def _client_share(client: int, line: TrialLine | None) -> ClientShare:
    if line is None or line.network is None:
        return ClientShare(
            client=client, failure=Failure(reason=CLIENT_LOST, message="The client was lost during the trial.")
        )
    flows = [flow for flow in (line.network.upload, line.network.download) if flow is not None]
    return ClientShare(
        client=client,
        bits_per_second=sum(flow.bits_per_second for flow in flows),
        retransmits=_sum([flow.retransmits for flow in flows]),
        lost_packets=_sum([flow.lost_packets for flow in flows]),
        failure=line.failure,
    )


def _overlap(lines: Sequence[TrialLine]) -> int | None:
    """Returns the time in which all loads ran, as a share of the longest. Returns None if a start is not known."""
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
    """Returns the sum of all flows, each with its start in nanoseconds, if that is known."""
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
    """Returns the bits per second of all clients, from the first start to the last end.

    Rates cannot be added: the receiver with the last segments has for itself what the others have left.
    """
    starts = [start for start, _, _ in started if start is not None]
    if len(starts) < len(started):
        starts = [0] * len(started)
    ends = [start + 8e9 * moved / rate for start, (_, moved, rate) in zip(starts, started, strict=True) if rate]
    return round(8e9 * sum(moved for _, moved, _ in started) / (max(ends) - min(starts))) if ends else None


def _all_activity(activities: Sequence[TcpActivity]) -> TcpActivity | None:
    """Returns all samples and all events together."""
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


def _pool(known: Sequence[Echoes | None]) -> Echoes | None:
    """Returns the statistics of all echo requests, as if one ping had sent them. They are exact for the rounded numbers
    of ping."""
    many = [one for one in known if one is not None]
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
        min_nanoseconds=min(one.min_nanoseconds for one in many if one.min_nanoseconds is not None),
        mean_nanoseconds=round(mean),
        max_nanoseconds=max(one.max_nanoseconds for one in many if one.max_nanoseconds is not None),
        standard_deviation_nanoseconds=round(math.sqrt(variance)),
    )
