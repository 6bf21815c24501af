"""Caveats of an answer, its confidence, and what to measure next."""

from typing import Any

import pytest

from tests.unit.advice.questions import (
    INVALID,
    ONE_NODE,
    THREE_NODES,
    answered,
    ask,
    edited,
    nodes,
    reasons,
    sizes,
    two_nodes,
)
from tests.unit.report.published import published
from tierbench.api.advice_answer import Confidence


def test_one_node_per_class_is_a_caveat_and_lowers_confidence() -> None:
    one, three = ask(ONE_NODE, workload=sizes("1Mi")), ask(THREE_NODES, workload=sizes("1Mi"))
    assert (one.best, one.confidence) == ("cloud", Confidence.LOW)
    assert "OneNode" in reasons(one.caveats)
    assert "MoreNodes" in reasons(one.recommendations)
    assert (three.best, three.confidence) == ("cloud", Confidence.HIGH)
    assert (reasons(three.caveats), three.recommendations) == ({"OneClientNode"}, ())


def test_classes_whose_nodes_differ_more_are_inconclusive() -> None:
    """Trials on a node differ by 1%. Nodes of a class differ by more than the classes do."""
    steady = {
        ("cloud", "cloud-1"): (1.0, 1.01, 1.0, 0.99), ("cloud", "cloud-2"): (1.6, 1.61, 1.6, 1.59),
        ("jetson", "jetson-1"): (1.3, 1.31, 1.3, 1.29), ("jetson", "jetson-2"): (1.5, 1.51, 1.5, 1.49),
    }  # fmt: skip
    status = ask(nodes(steady), workload=sizes("1Mi"))
    assert answered(status) == ("False", "CouldGoEitherWay")
    note = next(note for note in status.caveats if note.reason == "NodesDiffer")
    assert note.message.startswith("cloud-1 and cloud-2, both cloud, differ by 37%, more than cloud and jetson do")
    (more,) = status.recommendations
    assert (more.reason, "differences between nodes are the main reason" in more.message) == ("MoreNodes", True)


def test_invalid_results_are_a_caveat_if_others_are_valid() -> None:
    results = published()
    results[0] = edited(results[0], valid=False, invalid=INVALID)
    status = ask(results, workload=sizes("1Mi", "5Gi"))
    assert (status.best, status.confidence) == ("cloud", Confidence.LOW)
    assert "1 of 4 results may be distorted: ClientSaturated." in [note.message for note in status.caveats]


def test_medians_that_contradict_the_means_are_a_caveat() -> None:
    steady, wild = (1.0, 1.01, 1.0, 0.99, 1.0) * 2, (0.9, 0.91, 0.9, 0.9, 5.0, 0.9, 5.0, 0.9, 5.0, 5.0)
    status = ask(nodes({("cloud", "c"): steady, ("jetson", "j"): wild}), workload=sizes("1Mi"))
    assert (status.best, status.confidence) == ("cloud", Confidence.LOW)
    assert "MediansDisagree" in reasons(status.caveats)


def test_levels_within_a_wide_crossover_are_proposed_for_the_next_run() -> None:
    note = next(note for note in ask(published()).recommendations if note.reason == "MoreLevels")
    assert note.message.endswith("With runPolicy.refine the next run does this itself.")


def test_network_that_was_the_limit_is_a_caveat() -> None:
    fact = {"reason": "NetworkBound", "message": "as fast as the network"}
    cloud, jetson = ONE_NODE
    (note,) = (note for note in ask([edited(cloud, facts=[fact]), jetson]).caveats if note.reason == "NetworkBound")
    assert note.message.startswith("The network was the limit in 1 of 1 results of cloud")
    assert "NetworkBound" not in reasons(ask(ONE_NODE).caveats)


LOST = {"trials": 2, "reason": "ClientLost", "message": "Its node is gone."}


CUT_OFF = {"trials": 2, "reason": "TimedOut", "message": "After 600 s."}


@pytest.mark.parametrize(
    "short", [{"counts": {"completed": 2}, "missing": CUT_OFF}, {"counts": {"completed": 3, "failed": 1}}]
)
def test_class_whose_trials_were_cut_off_is_never_better(short: dict[str, Any]) -> None:
    """The spec has four trials. Those that are missing may be the slow ones."""
    cloud, jetson = ONE_NODE
    ahead = ask([edited(cloud, **short), jetson], workload=sizes("1Mi"))
    assert (ahead.best, answered(ahead)) == ("", ("False", "CouldGoEitherWay"))
    assert "CutShort" in reasons(ahead.caveats)
    behind = ask([cloud, edited(jetson, **short)], workload=sizes("1Mi"))
    assert (behind.best, behind.confidence) == ("cloud", Confidence.LOW)


def test_lost_trials_do_not_make_the_mean_a_bound() -> None:
    cloud, jetson = ONE_NODE
    status = ask([edited(cloud, counts={"completed": 2}, missing=LOST), jetson], workload=sizes("1Mi"))
    assert status.best == "cloud"


def test_missing_levels_are_a_caveat_and_lower_confidence() -> None:
    results = [each for each in two_nodes() if (each.spec.server.node_class, each.spec.levels["fileSize"]) !=
               ("jetson", "5Gi")]  # fmt: skip
    status = ask(results, workload={"levels": {"tls": "None"}})
    (note,) = (note for note in status.caveats if note.reason == "LevelsLeftOut")
    assert note.message.startswith("jetson has no results at ")
    assert "5120" in note.message or "5 GiB" in note.message
    assert status.confidence is not Confidence.HIGH
