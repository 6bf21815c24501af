"""BrokerBenchmark as a workload: its servers, its factors, and the Jobs of publishers and subscribers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from tierbench.api.benchmark import Delivery, Tls
from tierbench.api.policy import Policy
from tierbench.api.quantity import parse_size
from tierbench.api.result import ServiceFacts
from tierbench.api.trial_plan import (
    BrokerPlan,
    BrokerTarget,
    Encryption,
    KafkaSettings,
    PlannedLoad,
    PlannedPacing,
)
from tierbench.api.trial_plan import Role as PlannedRole
from tierbench.kinds.broker import strimzi
from tierbench.kinds.broker.client_spec import (
    EngineType,
    Payload,
    group_factors,
    group_of,
    most_deliveries,
    mqtt_factors,
    mqtt_settings,
)
from tierbench.kinds.broker.kafka import BATCH_SIZE, CODEC, LINGER, PARTITIONS, kafka_factors
from tierbench.kinds.broker.providers import ACCOUNT, BrokerContext, Endpoint, External, Provider, Standalone
from tierbench.kinds.broker.server_spec import Broker, KafkaProvider, Protocol
from tierbench.kinds.broker.spec import BrokerSpec, Load, Pacing
from tierbench.kinds.broker.tls import HANDSHAKE, TLS, Handshake, is_secure, tls_factors
from tierbench.kinds.registry import probe
from tierbench.workloads.manifests import (
    client_job,
    credential_file,
    meeting_fields,
    series_fields,
    target_fields,
)
from tierbench.workloads.plan import (
    EXTERNAL,
    STANDALONE,
    Case,
    Factor,
    ServerPlacement,
    image_levels,
    link_factors,
    link_of,
    server_placements,
)
from tierbench.workloads.pods import CA, ConfigMapDirectory
from tierbench.workloads.workload import (
    ClientInstance,
    ClientPart,
    Credentials,
    Images,
    Manifest,
    NodeSize,
    Owner,
    Role,
    ServerInstance,
    Target,
    TrialLoad,
    Workload,
)

PAYLOAD_SIZE: Final = "payloadSize"
CONTENT: Final = "content"
PROVIDERS: Final[Mapping[str, Provider]] = {
    STANDALONE: Standalone(),
    KafkaProvider.STRIMZI: strimzi,
    EXTERNAL: External(),
}
"""The providers, by the provider of a placement."""

_BROKER: Final = "broker"
_CERTIFICATE: Final = ("client_certificate_file", "client_key_file")
_BYTES_PER_MESSAGE_OVERHEAD: Final = 4096
_NONE: Final = "None"
_LIGHT_PER_SECOND: Final = 5000
_LIGHT_IN_FLIGHT: Final = 4
_LIGHT_BYTES: Final = 16 * 2**10
_MESSAGES: Final = "/messages"
_NANOSECONDS: Final = 10**9
_ROLES: Final = {Role.WHOLE: PlannedRole.BOTH, Role.SENDER: PlannedRole.PUBLISHER, Role.ECHO: PlannedRole.ECHO}


@dataclass(frozen=True)
class BrokerWorkload:
    """A broker on the server's node, publishers and subscribers on the clients' nodes."""

    owner: Owner
    spec: BrokerSpec
    images: Images
    policy: Policy = field(default_factory=Policy)

    def server_placements(self) -> tuple[ServerPlacement, ...]:
        """Returns each deployed broker with each of its images on each node, and each external broker once."""
        given = [
            (((_BROKER, broker.name), *levels), provider_name(broker))
            for broker in self.spec.brokers
            for levels in image_levels(broker.images)
        ]
        places = [(place.node_class, place.ordinal) for place in server_placements(self.spec)]
        ours = (ServerPlacement(*place, levels, by) for place in places for levels, by in given if by != EXTERNAL)
        external = (ServerPlacement(EXTERNAL, 0, levels, by) for levels, by in given if by == EXTERNAL)
        return (*ours, *external)

    def image_problem(self, placement: ServerPlacement) -> str:
        """Returns what is wrong with the name of the broker's image."""
        return self.images.image_problem(self._context(placement).service, placement.image)

    def factors(self, placement: ServerPlacement) -> tuple[Factor, ...]:
        """Returns all factors but the broker and its image, which the placement decides."""
        spec = self.spec
        of_protocol = {
            Protocol.MQTT: mqtt_factors(spec.mqtt_clients),
            Protocol.KAFKA: kafka_factors(spec.kafka_clients),
        }
        return (
            *payload_factors(spec.payload),
            Factor("delivery", tuple(level.value for level in spec.delivery)),
            Factor(TLS, tuple(level.value for level in spec.tls)),
            *tls_factors(spec.tls_clients),
            Factor("encryption", tuple(level.value for level in spec.encryption)),
            Factor("compression", spec.compression),
            Factor("pairs", tuple(map(str, spec.pairs))),
            *group_factors(spec.groups),
            *link_factors(spec),
            *of_protocol.get(self._context(placement).broker.protocol, ()),
        )

    def parts(self, case: Case) -> tuple[ClientPart, ...]:
        """Returns the pods of the client."""
        return parts(self.spec, case)

    def service(self, placement: ServerPlacement, size: NodeSize) -> ServiceFacts | None:
        """Returns the name of the broker and its settings."""
        return PROVIDERS[placement.provider].facts(self._context(placement), size)

    def credentials(self, instance: ServerInstance) -> Credentials:
        """Returns the Secret that the provider needs."""
        return PROVIDERS[instance.placement.provider].credentials(self._context(instance.placement), instance)

    def server(self, instance: ServerInstance) -> tuple[Manifest, ...]:
        """Returns the broker and an agent."""
        return PROVIDERS[instance.placement.provider].manifests(self._context(instance.placement), instance)

    def client(self, instance: ClientInstance, targets: Sequence[Target]) -> Manifest:
        """Returns the Job of one part."""
        case, clients, payload = targets[0].case, self.spec.clients, self.spec.payload
        context, provider = self._context(case.server), PROVIDERS[case.server.provider]
        endpoints = [provider.endpoint(context, target.server, case.levels) for target in targets]
        return client_job(
            self.owner,
            self.images,
            instance,
            targets,
            self._engine_image,
            trial_plan(context, endpoints, instance, targets),
            self.spec.access,
            clients.resources,
            [endpoint.secrets for endpoint in endpoints],
            link=link_of(self.spec, case),
            directories=[_own_messages(payload, case)] if payload.messages else [],
        )

    @property
    def _engine_image(self) -> str:
        engine = self.spec.clients.engine
        return self.images.client if engine is EngineType.NATIVE else self.images.programs[engine.lower()]

    def deadline_seconds(self, trials: int) -> int:
        """Returns the time limit of one trial, multiplied by the trials including warm-up, and the time until the
        broker is ready."""
        spec = self.spec
        return (trials + spec.warmup_trials) * spec.timeouts.trial_seconds + spec.timeouts.first_message_seconds

    def load(self, case: Case) -> TrialLoad:
        """Returns seconds if load or pacing decide them, and the bytes of all deliveries if their number is known.

        The overhead per message decides for small ones.
        """
        load, pacing = self.spec.load, self.spec.pacing
        seconds, messages, rate = load.duration_seconds, load.messages_per_publisher, pacing.rate
        if rate is not None and messages is not None:
            return self._moved(case, messages, messages / rate)
        if rate is not None and seconds is not None:
            return self._moved(case, round(rate * seconds), seconds)
        return TrialLoad(seconds=seconds) if messages is None else self._moved(case, messages, None)

    def _moved(self, case: Case, messages: int, seconds: float | None) -> TrialLoad:
        """Returns the load of this number of messages per publisher."""
        count = messages * int(case.levels["pairs"]) * group_of(self.spec.groups, case).deliveries
        moved = count * parse_size(case.levels[PAYLOAD_SIZE]) if PAYLOAD_SIZE in case.levels else None
        return TrialLoad(seconds, moved, count * _BYTES_PER_MESSAGE_OVERHEAD)

    def preflight(self) -> tuple[Workload, ...]:
        """Returns the measurement of the network on the path of messages."""
        return probe().workloads(self.owner, self.spec, self.spec.access, self.images)

    def _context(self, placement: ServerPlacement) -> BrokerContext:
        name = dict(placement.levels)[_BROKER]
        broker = next(broker for broker in self.spec.brokers if broker.name == name)
        return BrokerContext(self.owner, self.spec, broker, self.images, placement.image, self.policy)


def provider_name(broker: Broker) -> str:
    """Returns the name of the provider that deploys a broker."""
    if broker.external is not None:
        return EXTERNAL
    return STANDALONE if broker.kafka is None else broker.kafka.provider


def not_from_outside(spec: BrokerSpec) -> str:
    """Returns what members of external classes cannot measure, or nothing."""
    clients = spec.clients
    if clients.pods > 1 or clients.subscribers.node_class_name is not None:
        return "One member measures at a time: set spec.clients.pods to 1, and leave subscribers with publishers."
    if clients.engine is not EngineType.NATIVE:
        return "Its members have one engine: set spec.clients.engine to Native."
    if spec.payload.messages:
        return "Its members get no ConfigMap: name spec.payload.sizes instead of messages."
    if any(provider_name(broker) != STANDALONE for broker in spec.brokers):
        return "Its members measure brokers that tierbench itself deploys: leave out external ones and Strimzi."
    return ""


def parts(spec: BrokerSpec, case: Case) -> tuple[ClientPart, ...]:
    """Returns the publishers' pods, and as many pods of subscribers if those run elsewhere."""
    clients = spec.clients
    echo_class = clients.subscribers.node_class_name
    if echo_class is None:
        return tuple(ClientPart(index, case.client_class) for index in range(clients.pods))
    senders = (ClientPart(index, case.client_class, Role.SENDER) for index in range(clients.pods))
    echoes = (ClientPart(clients.pods + index, echo_class, Role.ECHO) for index in range(clients.pods))
    return (*senders, *echoes)


def tuning(spec: BrokerSpec) -> str:
    """Returns what the engine is tuned for. It is the same in all cases, so that only levels and classes differ.

    The tuning is Light if every case leaves the client idle most of the time. Then the engine minimizes latency.
    """
    pairs = max(share(pairs, spec.clients.pods, 0)[1] for pairs in spec.pairs) * most_deliveries(spec.groups)
    plain = (
        all(level == _NONE for level in (*spec.compression, *spec.kafka_clients.codecs))
        and spec.payload.largest_bytes <= _LIGHT_BYTES
    )
    return "Light" if plain and _is_light(spec.pacing, pairs) else "Heavy"


def _is_light(pacing: Pacing, pairs: int) -> bool:
    if pacing.window is not None:
        return pairs * pacing.window <= _LIGHT_IN_FLIGHT
    return pacing.rate is not None and pairs * pacing.rate <= _LIGHT_PER_SECOND


def share(pairs: int, pods: int, index: int) -> tuple[int, int]:
    """Returns the number of a pod's first pair and the number of its pairs, as evenly distributed as possible."""
    few, more = divmod(pairs, pods)
    return index * few + min(index, more), few + (index < more)


def trial_plan(
    context: BrokerContext, endpoints: Sequence[Endpoint], instance: ClientInstance, targets: Sequence[Target]
) -> BrokerPlan:
    """Returns the plan of one part."""
    spec, case, endpoint = context.spec, targets[0].case, endpoints[0]
    first, pairs = share(int(case.levels["pairs"]), spec.clients.pods, instance.part.index % spec.clients.pods)
    return BrokerPlan(
        **series_fields(instance, spec.warmup_trials, link_of(spec, case)),
        **meeting_fields(instance, len(parts(spec, case))),
        kind="Broker",
        **({} if spec.clients.engine is EngineType.NATIVE else {"engine": spec.clients.engine.lower()}),
        targets=tuple(_target(context, each, target) for each, target in zip(endpoints, targets, strict=True)),
        tls=Tls(case.levels[TLS]),
        **({"resume_sessions": True} if case.levels.get(HANDSHAKE) == Handshake.RESUMED else {}),
        server_name=endpoint.server_name or "",
        refused_networks=endpoint.refused,
        pairs=pairs,
        first_pair=first,
        **({"group": group_of(spec.groups, case)} if spec.groups else {}),
        role=PlannedRole.ALONE if spec.clients.alone else _ROLES[instance.part.role],
        **_payload(spec.payload, case),
        delivery=Delivery(case.levels["delivery"]),
        compression=case.levels["compression"],
        encryption=Encryption(case.levels["encryption"]),
        key_file=credential_file(targets[0], "payload-key"),
        pacing=_pacing(spec.pacing),
        load=_load(spec.load),
        max_in_flight=spec.max_in_flight,
        tuning=tuning(spec),
        delivery_timeout_milliseconds=spec.timeouts.delivery_milliseconds,
        ready_milliseconds=spec.timeouts.first_message_seconds * 1000,
        connections=spec.clients.connections,
        **mqtt_settings(case),
        **({"kafka": _kafka(case, endpoint)} if context.broker.protocol is Protocol.KAFKA else {}),
    )


def _target(context: BrokerContext, endpoint: Endpoint, target: Target) -> BrokerTarget:
    secure = is_secure(target.case.levels)
    username, password = (credential_file(target, key) if endpoint.account else "" for key in ACCOUNT)
    certificate: dict[str, Any] = {
        field: credential_file(target, key) for field, key in zip(_CERTIFICATE, endpoint.certificate, strict=False)
    }
    return BrokerTarget(
        **target_fields(context.spec.access, target),
        url=f"{context.broker.protocol.lower()}{'s' if secure else ''}://{endpoint.address}{endpoint.path}",
        topic=f"tierbench/{target.server.instance.name}/{target.case.number}",
        username_file=username,
        password_file=password,
        ca_file=credential_file(target, CA) if secure else "",
        **certificate,
    )


def payload_factors(payload: Payload) -> tuple[Factor, ...]:
    """Returns the factors of the payload. A user's own messages have no sizes to choose."""
    if payload.messages:
        return (Factor(CONTENT, tuple(own.name for own in payload.messages)),)
    return (Factor(PAYLOAD_SIZE, payload.sizes), Factor(CONTENT, payload.contents))


def _payload(payload: Payload, case: Case) -> dict[str, Any]:
    if payload.messages:
        return {"content_folder": _own_messages(payload, case).path}
    return {"size_bytes": parse_size(case.levels[PAYLOAD_SIZE]), "content": case.levels[CONTENT]}


def _own_messages(payload: Payload, case: Case) -> ConfigMapDirectory:
    """Returns the directory with the messages of a case. The engine reports what is wrong with them or if there is no
    ConfigMap."""
    own = next(each for each in payload.messages if each.name == case.levels[CONTENT])
    name = own.config_map_ref.name
    return ConfigMapDirectory("messages", f"{_MESSAGES}/{name}", name)


def _kafka(case: Case, endpoint: Endpoint) -> KafkaSettings:
    return KafkaSettings.model_validate(
        {
            "codec": case.levels[CODEC],
            "partitions": int(case.levels[PARTITIONS]),
            "linger_milliseconds": int(case.levels[LINGER]),
            "batch_bytes": parse_size(case.levels[BATCH_SIZE]),
            "allowed_hosts": endpoint.allowed,
        }
    )


def _pacing(pacing: Pacing) -> PlannedPacing:
    interval = 0 if pacing.rate is None else round(_NANOSECONDS / pacing.rate)
    return PlannedPacing(type=pacing.type, in_flight=pacing.window or 0, interval_nanoseconds=interval)


def _load(load: Load) -> PlannedLoad:
    return PlannedLoad(messages=load.messages_per_publisher or 0, duration_seconds=load.duration_seconds or 0)
