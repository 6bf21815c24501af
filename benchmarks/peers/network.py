"""Compares TCP on loopback with iperf3 without the client, and measures the cost of tracing."""

import json
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from socket import create_connection
from statistics import median
from typing import Any

from benchmarks.peers.measure import Command, Comparison, Usage, compare, in_turn, limit, measuring
from tests.ports import free_ports
from tierbench.api.contract import CONTRACT_VERSION
from tierbench.api.trial_plan import NetworkPlan, NetworkTarget, PlannedPing, PlannedTrial

SECONDS = 3
TRACE_MILLISECONDS = 100
MOST_CPU = 0.02
START_SECONDS = 5


def comparisons(client: Path) -> list[Comparison]:
    """Compares the rates of the client and of iperf3, with and without traces, and the CPU of sampling."""
    with serving() as port:
        traced, untraced = (_ours(client, port, milliseconds) for milliseconds in (TRACE_MILLISECONDS, 0))
        plain: Command = f"iperf3 --client 127.0.0.1 --port {port} --time {SECONDS} --json".split()
        against_iperf3, against_untraced = in_turn(traced, plain), in_turn(traced, untraced)
    cpu = median(_own_cpu(with_trace) - _own_cpu(without) for with_trace, without in against_untraced)
    name = "TCP, loopback"
    return [
        compare(f"{name}, rate", "Gbit/s", "iperf3", against_iperf3, _gigabits),
        compare(f"{name}, traced, rate", "Gbit/s", "untraced", against_untraced, _gigabits),
        limit(f"{name}, sampling, CPU", "cores", cpu, MOST_CPU),
    ]


@contextmanager
def serving() -> Iterator[int]:
    """Yields the port of an iperf3 server on loopback."""
    (port,) = free_ports(1)
    command = f"iperf3 --server --bind 127.0.0.1 --port {port}".split()
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as server:
        try:
            _wait_for(port)
            yield port
        finally:
            server.kill()


def _wait_for(port: int) -> None:
    end = time.monotonic() + START_SECONDS
    while True:
        try:
            create_connection(("127.0.0.1", port), START_SECONDS).close()
        except OSError:
            if time.monotonic() > end:
                raise
        else:
            return


def _ours(client: Path, port: int, milliseconds: int) -> Command:
    plan = NetworkPlan(
        contract=CONTRACT_VERSION,
        kind="Network",
        schedule=(PlannedTrial(trial=1),),
        targets=(NetworkTarget(server=f"127.0.0.1:{port}"),),
        duration_seconds=SECONDS,
        ping=PlannedPing(count=0),
        trace_interval_milliseconds=milliseconds,
    )
    return measuring(client, plan)


def _trial(usage: Usage) -> dict[str, Any]:
    """Returns the trial of the client. Raises SystemExit if it failed."""
    trial: dict[str, Any] = json.loads(usage.printed.splitlines()[-1])
    if trial["outcome"] != "Completed":
        raise SystemExit(f"not a load to compare with: {usage.printed}")
    return trial


def _gigabits(usage: Usage) -> float:
    if '"record":"Trial"' in usage.printed:
        return float(_trial(usage)["network"]["upload"]["bitsPerSecond"]) / 1e9
    return float(json.loads(usage.printed)["end"]["sum_received"]["bits_per_second"]) / 1e9


def _own_cpu(usage: Usage) -> float:
    """Returns the cores that the client uses without iperf3."""
    iperf3 = float(_trial(usage)["client"]["cpuNanoseconds"]) / 1e9
    return (usage.cpu - iperf3) / SECONDS
