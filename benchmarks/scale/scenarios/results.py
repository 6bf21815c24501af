"""Measures the start of the operator with many results, and an advice over half of them."""

import time
from collections.abc import AsyncIterator, Iterator
from datetime import datetime
from itertools import cycle, islice, product
from random import Random
from statistics import median
from typing import Final

from benchmarks.scale.connection import all_of
from benchmarks.scale.fixtures import WATCHED, complete, waited_for, write_result
from benchmarks.scale.rows import Row, against
from benchmarks.scale.site import NAMESPACE, Site
from tests.operator.recorded import Object, recorded
from tierbench.api.contract import TrialLine
from tierbench.api.model import API_VERSION
from tierbench.api.placement_advice import ADVICES
from tierbench.api.record import BenchmarkReference, RecordStatus
from tierbench.api.result import RESULTS, BenchmarkResult, ResultSpec
from tierbench.kinds.file_transfer.spec import FileTransferBenchmark
from tierbench.results.aggregate import add_trials, conclude
from tierbench.workloads.workload import LABEL_KIND, Owner

BENCHMARKS: Final = 100
CLASSES: Final = ("cloud", "jetson-nano", "raspberry-pi-4", "raspberry-pi-5")
SIZES: Final = tuple(f"{number}Mi" for number in range(1, 26))
VARIANTS: Final = 5
TRIALS: Final = 10
NUMBER: Final = BENCHMARKS * len(CLASSES) * len(SIZES)
STARTS: Final = 3
_ADVICE_SECONDS: Final = 180
_ADVICE: Final = {
    "clientClassName": "user",
    "benchmarks": {"names": [f"files-{index:03d}" for index in range(BENCHMARKS // 2)]},
}
_FILES: Final = f"{LABEL_KIND}={FileTransferBenchmark.KIND.kind}"


async def measure(site: Site) -> AsyncIterator[Row]:
    """Writes the results as the operator does, while no operator runs."""
    await site.stop()
    began = time.monotonic()
    await write(site, BENCHMARKS // 2, BENCHMARKS // 2)
    print(f"results: {NUMBER} written in {time.monotonic() - began:.0f} s", flush=True)
    async for row in _start(site):
        yield row
    async for row in _advice(site):
        yield row


async def write(site: Site, files: int, brokers: int = 0) -> None:
    """Writes the results of this many benchmarks with 100 cases each."""
    writes = []
    for kind, factor, number in (("files", "fileSize", files), ("kafka", "payloadSize", brokers)):
        made = await complete(site, [f"{kind}-{index:03d}" for index in range(number)], len(CLASSES) * len(SIZES), kind)
        variants = [list(_cases(kind, factor, Random(seed))) for seed in range(VARIANTS)]
        for index, benchmark in enumerate(made):
            owner = Owner(benchmark["kind"], NAMESPACE, benchmark["metadata"]["name"], benchmark["metadata"]["uid"])
            writes += [_written(site, owner, spec, status) for spec, status in variants[index % VARIANTS]]
    await all_of(writes)


async def _written(site: Site, owner: Owner, spec: ResultSpec, status: Object) -> None:
    own = spec.model_copy(update={"benchmark": BenchmarkReference(kind=owner.kind, name=owner.name)})
    await write_result(site, owner, f"{owner.prefix}-r1-c{spec.case:03d}", own, status)


def _cases(kind: str, factor: str, random: Random) -> Iterator[tuple[ResultSpec, Object]]:
    """Yields spec and status of each case of a run. Times are recorded, grow with the size, and have noise."""
    run = recorded(kind)
    template = BenchmarkResult.model_validate(run.results[0])
    lines = [TrialLine.model_validate(trial) for trial in islice(cycle(run.clients[0].trials), TRIALS)]
    ended = datetime.fromisoformat(template.status.completion_time or "")
    for case, ((speed, node_class), size) in enumerate(product(enumerate(CLASSES), SIZES), start=1):
        slower = int(size[:-2]) / 16 * (1 + speed / 20)
        place = template.spec.server.model_copy(update={"node_class": node_class, "node": f"{node_class}-1"})
        levels = {**template.spec.levels, factor: size}
        spec = template.spec.model_copy(
            update={"case": case, "levels": levels, "server": place, "trials": TRIALS, "warmup_trials": 0}
        )
        scaled = [
            line.model_copy(
                update={
                    "case": case,
                    "trial": number,
                    "warmup": False,
                    "duration_nanoseconds": round(line.duration_nanoseconds * slower * random.gauss(1, 0.03)),
                }
            )
            for number, line in enumerate(lines, start=1)
        ]
        status = conclude(spec, add_trials(spec, RecordStatus(), scaled, 1), ended, template.status.engine)
        yield spec, status.to_json()


async def _start(site: Site) -> AsyncIterator[Row]:
    """Starts the operator and the peer in turns, because the time of a start varies by up to half."""
    name, own, bare = f"{NUMBER} results", list[float](), list[float]()
    for _ in range(STARTS):
        await site.stop()
        await site.begin()
        seconds, process = await site.seconds_to_ready(), await site.process()
        if seconds is None:
            print(f"results: the operator restarted {site.restarts()} times", flush=True)
            yield Row(f"{name}: start to ready", "s", None, 0)
            return
        print(f"results: ready after {seconds:.1f} s, {process.cpu_seconds:.1f} s of CPU", flush=True)
        own.append(seconds)
        bare.append((await site.peer("listing", collections=WATCHED))[0])
    yield Row(f"{name}: memory, start to ready", "MiB", process.peak_mebibytes, 200)
    yield Row(f"{name}: memory cgroup, start to ready", "MiB", process.group_peak_mebibytes)
    yield against(median(bare), f"{name}: start to ready, median", "s", median(own))
    began = time.monotonic()
    await site.metric("tierbench_result_measured")
    yield Row(f"{name}: first scrape", "s", time.monotonic() - began)
    yield Row(f"{name}: memory, first scrape", "MiB", process.peak_mebibytes, 200)


async def _advice(site: Site) -> AsyncIterator[Row]:
    """Measures the time from the creation of an advice to its answer. An advice is about one kind."""
    name, process = f"advice over {NUMBER // 2} of {NUMBER} results", await site.process()
    process.forget_peak()
    head = {"apiVersion": API_VERSION, "kind": "PlacementAdvice", "metadata": {"name": "all"}}
    await site.kube.create(ADVICES, NAMESPACE, {**head, "spec": _ADVICE})

    async def answered() -> bool:
        advice = await site.kube.get(ADVICES, NAMESPACE, "all")
        return bool(advice.get("status", {}).get("ranking"))

    try:
        seconds: float | None = await waited_for(answered, "the advice", _ADVICE_SECONDS)
    except TimeoutError:
        seconds = None
    peak = None if seconds is None or site.restarts() else process.peak_mebibytes
    _, bare = await site.peer("listing", collections=[(RESULTS.api, RESULTS.plural, NAMESPACE, _FILES)])
    yield against(bare, name, "s", seconds)
    yield Row(f"{name}: memory", "MiB", peak, 220)
