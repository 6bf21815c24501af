"""Pending: a run begins with the choice of its nodes."""

from datetime import timedelta

from tierbench.api.benchmark import NodeAssignment, Phase
from tierbench.api.model import parse_time
from tierbench.domain import reasons
from tierbench.domain.actions import Decision, Event
from tierbench.domain.assessment import begun
from tierbench.domain.conditions import Said
from tierbench.domain.node_classes import assign
from tierbench.domain.run import Run
from tierbench.domain.status import report
from tierbench.domain.views import Problem

_LOOK_AGAIN_SECONDS = 5.0
NOT_SUSPENDED = Said(reasons.SUSPENDED, False, reasons.NOT_SUSPENDED, "spec.runPolicy.suspend is false.")


def choose_nodes(run: Run) -> Decision | None:
    """Chooses nodes for every class, once a run; waits a while for what is not there yet: classes, nodes, images, and
    the administrator's leave."""
    if run.assignments:
        return None
    chosen = tuple(_assign(run, name) for name in run.node_classes)
    lacking = [] if run.refused is None else [run.refused]
    lacking += [Problem(item.reason, item.message or "") for item in chosen if item.reason is not None]
    lacking += dict.fromkeys(run.unlisted_images.values())
    waited = run.now - parse_time(run.status.start_time)
    if lacking and waited < timedelta(seconds=run.spec.timeouts.scheduling_seconds):
        said = Said(reasons.SCHEDULED, False, lacking[0].reason, lacking[0].message)
        return Decision(report(run, Phase.PENDING, said, *_run_begins(run)), wait_seconds=_LOOK_AGAIN_SECONDS)
    started = Run(run.observed, run.status.model_copy(update={"assignments": chosen}), run.now)
    message = f"Run {run.status.number} of {len(run.cases)} cases on {', '.join(started.needed_nodes) or 'no node'}"
    said = Said(reasons.SCHEDULED, True, reasons.NODES_CHOSEN, message)
    if lacking:
        said = Said(reasons.SCHEDULED, False, lacking[0].reason, lacking[0].message)
    events = [Event(reasons.RUN_STARTED, message)]
    events += [Event(item.reason, item.message, warning=True) for item in lacking]
    return Decision(report(started, Phase.PENDING, said, *_run_begins(run)), events=tuple(events), wait_seconds=0)


def _run_begins(run: Run) -> tuple[Said, ...]:
    message = "The run is under way."
    return (
        NOT_SUSPENDED,
        Said(reasons.COMPLETE, False, reasons.RUNNING, message),
        Said(reasons.FAILED, False, reasons.RUNNING, message),
        *begun(run),
        *(
            [Said(reasons.NETWORK_MEASURED, False, reasons.RUNNING, message)]
            if run.observed.workload.preflight()
            else []
        ),
    )


def _assign(run: Run, name: str) -> NodeAssignment:
    needed = run.spec.servers.nodes_per_class if name in run.spec.servers.node_classes else 1
    return assign(name, run.observed.classes.get(name), run.observed.nodes.values(), needed)
