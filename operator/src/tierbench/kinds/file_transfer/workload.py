"""FileTransferBenchmark as a workload: nginx with its files, and the Jobs that transfer them."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from tierbench.api.benchmark import Tls
from tierbench.api.measurements import TransferDirection
from tierbench.api.policy import Policy
from tierbench.api.quantity import parse_size
from tierbench.api.result import ServiceFacts
from tierbench.api.trial_plan import CacheState, TransferPlan, TransferTarget
from tierbench.kinds.file_transfer.server import (
    DATA,
    PORT_NAMES,
    PORTS,
    RECEIVED,
    REMOVAL_SECONDS,
    TMP,
    FileVolume,
    claims,
    configuration,
    file_name,
    file_volume,
    files_of,
    prepare,
)
from tierbench.kinds.file_transfer.spec import EngineType, FileTransferSpec
from tierbench.kinds.registry import probe
from tierbench.workloads import nginx
from tierbench.workloads.manifests import (
    CLIENT_KEYS,
    agent_container,
    client_job,
    credential_file,
    series_fields,
    server_manifests,
    target_fields,
)
from tierbench.workloads.networking import address
from tierbench.workloads.plan import (
    Case,
    Factor,
    ServerPlacement,
    image_levels,
    link_factors,
    link_of,
    server_placements,
)
from tierbench.workloads.pods import (
    RESTRICTED,
    SERVER_NAME,
    SERVER_READY_PERIOD_SECONDS,
    TLS_CERTIFICATE,
    credentials_mounts,
    credentials_volumes,
    measured_resources,
    secret_items,
)
from tierbench.workloads.workload import (
    ClientInstance,
    ClientPart,
    Credentials,
    Images,
    Manifest,
    NodeSize,
    Owner,
    RunningServer,
    ServerInstance,
    Target,
    TrialLoad,
    Workload,
    secret,
    server_labels,
)

NGINX: Final = "nginx"
PROGRAMS: Final = "transfer"
DIRECTION: Final = "direction"
ENGINE: Final = "engine"

_LONGEST_SETTING: Final = 63
_BYTES_PER_TRIAL_OVERHEAD: Final = 32 * 2**20
_BETWEEN_SECONDS: Final = 60  # for a name lookup, and for the agent before and after a trial


@dataclass(frozen=True)
class FileTransfer:
    """nginx on the server's node, and downloads to and uploads from the client's node."""

    owner: Owner
    spec: FileTransferSpec
    images: Images
    policy: Policy = field(default_factory=Policy)

    def server_placements(self) -> tuple[ServerPlacement, ...]:
        """Returns one nginx per image and node."""
        by = image_levels(self.spec.servers.images)
        return tuple(replace(placement, levels=levels) for placement in server_placements(self.spec) for levels in by)

    def image_problem(self, placement: ServerPlacement) -> str:
        """Returns what is wrong with the name of the image of nginx."""
        return self.images.image_problem(NGINX, placement.image)

    def factors(self, placement: ServerPlacement) -> tuple[Factor, ...]:
        """Returns direction, file size, concurrency, cache state, TLS and engine.

        There is a direction only with uploads, and an engine only with others than Native.
        """
        directions = tuple(direction.value for direction in self.spec.directions)
        return (
            *((Factor(DIRECTION, directions),) if self.spec.uploads else ()),
            Factor("fileSize", self.spec.file_sizes, prepared=True),
            Factor("concurrency", tuple(str(number) for number in self.spec.concurrency)),
            Factor("cacheState", tuple(state.value for state in self.spec.cache_state)),
            Factor("tls", tuple(level.value for level in self.spec.tls)),
            *((Factor(ENGINE, tuple(self.spec.clients.engines)),) if self.spec.other_engines else ()),
            *link_factors(self.spec),
        )

    def parts(self, case: Case) -> tuple[ClientPart, ...]:
        """Returns one pod."""
        return (ClientPart(0, case.client_class),)

    def service(self, placement: ServerPlacement, size: NodeSize) -> ServiceFacts | None:
        """Returns the image of nginx, and the folder of its files on the node."""
        path = self.spec.storage.host_path
        settings = {} if path is None else {"hostPath": path.path[-_LONGEST_SETTING:]}
        return ServiceFacts(name=NGINX, image=self.images.of(NGINX, placement.image), settings=settings)

    def credentials(self, instance: ServerInstance) -> Credentials:
        """Returns a Secret with the agent's token, and with certificates if a case uses TLS."""
        return Credentials(
            secret(self.owner, instance), certificate=any(level is not Tls.NONE for level in self.spec.tls)
        )

    def server(self, instance: ServerInstance) -> tuple[Manifest, ...]:
        """Returns ConfigMap, the volume claim if there is one, Services, and last the pod."""
        owner, spec, images = self.owner, self.spec, self.images
        attached = owner.metadata(instance.attached, server_labels(instance.run, instance.slot))
        wanted = files_of(spec, instance)
        files = file_volume(spec.storage, self.policy, instance.attached, wanted.needed)
        stall = spec.retry.read_timeout_milliseconds
        config_map = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": attached,
            "data": nginx.files(
                lambda ipv6: configuration(spec.tls, wanted, read_timeout_milliseconds=stall, ipv6=ipv6)
            ),
        }
        ports, directory = {PORT_NAMES[tls]: PORTS[tls] for tls in spec.tls}, ["--directory", DATA]
        return (
            config_map,
            *claims(spec.storage, attached, wanted.needed),
            *server_manifests(
                owner,
                images,
                instance,
                spec.access,
                ports,
                agent_container(images, ports.values(), directory, spec.servers.resources, [files.served]),
                containers=[_nginx(spec, images, instance, files)],
                volumes=[
                    files.volume,
                    {"name": "config", "configMap": {"name": instance.attached}},
                    *credentials_volumes(instance, _keys(spec)),
                    {"name": "tmp", "emptyDir": {"sizeLimit": "64Mi"}},
                ],
                before=[prepare(spec, images, instance, files, holds=self._holds_files)],
                grace_seconds=REMOVAL_SECONDS if self._holds_files else None,
            ),
        )

    @property
    def _holds_files(self) -> bool:
        """Whether the files on the node's disk are removed with the server."""
        return self.spec.storage.host_path is not None and not self.policy.keep_files

    def client(self, instance: ClientInstance, targets: Sequence[Target]) -> Manifest:
        """Returns the Job that transfers one file, trial after trial."""
        keys = CLIENT_KEYS if targets[0].case.levels["tls"] == Tls.NONE else (*CLIENT_KEYS, "ca.crt")
        credentials = [(secret_items(target.server.instance.attached, *keys),) for target in targets]
        plan = trial_plan(self.spec, instance, targets)
        return client_job(
            self.owner,
            self.images,
            instance,
            targets,
            self.images.client if plan.engine == "" else self.images.programs[PROGRAMS],
            plan,
            self.spec.access,
            self.spec.clients.resources,
            credentials,
            link=link_of(self.spec, targets[0].case),
        )

    def deadline_seconds(self, trials: int) -> int:
        """Returns the number of trials, including warm-up trials, multiplied by the time limit of one.

        The client ends a trial that takes longer, so a slow server costs one trial, and not those after it. Uploads
        whose digest is compared are read back, which may take as long again.
        """
        times = 2 if self.spec.uploads and self.spec.verify_digest else 1
        return (trials + self.spec.warmup_trials) * (times * self.spec.timeouts.trial_seconds + _BETWEEN_SECONDS)

    def load(self, case: Case) -> TrialLoad:
        """Returns the bytes of all transfers, and a constant overhead, which decides for small files."""
        size = parse_size(case.levels["fileSize"]) * int(case.levels["concurrency"])
        return TrialLoad(bytes_moved=size, overhead_bytes=_BYTES_PER_TRIAL_OVERHEAD)

    def preflight(self) -> tuple[Workload, ...]:
        """Returns the measurement of the network on the path of transfers."""
        return probe().workloads(self.owner, self.spec, self.spec.access, self.images)


def _keys(spec: FileTransferSpec) -> tuple[str, ...]:
    """Returns the keys of the Secret that nginx needs."""
    return TLS_CERTIFICATE if any(tls is not Tls.NONE for tls in spec.tls) else ()


def _nginx(spec: FileTransferSpec, images: Images, instance: ServerInstance, files: FileVolume) -> dict[str, Any]:
    return {
        "name": NGINX,
        **images.pulled(images.of(NGINX, instance.placement.image)),
        "command": list(nginx.COMMAND),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "ports": [{"name": PORT_NAMES[tls], "containerPort": port} for tls, port in PORTS.items()],
        "readinessProbe": {
            "httpGet": {"path": "/ready", "port": PORTS[Tls.NONE]},
            "periodSeconds": SERVER_READY_PERIOD_SECONDS,
            "failureThreshold": 30,
        },
        "resources": measured_resources(spec.servers.resources),
        "securityContext": RESTRICTED,
        "volumeMounts": [
            files.served,
            *([files.received] if spec.uploads else []),
            {"name": "config", "mountPath": nginx.FOLDER, "readOnly": True},
            *credentials_mounts(_keys(spec)),
            TMP,
        ],
    }


def not_from_outside(spec: FileTransferSpec) -> str:
    """Returns what members of external classes cannot measure, or nothing."""
    return "Its members have one engine: set spec.clients.engines to [Native]." if spec.other_engines else ""


def server_url(spec: FileTransferSpec, server: RunningServer, tls: Tls) -> str:
    """Returns the URL of the server for the access in the spec."""
    scheme = "http" if tls is Tls.NONE else "https"
    return f"{scheme}://{address(spec.access, server, PORT_NAMES[tls], PORTS[tls])}"


def trial_plan(spec: FileTransferSpec, instance: ClientInstance, targets: Sequence[Target]) -> TransferPlan:
    """Returns the plan of the client."""
    levels, retry = targets[0].case.levels, spec.retry
    tls, size = Tls(levels["tls"]), parse_size(levels["fileSize"])
    direction = TransferDirection(levels.get(DIRECTION, TransferDirection.DOWNLOAD))
    engine = EngineType(levels.get(ENGINE, EngineType.NATIVE))
    place = file_name(size) if direction is TransferDirection.DOWNLOAD else RECEIVED
    return TransferPlan(
        **series_fields(instance, spec.warmup_trials, link_of(spec, targets[0].case)),
        kind="Transfer",
        direction=direction,
        **({} if engine is EngineType.NATIVE else {"engine": engine.lower()}),
        targets=tuple(
            TransferTarget(
                **target_fields(spec.access, target),
                url=f"{server_url(spec, target.server, tls)}/{place}",
                ca_file="" if tls is Tls.NONE else credential_file(target, "ca.crt"),
            )
            for target in targets
        ),
        size_bytes=size,
        concurrency=int(levels["concurrency"]),
        cache_state=CacheState(levels["cacheState"]),
        read_timeout_milliseconds=retry.read_timeout_milliseconds,
        attempts=retry.attempts,
        wait_milliseconds=retry.wait_milliseconds,
        max_wait_milliseconds=retry.max_wait_milliseconds or 0,
        trial_seconds=spec.timeouts.trial_seconds,
        tls=tls,
        server_name="" if tls is Tls.NONE else SERVER_NAME,
        verify_digest=spec.verify_digest,
        copy_content=_compares_tls(spec),
    )


def _compares_tls(spec: FileTransferSpec) -> bool:
    """Returns whether the cost of TLS is compared. Then all levels copy the content in the same way, as TLS
    requires."""
    return len(spec.tls) > 1
