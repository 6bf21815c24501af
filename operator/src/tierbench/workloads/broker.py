"""BrokerBenchmark as a workload."""

from dataclasses import dataclass
from typing import Final

from tierbench.api.benchmark import Tls
from tierbench.api.broker import BrokerSpec
from tierbench.api.broker_server import Broker, Protocol
from tierbench.api.quantity import parse_size
from tierbench.api.result import ServiceFacts
from tierbench.plan import EXTERNAL, Case, Factor, Slot, slots
from tierbench.workloads.agent import agent_manifests
from tierbench.workloads.broker_server import BROKER, broker_manifests, broker_of
from tierbench.workloads.exchange import broker_job, parts
from tierbench.workloads.kafka import kafka_factors, kafka_server, kafka_settings
from tierbench.workloads.mosquitto import mosquitto_server, settings
from tierbench.workloads.names import Owner
from tierbench.workloads.preflight import preflight
from tierbench.workloads.strimzi import strimzi_manifests, strimzi_names, strimzi_settings
from tierbench.workloads.workload import (
    ClientSite,
    Credentials,
    Images,
    Manifest,
    NodeSize,
    Part,
    RunningServer,
    ServerSite,
    Workload,
    secret,
)

_START_SECONDS: Final = 120
_BYTES_PER_MESSAGE_OVERHEAD: Final = 4096


@dataclass(frozen=True)
class BrokerWorkload:
    """A broker on the server's node, publishers and subscribers on the clients'."""

    owner: Owner
    spec: BrokerSpec
    images: Images

    def slots(self) -> tuple[Slot, ...]:
        """Each of our brokers on each node; each external one where it is."""
        ours = [broker.name for broker in self.spec.brokers if broker.external is None]
        external = [broker.name for broker in self.spec.brokers if broker.external is not None]
        places = slots(self.spec)
        return (
            *(Slot(place.node_class, place.ordinal, ((BROKER, name),)) for place in places for name in ours),
            *(Slot(EXTERNAL, 0, ((BROKER, name),)) for name in external),
        )

    def factors(self, slot: Slot) -> tuple[Factor, ...]:
        """All but the broker, which comes with the slot."""
        spec = self.spec
        kafka = self._broker(slot).protocol is Protocol.KAFKA
        return (
            Factor("payloadSize", spec.payload.sizes),
            Factor("content", spec.payload.contents),
            Factor("delivery", tuple(level.value for level in spec.delivery)),
            Factor("tls", tuple(level.value for level in spec.tls)),
            Factor("encryption", tuple(level.value for level in spec.encryption)),
            Factor("compression", spec.compression),
            Factor("pairs", tuple(map(str, spec.pairs))),
            *(kafka_factors(spec.kafka) if kafka else ()),
        )

    def parts(self, case: Case) -> tuple[Part, ...]:
        """The clients' pods."""
        return parts(self.spec, case)

    def service(self, slot: Slot, size: NodeSize) -> ServiceFacts | None:
        """Which broker, and its settings."""
        broker = self._broker(slot)
        if broker.mosquitto is not None:
            return ServiceFacts(name=broker.name, image=self.images.mosquitto, settings=settings(broker.mosquitto))
        if broker.kafka is not None and broker.by_strimzi:
            return ServiceFacts(name=broker.name, settings=strimzi_settings(broker.kafka, self.spec, size))
        if broker.kafka is not None:
            return ServiceFacts(
                name=broker.name, image=self.images.kafka, settings=kafka_settings(broker.kafka, self.spec, size)
            )
        return ServiceFacts(name=broker.name)

    def credentials(self, site: ServerSite) -> Credentials:
        """The agent's token, an account, a key for payloads, and certificates if any case uses TLS.

        Strimzi makes its own certificates, and the user's name is that of an object.
        """
        manifest = secret(self.owner, site)
        if self._broker(site.slot).by_strimzi:
            user = strimzi_names(self.owner, site.run, site.slot_index).kafka
            return Credentials(manifest, certificate=False, account=True, username=user)
        return Credentials(manifest, certificate=self._uses_tls(), account=True)

    def server(self, site: ServerSite) -> tuple[Manifest, ...]:
        """The broker, and the agent beside it."""
        broker, tls = self._broker(site.slot), self._uses_tls()
        if broker.mosquitto is not None:
            server = mosquitto_server(broker.mosquitto, self.images.mosquitto, tls)
        elif broker.kafka is not None and broker.by_strimzi:
            kafka = strimzi_manifests(self.owner, self.spec, broker.kafka, site, tls)
            return (*kafka, *agent_manifests(self.owner, self.images, site))
        elif broker.kafka is not None:
            server = kafka_server(broker.kafka, self.spec, self.images.kafka, site, tls)
        else:
            return agent_manifests(self.owner, self.images, site)
        return broker_manifests(self.owner, self.spec, self.images, site, server)

    def client(self, site: ClientSite, case: Case, server: RunningServer) -> Manifest:
        """The Job of one part."""
        return broker_job(self.owner, self.spec, self._broker(case.server), self.images, site, case, server)

    def deadline_seconds(self, trials: int) -> int:
        """Trials, warm-up ones included, times the time that one may take, and the start of broker and pod."""
        spec = self.spec
        return (trials + spec.warmup) * spec.timeouts.trial_seconds + spec.ready_seconds + _START_SECONDS

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
        size = parse_size(case.levels["payloadSize"]) + _BYTES_PER_MESSAGE_OVERHEAD
        return float(repetitions * messages * int(case.levels["pairs"]) * size)

    def preflight(self) -> tuple[Workload, ...]:
        """The network, on the way that messages take."""
        return preflight(self.owner, self.spec, self.spec.access, self.images)

    def _uses_tls(self) -> bool:
        return any(level is not Tls.NONE for level in self.spec.tls)

    def _broker(self, slot: Slot) -> Broker:
        return broker_of(self.spec, slot)
