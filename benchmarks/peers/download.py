"""Compares downloads of 1 GiB from a local nginx with curl."""

import json
from dataclasses import replace
from pathlib import Path

from benchmarks.peers.measure import Command, Comparison, Usage, compare, in_turn, measuring
from benchmarks.peers.nginx import serving
from tierbench.api.benchmark import Tls
from tierbench.api.contract import CONTRACT_VERSION
from tierbench.api.trial_plan import PlannedTrial, TransferPlan, TransferTarget

GIB = 2**30
RUNS = 21
"""Each run takes less than a second, and single runs differ much."""


def comparisons(client: Path) -> list[Comparison]:
    """Compares rate and CPU: plain, with content dropped in the kernel or copied, and with TLS 1.3."""
    with serving(client, GIB) as server:
        return [
            *_against_curl("HTTP", client, server.plain, Tls.NONE, False, server.certificate, 1.6),
            *_against_curl("HTTP copied", client, server.plain, Tls.NONE, True, server.certificate, 1.0, 1.0),
            *_against_curl("TLS 1.3", client, server.secure, Tls.TLS13, False, server.certificate, 0.95),
        ]


def _against_curl(
    name: str,
    client: Path,
    url: str,
    tls: Tls,
    copies: bool,
    certificate: Path,
    least_rate: float,
    most_cpu: float | None = None,
) -> list[Comparison]:
    plan = TransferPlan(
        contract=CONTRACT_VERSION,
        kind="Transfer",
        schedule=(PlannedTrial(trial=1),),
        targets=(TransferTarget(url=url, ca_file=str(certificate)),),
        size_bytes=GIB,
        tls=tls,
        copy_content=copies,
    )
    ours: Command = measuring(client, plan)
    peer: Command = [*f"curl --silent --show-error --fail --output /dev/null {url} --cacert".split(), certificate]
    pairs = in_turn(ours, peer, RUNS)
    for usage, _ in pairs:
        _check(usage)
    rate = compare(f"{name}, 1 GiB, rate", "GiB/s", "curl", pairs, lambda usage: 1 / usage.wall)
    cpu = compare(f"{name}, 1 GiB, CPU", "s/GiB", "curl", pairs, lambda usage: usage.cpu)
    return [replace(rate, low=least_rate), replace(cpu, high=most_cpu)]


def _check(usage: Usage) -> None:
    """Rejects a run with a failed trial or a retry. The client exits with 0 after these, too."""
    trial = json.loads(usage.printed.splitlines()[-1])
    if trial["outcome"] != "Completed" or trial["transfer"]["bytes"] != GIB or trial["transfer"]["retries"]:
        raise SystemExit(f"not a download to compare with: {usage.printed}")
