"""The size of a page is bounded, regardless of the objects in a list."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tierbench.kube import pages
from tierbench.kube.pages import PageLimit, pieces_of, read_ahead

SMALL, LARGE = 1_000, 1_500_000
"""The size of an object in bytes. The API server stores no larger one."""
BOUND = 2 << 20


class Content:
    """The content of an answer that arrives in pieces, each after a pause. `received` is the number of bytes."""

    def __init__(self, size: int, pause: float = 0) -> None:
        self._size = size
        self._pause = pause
        self.received = 0

    async def readany(self) -> bytes:
        """Returns the next piece."""
        await asyncio.sleep(self._pause)
        piece = min(1 << 16, self._size - self.received)
        self.received += piece
        return bytes(piece)


async def read(limit: PageLimit, size: int, pause: float = 0) -> tuple[bytes | None, int]:
    """Returns the page and the number of bytes that were received."""
    content: Any = Content(size, pause)
    return await limit.read(pieces_of(content)), content.received


async def read_list(sizes: Sequence[int]) -> tuple[int, int]:
    """Reads a list of objects with these sizes. Returns the size of the largest page, and the number of requests."""
    limit, at, largest, requests = PageLimit(), 0, 0, 0
    while at < len(sizes):
        asked, requests = sizes[at : at + limit.objects], requests + 1
        page, received = await read(limit, sum(asked))
        largest = max(largest, received)
        at += 0 if page is None else len(asked)
    return largest, requests


async def test_small_objects_are_read_in_few_pages() -> None:
    _, requests = await read_list([SMALL] * 10_000)
    assert requests <= 25


async def test_large_objects_are_read_one_at_a_time() -> None:
    largest, requests = await read_list([LARGE] * 50)
    assert largest <= BOUND + (1 << 16)
    assert requests <= 60


@given(st.lists(st.sampled_from([SMALL, LARGE]), max_size=60), st.integers(0, 2_000))
async def test_no_order_of_objects_makes_a_page_too_large(sizes: list[int], small: int) -> None:
    """Tenants choose the names of their objects, and so the order."""
    largest, _ = await read_list([SMALL] * small + sizes)
    assert largest <= BOUND + (1 << 16)


async def test_single_object_may_have_any_size() -> None:
    limit = PageLimit()
    while (page := (await read(limit, 2 * BOUND))[0]) is None:
        pass
    assert limit.objects == 1
    assert len(page) == 2 * BOUND


async def test_page_has_a_timeout_for_silence_but_no_total_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a total timeout, each attempt over a slow network would fail and start again."""
    monkeypatch.setattr(pages, "SILENCE_SECONDS", 0.5)
    page, _ = await read(PageLimit(), 12 << 16, pause=0.1)
    assert page is not None
    with pytest.raises(TimeoutError):
        await read(PageLimit(), 1, pause=60)


async def _three_pages(log: list[str]) -> AsyncGenerator[int]:
    try:
        for page in range(3):
            log.append(f"page {page} is read")
            yield page
    finally:
        log.append("closed")


def test_the_next_page_is_read_while_the_caller_works() -> None:
    async def work() -> list[str]:
        log: list[str] = []
        async for page in read_ahead(_three_pages(log)):
            await asyncio.sleep(0)
            log.append(f"page {page} is done")
        return log

    log = asyncio.run(work())
    assert log.index("page 1 is read") < log.index("page 0 is done")
    assert log.index("page 2 is read") < log.index("page 1 is done")
    assert log[-1] == "page 2 is done"


def test_caller_that_stops_closes_the_pages() -> None:
    async def work() -> list[str]:
        log: list[str] = []
        async with aclosing(read_ahead(_three_pages(log))) as pages:
            async for _ in pages:
                break
        return log

    assert asyncio.run(work())[-1] == "closed"


def test_an_error_of_a_later_page_reaches_the_caller_after_the_earlier_pages() -> None:
    async def failing() -> AsyncGenerator[int]:
        yield 1
        raise TimeoutError

    async def work() -> list[int]:
        seen: list[int] = []
        with pytest.raises(TimeoutError):
            async for page in read_ahead(failing()):
                await asyncio.sleep(0)
                seen.append(page)
        return seen

    assert asyncio.run(work()) == [1]
