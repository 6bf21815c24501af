"""Measures a run of 1,000 cases with 30 trials each. The operator starts during it, and measures the last cases."""

import time
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from benchmarks.scale.connection import all_of
from benchmarks.scale.fixtures import FILE_TRANSFERS, waited_for, write_result
from benchmarks.scale.rows import Row, against
from benchmarks.scale.site import NAMESPACE, Site
from benchmarks.scale.waits import waits
from tests.e2e.benchmarks import file_transfer
from tests.operator.recorded import Object, recorded
from tierbench.api.contract import TrialLine
from tierbench.api.model import API_VERSION
from tierbench.api.policy import Policy
from tierbench.api.record import RecordEnd, RecordStatus
from tierbench.api.result import RESULTS, BenchmarkResult, ResultSpec
from tierbench.kinds.file_transfer.spec import FileTransferBenchmark
from tierbench.kinds.registry import workload_of
from tierbench.kube.meta import format_time
from tierbench.results.aggregate import add_trials, conclude_record
from tierbench.workloads.plan import Case, plan
from tierbench.workloads.workload import Images, Owner

CLASSES: Final = ("cloud", "jetson-nano", "raspberry-pi-4", "raspberry-pi-5")
LEVELS: Final[dict[str, Any]] = {
    "fileSizes": [f"{number}Mi" for number in range(1, 26)],
    "concurrency": [1, 2, 3, 4, 5],
    "tls": ["None", "TLSv1.3"],
}
TRIALS: Final = 30
EARLIER_RUNS: Final = 2
MEASURED_NOW: Final = 8
STEP: Final = 5.0
"""The limit for a step of the event loop, as a multiple of the time to decode a page of a list."""
_SECONDS: Final = 300
_DECODES_SECONDS: Final = 30
_DECODE_PAUSE_SECONDS: Final = 0.1


async def measure(site: Site) -> AsyncIterator[Row]:
    """Writes the results of earlier runs and of all cases but the last ones. Then starts the operator."""
    async with site.nodes({**dict.fromkeys(CLASSES, 1), "user": 1}):
        await site.stop()
        began = time.monotonic()
        cases = await _write(site)
        print(f"large: {cases} cases written in {time.monotonic() - began:.0f} s", flush=True)
        site.kubelet.pace = 0.05
        await site.begin()
        began = time.monotonic()
        await site.seconds_to_ready()
        name = f"a run of {cases} cases with {TRIALS} trials"
        async with waits(await site.address()) as waited:
            try:
                await waited_for(lambda: _complete(site), "the run ends", _SECONDS)
                seconds: float | None = time.monotonic() - began
            except TimeoutError:
                seconds = None
        process = None if seconds is None or site.restarts() else await site.process()
        yield Row(f"{name}: memory", "MiB", None if process is None else process.peak_mebibytes, 200)
        yield Row(f"{name}: start to its end", "s", seconds)
        item = await anext(site.kube.each(RESULTS, NAMESPACE))
        _, bare = await site.peer("decoding", item=item, seconds=_DECODES_SECONDS, pause=_DECODE_PAUSE_SECONDS)
        yield against(1000 * bare, f"{name}: longest step", "ms", 1000 * max(waited), STEP)


async def _complete(site: Site) -> bool:
    found = await site.kube.get(FILE_TRANSFERS, NAMESPACE, "large")
    return bool(found.get("status", {}).get("run", {}).get("completionTime"))


async def _write(site: Site) -> int:
    run = EARLIER_RUNS + 1
    body = file_transfer(
        "large", servers={"nodeClassNames": list(CLASSES)}, repetitions=TRIALS, warmupTrials=0, **LEVELS
    )
    created = await site.kube.create(FILE_TRANSFERS, NAMESPACE, body)
    head = {"apiVersion": API_VERSION, "kind": body["kind"], "metadata": {"name": "large", "namespace": NAMESPACE}}
    status = {"phase": "Pending", "run": {"number": run, "startTime": format_time(datetime.now(UTC))}}
    await site.operator.apply_status(FILE_TRANSFERS, NAMESPACE, {**head, "status": status})
    benchmark = FileTransferBenchmark.model_validate(created)
    owner = Owner(body["kind"], NAMESPACE, "large", created["metadata"]["uid"])
    workload = workload_of(owner, benchmark.spec, Images(client="", programs={}), Policy())
    cases = plan(benchmark.spec, workload.server_placements(), workload.factors)
    measured = {number: cases if number < run else cases[:-MEASURED_NOW] for number in range(1, run + 1)}
    record = _record(benchmark)
    await all_of(
        write_result(site, owner, f"{owner.result(number, case)}", *_measured(benchmark, case, number, record))
        for number, some in measured.items()
        for case in some
    )
    return len(cases)


def _record(benchmark: FileTransferBenchmark) -> RecordStatus:
    template = BenchmarkResult.model_validate(recorded("files").results[0])
    trials: Sequence[Object] = recorded("files").clients[0].trials
    lines = [
        TrialLine.model_validate({**trials[(number - 1) % len(trials)], "trial": number, "warmup": False})
        for number in range(1, TRIALS + 1)
    ]
    spec = template.spec.model_copy(update={"trials": TRIALS, "warmup_trials": 0})
    end = RecordEnd(time=template.status.completion_time or "", engine=template.status.engine)
    return add_trials(spec, RecordStatus(), lines, 1).model_copy(update={"ended": end})


def _measured(
    benchmark: FileTransferBenchmark, case: Case, run: int, record: RecordStatus
) -> tuple[ResultSpec, Object, RecordStatus]:
    template = BenchmarkResult.model_validate(recorded("files").results[0]).spec
    server = {"node_class": case.server.node_class, "node": f"sim-{case.server.node_class}"}
    spec = template.model_copy(
        update={
            "benchmark": template.benchmark.model_copy(update={"name": "large"}),
            "run": run,
            "case": case.number,
            "levels": dict(case.levels),
            "settings": dict(benchmark.spec.parameters),
            "server": template.server.model_copy(update=server),
            "client": template.client.model_copy(update={"node_class": case.client_class}),
            "trials": TRIALS,
            "warmup_trials": 0,
        }
    )
    end = record.ended
    assert end is not None
    return spec, conclude_record(spec, record, end).to_json(), record
