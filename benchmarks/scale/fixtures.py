"""Writes ended benchmarks from recorded runs, as the operator writes them."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

from benchmarks.scale.connection import all_of
from benchmarks.scale.peer import Collection, Statuses
from benchmarks.scale.site import NAMESPACE, Site
from tests.e2e.benchmarks import LEASES as LEASES_NAMESPACE
from tests.operator.recorded import Object, recorded
from tierbench.api.contract import TrialLine
from tierbench.api.model import API_VERSION
from tierbench.api.node_class import NODE_CLASSES
from tierbench.api.placement_advice import ADVICES
from tierbench.api.record import RECORDS, BenchmarkRecord, BenchmarkReference, RecordSpec, RecordStatus
from tierbench.api.result import RESULTS, BenchmarkResult, ResultSpec
from tierbench.kinds.broker.spec import BrokerBenchmark
from tierbench.kinds.file_transfer.spec import FileTransferBenchmark
from tierbench.kinds.registry import BENCHMARKS
from tierbench.kube.meta import JOBS, LEASES, NODES, PODS, SERVICES
from tierbench.results.aggregate import add_trials
from tierbench.workloads.workload import LABEL_KIND, LABEL_RUN, Owner, reference

FILE_TRANSFERS: Final = FileTransferBenchmark.KIND.resource
BROKERS: Final = BrokerBenchmark.KIND.resource
WATCHED: Final[Sequence[Collection]] = (
    *((one.api, one.plural, None, "") for one in (NODES, RESULTS, NODE_CLASSES, ADVICES)),
    *((model.KIND.resource.api, model.KIND.resource.plural, None, "") for model in BENCHMARKS.values()),
    *((one.api, one.plural, None, LABEL_KIND) for one in (JOBS, PODS, SERVICES)),
    (LEASES.api, LEASES.plural, LEASES_NAMESPACE, ""),
)
"""The collections that the operator watches."""
PEER: Final = "peer"
"""The prefix of the names of the records that a peer writes."""


async def complete(site: Site, names: Sequence[str], cases: int = 1, of: str = "files", **spec: Any) -> list[Object]:
    """Creates benchmarks like a recorded one, with an ended run. No operator may run, because it would start them."""
    template = recorded(of).benchmark
    resource = BENCHMARKS[template["kind"]].KIND.resource
    made: list[Object] = []

    async def make(name: str) -> None:
        head = {"apiVersion": API_VERSION, "kind": template["kind"], "metadata": {"name": name}}
        created = await site.kube.create(resource, NAMESPACE, {**head, "spec": {**template["spec"], **spec}})
        ended = {"finished": cases, "failed": 0, "invalid": 0, "total": cases}
        status = {**template["status"], "cases": ended, "progress": f"{cases}/{cases}"}
        body = {**head, "metadata": {"name": name, "namespace": NAMESPACE}, "status": status}
        await site.operator.apply_status(resource, NAMESPACE, body)
        made.append(created)

    await all_of(make(name) for name in names)
    return made


async def write_result(
    site: Site, owner: Owner, name: str, spec: ResultSpec, status: Object, record: RecordStatus | None = None
) -> None:
    """Writes a result and its record with the requests of the operator."""
    head = {"apiVersion": API_VERSION, "kind": BenchmarkResult.KIND.kind}
    metadata = owner.metadata(name, {LABEL_RUN: str(spec.run)})
    created = await site.operator.create(RESULTS, NAMESPACE, {**head, "metadata": metadata, "spec": spec.to_json()})
    place = {"name": name, "namespace": NAMESPACE}
    if record is not None:
        of_record = {"apiVersion": API_VERSION, "kind": BenchmarkRecord.KIND.kind}
        metadata["ownerReferences"] = [reference(BenchmarkResult.KIND.kind, name, created["metadata"]["uid"])]
        reference_of = RecordSpec(benchmark=spec.benchmark, run=spec.run, case=spec.case).to_json()
        await site.operator.create(RECORDS, NAMESPACE, {**of_record, "metadata": metadata, "spec": reference_of})
        await site.operator.apply_status(
            RECORDS, NAMESPACE, {**of_record, "metadata": place, "status": record.to_json()}
        )
    stored = {"storedBytes": 10_000}
    await site.operator.apply_status(RESULTS, NAMESPACE, {**head, "metadata": place, "status": {**status, **stored}})


def recorded_statuses(trials: int) -> list[Object]:
    """Returns the status of a recorded record with one trial, then with two, and so on."""
    template = BenchmarkResult.model_validate(recorded("brokers").results[0])
    printed = recorded("brokers").clients[0].trials
    lines = [
        TrialLine.model_validate({**printed[index % len(printed)], "trial": index + 1, "warmup": False})
        for index in range(trials)
    ]
    spec = template.spec.model_copy(update={"trials": trials, "warmup_trials": 0})
    return [add_trials(spec, RecordStatus(), lines[: index + 1], 1).to_json() for index in range(trials)]


async def peer_records(site: Site, number: int, statuses: Sequence[Object]) -> Statuses:
    """Creates this many records for a peer. Returns the first status of each record, then the second, and so on."""
    head = {"apiVersion": API_VERSION, "kind": BenchmarkRecord.KIND.kind}
    names = [f"{PEER}-{index:02d}" for index in range(number)]
    for name in names:
        of = BenchmarkReference(kind=BrokerBenchmark.KIND.kind, name=name)
        body = {**head, "metadata": {"name": name}, "spec": RecordSpec(benchmark=of, run=1, case=1).to_json()}
        await site.operator.create(RECORDS, NAMESPACE, body)
    bodies = [
        {**head, "metadata": {"name": name, "namespace": NAMESPACE}, "status": status}
        for status in statuses
        for name in names
    ]
    return RECORDS.api, RECORDS.plural, NAMESPACE, bodies


async def waited_for(condition: Callable[[], Awaitable[bool]], what: str, seconds: float, pause: float = 0.2) -> float:
    """Waits for a condition with a pause between checks, and returns the seconds. Raises TimeoutError."""
    began = time.monotonic()
    while not await condition():
        if time.monotonic() > began + seconds:
            raise TimeoutError(f"{what}: not within {seconds:.0f} s")
        await asyncio.sleep(pause)
    return time.monotonic() - began
