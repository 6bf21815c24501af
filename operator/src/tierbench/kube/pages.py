"""Pages of lists, bounded in bytes whatever objects there are."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator
from typing import Final, TypeVar

import aiohttp

SILENCE_SECONDS: Final = 30.0
"""A list or a log fails if nothing of it arrives for as long. It may take longer in all: networks can be slow."""
_FIRST_OBJECTS: Final = 32
_MOST_OBJECTS: Final = 500
_MOST_BYTES: Final = 2 << 20
_GROWTH: Final = 4
_Page = TypeVar("_Page")


class PageLimit:
    """The number of objects to ask for in the next page of a list. It follows the size of the last page."""

    def __init__(self) -> None:
        self.objects = _FIRST_OBJECTS

    async def read(self, pieces: AsyncIterable[bytes]) -> bytes | None:
        """Reads a page. Returns None if it is too large: the caller then asks for it again, with fewer objects.

        A page of one object may have any size, because the API server bounds that.
        """
        data = bytearray()
        async for piece in pieces:
            data += piece
            if len(data) > _MOST_BYTES and self.objects > 1:
                self.objects = max(1, self.objects // _GROWTH**2)
                return None
        growth = min(_GROWTH, _MOST_BYTES / 2 / max(1, len(data)))
        self.objects = max(1, min(_MOST_OBJECTS, int(self.objects * growth)))
        return bytes(data)


async def pieces_of(content: aiohttp.StreamReader) -> AsyncIterator[bytes]:
    """Yields the pieces of an answer. Raises TimeoutError after a silence."""
    while True:
        async with asyncio.timeout(SILENCE_SECONDS):
            piece = await content.readany()
        if not piece:
            return
        yield piece


async def read_ahead(pages: AsyncGenerator[_Page]) -> AsyncGenerator[_Page]:
    """Yields the same pages. The next one is read while the caller works through the last."""
    reading = asyncio.create_task(_next_of(pages))
    try:
        while (page := await reading) is not None:
            reading = asyncio.create_task(_next_of(pages))
            yield page
    finally:
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
        await pages.aclose()


async def _next_of(pages: AsyncGenerator[_Page]) -> _Page | None:
    return await anext(pages, None)
