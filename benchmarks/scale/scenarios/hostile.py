"""Measures the operator while a tenant has large or many objects. The operator reads only a little of them."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any, Final

from benchmarks.scale.connection import all_of
from benchmarks.scale.fixtures import FILE_TRANSFERS, WATCHED
from benchmarks.scale.rows import Row, against
from benchmarks.scale.site import NAMESPACE, Site
from tierbench.api.model import API_VERSION
from tierbench.domain.fields import MOST_LABELS
from tierbench.generate.admission import MOST_ANNOTATION_CHARACTERS
from tierbench.kinds.file_transfer.spec import FileTransferBenchmark
from tierbench.kube.meta import JOBS, PODS, ResourceType
from tierbench.workloads.workload import LABEL_KIND

NUMBER_OF_PODS: Final = 150
POD_CHARACTERS: Final = 1_000_000
NUMBER_OF_BENCHMARKS: Final = 700
NUMBER_OF_JOBS: Final = 5_000
_SETTLE_SECONDS: Final = 10

Object = dict[str, Any]


async def measure(site: Site) -> AsyncIterator[Row]:
    """Creates more and more objects while the operator runs, and restarts the operator while they exist."""
    for what, resource, bodies in _objects():
        process = await site.restart()
        process.forget_peak()
        await all_of(site.kube.create(resource, NAMESPACE, body) for body in bodies)
        await asyncio.sleep(_SETTLE_SECONDS)
        yield Row(f"{what}: memory while they are created", "MiB", process.peak_mebibytes, 200)
        await site.stop()
        await site.begin()
        seconds = await site.seconds_to_ready()
        process = await site.process()
        await asyncio.sleep(_SETTLE_SECONDS)
        yield Row(f"{what}: memory, start to ready", "MiB", None if seconds is None else process.peak_mebibytes, 200)
        bare, _ = await site.peer("listing", collections=WATCHED)
        yield against(bare, f"{what}: start to ready", "s", seconds, None)
        yield Row(f"{what}: restarts", "", site.restarts(), 0)


def _objects() -> Iterator[tuple[str, ResourceType, Iterator[Object]]]:
    """Yields the kinds of objects, each with a description, a type and the bodies."""
    yield f"{NUMBER_OF_PODS} pods of 1 MB", PODS, map(_pod, range(NUMBER_OF_PODS))
    yield f"{NUMBER_OF_BENCHMARKS} annotated benchmarks", FILE_TRANSFERS, map(_benchmark, range(NUMBER_OF_BENCHMARKS))
    yield f"{NUMBER_OF_JOBS} Jobs", JOBS, map(_job, range(NUMBER_OF_JOBS))


def _pod(number: int) -> Object:
    variables = [{"name": "V", "value": "v" * POD_CHARACTERS}]
    container = {"name": "c", "image": "nowhere.invalid/none:none", "env": variables}
    spec = {"nodeSelector": {"nowhere": "at-all"}, "containers": [container]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": _metadata(number), "spec": spec}


def _job(number: int) -> Object:
    container = {"name": "c", "image": "nowhere.invalid/none:none", "command": ["v" * 5_000]}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    spec = {"suspend": True, "template": template}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": _metadata(number), "spec": spec}


def _benchmark(number: int) -> Object:
    metadata = _metadata(number) | {"annotations": {"a": "v" * (MOST_ANNOTATION_CHARACTERS - 1)}}
    none = {"nodeClassNames": ["none"]}
    spec = {"servers": none, "clients": none, "fileSizes": ["1Ki"], "runPolicy": {"suspend": True}}
    return {"apiVersion": API_VERSION, "kind": FileTransferBenchmark.KIND.kind, "metadata": metadata, "spec": spec}


def _metadata(number: int) -> Object:
    labels = {f"label-{index:02d}": "v" * 63 for index in range(MOST_LABELS - 1)}
    return {"name": f"x{number:04d}", "labels": {LABEL_KIND: "x", **labels}}
