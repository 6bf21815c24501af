"""The providers of brokers: the interface, the one of tierbench itself, and the one of existing brokers."""

import hashlib
import secrets
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Protocol, cast

from tierbench.api.benchmark import Tls
from tierbench.api.canonical import fingerprint
from tierbench.api.policy import Policy
from tierbench.api.result import ServiceFacts
from tierbench.kinds.broker import kafka, nginx, server_spec
from tierbench.kinds.broker import server as mosquitto
from tierbench.kinds.broker.server import broker_manifests
from tierbench.kinds.broker.server_spec import PROTOCOL, Broker, Kafka
from tierbench.kinds.broker.spec import BrokerSpec
from tierbench.kinds.broker.tls import is_secure, requires_certificate
from tierbench.workloads.manifests import CLIENT_KEYS, agent_manifests
from tierbench.workloads.networking import address
from tierbench.workloads.pods import CA, CLIENT_CERTIFICATE, SERVER_NAME, TLS_CERTIFICATE, secret_items
from tierbench.workloads.workload import (
    Credentials,
    Images,
    Manifest,
    NodeSize,
    Owner,
    RunningServer,
    ServerInstance,
    secret,
)

# Keys of a Secret.
AGENT: Final = (*CLIENT_KEYS, "payload-key")
ACCOUNT: Final = ("username", "password")

_PAYLOAD_KEY_BYTES: Final = 16
_SALT_BYTES: Final = 12
_PORTS: Final = {
    **mosquitto.PORTS,
    **mosquitto.MUTUAL_PORTS,
    **kafka.PORTS,
    **kafka.MUTUAL_PORTS,
    **nginx.PORTS,
}
_SERVICES: Final = {
    server_spec.Protocol.MQTT: "mosquitto",
    server_spec.Protocol.KAFKA: "kafka",
    server_spec.Protocol.HTTP: "nginx",
}


@dataclass(frozen=True)
class BrokerContext:
    """A broker of a benchmark, with one of its images."""

    owner: Owner
    spec: BrokerSpec
    broker: Broker
    images: Images
    image_name: str
    policy: Policy

    @property
    def service(self) -> str:
        """The name of the service, if tierbench deploys it."""
        return _SERVICES[self.broker.protocol]

    @property
    def image(self) -> str:
        """The image of the broker, if tierbench deploys it."""
        return self.images.of(self.service, self.image_name)

    @property
    def kafka(self) -> Kafka:
        """The settings of Kafka, if tierbench deploys it."""
        return self.broker.kafka or Kafka()

    @property
    def tls(self) -> bool:
        """Whether any case uses TLS."""
        return any(level is not Tls.NONE for level in self.spec.tls)


@dataclass(frozen=True)
class Endpoint:
    """The way for clients to reach a broker: its address as host:port, and the sources of their credentials and the CA.

    `certificate` names the files with the client's certificate and its key, if it needs them. `server_name` is the name
    in the broker's certificate if that is not its address. `path` is that of its URL. `refused` are networks that the
    address must not resolve to, `allowed` the only networks and names that a Kafka may send its clients to.
    """

    address: str
    secrets: tuple[Manifest, ...]
    account: bool = True
    certificate: tuple[str, ...] = ()
    server_name: str | None = None
    path: str = ""
    refused: tuple[str, ...] = ()
    allowed: tuple[str, ...] = ()


class Provider(Protocol):
    """Deploys a broker."""

    def facts(self, context: BrokerContext, size: NodeSize) -> ServiceFacts:
        """Returns what results keep about the setup of the broker."""

    def credentials(self, context: BrokerContext, instance: ServerInstance) -> Credentials:
        """Returns a Secret with the agent's token, an account, a key for payloads, and certificates if a case uses
        TLS."""

    def manifests(self, context: BrokerContext, instance: ServerInstance) -> tuple[Manifest, ...]:
        """Returns all objects of a server. The pod of the broker or of its agent is the last one."""

    def endpoint(self, context: BrokerContext, server: RunningServer, levels: Mapping[str, str]) -> Endpoint:
        """Returns how clients reach a server that is ready, in cases with these levels."""


def account(username: str) -> dict[str, bytes]:
    """Returns a password in clear text, as Mosquitto stores it and as Kafka expects it, and a key for payloads."""
    password = secrets.token_urlsafe(24).encode()
    return {
        "username": username.encode(),
        "password": password,
        "mosquitto-passwords": f"{username}:{_mosquitto_hash(password)}\n".encode(),
        "kafka-account": f"SCRAM-SHA-512=[name={username},password={password.decode()}]".encode(),
        "payload-key": secrets.token_bytes(_PAYLOAD_KEY_BYTES),
    }


def _mosquitto_hash(password: bytes) -> str:
    """Returns a salted SHA-512 hash that every version of Mosquitto reads. One round is enough for a random
    password."""
    salt = secrets.token_bytes(_SALT_BYTES)
    digest = hashlib.sha512(password + salt).digest()
    return f"$6${b64encode(salt).decode()}${b64encode(digest).decode()}"


class Standalone:
    """Brokers that tierbench deploys, each in a pod with its agent."""

    def facts(self, context: BrokerContext, size: NodeSize) -> ServiceFacts:
        """Returns the image and the settings of the broker."""
        broker = context.broker
        if broker.mosquitto is not None:
            settings = mosquitto.settings(broker.mosquitto)
        elif broker.http is not None:
            settings = {PROTOCOL: broker.protocol.value, **nginx.settings(context.spec)}
        else:
            settings = kafka.kafka_settings(context.kafka, context.spec, size)
        return ServiceFacts(name=broker.name, image=context.image, settings=settings)

    def credentials(self, context: BrokerContext, instance: ServerInstance) -> Credentials:
        """Returns a Secret with certificates, because all clients know the broker by one name."""
        required = context.spec.tls_clients.required
        return Credentials(secret(context.owner, instance), context.tls, account, client_certificate=required)

    def manifests(self, context: BrokerContext, instance: ServerInstance) -> tuple[Manifest, ...]:
        """Returns the broker and its agent."""
        broker = context.broker
        if broker.mosquitto is not None:
            mutual = context.spec.tls_clients.required
            server = mosquitto.mosquitto_server(broker.mosquitto, context.image, context.tls, mutual)
        elif broker.http is not None:
            server = nginx.nginx_server(context.spec, context.image, context.tls)
        else:
            server = kafka.kafka_server(context.kafka, context.spec, context.image, instance, context.tls)
        return broker_manifests(context.owner, context.spec, context.images, instance, server)

    def endpoint(self, context: BrokerContext, server: RunningServer, levels: Mapping[str, str]) -> Endpoint:
        """Returns the endpoint. One Secret has all credentials. nginx has no account, because it keeps no message."""
        protocol, secure, mutual = context.broker.protocol, is_secure(levels), requires_certificate(levels)
        port = f"{protocol.lower()}{'s' if secure else ''}{mosquitto.MUTUAL if mutual else ''}"
        certificate, has_account = CLIENT_CERTIFICATE if mutual else (), context.broker.http is None
        keys = (*AGENT, *(ACCOUNT if has_account else ()), *((CA,) if secure else ()), *certificate)
        return Endpoint(
            address=address(context.spec.access, server, port, _PORTS[port]),
            secrets=(secret_items(server.instance.attached, *keys),),
            account=has_account,
            certificate=certificate,
            server_name=SERVER_NAME if secure or protocol is not server_spec.Protocol.MQTT else None,
        )


class External:
    """Existing brokers. They are used with an account of the user, and neither deployed nor observed."""

    def facts(self, context: BrokerContext, size: NodeSize) -> ServiceFacts:
        """Returns the name of the broker, and a fingerprint of its address, which results do not contain."""
        external = cast(server_spec.External, context.broker.external)
        settings = {"address": fingerprint(f"{external.address}{external.path or ''}")}
        if external.protocol is server_spec.Protocol.HTTP:
            settings[PROTOCOL] = external.protocol.value
        return ServiceFacts(name=context.broker.name, settings=settings)

    def credentials(self, context: BrokerContext, instance: ServerInstance) -> Credentials:
        """Returns a Secret with the agent's token and the key for payloads. All else is in the user's Secret."""
        return Credentials(secret(context.owner, instance), certificate=context.tls, account=account)

    def manifests(self, context: BrokerContext, instance: ServerInstance) -> tuple[Manifest, ...]:
        """Returns only the agent, through which clients synchronize."""
        return agent_manifests(
            context.owner, context.images, instance, context.spec.access, context.spec.clients.resources
        )

    def endpoint(self, context: BrokerContext, server: RunningServer, levels: Mapping[str, str]) -> Endpoint:
        """Returns the address in the spec. Account, CA and the client's certificate are in the user's Secret, of which
        the client says what it lacks."""
        external = cast(server_spec.External, context.broker.external)
        certificate = TLS_CERTIFICATE if requires_certificate(levels) else ()
        keys = (*ACCOUNT, *((CA,) if is_secure(levels) else ()), *certificate)
        users = () if external.secret_ref is None else (secret_items(external.secret_ref.name, *keys, optional=True),)
        secrets = (secret_items(server.instance.attached, *AGENT), *users)
        policy = context.policy
        allowed = (*policy.allowed_networks, *policy.allowed_names)
        return Endpoint(
            external.address,
            secrets,
            account=bool(users),
            certificate=certificate,
            path=external.path or "",
            refused=policy.refused_networks,
            allowed=allowed,
        )
