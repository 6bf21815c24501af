"""Who is let in to /metrics, and that a scrape takes nothing from the benchmarks."""

import asyncio
import threading
from collections.abc import Iterator

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request

from tests.unit.metrics.test_metrics import filled, scrape
from tierbench.metrics import server
from tierbench.metrics.server import ScrapeGuard


async def test_the_loop_goes_on_while_a_scrape_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """A piece is not done before the loop has done something else: on the loop itself that would be never."""
    loop, begun, gone_on = asyncio.get_running_loop(), asyncio.Event(), threading.Event()

    def render(_: object) -> Iterator[str]:
        loop.call_soon_threadsafe(begun.set)
        assert gone_on.wait(60)
        yield "first 1\n"
        yield "second 2\n"

    monkeypatch.setattr(server, "render", render)
    scraped = asyncio.create_task(scrape(filled()))
    await begun.wait()
    gone_on.set()
    status, text = await scraped
    assert status == 200
    assert text.startswith("first 1\nsecond 2\n# HELP")


class Reviews:
    """Stands for the API server; the time is its own."""

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
        """The status that the sender of a token gets."""
        request = make_mocked_request("GET", "/metrics", headers={"Authorization": f"{scheme} {token}"})
        try:
            await self.guard.admit(request)
        except web.HTTPException as answer:
            return answer.status
        return 200


async def test_what_was_permitted_is_remembered_for_a_minute() -> None:
    reviews = Reviews()
    assert [await reviews.send(), await reviews.send()] == [200, 200]
    assert reviews.asked == ["a"]
    reviews.seconds = 61
    reviews.answer = False
    assert await reviews.send() == 403
    assert reviews.asked == ["a", "a"]


@pytest.mark.parametrize(("answer", "status"), [(None, 401), (False, 403), (ConnectionError("no route"), 503)])
async def test_what_was_refused_is_asked_again(answer: bool | ConnectionError | None, status: int) -> None:
    reviews = Reviews(answer)
    assert await reviews.send() == status
    reviews.answer = True
    assert await reviews.send() == 200


async def test_no_token_is_worth_no_question() -> None:
    reviews = Reviews()
    assert [await reviews.send("", scheme=""), await reviews.send(""), await reviews.send(scheme="Basic")] == [401] * 3
    assert reviews.asked == []


async def test_as_many_are_remembered_as_scrape_and_no_more() -> None:
    reviews = Reviews()
    for number in range(100):
        reviews.seconds = number / 100
        assert await reviews.send(str(number)) == 200
    del reviews.asked[:]
    assert [await reviews.send("99"), await reviews.send("36"), await reviews.send("35")] == [200] * 3
    assert reviews.asked == ["35"]


async def test_strangers_ask_two_at_once_and_the_known_do_not_wait_for_them() -> None:
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
