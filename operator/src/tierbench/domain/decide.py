"""decide(): the whole behaviour of the operator towards one benchmark, as a pure function."""

from datetime import datetime, timedelta
from typing import Final

from tierbench.api.benchmark import Phase
from tierbench.api.timestamps import parse_time
from tierbench.domain import reasons
from tierbench.domain.actions import Decision, DeleteBenchmark, DeleteResult, Event
from tierbench.domain.clients import measure
from tierbench.domain.ending import finish, leave, suspend
from tierbench.domain.observed import Observed
from tierbench.domain.placing import choose_nodes, hold_nodes, refuse_impossible
from tierbench.domain.preflight import preflight
from tierbench.domain.run import Run, run_to_do
from tierbench.domain.schedule import plan_next, seconds_to_next, warnings
from tierbench.domain.servers import serve
from tierbench.workloads.workload import RunningServer

_NAMED: Final = 5


def is_due(observed_generation: int, generation: int, phase: Phase, *, later: bool) -> bool:
    """Whether a benchmark needs the operator at all: nothing is read or written for one that does not.

    `later` says that its policy asks for something after the end of a run: the next one, or the end of its time.
    """
    settled = phase in {Phase.COMPLETE, Phase.FAILED, Phase.SUSPENDED} and observed_generation == generation
    return not settled or (later and phase is not Phase.SUSPENDED)


def decide(observed: Observed, now: datetime) -> Decision:
    """The next step of a benchmark. Called again after every change, and at the latest after `wait_seconds`."""
    status = run_to_do(observed, now)
    if status is None:
        return _ended(observed, now)
    if observed.benchmark.spec.run_policy.suspend:
        return suspend(observed, now)
    run = Run(observed, status, now)
    if run.misfits:
        return _discard(run)
    prepared = choose_nodes(run) or hold_nodes(run) or refuse_impossible(run) or preflight(run)
    return prepared or _measure_next(run) or finish(run)


def _measure_next(run: Run) -> Decision | None:
    if not run.due:
        return None
    case = run.due[0]
    server = serve(run, case)
    return measure(run, case, server) if isinstance(server, RunningServer) else server


def _discard(run: Run) -> Decision:
    """Removes results that bear the name of a case of this run, and are of something else."""
    message = f"{', '.join(run.misfits[:_NAMED])}: of other cases than this run's, and not counted."
    event = Event(reasons.FOREIGN_OBJECT, message, warning=True)
    actions = tuple(DeleteResult(name) for name in run.misfits)
    return Decision(run.observed.benchmark.status, actions, (event,), wait_seconds=0)


def _ended(observed: Observed, now: datetime) -> Decision:
    """Nothing is due but, perhaps, the next run or the end of its time to live."""
    leaving = leave(observed, now)
    if leaving is not None:
        return Decision(observed.benchmark.status, leaving.actions, wait_seconds=leaving.wait_seconds)
    status, policy = plan_next(observed.benchmark, now), observed.benchmark.spec.run_policy
    wait, events = seconds_to_next(status, now), warnings(observed.benchmark.status, status)
    if policy.ttl_seconds is None or status.run is None or status.run.completion_time is None:
        return Decision(status, events=events, wait_seconds=wait)
    end = parse_time(status.run.completion_time) + timedelta(seconds=policy.ttl_seconds)
    if now >= end:
        return Decision(status, (DeleteBenchmark(),))
    return Decision(status, events=events, wait_seconds=min(wait, (end - now).total_seconds()))
