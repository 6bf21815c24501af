"""Who brings brokers up: this operator in pods of its own, Strimzi, or a user who has one already."""

from collections.abc import Mapping
from typing import Final, cast

from tierbench.api.benchmark import Tls
from tierbench.api.result import ServiceFacts
from tierbench.kinds.broker import kafka, strimzi
from tierbench.kinds.broker import server as mosquitto
from tierbench.kinds.broker.endpoints import ACCOUNT, AGENT, Asked, Provider, Way, account
from tierbench.kinds.broker.server import broker_manifests
from tierbench.kinds.broker.server_spec import Broker, KafkaProvider, Protocol
from tierbench.kinds.broker.server_spec import External as ExternalBroker
from tierbench.workloads.access import SERVER_NAME, address
from tierbench.workloads.agent import agent_manifests
from tierbench.workloads.credentials import secret_items
from tierbench.workloads.plan import EXTERNAL, STANDALONE
from tierbench.workloads.workload import Credentials, Manifest, NodeSize, RunningServer, ServerSite, secret

_PORTS: Final = {**mosquitto.PORTS, **kafka.PORTS}


class Standalone:
    """Brokers of our own, each in a pod with its agent."""

    def facts(self, asked: Asked, size: NodeSize) -> ServiceFacts:
        """Its image, and its settings."""
        broker = asked.broker
        if broker.mosquitto is not None:
            settings = mosquitto.settings(broker.mosquitto)
        else:
            settings = kafka.kafka_settings(asked.kafka, asked.spec, size)
        return ServiceFacts(name=broker.name, image=asked.image, settings=settings)

    def credentials(self, asked: Asked, site: ServerSite) -> Credentials:
        """With certificates, for clients know it by one name."""
        return Credentials(secret(asked.owner, site), certificate=asked.tls, account=account)

    def manifests(self, asked: Asked, site: ServerSite) -> tuple[Manifest, ...]:
        """The broker, and the agent beside it."""
        broker = asked.broker
        if broker.mosquitto is not None:
            server = mosquitto.mosquitto_server(broker.mosquitto, asked.image, asked.tls)
        else:
            server = kafka.kafka_server(asked.kafka, asked.spec, asked.image, site, asked.tls)
        return broker_manifests(asked.owner, asked.spec, asked.images, site, server)

    def way(self, asked: Asked, server: RunningServer, tls: Tls) -> Way:
        """Everything is in the one Secret."""
        protocol, secure = asked.broker.protocol, tls is not Tls.NONE
        port = f"{protocol.lower()}{'s' if secure else ''}"
        secret = secret_items(server.site.attached, *AGENT, *ACCOUNT, *(("ca.crt",) if secure else ()))
        return Way(
            address=address(asked.spec.access, server, port, _PORTS[port]),
            secrets=(secret,),
            server_name=SERVER_NAME if secure or protocol is Protocol.KAFKA else None,
        )


class External:
    """Brokers that are there already: driven by their users' account, and neither deployed nor observed."""

    def facts(self, asked: Asked, size: NodeSize) -> ServiceFacts:
        """No more than its name."""
        return ServiceFacts(name=asked.broker.name)

    def credentials(self, asked: Asked, site: ServerSite) -> Credentials:
        """For the agent's token and the key for payloads: the rest is the user's."""
        return Credentials(secret(asked.owner, site), certificate=asked.tls, account=account)

    def manifests(self, asked: Asked, site: ServerSite) -> tuple[Manifest, ...]:
        """The agent alone, where clients meet."""
        return agent_manifests(asked.owner, asked.images, site, asked.spec.clients.resources)

    def way(self, asked: Asked, server: RunningServer, tls: Tls) -> Way:
        """Where the user says that it is; account and CA are in the user's Secret."""
        external = cast(ExternalBroker, asked.broker.external)
        ca = () if tls is Tls.NONE else ("ca.crt",)
        users = () if external.secret_ref is None else (secret_items(external.secret_ref.name, *ACCOUNT, *ca),)
        secrets = (secret_items(server.site.attached, *AGENT), *users)
        return Way(external.address, secrets, account=bool(users), refused=asked.policy.refused_networks)


PROVIDERS: Final[Mapping[str, Provider]] = {
    STANDALONE: Standalone(),
    KafkaProvider.STRIMZI: strimzi,
    EXTERNAL: External(),
}
"""By the name that a slot bears."""


def provider_name(broker: Broker) -> str:
    """Who brings it up."""
    if broker.external is not None:
        return EXTERNAL
    return STANDALONE if broker.kafka is None else broker.kafka.provider
