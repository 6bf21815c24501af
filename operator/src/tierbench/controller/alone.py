"""No two operators run the same benchmarks: whoever comes second waits, and says for whom."""

import asyncio
import contextlib
import logging
import random
from typing import Final

from tierbench.controller.context import Context
from tierbench.kube.claims import LASTS_SECONDS, Claim, make_good, withdraw
from tierbench.kube.client import UNANSWERED

_RENEW_SECONDS: Final = LASTS_SECONDS / 3
_AGAIN_SECONDS: Final = (2.0, 4.0)
_logger = logging.getLogger(__name__)


class NotAloneError(Exception):
    """Another operator has come to run the same benchmarks."""


async def wait_until_alone(context: Context, stop: asyncio.Event) -> None:
    """Waits until no other operator runs these benchmarks."""
    while not stop.is_set():
        try:
            other = await make_good(context.kube, context.settings.lease_namespace, _claim(context))
        except UNANSWERED as error:
            _wait_for(context, f"Who else runs these benchmarks cannot be read yet: {error}")
        else:
            if other is None:
                context.metrics.waits_for = ""
                return
            _wait_for(context, _words(other))
        with contextlib.suppress(TimeoutError):  # two that stepped back from each other do not meet again
            await asyncio.wait_for(stop.wait(), random.uniform(*_AGAIN_SECONDS))  # noqa: S311


async def stay_alone(context: Context) -> None:
    """Renews the claim for ever. Raises NotAloneError if it was lost to another operator meanwhile."""
    while True:
        await asyncio.sleep(_RENEW_SECONDS)
        try:
            with context.metrics.working("claim on benchmarks"):
                other = await make_good(context.kube, context.settings.lease_namespace, _claim(context))
        except UNANSWERED as error:
            _logger.warning("The claim on benchmarks is not renewed: %s; trying again", error)
            continue
        if other is not None:
            raise NotAloneError(_words(other))


async def leave(context: Context) -> None:
    """Lets another operator begin at once; if that fails, it begins when the claim has run out."""
    with contextlib.suppress(*UNANSWERED):
        await withdraw(context.kube, context.settings.lease_namespace, _claim(context))


def _claim(context: Context) -> Claim:
    settings = context.settings
    return Claim(settings.release, settings.watch_namespaces, settings.pod)


def _words(other: Claim) -> str:
    return (
        f"Another operator runs these benchmarks: release {other}. Name other namespaces for each in watchNamespaces, "
        "or uninstall one of them; this one waits until then."
    )


def _wait_for(context: Context, what: str) -> None:
    if context.metrics.waits_for != what:
        _logger.warning("%s", what)
    context.metrics.waits_for = what
