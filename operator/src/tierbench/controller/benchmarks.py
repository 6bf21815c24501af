"""A loop for each benchmark that needs one."""

import asyncio

from tierbench.controller.context import Context
from tierbench.controller.due import is_due
from tierbench.controller.loop import Loop
from tierbench.domain.results import BenchmarkKey as Key
from tierbench.kinds.registry import BENCHMARKS
from tierbench.kube.client import ResourceType
from tierbench.workloads.names import Owner


class Benchmarks:
    """Starts a loop for every benchmark that is due, in `run`, and again whenever one has become so."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._loops: dict[Key, asyncio.Task[None]] = {}
        self._group: asyncio.TaskGroup | None = None

    async def run(self) -> None:
        """Run until cancelled. A loop that ends while the operator stops starts no other one."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            try:
                for kind, model in BENCHMARKS.items():
                    for namespace, name in self._context.objects[ResourceType.of(model.KIND)].names():
                        self.look_at((kind, namespace, name))
                await asyncio.Event().wait()
            finally:
                self._group = None

    def look_at(self, key: Key) -> None:
        """The benchmark has changed, or its loop has ended."""
        self._context.wakeups.ring(key)
        kind, namespace, name = key
        resource = ResourceType.of(BENCHMARKS[kind].KIND)
        raw = self._context.objects[resource].get((namespace, name))
        if self._group is None or key in self._loops or raw is None or not is_due(raw):
            return
        loop = Loop(self._context, resource, Owner(kind, namespace, name, raw["metadata"]["uid"]))
        self._loops[key] = self._group.create_task(self._run(key, loop))

    async def _run(self, key: Key, loop: Loop) -> None:
        await loop.run()
        del self._loops[key]
        self.look_at(key)
