"""BrokerBenchmark as a workload: its servers, its factors, and the Jobs of publishers and subscribers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from tierbench.api.benchmark import Tls
from tierbench.api.policy import Policy
from tierbench.api.quantity import parse_size
from tierbench.api.result import ServiceFacts
from tierbench.kinds.broker import strimzi
from tierbench.kinds.broker.client_spec import Connections, EngineType, Payload
from tierbench.kinds.broker.kafka import BATCH_SIZE, CODEC, LINGER, PARTITIONS, kafka_factors
from tierbench.kinds.broker.providers import ACCOUNT, BrokerContext, Endpoint, External, Provider, Standalone
from tierbench.kinds.broker.server_spec import Broker, KafkaProvider, Protocol
from tierbench.kinds.broker.spec import BrokerSpec, Load, Pacing
from tierbench.kinds.registry import probe
from tierbench.workloads.client_job import client_job, credential_files, flags, series_options
from tierbench.workloads.names import Owner
from tierbench.workloads.plan import (
    EXTERNAL,
    STANDALONE,
    Case,
    Factor,
    ServerPlacement,
    image_levels,
    server_placements,
)
from tierbench.workloads.pods import ConfigMapDirectory
from tierbench.workloads.workload import (
    ClientInstance,
    ClientPart,
    Credentials,
    Images,
    Manifest,
    NodeSize,
    Role,
    ServerInstance,
    Target,
    Workload,
)

PAYLOAD_SIZE: Final = "payloadSize"
CONTENT: Final = "content"
PROVIDERS: Final[Mapping[str, Provider]] = {
    STANDALONE: Standalone(),
    KafkaProvider.STRIMZI: strimzi,
    EXTERNAL: External(),
}
"""By the name that a slot bears."""

_BROKER: Final = "broker"
_BYTES_PER_MESSAGE_OVERHEAD: Final = 4096
_NONE: Final = "None"
_LIGHT_PER_SECOND: Final = 5000
_LIGHT_IN_FLIGHT: Final = 4
_LIGHT_BYTES: Final = 16 * 2**10
_MESSAGES: Final = "/messages"
_ALONE: Final = "Alone"
_ROLES: Final = {Role.WHOLE: "Both", Role.SENDER: "Publisher", Role.ECHO: "Echo"}


@dataclass(frozen=True)
class BrokerWorkload:
    """A broker on the server's node, publishers and subscribers on the clients'."""

    owner: Owner
    spec: BrokerSpec
    images: Images
    policy: Policy = field(default_factory=Policy)

    def server_placements(self) -> tuple[ServerPlacement, ...]:
        """Each of our brokers, of each image, on each node; each external one where it is."""
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
        """As the chart lists those of the broker."""
        return self.images.image_problem(self._asked(placement).service, placement.image)

    def factors(self, placement: ServerPlacement) -> tuple[Factor, ...]:
        """All but the broker and its image, which come with the slot."""
        spec = self.spec
        kafka = self._asked(placement).broker.protocol is Protocol.KAFKA
        return (
            *payload_factors(spec.payload),
            Factor("delivery", tuple(level.value for level in spec.delivery)),
            Factor("tls", tuple(level.value for level in spec.tls)),
            Factor("encryption", tuple(level.value for level in spec.encryption)),
            Factor("compression", spec.compression),
            Factor("pairs", tuple(map(str, spec.pairs))),
            *(kafka_factors(spec.kafka) if kafka else ()),
        )

    def parts(self, case: Case) -> tuple[ClientPart, ...]:
        """The clients' pods."""
        return parts(self.spec, case)

    def service(self, placement: ServerPlacement, size: NodeSize) -> ServiceFacts | None:
        """Which broker, and its settings."""
        return PROVIDERS[placement.provider].facts(self._asked(placement), size)

    def credentials(self, instance: ServerInstance) -> Credentials:
        """What its provider needs."""
        return PROVIDERS[instance.placement.provider].credentials(self._asked(instance.placement), instance)

    def server(self, instance: ServerInstance) -> tuple[Manifest, ...]:
        """The broker, and an agent."""
        return PROVIDERS[instance.placement.provider].manifests(self._asked(instance.placement), instance)

    def client(self, instance: ClientInstance, targets: Sequence[Target]) -> Manifest:
        """The Job of one part."""
        case, clients, payload = targets[0].case, self.spec.clients, self.spec.payload
        asked, provider, tls = self._asked(case.server), PROVIDERS[case.server.provider], Tls(case.levels["tls"])
        ways = [provider.way(asked, target.server, tls) for target in targets]
        return client_job(
            self.owner,
            self.images,
            instance,
            targets,
            self.images.programs["paho"] if clients.engine is EngineType.PAHO else self.images.client,
            arguments(asked, ways, instance, targets),
            clients.resources,
            [way.secrets for way in ways],
            directories=[_own_messages(payload, case)] if payload.messages else [],
        )

    def deadline_seconds(self, trials: int) -> int:
        """Trials, warm-up ones included, times the time that one may take, and the start of the broker."""
        spec = self.spec
        return (trials + spec.warmup) * spec.timeouts.trial_seconds + spec.ready_seconds

    def weight(self, case: Case) -> float:
        """Seconds a trial where the pace says so, else bytes moved, and for each message what a small one costs."""
        load, pacing = self.spec.load, self.spec.pacing
        repetitions = self.spec.repetitions + self.spec.warmup
        if load.duration_seconds is not None:
            return float(repetitions * load.duration_seconds)
        messages = load.messages_per_publisher or 0
        if pacing.interval_milliseconds is not None:
            return repetitions * messages * pacing.interval_milliseconds / 1000
        if pacing.messages_per_second is not None:
            return repetitions * messages / pacing.messages_per_second
        size = parse_size(case.levels[PAYLOAD_SIZE]) if PAYLOAD_SIZE in case.levels else 0
        return float(repetitions * messages * int(case.levels["pairs"]) * (size + _BYTES_PER_MESSAGE_OVERHEAD))

    def preflight(self) -> tuple[Workload, ...]:
        """The network, on the way that messages take."""
        return probe().workloads(self.owner, self.spec, self.spec.access, self.images)

    def _asked(self, placement: ServerPlacement) -> BrokerContext:
        name = dict(placement.levels)[_BROKER]
        broker = next(broker for broker in self.spec.brokers if broker.name == name)
        return BrokerContext(self.owner, self.spec, broker, self.images, placement.image, self.policy)


def provider_name(broker: Broker) -> str:
    """Who brings it up."""
    if broker.external is not None:
        return EXTERNAL
    return STANDALONE if broker.kafka is None else broker.kafka.provider


def parts(spec: BrokerSpec, case: Case) -> tuple[ClientPart, ...]:
    """The publishers' pods, and if subscribers stand apart as many of theirs."""
    clients = spec.clients
    echo_class = None if clients.subscribers is None else clients.subscribers.node_class
    if echo_class is None:
        return tuple(ClientPart(index, case.client_class) for index in range(clients.pods))
    senders = (ClientPart(index, case.client_class, Role.SENDER) for index in range(clients.pods))
    echoes = (ClientPart(clients.pods + index, echo_class, Role.ECHO) for index in range(clients.pods))
    return (*senders, *echoes)


def tuning(spec: BrokerSpec) -> str:
    """What the engine is tuned for: the same in all cases, so that levels and classes differ by themselves alone.

    Light, if every case leaves the client idle most of the time: then the way of each message is kept short.
    """
    pairs = max(share(pairs, spec.clients.pods, 0)[1] for pairs in spec.pairs)
    plain = (
        all(level == _NONE for level in (*spec.compression, *spec.kafka.codecs))
        and spec.payload.largest_bytes <= _LIGHT_BYTES
    )
    return "Light" if plain and _is_light(spec.pacing, pairs) else "Heavy"


def _is_light(pacing: Pacing, pairs: int) -> bool:
    answered = pacing.closed_loop or pacing.acknowledged
    if answered is not None:
        return pairs * answered.in_flight <= _LIGHT_IN_FLIGHT
    if pacing.interval_milliseconds is not None:
        return pairs * 1000 <= _LIGHT_PER_SECOND * pacing.interval_milliseconds
    return pacing.messages_per_second is not None and pairs * pacing.messages_per_second <= _LIGHT_PER_SECOND


def share(pairs: int, pods: int, index: int) -> tuple[int, int]:
    """The number of a pod's first pair, and how many it has: as even as can be."""
    few, more = divmod(pairs, pods)
    return index * few + min(index, more), few + (index < more)


def arguments(
    asked: BrokerContext, ways: Sequence[Endpoint], instance: ClientInstance, targets: Sequence[Target]
) -> list[str]:
    """The command line of the engine, the same for both."""
    spec, protocol, case, way = asked.spec, asked.broker.protocol, targets[0].case, ways[0]
    tls = Tls(case.levels["tls"])
    first, pairs = share(int(case.levels["pairs"]), spec.clients.pods, instance.part.index % spec.clients.pods)
    options: dict[str, Any] = {
        "url": [f"{protocol.lower()}{'' if tls is Tls.NONE else 's'}://{each.address}" for each in ways],
        "topic": [f"tierbench/{target.server.instance.name}/{target.case.number}" for target in targets],
        "pairs": pairs,
        "first-pair": first,
        "role": _ALONE if spec.clients.alone else _ROLES[instance.part.role],
        **_payload(spec.payload, case),
        "delivery": case.levels["delivery"],
        "compression": case.levels["compression"],
        "encryption": case.levels["encryption"],
        "key-file": credential_files(targets, "payload-key")[0],
        **_pacing(spec.pacing),
        **_load(spec.load),
        "window": spec.window,
        "tuning": tuning(spec),
        "patience-milliseconds": spec.patience_milliseconds,
        "ready-milliseconds": spec.ready_seconds * 1000,
        "tls": tls.value,
        "barrier": f"r{instance.run}-c{instance.block}-a{instance.attempt}",
        "part": instance.part.index,
        "parts": len(parts(spec, case)),
        **series_options(instance, spec.warmup, targets),
    }
    if protocol is Protocol.KAFKA:
        options |= _kafka(case)
    if way.account:
        options |= {f"{key}-file": credential_files(targets, key) for key in ACCOUNT}
    if tls is not Tls.NONE:
        options |= {"ca-file": credential_files(targets, "ca.crt")}
    if way.server_name is not None:
        options |= {"server-name": way.server_name}
    if way.refused:
        options |= {"refused-networks": ",".join(way.refused)}
    return [
        "broker",
        *flags(options),
        *(["--as-fast-as-possible"] if spec.pacing.as_fast_as_possible is not None else []),
        *(["--keep-connections"] if spec.clients.connections is Connections.KEPT else []),
    ]


def payload_factors(payload: Payload) -> tuple[Factor, ...]:
    """What messages carry. Those of a user's own have the sizes that they have."""
    if payload.messages:
        return (Factor(CONTENT, tuple(own.name for own in payload.messages)),)
    return (Factor(PAYLOAD_SIZE, payload.sizes), Factor(CONTENT, payload.contents))


def _payload(payload: Payload, case: Case) -> dict[str, Any]:
    if payload.messages:
        return {"content-folder": _own_messages(payload, case).path}
    return {"size": parse_size(case.levels[PAYLOAD_SIZE]), "content": case.levels[CONTENT]}


def _own_messages(payload: Payload, case: Case) -> ConfigMapDirectory:
    """Where a case's messages are. The engine says what is wrong with them, even that there is no such ConfigMap."""
    own = next(each for each in payload.messages if each.name == case.levels[CONTENT])
    name = own.config_map_ref.name
    return ConfigMapDirectory("messages", f"{_MESSAGES}/{name}", name)


def _kafka(case: Case) -> dict[str, Any]:
    return {
        "codec": case.levels[CODEC],
        "partitions": case.levels[PARTITIONS],
        "linger-milliseconds": case.levels[LINGER],
        "batch-bytes": parse_size(case.levels[BATCH_SIZE]),
    }


def _pacing(pacing: Pacing) -> dict[str, int]:
    if pacing.closed_loop is not None:
        return {"in-flight": pacing.closed_loop.in_flight}
    if pacing.acknowledged is not None:
        return {"unacknowledged": pacing.acknowledged.in_flight}
    if pacing.interval_milliseconds is not None:
        return {"interval-milliseconds": pacing.interval_milliseconds}
    return {"messages-per-second": pacing.messages_per_second} if pacing.messages_per_second is not None else {}


def _load(load: Load) -> dict[str, int]:
    if load.messages_per_publisher is not None:
        return {"messages": load.messages_per_publisher}
    return {"duration-seconds": load.duration_seconds or 0}
