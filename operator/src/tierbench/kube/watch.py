"""What happens to objects, as it happens: a list, then a watch, again after every fault of the API server."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any, Final

from tierbench.api.model import Kind
from tierbench.kube.client import UNANSWERED, Kube, ResourceType
from tierbench.kube.news import Changed, Listed, News, Trouble

_PAUSE_SECONDS: Final = 1.0


async def watch(kube: Kube, kind: Kind, namespace: str | None, query: Mapping[str, str]) -> AsyncGenerator[News]:
    """For ever. Every fault is told as Trouble, and what was missed meanwhile comes with the next list.

    `query` has the selectors.
    """
    version = ""
    while True:
        try:
            if not version:
                items, version = await _list(kube, kind, namespace, query)
                yield Listed(kind.kind, items)
            since = {**query, "resourceVersion": version}
            async with aclosing(kube.watch(ResourceType.of(kind), namespace, since)) as events:
                async for event in events:
                    version = event["object"]["metadata"]["resourceVersion"]
                    yield Changed(kind.kind, event["object"], deleted=event["type"] == "DELETED")
        except UNANSWERED as error:
            version = ""
            yield Trouble(error)
            await asyncio.sleep(_PAUSE_SECONDS)


async def _list(
    kube: Kube, kind: Kind, namespace: str | None, query: Mapping[str, str]
) -> tuple[tuple[dict[str, Any], ...], str]:
    """All objects, and the resourceVersion that they are of."""
    pages = [page async for page in kube.pages(ResourceType.of(kind), namespace, query)]
    return tuple(item for page in pages for item in page["items"]), str(pages[-1]["metadata"]["resourceVersion"])
