"""Compares what watches have told with what there is: a deletion that was lost is never told again."""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from tierbench.kube.client import UNANSWERED, Kube, ResourceType
from tierbench.metrics.operator import OperatorMetrics

PERIOD_SECONDS: Final = 600.0
SETTLE_SECONDS: Final = 5.0
"""A list that is read anew comes as one event for each of its objects."""

Name = tuple[str, str]
"""Namespace, empty for what has none, and name."""

_logger = logging.getLogger(__name__)


class See(Protocol):
    """Takes in an object as a watch shows it; of one that is deleted, the metadata tell enough."""

    def __call__(self, raw: Mapping[str, Any], *, deleted: bool) -> None:
        """The object was read, or deleted."""


@dataclass(frozen=True)
class Watched:
    """A type that is watched: what takes in its objects, and which of them are known."""

    resource: ResourceType
    see: See
    known: Callable[[], Iterable[Name]]
    of_the_cluster: bool = False


class Comparison:
    """Forgets what is known and not there, every ten minutes, and after watches have read their lists anew."""

    def __init__(
        self, kube: Kube, metrics: OperatorMetrics, namespaces: Sequence[str], watched: Sequence[Watched]
    ) -> None:
        self._kube = kube
        self._metrics = metrics
        self._namespaces = namespaces
        self._watched = watched
        self._bell = asyncio.Event()

    def soon(self) -> None:
        """A list has been read anew: what was deleted before it will not be told of."""
        self._bell.set()

    async def run(self) -> None:
        """Compares, for ever."""
        while True:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._bell.wait(), PERIOD_SECONDS)
            await asyncio.sleep(SETTLE_SECONDS)
            self._bell.clear()
            with self._metrics.working("comparison of what is watched"):
                for watched in self._watched:
                    await self._compare_or_retry(watched)

    async def _compare_or_retry(self, watched: Watched) -> None:
        try:
            await self._compare(watched)
        except UNANSWERED as error:
            _logger.warning("What there is of %s cannot be read: %s; trying again", watched.resource.plural, error)
            self._bell.set()
        except Exception:
            _logger.exception("What there is of %s cannot be compared", watched.resource.plural)

    async def _compare(self, watched: Watched) -> None:
        """What came to be known while the list was read is not in question."""
        known, there = set(watched.known()), set[Name]()
        if not known:
            return
        for namespace in (() if watched.of_the_cluster else self._namespaces) or (None,):
            async for metadata in self._kube.each_metadata(watched.resource, namespace):
                there.add((metadata.get("namespace", ""), metadata["name"]))
        for namespace, name in known - there:
            _logger.warning("%s %s/%s is gone, and no watch has told so", watched.resource.plural, namespace, name)
            watched.see({"metadata": {"namespace": namespace, "name": name}}, deleted=True)
