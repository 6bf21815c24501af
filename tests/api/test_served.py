"""The API server processes objects of our kinds: defaults, columns, field managers and versions."""

from typing import Any

import pytest

from tests.api.connection import connected
from tests.api.objects import changed, crd_path, create, item, smallest
from tests.api.server import ApiServer, Json, RefusedError
from tierbench.advice.answer import LONGEST_BEST
from tierbench.api.advice_answer import (
    Confidence,
    LevelCrossover,
    NodeAffinity,
    NodeRequirement,
    NodeSelectorTerm,
    PlacementAdviceStatus,
    RankedAlternative,
    RequiredNodes,
    Verdict,
)
from tierbench.api.benchmark import BenchmarkStatus, CaseCounts, CurrentCase, NodeAssignment, Phase, RunStatus
from tierbench.api.contract import ClientSample, Distributions, Engine, Histogram, Outcome, ServerSample
from tierbench.api.measurements import Failure, RetryCauses, Transfer
from tierbench.api.model import Condition, Resource
from tierbench.api.node_class import NodeClass, NodeClassStatus, NodeSummary
from tierbench.api.placement_advice import PlacementAdvice
from tierbench.api.record import BenchmarkRecord, RecordEnd, RecordStatus, ResultTrial, TrialTrace
from tierbench.api.result import (
    BenchmarkResult,
    CoarseHistogram,
    Counts,
    Display,
    Note,
    Percentile,
    ResultPhase,
    ResultStatus,
    Statistic,
)
from tierbench.api.schema import resource_types
from tierbench.kinds.broker.spec import BrokerBenchmark
from tierbench.kinds.file_transfer.spec import FileTransferBenchmark
from tierbench.kinds.network.spec import NetworkBenchmark
from tierbench.kinds.registry import BENCHMARKS
from tierbench.kube.client import Kube

pytestmark = pytest.mark.apiserver

APPLY = {"Content-Type": "application/apply-patch+yaml"}
TABLE = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
MOST_COLUMNS = 120
SPACES_BETWEEN_COLUMNS = 3
NOW = "2026-11-20T22:00:00Z"
CONDITION = Condition(
    type="Ready", status="True", reason="Found", message="Found.", last_transition_time=NOW, observed_generation=1
)
TRIAL = ResultTrial(
    trial=1,
    outcome=Outcome.FAILED,
    failure=Failure(reason="AttemptsExhausted", message="20 attempts, see retryCauses"),
    start_time="2026-11-20T22:00:00.123456789Z",
    duration_nanoseconds=2**62,
    client=ClientSample(cpu_nanoseconds=5),
    server=ServerSample(
        resident_before_parts_per_million=0,
        resident_after_parts_per_million=1_000_000,
        device_read_bytes=2**40,
        io_wait_parts_per_million=1,
        io_pressure_parts_per_million=1,
        cpu_parts_per_million=1,
        tcp_retransmits=1,
        tcp_segments_sent=2,
        round_trip_nanoseconds=3,
        round_trip_max_nanoseconds=4,
    ),
    transfer=Transfer(bytes=2**40, downloads=1, retries=1, retry_causes=RetryCauses(stalled=1), digest_verified=True),
)
STATISTIC = Statistic(
    count=2,
    mean=5,
    standard_deviation=1,
    p50=5,
    confidence_low=-4,
    confidence_high=14,
)
BENCHMARK_STATUS = BenchmarkStatus(
    observed_generation=1,
    phase=Phase.RUNNING,
    progress="12/28",
    remaining_seconds=90,
    cases=CaseCounts(total=28, finished=12, failed=1, invalid=2),
    current=CurrentCase(name="1Mi on cloud", result="files-r1-c013", finished_trials=3, total_trials=10),
    run=RunStatus(
        number=1,
        rerun="again",
        start_time=NOW,
        completion_time=NOW,
        assignments=(NodeAssignment(node_class="cloud", nodes=("cloud-1",), reason="None", message="None."),),
    ),
    best="cloud",
    answer="cloud is fastest up to 4Gi",
    conditions=(CONDITION,),
)
STATUSES: dict[type[Resource], Any] = {
    NodeClass: NodeClassStatus(
        observed_generation=1,
        nodes=2,
        ready_nodes=1,
        architectures="amd64,arm64",
        cpu="4",
        memory="3.8 to 16 GiB",
        members=(NodeSummary(name="cloud-1", ready=True, architecture="amd64"),),
        conditions=(CONDITION,),
    ),
    FileTransferBenchmark: BENCHMARK_STATUS,
    BrokerBenchmark: BENCHMARK_STATUS,
    NetworkBenchmark: BENCHMARK_STATUS,
    BenchmarkResult: ResultStatus(
        phase=ResultPhase.COMPLETE,
        reason="So",
        message="So.",
        completion_time=NOW,
        counts=Counts(completed=9, failed=1, retries=7, retry_causes={"Stalled": 7}, errors=1, interruptions=1),
        statistics={"durationNanoseconds": STATISTIC},
        percentiles={"P99": Percentile(count=9, value=6, confidence_low=5, confidence_high=7, standard_error=1)},
        histograms={"durationNanoseconds": CoarseHistogram(sum_nanoseconds=9, exponents=(-29, 1), counts=(8, 1))},
        totals={"ioBoundTrials": 1},
        valid=False,
        invalid=(Note(reason="ClientSaturated", message="The client's CPU was busy."),),
        facts=(Note(reason="CacheCannotHold", message="The file is larger than memory."),),
        engine=Engine(name="tierbench-client", version="0.1.0", architecture="arm64"),
        display=Display(case="1Mi", mean="1.24 s", p99="1.31 s", throughput="845 MB/s", valid="ClientSaturated"),
    ),
    BenchmarkRecord: RecordStatus(
        trials=(TRIAL,),
        distributions=Distributions(
            download_duration=Histogram(count=3, sum_nanoseconds=9, indexes=(1, 4), counts=(1, 2))
        ),
        traces=(TrialTrace(trial=1, warmup=False, side="Client", client=2, data="H4s="),),
        traces_left_out=(1,),
        ended=RecordEnd(
            time=NOW,
            engine=Engine(name="tierbench-client", version="0.1.0", architecture="arm64"),
            reason="So",
            message="So.",
        ),
    ),
    PlacementAdvice: PlacementAdviceStatus(
        observed_generation=1,
        best="jetson",
        runner_up="cloud",
        settings={"tls": "None"},
        margin="12%",
        confidence=Confidence.LOW,
        answer="jetson is best",
        quantity="durationNanoseconds",
        ranking=(
            RankedAlternative(
                name="jetson",
                verdict=Verdict.BEST,
                reason="ShownBetter",
                message="So.",
                value=2**62,
                confidence_low=-1,
                confidence_high=2**62,
                margin_parts_per_million=120_000,
                nodes=1,
                trials=30,
                retries=0,
            ),
        ),
        crossovers=(
            LevelCrossover(
                factor="fileSize",
                held={"tls": "None"},
                lower_level="512Mi",
                upper_level="1Gi",
                ahead_below="jetson",
                ahead_above="cloud",
                confidence_parts_per_million=950_000,
            ),
        ),
        node_affinity=NodeAffinity(
            required_during_scheduling_ignored_during_execution=RequiredNodes(
                node_selector_terms=(
                    NodeSelectorTerm(match_expressions=(NodeRequirement(key="hw", operator="In", values=("jetson",)),)),
                )
            )
        ),
        caveats=(Note(reason="OneNode", message="Machines are compared."),),
        recommendations=(Note(reason="MoreNodes", message="Measure another node."),),
        conditions=(CONDITION.model_copy(update={"type": "BestFound", "reason": "ShownBetter"}),),
    ),
}
BENCHMARK_CELLS: Json = {
    "Phase": "Running",
    "Progress": "12/28",
    "Run": 1,
    "Failed": 1,
    "Now": "1Mi on cloud",
    "Best": "cloud",
    "Answer": "cloud is fastest up to 4Gi",
}
CELLS: dict[type[Resource], Json] = {
    NodeClass: {"Ready": "True", "Nodes": 2, "Usable": 1, "Arch": "amd64,arm64", "CPU": "4", "Memory": "3.8 to 16 GiB"},
    FileTransferBenchmark: BENCHMARK_CELLS,
    BrokerBenchmark: BENCHMARK_CELLS,
    NetworkBenchmark: BENCHMARK_CELLS,
    BenchmarkResult: {
        "Benchmark": "files",
        "Run": 1,
        "Server": "cloud",
        "Client": "cloud",
        "Case": "1Mi",
        "Mean": "1.24 s",
        "P99": "1.31 s",
        "Throughput": "845 MB/s",
        "Retries": 7,
        "Valid": "ClientSaturated",
        "Node": "cloud-1",
    },
    BenchmarkRecord: {"Benchmark": "networks", "Run": 1, "Case": 1},
    PlacementAdvice: {
        "Best": "jetson",
        "Runner-Up": "cloud",
        "Margin": "12%",
        "Confidence": "Low",
        "Reason": "ShownBetter",
        "Answer": "jetson is best",
    },
}


def apply(
    server: ApiServer, model: type[Resource], body: Json, manager: str, subresource: str = "", force: bool = False
) -> Json:
    path = f"{item(model, body['metadata']['name'])}{subresource}"
    query = f"fieldManager={manager}&force={str(force).lower()}&fieldValidation=Strict"
    return server.request("PATCH", f"{path}?{query}", body, APPLY)


def with_status(model: type[Resource], name: str, status: Json, version: str | None = None) -> Json:
    body = smallest(model, name)
    metadata = {"name": name} if version is None else {"name": name, "resourceVersion": version}
    return {"apiVersion": body["apiVersion"], "kind": body["kind"], "metadata": metadata, "status": status}


@pytest.mark.parametrize("model", resource_types())
def test_kind_is_established_and_served_in_its_scope(server: ApiServer, model: type[Resource]) -> None:
    crd = server.request("GET", crd_path(model))
    conditions = {condition["type"]: condition["status"] for condition in crd["status"]["conditions"]}
    assert conditions == {"NamesAccepted": "True", "Established": "True"}
    served = server.request("GET", "/apis/tierbench.io/v1alpha1")["resources"]
    names = {resource["name"]: resource for resource in served}
    found = names[model.KIND.plural]
    assert (found["namespaced"], found["shortNames"]) == (model.KIND.namespaced, list(model.KIND.short_names))
    assert found["categories"] == ["tierbench", *model.KIND.categories]
    assert f"{model.KIND.plural}/status" in names


@pytest.mark.parametrize("model", resource_types())
def test_defaults_match_the_model(server: ApiServer, name: str, model: type[Resource]) -> None:
    created = create(server, model, smallest(model, name))
    read = model.model_validate(smallest(model, name))
    # The operator writes all fields of its own kinds that have no default.
    assert created["spec"] == (smallest(model, name) if model.ATOMIC else read.to_json())["spec"]
    assert created.get("status", {}).keys() <= {"observedGeneration"}


@pytest.mark.parametrize("below", ["", "/x", "/Disk_1/ssd.2/a-b..c"])
def test_a_given_storage_replaces_the_default(server: ApiServer, name: str, below: str) -> None:
    storage = {"hostPath": {"path": f"/var/lib/tierbench{below}"}}
    body = changed(smallest(FileTransferBenchmark, name), "spec.storage", storage)
    assert create(server, FileTransferBenchmark, body)["spec"]["storage"] == storage


def test_sizes_may_be_numbers_or_quantities(server: ApiServer, name: str) -> None:
    body = smallest(FileTransferBenchmark, name)
    body["spec"]["fileSizes"] = [1500, "1Ki", "16Ti"]
    assert create(server, FileTransferBenchmark, body)["spec"]["fileSizes"] == [1500, "1Ki", "16Ti"]


@pytest.mark.parametrize("model", resource_types())
def test_status_of_the_model_is_stored_unchanged_and_shown_in_columns(
    server: ApiServer, name: str, model: type[Resource]
) -> None:
    create(server, model, smallest(model, name))
    body = with_status(model, name, STATUSES[model].to_json())
    written, again = (apply(server, model, body, "tierbench", "/status") for _ in range(2))
    assert written["status"] == body["status"]
    assert written["metadata"]["resourceVersion"] == again["metadata"]["resourceVersion"]
    table = server.request("GET", item(model, name), headers=TABLE)
    header = [column["name"] for column in table["columnDefinitions"]]
    cells = dict(zip(header, table["rows"][0]["cells"], strict=True))
    assert {column: cells[column] for column in CELLS[model]} == CELLS[model]
    wide = {column.name for column in model.KIND.columns if column.priority}
    assert {column["name"] for column in table["columnDefinitions"] if column["priority"]} == wide


@pytest.mark.parametrize(
    ("model", "longest"),
    [
        *(
            (model, {"phase": "Suspended", "progress": "1000/1000", "best": "x" * LONGEST_BEST, "answer": "x" * 1024})
            for model in BENCHMARKS.values()
        ),
        (
            PlacementAdvice,
            {
                "best": "kafka on raspberry-pi-4 with TLS None",
                "runnerUp": "mosquitto on raspberry-pi-4 with TLS None",
                "margin": "12.5%",
                "expectedLoss": "0.5%",
                "confidence": "Moderate",
                "answer": "x" * 1024,
                "conditions": [CONDITION.to_json() | {"type": "BestFound", "reason": "PerhapsWithinMargin"}],
            },
        ),
    ],
)
def test_table_of_kubectl_get_fits_120_columns(
    server: ApiServer, name: str, model: type[Resource], longest: Json
) -> None:
    name = f"{name}-".ljust(MOST_COLUMNS // 6, "x")
    create(server, model, smallest(model, name))
    apply(server, model, with_status(model, name, longest), "tierbench", "/status")
    table = server.request("GET", item(model, name), headers=TABLE)
    cells = zip(table["columnDefinitions"], table["rows"][0]["cells"], strict=True)
    widths = [max(len(column["name"]), len(str(cell))) for column, cell in cells if not column["priority"]]
    assert sum(widths) + SPACES_BETWEEN_COLUMNS * (len(widths) - 1) <= MOST_COLUMNS


@pytest.mark.parametrize("model", resource_types())
async def test_fields_of_a_status_can_be_removed(server: ApiServer, name: str, model: type[Resource]) -> None:
    """Server-side apply removes all fields of an object that no schema allows to be null."""
    create(server, model, smallest(model, name))
    whole = STATUSES[model]
    if model is BenchmarkResult:  # a sealed result cannot change
        whole = whole.model_copy(update={"phase": ResultPhase.RUNNING})
    if model is BenchmarkRecord:
        whole = whole.model_copy(update={"ended": None})
    kept = {"conditions": whole.conditions} if hasattr(whole, "conditions") else {}
    async with connected(server) as client:
        for status in (whole, type(whole)(**kept), whole):
            body, namespace = with_status(model, name, status.to_json()), "default" if model.KIND.namespaced else None
            written = await Kube(client).apply_status(model.KIND.resource, namespace, body)
            assert type(status).model_validate(written["status"]) == status


def test_status_out_of_bounds_is_refused(server: ApiServer, name: str) -> None:
    create(server, BenchmarkRecord, smallest(BenchmarkRecord, name))
    with pytest.raises(RefusedError, match="must have at most 95 items"):
        apply(
            server,
            BenchmarkRecord,
            with_status(BenchmarkRecord, name, {"trials": [TRIAL.to_json()] * 96}),
            "a",
            "/status",
        )


def test_two_managers_conflict_only_on_the_same_field(server: ApiServer, name: str) -> None:
    model, body = FileTransferBenchmark, smallest(FileTransferBenchmark, name)
    apply(server, model, body, "person")
    apply(server, model, with_status(model, name, {"phase": "Running", "progress": "1/2"}), "tierbench", "/status")
    shared = apply(server, model, body | {"spec": body["spec"] | {"runPolicy": {"suspend": True}}}, "person")
    assert (shared["spec"]["runPolicy"]["suspend"], shared["status"]["progress"]) == (True, "1/2")
    other = {**with_status(model, name, {}), "spec": {"runPolicy": {"suspend": False}}}
    with pytest.raises(RefusedError, match=r'conflict with "person": \.spec\.runPolicy\.suspend') as refused:
        apply(server, model, other, "robot")
    assert refused.value.code == 409
    assert apply(server, model, other, "robot", force=True)["spec"]["runPolicy"]["suspend"] is False


def test_conditions_of_two_managers_merge_by_type(server: ApiServer, name: str) -> None:
    model = FileTransferBenchmark
    create(server, model, smallest(model, name))
    for kind, reason in (("Complete", "Running"), ("Regressed", "Slower"), ("Complete", "Complete")):
        condition = CONDITION.model_copy(update={"type": kind, "reason": reason}).to_json()
        merged = apply(server, model, with_status(model, name, {"conditions": [condition]}), kind, "/status")
    conditions = [(condition["type"], condition["reason"]) for condition in merged["status"]["conditions"]]
    assert sorted(conditions) == [("Complete", "Complete"), ("Regressed", "Slower")]


def test_status_of_an_old_version_conflicts(server: ApiServer, name: str) -> None:
    model = FileTransferBenchmark
    version = create(server, model, smallest(model, name))["metadata"]["resourceVersion"]
    apply(server, model, with_status(model, name, {"phase": "Queued"}, version), "tierbench", "/status")
    with pytest.raises(RefusedError) as refused:
        apply(server, model, with_status(model, name, {"phase": "Running"}, version), "tierbench", "/status")
    assert refused.value.code == 409
    assert server.request("GET", item(model, name))["status"] == {"phase": "Queued", "observedGeneration": 0}
