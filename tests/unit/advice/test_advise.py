"""Questions and their answers, and what is said where there is none."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.unit.report.published import LEVELS, measured, published
from tests.unit.report.test_page import of_kind
from tierbench.advice.advise import advise
from tierbench.advice.constraints import mean_limits
from tierbench.advice.selection import project_result
from tierbench.api.advice_answer import Confidence, PlacementAdviceStatus
from tierbench.api.node_class import NodeClass
from tierbench.api.placement_advice import PlacementAdviceSpec
from tierbench.api.result import BenchmarkResult
from tierbench.api.run_policy import Constraints

MEGABYTE = Constraints(minimum_bytes_per_second="1M")
NOW = datetime(2026, 11, 21, 4, 0, tzinfo=UTC)
FAST, SLOW = (1.0, 1.01, 0.99, 1.0), (2.0, 2.02, 1.98, 2.0)
Times = Mapping[tuple[str, str], Sequence[float]]


def ask(results: Sequence[BenchmarkResult], classes: Sequence[NodeClass] = (), **spec: Any) -> PlacementAdviceStatus:
    """The answer from the results, which is the same from what the operator keeps of them."""
    asked = PlacementAdviceSpec.model_validate({"clientClass": "user", **spec})
    status = advise(asked, results, NOW, classes)
    assert advise(asked, [project_result(asked, result.to_json()) for result in results], NOW, classes) == status
    return status


def sizes(*levels: str, **weights: int) -> dict[str, Any]:
    return {"fileSizes": [{"size": level} for level in levels] + [{"size": s, "weight": w} for s, w in weights.items()]}


def nodes(times: Times, run: int = 1, name: str = "files", size: str = "1Mi") -> list[BenchmarkResult]:
    """A result for each class and node."""
    return [
        measured(server, size, [(time, 0) for time in seconds], case, run, name=name, node=node)
        for case, ((server, node), seconds) in enumerate(times.items(), start=1)
    ]


def edited(result: BenchmarkResult, **status: Any) -> BenchmarkResult:
    body = result.to_json()
    return BenchmarkResult.model_validate(body | {"status": {**body["status"], **status}})


def verdicts(status: PlacementAdviceStatus) -> dict[str, tuple[str, str]]:
    return {item.name: (item.verdict.value, item.reason) for item in status.ranking}


def answered(status: PlacementAdviceStatus) -> tuple[str, str]:
    condition = next(item for item in status.conditions if item.type == "Answered")
    return condition.status, condition.reason


def reasons(notes: Sequence[Any]) -> set[str]:
    return {note.reason for note in notes}


ONE_NODE = nodes({("cloud", "cloud-1"): FAST, ("jetson", "jetson-1"): SLOW})
THREE_NODES = nodes(
    {
        ("cloud", "cloud-1"): (1.0, 1.02), ("cloud", "cloud-2"): (1.01, 1.03), ("cloud", "cloud-3"): (0.99, 1.01),
        ("jetson", "jetson-1"): (2.0, 2.04), ("jetson", "jetson-2"): (2.02, 2.06), ("jetson", "jetson-3"): (1.98, 2.0),
    }
)  # fmt: skip


@pytest.mark.parametrize(
    ("workload", "best", "margin"),
    [
        (sizes("1Mi"), "cloud", "47%"),
        (sizes("512Mi", "2Gi"), "jetson", "12%"),
        (sizes("3Gi"), "cloud", "14%"),
        (sizes("5120Mi"), "cloud", "16%"),
        (sizes(**{"512Mi": 99, "3Gi": 1}), "jetson", "12%"),
        (sizes(**{"512Mi": 1, "3Gi": 9}), "cloud", "14%"),
    ],
)
def test_the_published_table_by_workload(workload: dict[str, Any], best: str, margin: str) -> None:
    status = ask(published(), workload=workload)
    assert (status.best, status.margin, status.quantity) == (best, margin, "durationNanoseconds")
    assert answered(status) == ("True", "ShownBetter")
    assert [(item.ahead_below, item.ahead_above) for item in status.crossovers] == [
        ("cloud", "jetson"),
        ("jetson", "cloud"),
    ]


def test_the_answer_is_in_words_and_numbers() -> None:
    status = ask(published(), workload=sizes("512Mi", "2Gi"))
    assert status.answer == (
        "jetson is best for 512 MiB and 2 GiB, by transfer time: 12% ahead of cloud (ratio 0.876, 95% CI 0.818–0.938, "
        "on the nodes measured). This holds for the classes unless their nodes differ by more than about 5%. It is the "
        "best class with a probability of 91%; the expected loss of choosing it is 2%, if nodes differ as they "
        "usually do. On the nodes measured, cloud is ahead at 1 MiB, by 47%; jetson is ahead from 512 MiB to 2 GiB, "
        "by 12–14%; cloud is ahead from 3 GiB on, by 14–16%. Retries occurred only on jetson, from 3 GiB on (38 in "
        "total)."
    )
    assert (status.tipping_point, status.expected_loss) == ("5%", "2%")
    assert status.estimand == "ratio of means of transfer time for 512 MiB and 2 GiB, between the nodes measured"
    best, other = status.ranking
    assert (best.value, other.value) == (12_108_000_000, 13_819_500_000)
    assert best.confidence_low is not None and best.confidence_low < 12_108_000_000
    assert (best.nodes, best.trials, best.retries) == (1, 20, 0)
    assert best.margin_parts_per_million == other.margin_parts_per_million


def test_without_a_workload_throughput_decides() -> None:
    status = ask(published())
    assert status.quantity == "throughputBytesPerSecond"
    assert "NoWorkload" in reasons(status.caveats)


@pytest.mark.parametrize(
    ("objective", "quantity", "best"),
    [
        ({"type": "MeanTime"}, "durationNanoseconds", "cloud"),
        ({"type": "Percentile", "percentile": "P50"}, "durationP50Nanoseconds", "cloud"),
        ({"type": "Percentile", "percentile": "P99"}, "durationP99Nanoseconds", ""),
        ({"type": "Throughput"}, "throughputBytesPerSecond", "cloud"),
        ({"type": "Retries"}, "retriesPerTrialPartsPerMillion", "cloud"),
    ],
)
def test_every_objective(objective: dict[str, str], quantity: str, best: str) -> None:
    status = ask(published(), workload=sizes("4Gi"), objective=objective)
    assert (status.quantity, status.best) == (quantity, best)


def test_a_p99_of_ten_trials_is_not_an_answer() -> None:
    status = ask(published(), workload=sizes("4Gi"), objective={"type": "Percentile", "percentile": "P99"})
    assert verdicts(status) == {"cloud": ("NoData", "TooFewTrials"), "jetson": ("NoData", "TooFewTrials")}


def test_one_node_a_class_is_said_and_lowers_confidence() -> None:
    one, three = ask(ONE_NODE, workload=sizes("1Mi")), ask(THREE_NODES, workload=sizes("1Mi"))
    assert (one.best, one.confidence) == ("cloud", Confidence.LOW)
    assert "OneNode" in reasons(one.caveats)
    assert "MoreNodes" in reasons(one.next)
    assert (three.best, three.confidence) == ("cloud", Confidence.HIGH)
    assert (reasons(three.caveats), three.next) == ({"OneClientNode"}, ())


def test_nodes_decide_not_their_trials() -> None:
    """Trials differ by 1% on each node, but nodes of a class by more than the classes do."""
    steady = {
        ("cloud", "cloud-1"): (1.0, 1.01, 1.0, 0.99), ("cloud", "cloud-2"): (1.6, 1.61, 1.6, 1.59),
        ("jetson", "jetson-1"): (1.3, 1.31, 1.3, 1.29), ("jetson", "jetson-2"): (1.5, 1.51, 1.5, 1.49),
    }  # fmt: skip
    status = ask(nodes(steady), workload=sizes("1Mi"))
    assert answered(status) == ("False", "CouldGoEitherWay")
    note = next(note for note in status.caveats if note.reason == "NodesDiffer")
    assert note.message.startswith("cloud-1 and cloud-2, both cloud, differ by 37%, more than cloud and jetson do")
    (more,) = status.next
    assert (more.reason, "differences between nodes are the main reason" in more.message) == ("MoreNodes", True)


def test_what_could_go_either_way_is_not_known_and_says_what_it_costs() -> None:
    close = nodes({("cloud", "c"): (1.0, 1.1, 1.2, 1.1), ("jetson", "j"): (1.05, 1.15, 1.25, 1.15)})
    status = ask(close, workload=sizes("1Mi"))
    assert set(verdicts(status).values()) == {("NotKnown", "CouldGoEitherWay")}
    assert (status.best, status.node_affinity, status.confidence) == ("", None, Confidence.NONE)
    assert status.expected_loss == "3%"
    assert (
        "cloud: 4% ahead of jetson (ratio 0.957, 95% CI 0.844–1.08, on the nodes measured), but the difference is"
        in status.answer
    )
    assert {"MoreNodes", "MoreTrials"} == reasons(status.next)


def test_a_tie_with_none_of_what_counts_is_answered() -> None:
    """A division by zero here ended every advice for good."""
    retried = [(1.0, 0)] * 9 + [(1.0, 1)]
    results = [measured("cloud", "1Mi", [(1.0, 0)] * 10, 1), measured("jetson", "1Mi", retried, 2)]
    status = ask(results, objective={"type": "Retries"})
    assert set(verdicts(status).values()) == {("NotKnown", "CouldGoEitherWay")}
    assert "MoreTrials" in reasons(status.next)


def test_a_forged_statistic_of_one_trial_is_no_error() -> None:
    (result,) = nodes({("cloud", "c"): (1.0,)})
    statistic = {"count": 1, "mean": 10**9, "standardDeviation": 10**8, "confidenceHigh": 2 * 10**9}
    known = result.to_json()["status"]["statistics"]
    statistics = {name: {**value, **statistic} for name, value in known.items()}
    assert ask([edited(result, statistics=statistics, untrimmed=statistics)]).ranking


def test_the_third_class_is_ranked_too() -> None:
    more = nodes({("cloud", "c2"): FAST, ("jetson", "j2"): SLOW})
    fourth = [
        result.model_copy(
            update={
                "spec": result.spec.model_copy(
                    update={"server": result.spec.server.model_copy(update={"node_class": "pi", "node": "pi-1"})}
                )
            }
        )
        for result in nodes({("jetson", "j"): (4.0, 4.1, 4.05, 4.0)})
    ]
    status = ask([*more, *fourth], workload=sizes("1Mi"))
    assert [(item.name, item.verdict.value) for item in status.ranking] == [
        ("cloud", "Best"), ("jetson", "Worse"), ("pi", "Worse"),
    ]  # fmt: skip
    assert status.runner_up == "jetson"


@pytest.mark.parametrize(
    ("constraints", "size", "wanted"),
    [
        ({"maximumRetries": 0}, "3Gi", {"cloud": ("Best", "OnlyFeasible"), "jetson": ("Infeasible", "TooManyRetries")}),
        ({"maximumMeanMilliseconds": 5000}, "512Mi",
         {"jetson": ("Best", "OnlyFeasible"), "cloud": ("Infeasible", "MeanTooLong")}),
        ({"maximumP99Milliseconds": 5000}, "512Mi",
         {"jetson": ("Best", "OnlyFeasible"), "cloud": ("Infeasible", "P99TooLong")}),
        ({"minimumBytesPerSecond": "100Mi"}, "1Gi",
         {"jetson": ("Best", "OnlyFeasible"), "cloud": ("Infeasible", "ThroughputTooLow")}),
        ({"architectures": ["arm64"]}, "1Mi",
         {"jetson": ("Best", "OnlyFeasible"), "cloud": ("Infeasible", "ArchitectureExcluded")}),
        ({"architectures": ["riscv64"]}, "1Mi",
         {"cloud": ("Infeasible", "ArchitectureExcluded"), "jetson": ("Infeasible", "ArchitectureExcluded")}),
        ({"minimumMessagesPerSecond": 5}, "1Mi",
         {"cloud": ("NoData", "NotMeasured"), "jetson": ("NoData", "NotMeasured")}),
    ],
)  # fmt: skip
def test_constraints(constraints: dict[str, Any], size: str, wanted: dict[str, tuple[str, str]]) -> None:
    assert verdicts(ask(published(), workload=sizes(size), constraints=constraints)) == wanted


def test_a_constraint_holds_at_every_level_and_says_where_not() -> None:
    status = ask(published(), workload=sizes("1Mi", "5Gi"), constraints={"maximumMeanMilliseconds": 60_000})
    jetson = next(item for item in status.ranking if item.name == "jetson")
    assert jetson.message == "Transfer time is 66.08 s at 5 GiB; the maximum is 60.00 s."
    near = ask(published(), workload=sizes("5Gi"), constraints={"maximumMeanMilliseconds": 66_500})
    assert "LimitUnsure" in reasons(near.caveats)
    assert near.confidence is Confidence.LOW


def test_none_feasible_is_no_answer() -> None:
    status = ask(published(), workload=sizes("5Gi"), constraints={"maximumMeanMilliseconds": 1})
    assert answered(status) == ("False", "NoneFeasible")
    assert status.node_affinity is None


def contradicting() -> list[BenchmarkResult]:
    back = nodes({("cloud", "cloud-1"): SLOW, ("jetson", "jetson-1"): FAST}, run=2)
    return [*ONE_NODE, *back]


def of_version(results: Sequence[BenchmarkResult], version: str) -> list[BenchmarkResult]:
    engine = {"name": "tierbench-client", "version": version, "architecture": "amd64"}
    return [edited(result, engine=engine) for result in results]


SPOILED = [{"reason": "ClientSaturated", "message": "The client used all its CPU."}]


@pytest.mark.parametrize(
    ("results", "reason", "hint"),
    [
        ([], "NoResults", "there are no results at all"),
        (ONE_NODE[:1], "OneClassOnly", "Measure another"),
        (nodes({("cloud", "c"): (1.0,), ("jetson", "j"): (9.0,)}), "TooFewTrials", "Run more repetitions"),
        ([edited(result, valid=False, invalid=SPOILED) for result in ONE_NODE], "NotValid", "ClientSaturated"),
        ([*of_version(ONE_NODE[:1], "1"), *of_version(ONE_NODE[1:], "2")], "DifferentVersions", "Rerun"),
        (contradicting(), "ContradictingRuns", "rerun"),
        (
            [*ONE_NODE, of_kind("BrokerBenchmark", {}, "cloud", 1, {}).model_copy(
                update={"spec": ONE_NODE[0].spec.model_copy(update={
                    "benchmark": ONE_NODE[0].spec.benchmark.model_copy(update={"kind": "BrokerBenchmark"})})})],
            "DifferentKinds", "spec.benchmarks",
        ),
        ([edited(result, phase="Failed", reason="NoReadyNode", statistics={}) for result in ONE_NODE],
         "CasesFailed", "NoReadyNode"),
    ],
)  # fmt: skip
def test_without_evidence_there_is_no_winner(results: list[BenchmarkResult], reason: str, hint: str) -> None:
    status = ask(results, workload=sizes("1Mi"))
    assert answered(status) == ("False", reason)
    assert (status.best, status.node_affinity, status.confidence) == ("", None, Confidence.NONE)
    assert hint in status.answer
    assert not {item.verdict.value for item in status.ranking} & {"Best", "Worse"}


def test_a_level_that_was_not_measured_is_not_guessed() -> None:
    status = ask(published(), workload=sizes("7Gi"))
    assert verdicts(status) == {"cloud": ("NoData", "NotMeasured"), "jetson": ("NoData", "NotMeasured")}
    assert "was not measured at 7 GiB" in status.answer
    assert "NotMeasured" in reasons(status.next)


def test_a_class_that_cannot_be_compared_stands_apart() -> None:
    half = [result for result in published() if result.spec.server.node_class == "cloud" or result.spec.case < 9]
    status = ask([*half], workload=sizes("1Mi", "5Gi"))
    assert verdicts(status) == {"cloud": ("NoData", "OneClassOnly"), "jetson": ("NoData", "NotMeasured")}


def test_spoiled_results_are_a_caveat_while_others_are_valid() -> None:
    results = published()
    results[0] = edited(results[0], valid=False, invalid=SPOILED)
    status = ask(results, workload=sizes("1Mi", "5Gi"))
    assert (status.best, status.confidence) == ("cloud", Confidence.LOW)
    assert "1 of 4 results may be distorted: ClientSaturated." in [note.message for note in status.caveats]


def test_means_that_a_few_trials_decide_are_pointed_out() -> None:
    steady, wild = (1.0, 1.01, 1.0, 0.99, 1.0) * 2, (0.9, 0.91, 0.9, 0.9, 5.0, 0.9, 5.0, 0.9, 5.0, 5.0)
    status = ask(nodes({("cloud", "c"): steady, ("jetson", "j"): wild}), workload=sizes("1Mi"))
    assert (status.best, status.confidence) == ("cloud", Confidence.LOW)
    assert "MediansDisagree" in reasons(status.caveats)


def test_the_newest_run_answers_and_one_under_way_does_not() -> None:
    newest = nodes({("cloud", "cloud-1"): (3.0, 3.01, 3.0), ("jetson", "jetson-1"): (6.0, 6.1, 6.05)}, run=2)
    assert ask([*ONE_NODE, *newest], workload=sizes("1Mi")).ranking[0].value == pytest.approx(3_003_333_333)
    newest[0] = edited(newest[0], phase="Running")
    assert ask([*ONE_NODE, *newest], workload=sizes("1Mi")).ranking[0].value == 1_000_000_000


def test_results_are_chosen_by_client_benchmark_and_label() -> None:
    other = nodes({("cloud", "cloud-1"): SLOW, ("jetson", "jetson-1"): FAST}, name="other")
    labelled = [
        result.model_copy(update={"metadata": result.metadata.model_copy(update={"labels": {"site": "a"}})})
        for result in other
    ]
    both = [*ONE_NODE, *labelled]
    assert ask(both, workload=sizes("1Mi"), benchmarks={"names": ["files"]}).best == "cloud"
    assert ask(both, workload=sizes("1Mi"), benchmarks={"matchLabels": {"site": "a"}}).best == "jetson"
    assert answered(ask(both, workload=sizes("1Mi"))) == ("False", "ContradictingRuns")
    elsewhere = ask(both, clientClass="elsewhere")
    assert "there are results with clients on user" in elsewhere.answer


def test_levels_that_are_not_asked_for_count_equally_where_all_classes_have_them() -> None:
    def tls(server: str, level: str, seconds: float, case: int) -> BenchmarkResult:
        times = [(seconds, 0), (seconds * 1.01, 0), (seconds * 0.99, 0)]
        return measured(server, "1Mi", times, case, levels=LEVELS | {"tls": level})

    results = [tls("cloud", "None", 1, 1), tls("cloud", "TLSv1.3", 3, 2), tls("jetson", "None", 4, 3)]
    status = ask(results, workload=sizes("1Mi"))
    assert [item.value for item in status.ranking] == [1_000_000_000, 4_000_000_000]
    assert "LevelsLeftOut" in reasons(status.caveats)
    every = ask([*results, tls("jetson", "TLSv1.3", 5, 4)], workload=sizes("1Mi"))
    assert [item.value for item in every.ranking] == [2_000_000_000, 4_500_000_000]
    named = ask([*results, tls("jetson", "TLSv1.3", 5, 4)], workload={"levels": {"tls": "TLSv1.3"}})
    assert [item.value for item in named.ranking] == [3_000_000_000, 5_000_000_000]


def test_the_affinity_is_that_of_the_class_else_of_its_nodes() -> None:
    selector = {"matchLabels": {"hw": "pc"}, "matchExpressions": [{"key": "gpu", "operator": "DoesNotExist"}]}
    cloud = NodeClass.model_validate({"metadata": {"name": "cloud"}, "spec": {"nodeSelector": selector}})
    found = ask(ONE_NODE, [cloud], workload=sizes("1Mi")).to_json()["nodeAffinity"]
    (term,) = found["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert term["matchExpressions"] == [
        {"key": "hw", "operator": "In", "values": ["pc"]},
        {"key": "gpu", "operator": "DoesNotExist", "values": []},
    ]
    unknown = ask(ONE_NODE, workload=sizes("1Mi")).node_affinity
    assert unknown is not None
    requirement = unknown.required_during_scheduling_ignored_during_execution.node_selector_terms[0].match_expressions[
        0
    ]
    assert (requirement.key, requirement.values) == ("kubernetes.io/hostname", ("cloud-1",))


def test_factors_that_nothing_here_knows_are_ranked_too() -> None:
    results = [
        of_kind("FileTransferBenchmark", {"steps": steps}, server, case, {"durationNanoseconds": mean}).model_copy()
        for case, (steps, server, mean) in enumerate(
            [("10", "cloud", 100), ("10", "pi", 200), ("1000", "cloud", 9000), ("1000", "pi", 800)], start=1
        )
    ]
    status = ask(results, clientClass="pi", workload={"levels": {"steps": "1000"}})
    assert status.best == "pi"
    (crossover,) = status.crossovers
    assert (crossover.factor, crossover.lower_level, crossover.upper_level) == ("steps", "10", "1000")
    assert not any("runPolicy.refine" in note.message for note in status.next)


def test_sizes_within_a_wide_crossover_are_left_to_the_next_run() -> None:
    note = next(note for note in ask(published()).next if note.reason == "MoreLevels")
    assert note.message.endswith("With runPolicy.refine the next run does this itself.")


def test_a_status_is_taken_back_and_keeps_its_bounds() -> None:
    status = ask(published())
    assert PlacementAdviceStatus.model_validate(status.to_json()) == status
    messages = [item.message for item in status.ranking] + [note.message for note in (*status.caveats, *status.next)]
    assert max(map(len, messages)) <= 512


@pytest.mark.parametrize(
    ("kind", "quantity", "value"),
    [
        ("FileTransferBenchmark", "throughputBytesPerSecond", 1_000_000),
        ("NetworkBenchmark", "throughputBitsPerSecond", 8_000_000),
    ],
)
def test_a_least_throughput_is_held_in_the_unit_of_the_kind(kind: str, quantity: str, value: float) -> None:
    (limit,) = mean_limits(MEGABYTE, kind, ())
    assert (limit.quantity, limit.value) == (quantity, value)


def test_a_network_that_was_the_limit_is_a_caveat() -> None:
    fact = {"reason": "NetworkBound", "message": "as fast as the network"}
    cloud, jetson = ONE_NODE
    (note,) = (note for note in ask([edited(cloud, facts=[fact]), jetson]).caveats if note.reason == "NetworkBound")
    assert note.message.startswith("The network was the limit in 1 of 1 results of cloud")
    assert "NetworkBound" not in reasons(ask(ONE_NODE).caveats)


def two_nodes() -> list[BenchmarkResult]:
    """The published table with a second node a class, whose times are 1% longer."""
    second = [
        measured(
            result.spec.server.node_class,
            result.spec.levels["fileSize"],
            [(trial.duration_nanoseconds * 1.01 / 1e9, trial.transfer.retries if trial.transfer else 0)
             for trial in result.status.trials],
            result.spec.case + 100,
            node=f"{result.spec.server.node_class}-2",
        )
        for result in published()
    ]  # fmt: skip
    return [*published(), *second]


def test_the_published_conclusions_hold_for_classes_of_two_nodes() -> None:
    status = ask(two_nodes(), workload=sizes("512Mi", "1Gi", "2Gi"))
    assert (status.best, status.confidence, status.tipping_point) == ("jetson", Confidence.HIGH, "")
    assert (
        " cloud is ahead at 1 MiB, by 47%; jetson is ahead from 512 MiB to 2 GiB, by 12–14%; "
        "cloud is ahead from 3 GiB on, by 14–16%."
    ) in status.answer
    assert [(each.lower_level, each.upper_level) for each in status.crossovers] == [("1Mi", "512Mi"), ("2Gi", "3Gi")]


LOST = {"trials": 2, "reason": "ClientLost", "message": "Its node is gone."}


def test_a_trial_that_was_cut_off_leaves_a_limit_open() -> None:
    cloud, jetson = ONE_NODE
    late = {"reason": "TimedOut", "message": "After 600 s."}
    first, *others = cloud.to_json()["status"]["trials"]
    counts = cloud.to_json()["status"]["counts"] | {"failed": 1}
    cut = edited(cloud, trials=[first | {"outcome": "Failed", "failure": late}, *others], counts=counts)
    status = ask([cut, jetson], workload=sizes("1Mi"), constraints={"maximumMeanMilliseconds": 5000})
    assert verdicts(status)["cloud"] == ("NoData", "NotMeasured")


CUT_OFF = {"trials": 2, "reason": "TimedOut", "message": "After 600 s."}


@pytest.mark.parametrize(
    "short", [{"counts": {"completed": 2}, "missing": CUT_OFF}, {"counts": {"completed": 3, "failed": 1}}]
)
def test_a_class_whose_trials_were_cut_off_may_be_worse_and_never_better(short: dict[str, Any]) -> None:
    """Four trials were asked for; those that are missing may be the long ones."""
    cloud, jetson = ONE_NODE
    ahead = ask([edited(cloud, **short), jetson], workload=sizes("1Mi"))
    assert (ahead.best, answered(ahead)) == ("", ("False", "CouldGoEitherWay"))
    assert "CutShort" in reasons(ahead.caveats)
    behind = ask([cloud, edited(jetson, **short)], workload=sizes("1Mi"))
    assert (behind.best, behind.confidence) == ("cloud", Confidence.LOW)


def test_trials_that_were_lost_whatever_they_took_bound_nothing() -> None:
    cloud, jetson = ONE_NODE
    status = ask([edited(cloud, counts={"completed": 2}, missing=LOST), jetson], workload=sizes("1Mi"))
    assert status.best == "cloud"


def test_levels_that_a_class_lacks_are_named_and_lower_the_confidence() -> None:
    results = [each for each in two_nodes() if (each.spec.server.node_class, each.spec.levels["fileSize"]) !=
               ("jetson", "5Gi")]  # fmt: skip
    status = ask(results, workload={"levels": {"tls": "None"}})
    (note,) = (note for note in status.caveats if note.reason == "LevelsLeftOut")
    assert note.message.startswith("jetson has no results at ")
    assert "5120" in note.message or "5 GiB" in note.message
    assert status.confidence is not Confidence.HIGH


def test_a_rate_over_a_workload_is_all_bytes_by_all_time() -> None:
    """1 MB at 1 MB/s and 3 MB at 3 MB/s are 4 MB in 2 s, not (1 + 3) / 2; and 2 MB in 4 s next to 2 MB in 1 s."""
    results = [
        measured(server, size, [(time, 0), (time * 1.001, 0), (time * 0.999, 0)], case)
        for case, (server, size, time) in enumerate(
            [("cloud", "1M", 1.0), ("cloud", "3M", 1.0), ("jetson", "1M", 0.2), ("jetson", "3M", 3.0)], start=1
        )
    ]
    status = ask(results)
    values = {item.name: item.value for item in status.ranking}
    assert values == {"cloud": pytest.approx(2e6, rel=1e-3), "jetson": pytest.approx(4e6 / 3.2, rel=1e-3)}
    assert status.best == "cloud"


@pytest.mark.parametrize(("margin", "verdict"), [("5%", "Best"), ("10.1%", "NotKnown"), ("60%", "Equal")])
def test_the_smallest_margin_decides(margin: str, verdict: str) -> None:
    times = {
        (server, f"{server}-{node}"): [base * (1 + node / 1000 + step / 1000) for step in range(10)]
        for server, base in (("cloud", 1.0), ("jetson", 1.1))
        for node in range(4)
    }
    status = ask(nodes(times), workload=sizes("1Mi"), smallestMargin=margin)
    assert verdicts(status)["cloud"][0] == verdict
    assert status.ranking[0].name == "cloud"


def test_skewed_trials_give_no_interval_below_zero() -> None:
    skewed = nodes({("cloud", "c"): (0.29, 0.3, 0.886), ("jetson", "j"): (0.4, 0.41, 0.42)})
    for item in ask(skewed, workload=sizes("1Mi")).ranking:
        assert item.confidence_low is not None and item.confidence_low > 0
