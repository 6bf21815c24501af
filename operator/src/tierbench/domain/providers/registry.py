"""The providers that there are, by the name that a slot bears."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import cache

from tierbench.domain.actions import Action
from tierbench.domain.observed import Surroundings
from tierbench.domain.provided import ProviderApi
from tierbench.domain.providers import standalone
from tierbench.domain.providers.provider import Provider
from tierbench.kinds.registry import BenchmarkKind, kinds
from tierbench.workloads.plan import EXTERNAL, STANDALONE, Slot
from tierbench.workloads.workload import ServerSite


def provider_of(name: str) -> Provider:
    """The provider of this name."""
    return _providers(kinds())[name]


def known_apis() -> tuple[ProviderApi, ...]:
    """What any provider has looked at of other operators."""
    return tuple(provider.API for provider in _all() if provider.API is not None)


def makers_of(role: str | None) -> frozenset[str] | None:
    """The kinds that own pods of this role, where another operator makes them."""
    return next((api.makers for api in known_apis() if api.role == role), None)


def apis(slots: Iterable[Slot]) -> tuple[ProviderApi, ...]:
    """What has to be looked at of other operators for these servers."""
    asked = {provider_of(slot.provider).API for slot in slots}
    return tuple(api for api in known_apis() if api in asked)


def in_the_way(here: Surroundings, keep: Sequence[ServerSite]) -> str:
    """Who has another server than these to take down first: it would disturb what is measured."""
    every = _providers(kinds()).items()
    return next((name for name, provider in every if provider.remains(here, keep)), "")


def retire(here: Surroundings, now: datetime, keep: Sequence[ServerSite] = ()) -> tuple[Action, ...]:
    """The next step on the way out, of all servers but some."""
    return tuple(action for provider in _all() for action in provider.retire(here, now, keep))


def _all() -> Iterable[Provider]:
    return dict.fromkeys(_providers(kinds()).values())


@cache
def _providers(every: tuple[BenchmarkKind, ...]) -> Mapping[str, Provider]:
    """All that comes up of a server that is there already is its agent, and that as a server of ours does."""
    ours: dict[str, Provider] = {STANDALONE: standalone, EXTERNAL: standalone}
    return ours | {name: provider for kind in every for name, provider in kind.providers.items()}
