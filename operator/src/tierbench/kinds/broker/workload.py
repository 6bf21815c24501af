"""BrokerBenchmark as a workload."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from tierbench.api.benchmark import Tls
from tierbench.api.policy import Policy
from tierbench.api.quantity import parse_size
from tierbench.api.result import ServiceFacts
from tierbench.kinds.broker.client import PAYLOAD_SIZE, broker_job, parts, payload_factors
from tierbench.kinds.broker.endpoints import Asked
from tierbench.kinds.broker.kafka import kafka_factors
from tierbench.kinds.broker.providers import PROVIDERS, provider_name
from tierbench.kinds.broker.server_spec import Protocol
from tierbench.kinds.broker.spec import BrokerSpec
from tierbench.kinds.registry import probe
from tierbench.workloads.names import Owner
from tierbench.workloads.plan import EXTERNAL, Case, Factor, Slot, image_levels, slots
from tierbench.workloads.workload import (
    ClientSite,
    Credentials,
    Images,
    Manifest,
    NodeSize,
    Part,
    ServerSite,
    Target,
    Workload,
)

_BROKER: Final = "broker"
_BYTES_PER_MESSAGE_OVERHEAD: Final = 4096


@dataclass(frozen=True)
class BrokerWorkload:
    """A broker on the server's node, publishers and subscribers on the clients'."""

    owner: Owner
    spec: BrokerSpec
    images: Images
    policy: Policy = field(default_factory=Policy)

    def slots(self) -> tuple[Slot, ...]:
        """Each of our brokers, of each image, on each node; each external one where it is."""
        given = [
            (((_BROKER, broker.name), *levels), provider_name(broker))
            for broker in self.spec.brokers
            for levels in image_levels(broker.images)
        ]
        places = [(place.node_class, place.ordinal) for place in slots(self.spec)]
        ours = (Slot(*place, levels, by) for place in places for levels, by in given if by != EXTERNAL)
        external = (Slot(EXTERNAL, 0, levels, by) for levels, by in given if by == EXTERNAL)
        return (*ours, *external)

    def unlisted_image(self, slot: Slot) -> str:
        """As the chart lists those of the broker."""
        return self.images.unlisted(self._asked(slot).service, slot.image)

    def factors(self, slot: Slot) -> tuple[Factor, ...]:
        """All but the broker and its image, which come with the slot."""
        spec = self.spec
        kafka = self._asked(slot).broker.protocol is Protocol.KAFKA
        return (
            *payload_factors(spec.payload),
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
        return PROVIDERS[slot.provider].facts(self._asked(slot), size)

    def credentials(self, site: ServerSite) -> Credentials:
        """What its provider needs."""
        return PROVIDERS[site.slot.provider].credentials(self._asked(site.slot), site)

    def server(self, site: ServerSite) -> tuple[Manifest, ...]:
        """The broker, and an agent."""
        return PROVIDERS[site.slot.provider].manifests(self._asked(site.slot), site)

    def client(self, site: ClientSite, targets: Sequence[Target]) -> Manifest:
        """The Job of one part."""
        case = targets[0].case
        asked, provider, tls = self._asked(case.server), PROVIDERS[case.server.provider], Tls(case.levels["tls"])
        ways = [provider.way(asked, target.server, tls) for target in targets]
        return broker_job(asked, ways, site, targets)

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

    def _asked(self, slot: Slot) -> Asked:
        name = dict(slot.levels)[_BROKER]
        broker = next(broker for broker in self.spec.brokers if broker.name == name)
        return Asked(self.owner, self.spec, broker, self.images, slot.image, self.policy)
