"""FileTransferBenchmark as a workload."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from tierbench.api.benchmark import Tls
from tierbench.api.policy import Policy
from tierbench.api.quantity import parse_size
from tierbench.api.result import ServiceFacts
from tierbench.kinds.file_transfer.manifests import NGINX, download_job, server_manifests
from tierbench.kinds.file_transfer.spec import FileTransferSpec
from tierbench.kinds.registry import probe
from tierbench.workloads.names import Owner
from tierbench.workloads.plan import Case, Factor, Slot, image_levels, slots
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
    secret,
)

_BYTES_PER_TRIAL_OVERHEAD: Final = 32 * 2**20
_BETWEEN_SECONDS: Final = 60  # a lookup, and what the agent does before and after a trial


@dataclass(frozen=True)
class FileTransfer:
    """nginx on the server's node, downloads from the client's."""

    owner: Owner
    spec: FileTransferSpec
    images: Images
    policy: Policy = field(default_factory=Policy)

    def slots(self) -> tuple[Slot, ...]:
        """One nginx of each image a node."""
        by = image_levels(self.spec.servers.images)
        return tuple(replace(slot, levels=levels) for slot in slots(self.spec) for levels in by)

    def unlisted_image(self, slot: Slot) -> str:
        """As the chart lists those of nginx."""
        return self.images.unlisted(NGINX, slot.image)

    def factors(self, slot: Slot) -> tuple[Factor, ...]:
        """File size, concurrency, cache state, TLS."""
        return (
            Factor("fileSize", self.spec.file_sizes, prepared=True),
            Factor("concurrency", tuple(str(number) for number in self.spec.concurrency)),
            Factor("cacheState", tuple(state.value for state in self.spec.cache_state)),
            Factor("tls", tuple(level.value for level in self.spec.tls)),
        )

    def parts(self, case: Case) -> tuple[Part, ...]:
        """One pod."""
        return (Part(0, case.client_class),)

    def service(self, slot: Slot, size: NodeSize) -> ServiceFacts | None:
        """Which image of nginx: there are no settings to choose."""
        return ServiceFacts(name=NGINX, image=self.images.of(NGINX, slot.image))

    def credentials(self, site: ServerSite) -> Credentials:
        """The agent's token, and certificates if any case uses TLS."""
        return Credentials(secret(self.owner, site), certificate=any(level is not Tls.NONE for level in self.spec.tls))

    def server(self, site: ServerSite) -> tuple[Manifest, ...]:
        """nginx with its files and the agent beside it."""
        return server_manifests(self.owner, self.spec, self.images, self.policy, site)

    def client(self, site: ClientSite, targets: Sequence[Target]) -> Manifest:
        """The download Job."""
        return download_job(self.owner, self.spec, self.images, site, targets)

    def deadline_seconds(self, trials: int) -> int:
        """Trials, warm-up ones included, times the time that each may take.

        The client ends a trial that takes longer, so a server that drips costs one trial and not those that follow.
        """
        return (trials + self.spec.warmup) * (self.spec.timeouts.trial_seconds + _BETWEEN_SECONDS)

    def weight(self, case: Case) -> float:
        """Bytes moved, and for each trial what a small file would cost."""
        size = parse_size(case.levels["fileSize"]) * int(case.levels["concurrency"])
        return float((self.spec.repetitions + self.spec.warmup) * (size + _BYTES_PER_TRIAL_OVERHEAD))

    def preflight(self) -> tuple[Workload, ...]:
        """The network, on the way that downloads take."""
        return probe().workloads(self.owner, self.spec, self.spec.access, self.images)
