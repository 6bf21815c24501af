"""What happens to objects, as it happens: a list, then a watch, again after every fault of the API server."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Final

from tierbench.kube.client import UNANSWERED, ApiError, Kube, ResourceType
from tierbench.kube.news import Changed, Listed, Name, News, Trouble, name_of

_PAUSE_SECONDS: Final = 1.0
_EXPIRED: Final = 410


async def watch(
    kube: Kube, resource: ResourceType, namespace: str | None, query: Mapping[str, str]
) -> AsyncGenerator[News]:
    """For ever. Every fault is told as Trouble; then, as at first, each object that there is, and their names.

    Of a list no more than a page is in memory. `query` has the selectors.
    """
    version = ""
    while True:
        try:
            if not version:
                names = set[Name]()
                async for page in kube.pages(resource, namespace, query):
                    version = str(page["metadata"]["resourceVersion"])
                    for item in page["items"] or ():
                        names.add(name_of(item))
                        yield Changed(resource, item, deleted=False)
                yield Listed(resource, frozenset(names), version)
            since = {**query, "resourceVersion": version}
            async with aclosing(kube.watch(resource, namespace, since)) as events:
                async for event in events:
                    version = event["object"]["metadata"]["resourceVersion"]
                    if event["type"] != "BOOKMARK":
                        yield Changed(resource, event["object"], deleted=event["type"] == "DELETED")
        except UNANSWERED as error:
            # What has happened since may be told later, unless the API server has forgotten it.
            version = ""
            if not (isinstance(error, ApiError) and error.status == _EXPIRED):
                yield Trouble(error)
                await asyncio.sleep(_PAUSE_SECONDS)
