"""Skewed clocks and unreadable logs are noticed once, and reported by classes and their benchmarks."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.unit.domain.objects import node_class as world_class
from tests.unit.domain.scenarios import condition
from tests.unit.domain.world import World
from tierbench.api.node_class import NodeClass, NodeClassStatus, ResultsPath
from tierbench.domain import reasons
from tierbench.domain.decision import FailedRequest, PodLog
from tierbench.domain.node_classes import Noticed, class_conditions
from tierbench.domain.views import PodView, Termination
from tierbench.kube.meta import format_time
from tierbench.results.client_output import Output, PrintedTrial

NOW = datetime(2026, 5, 4, 10, 0, tzinfo=UTC)
REFUSED = FailedRequest(NOW, "dial tcp 10.1.2.3:10250: connect: connection refused")
READ = PodLog(Output((PrintedTrial(1, warmup=False, trial=1, traced=False, packed=b""),)), complete=True)


def node(skew: float, *, ready: str = "True") -> dict[str, Any]:
    """A node that has reported now, with a clock that is ahead by a number of minutes."""
    beat = format_time(NOW + timedelta(minutes=skew))
    return {
        "metadata": {"name": "n1"},
        "status": {"conditions": [{"type": "Ready", "status": ready, "lastHeartbeatTime": beat}]},
    }


def node_class(*conditions: dict[str, Any]) -> NodeClass:
    spec = {"nodeSelector": {"matchLabels": {"hw": "pi"}}}
    return NodeClass.model_validate({"metadata": {"name": "pi"}, "spec": spec, "status": {"conditions": conditions}})


def ended(**fields: Any) -> PodView:
    known: dict[str, Any] = dict.fromkeys(PodView.__dataclass_fields__, "")
    known |= {"uid": "u1", "node": "n1", "terminated": Termination(0, "Completed", ""), "results": ResultsPath.AUTO}
    return PodView(**{**known, **fields})


@pytest.mark.parametrize(("minutes", "says"), [(60, "60 min ahead of"), (-60, "60 min behind"), (2, "2 min ahead of")])
def test_a_skewed_clock_is_reported(minutes: float, says: str) -> None:
    noticed = Noticed()
    assert noticed.observe_clock(node(minutes), NOW)
    (found,) = class_conditions(node_class(), ["n1"], noticed)
    assert (found.type, found.status, found.reason) == (reasons.CLOCK_SKEWED, True, reasons.CLOCK_OFF)
    assert f"node n1 is about {says}" in found.message
    assert not class_conditions(node_class(), ["n2"], noticed)


@pytest.mark.parametrize("minutes", [0.5, -0.5, -6, 0.9])
def test_a_report_that_may_be_old_shows_no_skew(minutes: float) -> None:
    noticed = Noticed()
    assert not noticed.observe_clock(node(minutes), NOW)
    assert not class_conditions(node_class(), ["n1"], noticed)


def test_a_node_that_is_not_ready_reports_nothing() -> None:
    assert not Noticed().observe_clock(node(-60, ready="Unknown"), NOW)


def test_similar_skews_are_one_change_and_a_corrected_clock_is_another() -> None:
    noticed = Noticed()
    assert [noticed.observe_clock(node(minutes), NOW) for minutes in (-60, -63, -61, -60)] == [
        True,
        False,
        False,
        False,
    ]
    assert noticed.observe_clock(node(0), NOW)
    earlier = {
        "type": reasons.CLOCK_SKEWED,
        "status": "True",
        "reason": reasons.CLOCK_OFF,
        "message": "",
        "lastTransitionTime": format_time(NOW),
        "observedGeneration": 1,
    }
    (found,) = class_conditions(node_class(earlier), ["n1"], noticed)
    assert (found.status, found.reason) == (False, reasons.CLOCKS_AGREE)


@pytest.mark.parametrize("minutes", [-60, 60])
def test_a_newer_report_corrects_the_first_one(minutes: float) -> None:
    """The first report may be five minutes old."""
    noticed = Noticed()
    assert noticed.observe_clock(node(minutes - 4), NOW)
    assert noticed.observe_clock(node(minutes), NOW)
    (found,) = class_conditions(node_class(), ["n1"], noticed)
    assert "is about 60 min " in found.message


def test_the_same_report_read_later_changes_nothing() -> None:
    noticed = Noticed()
    assert noticed.observe_clock(node(3), NOW)
    assert not noticed.observe_clock(node(3), NOW + timedelta(minutes=4))


def test_a_deleted_node_is_forgotten() -> None:
    noticed = Noticed()
    noticed.observe_clock(node(-60), NOW)
    noticed.observe_logs([ended()], {"u1": PodLog(error=REFUSED)})
    noticed.forget("n1")
    assert not class_conditions(node_class(), ["n1"], noticed)


def test_an_unreadable_log_is_reported_until_a_log_is_read() -> None:
    noticed = Noticed()
    assert noticed.observe_logs([ended()], {"u1": PodLog(error=REFUSED)})
    assert not noticed.observe_logs([ended()], {"u1": PodLog(error=REFUSED)})
    (found,) = class_conditions(node_class(), ["n1"], noticed)
    assert (found.type, found.status, found.reason) == (reasons.LOGS_REACHABLE, False, reasons.LOGS_UNREACHABLE)
    assert "node n1" in found.message
    assert "cloudStream" in found.message
    assert noticed.observe_logs([ended()], {"u1": READ})
    assert not class_conditions(node_class(), ["n1"], noticed)
    earlier = {"type": reasons.LOGS_REACHABLE, "status": "False", "reason": reasons.LOGS_UNREACHABLE, "message": ""}
    (found,) = class_conditions(
        node_class({**earlier, "lastTransitionTime": format_time(NOW), "observedGeneration": 1}), ["n1"], noticed
    )
    assert (found.status, found.reason) == (True, reasons.LOGS_READ)


@pytest.mark.parametrize(
    ("pod", "log"),
    [
        (ended(terminated=None), PodLog(error=REFUSED)),
        (ended(results=ResultsPath.STATUS), PodLog(error=REFUSED)),
        (ended(), PodLog(complete=True)),
        (ended(), PodLog()),
    ],
)
def test_pods_that_show_nothing_about_logs_are_ignored(pod: PodView, log: PodLog) -> None:
    noticed = Noticed()
    assert not noticed.observe_logs([pod], {"u1": log})
    assert not noticed.logs


def class_with_condition(kind: str, status: bool) -> NodeClass:
    """The class of clients, with a condition."""
    since = format_time(NOW)
    one = {
        "type": kind,
        "status": str(status),
        "reason": "Why",
        "message": "Node u1 is odd.",
        "lastTransitionTime": since,
        "observedGeneration": 1,
    }
    return world_class("user").model_copy(update={"status": NodeClassStatus.model_validate({"conditions": [one]})})


@pytest.mark.parametrize(("kind", "wrong"), [(reasons.LOGS_REACHABLE, False), (reasons.CLOCK_SKEWED, True)])
def test_a_benchmark_copies_conditions_of_its_classes_before_it_deploys_anything(kind: str, wrong: bool) -> None:
    world = World()
    world.classes["user"] = class_with_condition(kind, wrong)
    while not world.benchmark.status.conditions:
        world.reconcile()
    (found,) = [item for item in world.benchmark.status.conditions if item.type == kind]
    assert (found.status, found.reason, found.message) == (str(wrong), "Why", "Node u1 is odd.")
    assert not world.pods
    world.run()
    assert condition(world, reasons.COMPLETE)[0] == "True"
    assert condition(world, kind)[0] == "True"


def test_a_class_that_lacks_nothing_adds_no_condition() -> None:
    world = World()
    world.classes["user"] = class_with_condition(reasons.LOGS_REACHABLE, True)
    world.run()
    assert not {reasons.LOGS_REACHABLE, reasons.CLOCK_SKEWED} & {
        item.type for item in world.benchmark.status.conditions
    }


def test_the_next_run_reports_that_clocks_agree_again() -> None:
    world = World()
    world.classes["user"] = class_with_condition(reasons.CLOCK_SKEWED, True)
    world.run()
    world.classes["user"] = world_class("user")
    world.change_spec(rerun="again")
    world.run()
    assert condition(world, reasons.CLOCK_SKEWED) == ("False", reasons.CLOCKS_AGREE)
