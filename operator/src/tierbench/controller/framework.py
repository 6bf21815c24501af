"""Runs kopf: its settings, its storages, its login."""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from typing import Any, Final

import kopf

from tierbench.controller.context import Context
from tierbench.controller.handlers import HANDLERS, Memo
from tierbench.controller.reconciler import FINALIZER
from tierbench.kube.connect import open_session
from tierbench.kube.informer import Informer, ListObserver

_PAGE: Final = 100
_WATCH_SECONDS: Final = 30
_BACKOFF_SECONDS: Final = (0.5, 1.0, 2.0)
_LAST_BACKOFF_SECONDS: Final = 5.0


class _NoDiffBase(kopf.DiffBaseStorage):
    """No handler compares an object with an earlier state, so no state is stored in annotations."""

    def build(self, **_: Any) -> kopf.BodyEssence:
        return kopf.BodyEssence()

    def fetch(self, *, body: kopf.Body) -> kopf.BodyEssence:
        return kopf.BodyEssence()

    def store(self, **_: Any) -> None:
        pass


class _NoProgress(kopf.ProgressStorage):
    """Handlers retry by themselves, so no progress is stored in annotations."""

    def fetch(self, **_: Any) -> None:
        return None

    def store(self, **_: Any) -> None:
        pass

    def purge(self, **_: Any) -> None:
        pass

    def touch(self, **_: Any) -> None:
        pass

    def clear(self, *, essence: kopf.BodyEssence) -> kopf.BodyEssence:
        return essence


class _Backoffs(Iterable[float]):
    """Without an end: kopf gives up what it has tried for as often as there are backoffs, and ends the operator."""

    def __iter__(self) -> Iterator[float]:
        yield from _BACKOFF_SECONDS
        while True:
            yield _LAST_BACKOFF_SECONDS


async def run_kopf(
    context: Context,
    informers: Sequence[Informer],
    lists: ListObserver,
    release_leadership: Callable[[], Awaitable[None]],
) -> None:
    """Runs the handlers until SIGTERM or SIGINT, once per process. kopf replaces the process's handlers of signals."""

    def log_in() -> kopf.AiohttpSession:
        session = open_session(context.kube, lists.observe)
        return kopf.AiohttpSession(server=context.kube.address, aiohttp_session=session)

    by_plural = {informer.resource.plural: informer for informer in informers}
    await kopf.operator(
        registry=HANDLERS,
        settings=kopf_settings(informers),
        memo=Memo(context, by_plural, lists, log_in, release_leadership),
        standalone=True,
        clusterwide=not context.settings.watch_namespaces,
        namespaces=context.settings.watch_namespaces,
        identity=context.settings.pod,  # type: ignore[arg-type]  # kopf's type of it is not public
    )


def kopf_settings(informers: Iterable[Informer]) -> kopf.OperatorSettings:
    """Returns the settings of an operator that watches these types, and stores nothing in objects but its finalizer."""
    settings = kopf.OperatorSettings()
    settings.scanning.disabled = True  # watches neither definitions nor namespaces, which needs further permissions
    settings.posting.enabled = False
    settings.persistence.finalizer = FINALIZER
    settings.persistence.diffbase_storage = _NoDiffBase()
    settings.persistence.progress_storage = _NoProgress()
    settings.watching.chunk_size = _PAGE
    settings.watching.server_timeout = _WATCH_SECONDS
    settings.watching.inactivity_timeout = _WATCH_SECONDS + 15
    settings.watching.connect_timeout = 5
    for informer in informers:
        if informer.labels:
            selector = (*informer.resource.group_and_version, informer.resource.plural)
            settings.watching.label_selectors[selector] = informer.labels
    settings.queueing.idle_timeout = 0.5  # each object that changed is kept for as long
    settings.networking.request_timeout = 20
    settings.networking.connect_timeout = 5
    settings.networking.error_backoffs = _Backoffs()
    settings.background.instant_exit_timeout = 5  # of a reconciliation that has begun
    return settings
