"""The providers of brokers that there are, by the name that a slot bears."""

from collections.abc import Mapping
from typing import Final

from tierbench.kinds.broker import external, standalone, strimzi
from tierbench.kinds.broker.endpoints import Provider
from tierbench.kinds.broker.server_spec import Broker, KafkaProvider
from tierbench.workloads.plan import EXTERNAL, STANDALONE

PROVIDERS: Final[Mapping[str, Provider]] = {
    STANDALONE: standalone,
    KafkaProvider.STRIMZI: strimzi,
    EXTERNAL: external,
}


def provider_name(broker: Broker) -> str:
    """Who brings it up."""
    if broker.external is not None:
        return EXTERNAL
    return STANDALONE if broker.kafka is None else broker.kafka.provider
