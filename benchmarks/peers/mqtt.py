"""Compares messages of 1 KiB through one local Mosquitto with a client in C on libmosquitto."""

import json
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.peers.measure import (
    ROOT,
    Command,
    Comparison,
    Usage,
    as_client,
    compare,
    compare_tails,
    in_turn,
    measuring,
)
from benchmarks.peers.mqtt_broker import broker
from tierbench.api.contract import CONTRACT_VERSION, Histogram
from tierbench.api.trial_plan import BrokerPlan
from tierbench.stats.distributions import bucket_quantile

PEER = "libmosquitto"
SIZE, WINDOW = 1024, 512
MESSAGES, RATE, RATE_SECONDS = 100_000, 500, 4
RUNS = 15
"""The number of runs. Rates of single runs differ by a tenth, and tails by a half."""
LEAST_RATES = (1.1, 1.3)
"""The smallest rates at QoS 0 and 1, as multiples of the peer's."""
MOST_ROUND_TRIP, MOST_CPU = 1.1, 1.2
"""The limits for light loads, as multiples of the peer's values."""
DELIVERIES = ("AtMostOnce", "AtLeastOnce")  # QoS 0 and 1


@dataclass(frozen=True)
class Run:
    """The measurements that one run prints."""

    messages_per_second: float
    cpu_microseconds: float
    p50_microseconds: float
    p99_microseconds: float


def comparisons(client: Path) -> list[Comparison]:
    """Compares rate and CPU as fast as possible, and the round trip at a modest rate."""
    with tempfile.TemporaryDirectory() as folder:
        peer = _build(Path(folder))
        with broker(apart=True) as port:
            heavy = [row for qos in range(len(DELIVERIES)) for row in _heavy(client, peer, port, qos)]
        with broker(apart=False) as port:
            return [*heavy, *(row for qos in range(len(DELIVERIES)) for row in _light(client, peer, port, qos))]


def _build(folder: Path) -> Path:
    peer = folder / "peer"
    source = ROOT / "benchmarks" / "peers" / "mqtt" / "peer.c"
    command: Command = ["gcc", "-O2", "-Wall", "-Wextra", "-Werror", "-o", peer, source, "-lmosquitto"]
    if subprocess.run(command, check=False).returncode:
        raise SystemExit("bench: the peer does not compile: apt-get install gcc libmosquitto-dev")
    return peer


def _heavy(client: Path, peer: Path, port: int, qos: int) -> list[Comparison]:
    ours, theirs = _ours(client, port, qos, MESSAGES, 0), _theirs(peer, port, qos, MESSAGES, 0)
    fast = in_turn(as_client(ours), as_client(theirs), RUNS)
    rate = _compare(f"{_name(qos)}, rate", "messages/s", fast, lambda run: run.messages_per_second)
    cpu = _compare(f"{_name(qos)}, CPU", "us/message", fast, lambda run: run.cpu_microseconds)
    return [replace(rate, low=LEAST_RATES[qos]), replace(cpu, high=1.0)]


def _light(client: Path, peer: Path, port: int, qos: int) -> list[Comparison]:
    messages = RATE * RATE_SECONDS
    steady = in_turn(_ours(client, port, qos, messages, RATE), _theirs(peer, port, qos, messages, RATE), RUNS)
    return light(f"{_name(qos)}, {RATE}/s", PEER, steady)


def _name(qos: int) -> str:
    return f"MQTT QoS {qos}, 1 KiB"


def light(name: str, peer_name: str, pairs: list[tuple[Usage, Usage]]) -> list[Comparison]:
    """Compares round trips and CPU at a modest rate."""
    p50 = compare(f"{name}, P50", "us", peer_name, pairs, lambda usage: of_usage(usage).p50_microseconds)
    p99 = compare_tails(f"{name}, P99", "us", peer_name, pairs, lambda usage: of_usage(usage).p99_microseconds)
    cpu = compare(f"{name}, CPU", "us/message", peer_name, pairs, lambda usage: of_usage(usage).cpu_microseconds)
    return [replace(p50, high=MOST_ROUND_TRIP), replace(p99, high=MOST_ROUND_TRIP), replace(cpu, high=MOST_CPU)]


def _ours(client: Path, port: int, qos: int, messages: int, rate: int) -> Command:
    return exchange(client, f"mqtt://127.0.0.1:{port}", messages, rate, max_in_flight=WINDOW, delivery=DELIVERIES[qos])


def exchange(client: Path, url: str, messages: int, rate: int, **fields: Any) -> Command:
    """Returns the command that exchanges messages at a rate, or as fast as possible if that is 0."""
    pacing = {"type": "OpenLoop", "interval_nanoseconds": 10**9 // rate} if rate else {"type": "AsFastAsPossible"}
    plan = BrokerPlan.model_validate(
        {
            "contract": CONTRACT_VERSION,
            "kind": "Broker",
            "schedule": [{"trial": 1}],
            "targets": [{"url": url, "topic": "bench"}],
            "size_bytes": SIZE,
            "load": {"messages": messages},
            "pacing": pacing,
            "tuning": "Light" if rate else "Heavy",
            **fields,
        }
    )
    return measuring(client, plan)


def _theirs(peer: Path, port: int, qos: int, messages: int, rate: int) -> Command:
    return [peer, *f"127.0.0.1 {port} {qos} {messages} {WINDOW} {rate}".split()]


def _compare(name: str, unit: str, pairs: list[tuple[Usage, Usage]], value: Callable[[Run], float]) -> Comparison:
    return compare(name, unit, PEER, pairs, lambda usage: value(of_usage(usage)))


def of_usage(usage: Usage) -> Run:
    """Parses the last line that a run printed: a trial of the client, or the line of a peer."""
    record = json.loads(usage.printed.splitlines()[-1])
    if "record" in record:
        return _our_run(record)
    names = ("cpuNanosecondsPerMessage", "roundTripP50Nanoseconds", "roundTripP99Nanoseconds")
    return Run(record["messagesPerSecond"], *(record[name] / 1e3 for name in names))


def _our_run(trial: dict[str, Any]) -> Run:
    """Returns the measurements of a run that delivered all messages. Failed trials have the exit code 0, too."""
    counts = trial["exchange"]
    if trial["outcome"] != "Completed" or counts["received"] != counts["sent"] or counts["duplicated"]:
        raise SystemExit(f"not an exchange to compare with: {trial}")
    round_trips = Histogram.model_validate(trial["distributions"]["roundTripActual"])
    p50, p99 = (bucket_quantile(round_trips, share) / 1e3 for share in (0.5, 0.99))
    seconds, cpu = trial["durationNanoseconds"] / 1e9, trial["client"]["cpuNanoseconds"]
    return Run(counts["received"] / seconds, cpu / counts["sent"] / 1e3, p50, p99)
