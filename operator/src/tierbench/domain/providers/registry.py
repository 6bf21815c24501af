"""The providers that there are, by the name that a slot bears."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final

from tierbench.domain.actions import Action
from tierbench.domain.observed import Surroundings
from tierbench.domain.provided import ProviderApi
from tierbench.domain.providers import standalone
from tierbench.domain.providers.provider import Provider
from tierbench.domain.providers.strimzi import provider as strimzi
from tierbench.kinds.broker.server_spec import KafkaProvider
from tierbench.workloads.plan import EXTERNAL, STANDALONE, Slot
from tierbench.workloads.workload import ServerSite

# All that comes up of a server that is there already is its agent, and that as a server of ours does.
PROVIDERS: Final[Mapping[str, Provider]] = {
    STANDALONE: standalone,
    KafkaProvider.STRIMZI: strimzi,
    EXTERNAL: standalone,
}
_ALL: Final = tuple(dict.fromkeys(PROVIDERS.values()))
APIS: Final = tuple(provider.API for provider in _ALL if provider.API is not None)


def apis(slots: Iterable[Slot]) -> tuple[ProviderApi, ...]:
    """What has to be looked at of other operators for these servers."""
    asked = {PROVIDERS[slot.provider].API for slot in slots}
    return tuple(api for api in APIS if api in asked)


def in_the_way(here: Surroundings, keep: Sequence[ServerSite]) -> str:
    """Who has another server than these to take down first: it would disturb what is measured."""
    return next((name for name, provider in PROVIDERS.items() if provider.remains(here, keep)), "")


def retire(here: Surroundings, now: datetime, keep: Sequence[ServerSite] = ()) -> tuple[Action, ...]:
    """The next step on the way out, of all servers but some."""
    return tuple(action for provider in _ALL for action in provider.retire(here, now, keep))
