"""An estimate of what a run takes, from the spec of its benchmark."""

from dataclasses import dataclass
from typing import Final

from tierbench.api.benchmark import Benchmark
from tierbench.api.policy import Policy
from tierbench.api.quantity import parse_size
from tierbench.kinds.registry import workload_of
from tierbench.workloads.links import link_rate
from tierbench.workloads.plan import STANDALONE, ServerPlacement, plan, plan_blocks
from tierbench.workloads.workload import LINK, Images, Owner

_SECONDS_PER_SERVER: Final = 20
_SECONDS_PER_CLIENT: Final = 5
_SECONDS_PER_PREFLIGHT: Final = 15
_BYTES_PER_RESULT: Final = 6_000
_BYTES_PER_TRIAL: Final = 900
"""The size of a result in etcd, without traces: measured, see docs/how-to/make-room-in-etcd.md."""


@dataclass(frozen=True)
class Estimate:
    """What a run takes. `servers` counts all setups of servers, and `trials` contains warm-up trials.

    `bytes_moved` is the payload of all trials, or None if it depends on the speed of a server. `bytes_on_disk` is what
    a server prepares on its node, and `bytes_stored` what the results take in etcd, without traces.
    """

    servers: int
    cases: int
    trials: int
    seconds: float
    bytes_moved: int | None
    bytes_on_disk: int
    bytes_stored: int


def estimate(benchmark: Benchmark, bits_per_second: float = LINK) -> Estimate:
    """Returns an estimate for a network of this rate. It expects a node for each server, and no refinement."""
    spec, metadata = benchmark.spec, benchmark.metadata
    owner = Owner(benchmark.KIND.kind, metadata.namespace or "default", metadata.name, metadata.uid or "")
    workload = workload_of(owner, spec, Images(client="", programs={}), Policy())
    placements = workload.server_placements()
    cases = plan(spec, placements, workload.factors)
    groups: dict[object, tuple[ServerPlacement, ...]] = {}
    for placement in placements:
        key = placement.levels if placement.provider == STANDALONE else placement
        groups[key] = (*groups.get(key, ()), placement)
    passes = 1 if len(groups) == 1 else min(spec.order.passes, spec.repetitions)
    blocks = plan_blocks(cases, list(groups.values()), spec.order, spec.repetitions, passes)
    # Each block has its own client, which repeats the warm-up.
    trials = [case for block in blocks for case in block.cases for _ in range(spec.warmup_trials + len(block.trials))]
    loads = [workload.load(case) for case in trials]
    moved = [load.bytes_moved for load in loads if load.bytes_moved is not None]
    seconds = (
        load.duration(min(bits_per_second, link_rate(spec, case))) for case, load in zip(trials, loads, strict=True)
    )
    servers = passes * sum(not placement.external for placement in placements)
    preflights = len(workload.preflight()) * len(placements) * len(spec.clients.placements)
    starts = servers * _SECONDS_PER_SERVER + len(blocks) * _SECONDS_PER_CLIENT + preflights * _SECONDS_PER_PREFLIGHT
    prepared = [
        sum(parse_size(level) for factor in workload.factors(placement) if factor.prepared for level in factor.levels)
        for placement in placements
    ]
    return Estimate(
        servers=servers,
        cases=len(cases),
        trials=len(loads),
        seconds=starts + sum(seconds),
        bytes_moved=sum(moved) if len(moved) == len(loads) else None,
        bytes_on_disk=max(prepared, default=0),
        bytes_stored=len(cases) * (_BYTES_PER_RESULT + _BYTES_PER_TRIAL * (spec.repetitions + spec.warmup_trials)),
    )
