"""The providers of brokers: tierbench itself, Strimzi, and a user who has a broker already."""

import hashlib
import secrets
from base64 import b64encode
from dataclasses import dataclass
from typing import Final, Protocol, cast

from tierbench.api.benchmark import Tls
from tierbench.api.policy import Policy
from tierbench.api.result import ServiceFacts
from tierbench.kinds.broker import kafka, server_spec
from tierbench.kinds.broker import server as mosquitto
from tierbench.kinds.broker.server import broker_manifests
from tierbench.kinds.broker.server_spec import Broker, Kafka
from tierbench.kinds.broker.spec import BrokerSpec
from tierbench.workloads.agent import CLIENT_KEYS, agent_manifests
from tierbench.workloads.names import Owner
from tierbench.workloads.networking import SERVER_NAME, address
from tierbench.workloads.pods import secret_items
from tierbench.workloads.workload import Credentials, Images, Manifest, NodeSize, RunningServer, ServerInstance, secret

# Keys of a Secret.
AGENT: Final = (*CLIENT_KEYS, "payload-key")
ACCOUNT: Final = ("username", "password")

_PAYLOAD_KEY_BYTES: Final = 16
_SALT_BYTES: Final = 12
_PORTS: Final = {**mosquitto.PORTS, **kafka.PORTS}


@dataclass(frozen=True)
class BrokerContext:
    """A broker of a benchmark, of the image that has a name."""

    owner: Owner
    spec: BrokerSpec
    broker: Broker
    images: Images
    image_name: str
    policy: Policy

    @property
    def service(self) -> str:
        """What it is, where it is ours."""
        return "kafka" if self.broker.mosquitto is None else "mosquitto"

    @property
    def image(self) -> str:
        """Its image, where it is ours."""
        return self.images.of(self.service, self.image_name)

    @property
    def kafka(self) -> Kafka:
        """What is asked of it, if it is a Kafka of ours."""
        return self.broker.kafka or Kafka()

    @property
    def tls(self) -> bool:
        """Whether any case uses TLS."""
        return any(level is not Tls.NONE for level in self.spec.tls)


@dataclass(frozen=True)
class Endpoint:
    """How clients reach a broker at host:port, and where their credentials and its CA are. `server_name` is the one
    that it is known by, if not by its address; `refused` are networks that its name must not lead to."""

    address: str
    secrets: tuple[Manifest, ...]
    account: bool = True
    server_name: str | None = None
    refused: tuple[str, ...] = ()


class Provider(Protocol):
    """Who brings a broker up."""

    def facts(self, asked: BrokerContext, size: NodeSize) -> ServiceFacts:
        """What is kept of its making with each result."""

    def credentials(self, asked: BrokerContext, instance: ServerInstance) -> Credentials:
        """The agent's token, an account, a key for payloads, and certificates if any case uses TLS."""

    def manifests(self, asked: BrokerContext, instance: ServerInstance) -> tuple[Manifest, ...]:
        """All objects of a server; the pod, the broker's or that of its agent, is the last."""

    def way(self, asked: BrokerContext, server: RunningServer, tls: Tls) -> Endpoint:
        """How clients reach a server that is ready."""


def account(username: str) -> dict[str, bytes]:
    """A password as clear text, as Mosquitto keeps it and as Kafka takes it, and a key for payloads."""
    password = secrets.token_urlsafe(24).encode()
    return {
        "username": username.encode(),
        "password": password,
        "mosquitto-passwords": f"{username}:{_mosquitto_hash(password)}\n".encode(),
        "kafka-account": f"SCRAM-SHA-512=[name={username},password={password.decode()}]".encode(),
        "payload-key": secrets.token_bytes(_PAYLOAD_KEY_BYTES),
    }


def _mosquitto_hash(password: bytes) -> str:
    """SHA-512 with a salt, as every version of Mosquitto reads it. The password is random: one round does."""
    salt = secrets.token_bytes(_SALT_BYTES)
    digest = hashlib.sha512(password + salt).digest()
    return f"$6${b64encode(salt).decode()}${b64encode(digest).decode()}"


class Standalone:
    """Brokers of our own, each in a pod with its agent."""

    def facts(self, asked: BrokerContext, size: NodeSize) -> ServiceFacts:
        """Its image, and its settings."""
        broker = asked.broker
        if broker.mosquitto is not None:
            settings = mosquitto.settings(broker.mosquitto)
        else:
            settings = kafka.kafka_settings(asked.kafka, asked.spec, size)
        return ServiceFacts(name=broker.name, image=asked.image, settings=settings)

    def credentials(self, asked: BrokerContext, instance: ServerInstance) -> Credentials:
        """With certificates, for clients know it by one name."""
        return Credentials(secret(asked.owner, instance), certificate=asked.tls, account=account)

    def manifests(self, asked: BrokerContext, instance: ServerInstance) -> tuple[Manifest, ...]:
        """The broker, and the agent beside it."""
        broker = asked.broker
        if broker.mosquitto is not None:
            server = mosquitto.mosquitto_server(broker.mosquitto, asked.image, asked.tls)
        else:
            server = kafka.kafka_server(asked.kafka, asked.spec, asked.image, instance, asked.tls)
        return broker_manifests(asked.owner, asked.spec, asked.images, instance, server)

    def way(self, asked: BrokerContext, server: RunningServer, tls: Tls) -> Endpoint:
        """Everything is in the one Secret."""
        protocol, secure = asked.broker.protocol, tls is not Tls.NONE
        port = f"{protocol.lower()}{'s' if secure else ''}"
        secret = secret_items(server.instance.attached, *AGENT, *ACCOUNT, *(("ca.crt",) if secure else ()))
        return Endpoint(
            address=address(asked.spec.access, server, port, _PORTS[port]),
            secrets=(secret,),
            server_name=SERVER_NAME if secure or protocol is server_spec.Protocol.KAFKA else None,
        )


class External:
    """Brokers that are there already: driven by their users' account, and neither deployed nor observed."""

    def facts(self, asked: BrokerContext, size: NodeSize) -> ServiceFacts:
        """No more than its name."""
        return ServiceFacts(name=asked.broker.name)

    def credentials(self, asked: BrokerContext, instance: ServerInstance) -> Credentials:
        """For the agent's token and the key for payloads: the rest is the user's."""
        return Credentials(secret(asked.owner, instance), certificate=asked.tls, account=account)

    def manifests(self, asked: BrokerContext, instance: ServerInstance) -> tuple[Manifest, ...]:
        """The agent alone, where clients meet."""
        return agent_manifests(asked.owner, asked.images, instance, asked.spec.clients.resources)

    def way(self, asked: BrokerContext, server: RunningServer, tls: Tls) -> Endpoint:
        """Where the user says that it is; account and CA are in the user's Secret."""
        external = cast(server_spec.External, asked.broker.external)
        ca = () if tls is Tls.NONE else ("ca.crt",)
        users = () if external.secret_ref is None else (secret_items(external.secret_ref.name, *ACCOUNT, *ca),)
        secrets = (secret_items(server.instance.attached, *AGENT), *users)
        return Endpoint(external.address, secrets, account=bool(users), refused=asked.policy.refused_networks)
