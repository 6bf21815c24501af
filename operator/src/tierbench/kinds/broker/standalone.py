"""Brokers of our own, each in a pod with its agent."""

from typing import Final

from tierbench.api.benchmark import Tls
from tierbench.api.result import ServiceFacts
from tierbench.kinds.broker import kafka
from tierbench.kinds.broker import server as mosquitto
from tierbench.kinds.broker.endpoints import ACCOUNT, AGENT, Asked, Way
from tierbench.kinds.broker.server import broker_manifests
from tierbench.kinds.broker.server_spec import Protocol
from tierbench.workloads.access import SERVER_NAME, address
from tierbench.workloads.credentials import secret_items
from tierbench.workloads.workload import Credentials, Manifest, NodeSize, RunningServer, ServerSite, secret

_PORTS: Final = {**mosquitto.PORTS, **kafka.PORTS}


def facts(asked: Asked, size: NodeSize) -> ServiceFacts:
    """Its image, and its settings."""
    broker = asked.broker
    if broker.mosquitto is not None:
        settings = mosquitto.settings(broker.mosquitto)
    else:
        settings = kafka.kafka_settings(asked.kafka, asked.spec, size)
    return ServiceFacts(name=broker.name, image=asked.image, settings=settings)


def credentials(asked: Asked, site: ServerSite) -> Credentials:
    """With certificates, for clients know it by one name."""
    return Credentials(secret(asked.owner, site), certificate=asked.tls, account=True)


def manifests(asked: Asked, site: ServerSite) -> tuple[Manifest, ...]:
    """The broker, and the agent beside it."""
    broker = asked.broker
    if broker.mosquitto is not None:
        server = mosquitto.mosquitto_server(broker.mosquitto, asked.image, asked.tls)
    else:
        server = kafka.kafka_server(asked.kafka, asked.spec, asked.image, site, asked.tls)
    return broker_manifests(asked.owner, asked.spec, asked.images, site, server)


def way(asked: Asked, server: RunningServer, tls: Tls) -> Way:
    """Everything is in the one Secret."""
    protocol, secure = asked.broker.protocol, tls is not Tls.NONE
    port = f"{protocol.lower()}{'s' if secure else ''}"
    secret = secret_items(server.site.attached, *AGENT, *ACCOUNT, *(("ca.crt",) if secure else ()))
    return Way(
        address=address(asked.spec.access, server, port, _PORTS[port]),
        secrets=(secret,),
        server_name=SERVER_NAME if secure or protocol is Protocol.KAFKA else None,
    )
