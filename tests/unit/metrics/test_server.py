"""Only permitted tokens get /metrics, and scrapes do not delay benchmarks."""

import asyncio
import threading
from collections.abc import Iterator

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request

from tests.unit.metrics.test_metrics import filled, scrape
from tierbench.metrics import server
from tierbench.metrics.server import ScrapeGuard


async def test_a_scrape_does_not_block_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rendering waits for the event loop here. On the event loop, it would wait without end."""
    loop, begun, resumed = asyncio.get_running_loop(), asyncio.Event(), threading.Event()

    def render(_: object) -> Iterator[str]:
        loop.call_soon_threadsafe(begun.set)
        assert resumed.wait(60)
        yield "first 1\n"
        yield "second 2\n"

    monkeypatch.setattr(server, "render", render)
    scraped = asyncio.create_task(scrape(filled()))
    await begun.wait()
    resumed.set()
    status, text = await scraped
    assert status == 200
    assert text.startswith("first 1\nsecond 2\n# HELP")


class Reviews:
    """A fake API server with its own clock."""

    def __init__(self, answer: bool | ConnectionError | None = True) -> None:
        self.answer = answer
        self.asked: list[str] = []
        self.seconds = 0.0
        self.guard = ScrapeGuard(self.review, lambda: self.seconds)

    async def review(self, token: str) -> bool | None:
        self.asked.append(token)
        if isinstance(self.answer, ConnectionError):
            raise self.answer
        return self.answer

    async def send(self, token: str = "a", scheme: str = "Bearer") -> int:
        """Returns the status that the sender of a token gets."""
        request = make_mocked_request("GET", "/metrics", headers={"Authorization": f"{scheme} {token}"})
        try:
            await self.guard.admit(request)
        except web.HTTPException as answer:
            return answer.status
        return 200


async def test_a_permission_is_cached_for_a_minute() -> None:
    reviews = Reviews()
    assert [await reviews.send(), await reviews.send()] == [200, 200]
    assert reviews.asked == ["a"]
    reviews.seconds = 61
    reviews.answer = False
    assert await reviews.send() == 403
    assert reviews.asked == ["a", "a"]


@pytest.mark.parametrize(("answer", "status"), [(None, 401), (False, 403), (ConnectionError("no route"), 503)])
async def test_a_rejection_is_not_cached(answer: bool | ConnectionError | None, status: int) -> None:
    reviews = Reviews(answer)
    assert await reviews.send() == status
    reviews.answer = True
    assert await reviews.send() == 200


async def test_a_request_without_a_token_is_not_reviewed() -> None:
    reviews = Reviews()
    assert [await reviews.send("", scheme=""), await reviews.send(""), await reviews.send(scheme="Basic")] == [401] * 3
    assert reviews.asked == []


async def test_the_cache_is_bounded() -> None:
    reviews = Reviews()
    for number in range(100):
        reviews.seconds = number / 100
        assert await reviews.send(str(number)) == 200
    del reviews.asked[:]
    assert [await reviews.send("99"), await reviews.send("36"), await reviews.send("35")] == [200] * 3
    assert reviews.asked == ["35"]


async def test_at_most_two_reviews_run_and_cached_tokens_do_not_wait() -> None:
    reviews = Reviews()
    assert await reviews.send("known") == 200
    release = asyncio.Event()

    async def slow(token: str) -> bool | None:
        reviews.asked.append(token)
        await release.wait()
        return None

    reviews.guard._review = slow
    tries = [asyncio.create_task(reviews.send(str(number))) for number in range(20)]
    for _ in range(5):
        await asyncio.sleep(0)
    assert reviews.asked == ["known", "0", "1"]
    assert await reviews.send("known") == 200
    release.set()
    assert await asyncio.gather(*tries) == [401] * 20


async def test_permitted_token_does_not_wait_for_unknown_tokens() -> None:
    """Its permission expires each minute, and unknown tokens can keep every review busy."""
    reviews = Reviews()
    assert await reviews.send("known") == 200
    reviews.seconds = 61
    release, permit = asyncio.Event(), reviews.review

    async def slow(token: str) -> bool | None:
        if token != "known":
            await release.wait()
        return await permit(token)

    reviews.guard._review = slow
    unknown_tokens = [asyncio.create_task(reviews.send(str(number))) for number in range(20)]
    async with asyncio.timeout(60):
        assert await reviews.send("known") == 200
    release.set()
    await asyncio.gather(*unknown_tokens)
