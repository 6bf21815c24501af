"""decide(): the whole behaviour of the operator towards one benchmark, as a pure function."""

from datetime import datetime, timedelta

from tierbench.api.benchmark import Phase
from tierbench.domain.actions import Decision, DeleteBenchmark
from tierbench.domain.clients import measure
from tierbench.domain.ending import finish, leave, suspend
from tierbench.domain.observed import Observed
from tierbench.domain.placing import choose_nodes, hold_nodes, refuse_impossible
from tierbench.domain.run import Run, run_to_do
from tierbench.domain.servers import serve
from tierbench.domain.views import parse_time
from tierbench.workloads.workload import RunningServer


def is_due(observed_generation: int, generation: int, phase: Phase, ttl_seconds: int | None) -> bool:
    """Whether a benchmark needs the operator at all: nothing is read or written for one that does not."""
    settled = phase in {Phase.COMPLETE, Phase.FAILED, Phase.SUSPENDED} and observed_generation == generation
    return not settled or (ttl_seconds is not None and phase is not Phase.SUSPENDED)


def decide(observed: Observed, now: datetime) -> Decision:
    """The next step of a benchmark. Called again after every change, and at the latest after `wait_seconds`."""
    status = run_to_do(observed, now)
    if status is None:
        return _ended(observed, now)
    if observed.benchmark.spec.run_policy.suspend:
        return suspend(observed, now)
    run = Run(observed, status, now)
    return choose_nodes(run) or hold_nodes(run) or refuse_impossible(run) or _measure_next(run) or finish(run)


def _measure_next(run: Run) -> Decision | None:
    if not run.due:
        return None
    case = run.due[0]
    server = serve(run, case)
    return measure(run, case, server) if isinstance(server, RunningServer) else server


def _ended(observed: Observed, now: datetime) -> Decision:
    """Nothing is due but, perhaps, the end of its time to live."""
    left = leave(observed, now)
    if left is not None:
        return left
    status, ttl = observed.benchmark.status, observed.benchmark.spec.run_policy.ttl_seconds
    if ttl is None or status.run is None or status.run.completion_time is None:
        return Decision(status.model_copy(update={"observed_generation": observed.benchmark.metadata.generation}))
    end = parse_time(status.run.completion_time) + timedelta(seconds=ttl)
    if now >= end:
        return Decision(status, (DeleteBenchmark(),))
    return Decision(status, wait_seconds=(end - now).total_seconds())
