"""Runs peers: bare programs in their own processes that do only what the operator has to do for the same result.

They use the same Python and the same client, and share the processor time of the operator's node. A slow machine or a
slow API server affects their times, too.
"""

import asyncio
import itertools
import json
import os
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from benchmarks.scale.connection import connected
from tierbench.kube.client import Kube
from tierbench.kube.informer import WatchError, WatchEvent, list_and_watch
from tierbench.kube.meta import JOBS, LEASES, PODS, ResourceType

Object = dict[str, Any]
Collection = tuple[str, str, str | None, str]
"""API, plural, namespace and label selector of a collection that is listed or watched."""
Statuses = tuple[str, str, str, Sequence[Object]]
"""API, plural and namespace, and the objects whose statuses are applied in turn."""

_BYTECODE: Final = Path(__file__).parents[2] / "build" / "scale" / "bytecode"
_PAGE_BYTES: Final = 2 << 20
_LEASE_SECONDS: Final = 2.0
_SETTLE_SECONDS: Final = 5.0
_SUCCEEDED: Final = "Succeeded"


class Clients(NamedTuple):
    """A connection as the operator, and one as the administrator for what the operator may not do."""

    operator: Kube
    admin: Kube


async def run_peer(
    kubeconfig: Path, user: str, task: str, arguments: Mapping[str, Any], enter: Callable[[], None]
) -> tuple[float, Any]:
    """Runs a task in its own process, and returns the seconds that the process took, and its result.

    The process first calls `enter` to move into a control group.
    """
    # The operator's image has bytecode, too.
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(_BYTECODE)}
    began = time.monotonic()
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "benchmarks.scale.peer", str(kubeconfig), user, task),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env=environment,
        preexec_fn=enter,
    )
    try:
        printed, _ = await process.communicate(json.dumps(arguments).encode())
    finally:
        if process.returncode is None:
            process.kill()
    if process.returncode:
        raise RuntimeError(f"the peer failed: {task}")
    return time.monotonic() - began, json.loads(printed)


async def listing(clients: Clients, *, collections: Sequence[Collection]) -> float:
    """Lists all collections in pages. Returns the seconds without the start of the program."""
    began = time.monotonic()
    for api, plural, namespace, labels in collections:
        query = {"labelSelector": labels} if labels else {}
        async for _ in clients.operator.pages(ResourceType(api, plural), namespace, query):
            pass
    return time.monotonic() - began


async def _apply(kube: Kube, statuses: Statuses, body: Object) -> None:
    api, plural, namespace, _ = statuses
    await kube.apply_status(ResourceType(api, plural), namespace, body)


async def pacing(clients: Clients, *, statuses: Statuses, at_once: int, period: float) -> list[float]:
    """Applies all statuses, `at_once` of them per period. Returns when each status was due."""
    due: list[float] = []
    async with asyncio.TaskGroup() as group:
        began = time.monotonic()
        for number, body in enumerate(statuses[3]):
            due.append(began + number // at_once * period)
            await asyncio.sleep(due[-1] - time.monotonic())
            group.create_task(_apply(clients.operator, statuses, body))
    return due


async def watching(
    clients: Clients, *, collections: Sequence[Collection], statuses: Statuses, period: float, seconds: float
) -> float:
    """Watches all collections, renews a Lease and applies statuses. Returns the share of a core that it used."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(_watch(clients.operator, one)) for one in collections]
        tasks.append(group.create_task(_renew(clients.admin, statuses[2])))
        tasks.append(group.create_task(_apply_all(clients.operator, statuses, period)))
        await asyncio.sleep(_SETTLE_SECONDS)
        used, began = time.process_time(), time.monotonic()
        await asyncio.sleep(seconds)
        share = (time.process_time() - used) / (time.monotonic() - began)
        for task in tasks:
            task.cancel()
    return share


async def _watch(kube: Kube, one: Collection) -> None:
    api, plural, namespace, labels = one
    query = {"labelSelector": labels} if labels else {}
    async for event in list_and_watch(kube, ResourceType(api, plural), namespace, query):
        if isinstance(event, WatchError):
            raise event.error


async def _apply_all(kube: Kube, statuses: Statuses, period: float) -> None:
    for body in itertools.cycle(statuses[3]):
        await asyncio.sleep(period)
        await _apply(kube, statuses, body)


async def _renew(kube: Kube, namespace: str) -> None:
    head = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "peer"}}
    lease = await kube.create(LEASES, namespace, head)
    for number in itertools.count():
        await asyncio.sleep(_LEASE_SECONDS)
        lease = await kube.replace(LEASES, namespace, {**lease, "spec": {"holderIdentity": f"peer-{number}"}})


async def handing_over(clients: Clients, *, job: Object, statuses: Statuses, number: int) -> list[float]:
    """Creates one Job after the other. Returns the seconds from the end of each pod to the next pod.

    In between, it receives the end, applies all statuses, deletes the Job and creates the next one.
    """
    kube, admin = clients
    namespace, seen, changed = statuses[2], dict[str, str](), asyncio.Event()

    async def watch() -> None:
        async for event in list_and_watch(kube, PODS, namespace, {"labelSelector": "job-name"}):
            if isinstance(event, WatchEvent):
                seen[event.item["metadata"]["name"]] = event.item["status"]["phase"]
                changed.set()

    async def pod_of(name: str, *phases: str) -> str:
        while True:
            changed.clear()
            found = [pod for pod, phase in seen.items() if pod.startswith(f"{name}-") and phase in phases]
            if found:
                return found[0]
            await changed.wait()

    gaps: list[float] = []
    async with asyncio.TaskGroup() as group:
        watcher = group.create_task(watch())
        await kube.create(JOBS, namespace, _job(job, 0))
        for index in range(number):
            pod = await pod_of(f"peer{index:03d}", "Running")
            ended = time.monotonic()
            await admin.merge(PODS, namespace, f"{pod}/status", {"status": {"phase": _SUCCEEDED}})
            await pod_of(f"peer{index:03d}", _SUCCEEDED)
            for body in statuses[3]:
                await _apply(kube, statuses, _changed(body, index))
            await kube.delete(JOBS, namespace, f"peer{index:03d}")
            await kube.create(JOBS, namespace, _job(job, index + 1))
            await pod_of(f"peer{index + 1:03d}", "Pending", "Running")
            gaps.append(time.monotonic() - ended)
        watcher.cancel()
    return gaps


def _job(job: Object, number: int) -> Object:
    return {**job, "metadata": {**job["metadata"], "name": f"peer{number:03d}"}}


def _changed(body: Object, number: int) -> Object:
    """Returns an object whose status has another number of trials than the previous one."""
    trials = body["status"]["trials"]
    return {**body, "status": {**body["status"], "trials": trials[: 1 + number % len(trials)]}}


async def finalizing(clients: Clients, *, collections: Sequence[Collection], number: int) -> int:
    """Removes the finalizers of objects that are being deleted. Returns after this many objects."""
    (api, plural, namespace, _), kube, removed = collections[0], clients.operator, set[str]()
    resource, enough = ResourceType(api, plural), asyncio.Event()

    async def remove(metadata: Object) -> None:
        await kube.drop_finalizers(resource, metadata["namespace"], metadata["name"], metadata["uid"])
        removed.add(metadata["uid"])
        if len(removed) >= number:
            enough.set()

    async def watch(group: asyncio.TaskGroup) -> None:
        async for event in list_and_watch(kube, resource, namespace, {}):
            if isinstance(event, WatchEvent):
                metadata = event.item["metadata"]
                if metadata.get("finalizers") and "deletionTimestamp" in metadata:
                    group.create_task(remove(metadata))

    async with asyncio.TaskGroup() as group:
        watcher = group.create_task(watch(group))
        await enough.wait()
        watcher.cancel()
    return len(removed)


async def decoding(_: Clients, *, item: Object, seconds: float, pause: float) -> float:
    """Decodes a page of a list repeatedly. Returns the longest duration in seconds."""
    text = json.dumps({"items": [item] * (1 + _PAGE_BYTES // len(json.dumps(item)))})
    until, most = time.monotonic() + seconds, 0.0
    while time.monotonic() < until:
        began = time.monotonic()
        json.loads(text)
        most = max(most, time.monotonic() - began)
        await asyncio.sleep(pause)
    return most


_TASKS: Final[Mapping[str, Callable[..., Awaitable[Any]]]] = {
    one.__name__: one for one in (listing, pacing, watching, handing_over, finalizing, decoding)
}


async def _main(kubeconfig: str, user: str, task: str) -> None:
    arguments = json.load(sys.stdin)
    async with connected(Path(kubeconfig), user) as operator, connected(Path(kubeconfig)) as admin:
        print(json.dumps(await _TASKS[task](Clients(operator, admin), **arguments)))


if __name__ == "__main__":
    asyncio.run(_main(*sys.argv[1:]))
