"""The spec of a FileTransferBenchmark: how fast node classes serve and receive files."""

from dataclasses import replace
from enum import StrEnum
from typing import Annotated, ClassVar, Final

from pydantic import AfterValidator, Field

from tierbench.api.benchmark import (
    ACCESS,
    BENCHMARK_COLUMNS,
    Access,
    Benchmark,
    Clients,
    PolicySubject,
    PolicySubjectCel,
    Servers,
    ServiceSpec,
    Tls,
)
from tierbench.api.link import LINK_CASES, LINKS_NEED_PODS
from tierbench.api.measurements import TransferDirection
from tierbench.api.model import ImageNames, Kind, Model, Rule, StorageClassName, factor, levels, rules, text
from tierbench.api.policy import HOST_PATH_PATTERN, HOST_STORAGE
from tierbench.api.quantity import MOST_SIZES, Size, distinct
from tierbench.api.run_policy import matrix_rule, preflight_rule, refine_rule
from tierbench.api.trial_plan import CacheState


class FileServers(Servers):
    """The servers of nginx, and its images."""

    images: ImageNames = ()


class EngineType(StrEnum):
    """The program that transfers files."""

    NATIVE = "Native"
    WGET = "Wget"
    CURL = "Curl"


class FileClients(Clients):
    """The clients of nginx."""

    engines: tuple[EngineType, ...] = factor(
        (EngineType.NATIVE,),
        "The program that transfers files (a factor): Native (the client itself), Wget (GNU Wget) or Curl. It "
        "runs once per transfer, with its own retries.",
        most=3,
    )


class Retry(Model):
    """The retries of a client when a transfer stalls or breaks. It behaves like wget."""

    read_timeout_milliseconds: int = Field(
        default=1000,
        ge=10,
        le=900000,
        description="The client retries after it waited this long for data, or for the server to acknowledge data.",
    )
    attempts: int = Field(
        default=20, ge=1, le=1000, description="Maximum number of connections per transfer, including the first."
    )
    wait_milliseconds: int = Field(default=1000, ge=0, le=600000, description="Pause before each further attempt.")
    max_wait_milliseconds: int | None = Field(
        default=None,
        ge=1,
        le=600000,
        description="Maximum pause. If set, the first pause of a transfer is waitMilliseconds, and each further one is "
        "longer by this amount, as in wget's linear back-off. Otherwise all pauses are the same.",
    )


_GROWING_WAIT: Final = Rule(
    "!has(self.maxWaitMilliseconds) || self.maxWaitMilliseconds >= self.waitMilliseconds",
    "maxWaitMilliseconds is less than waitMilliseconds, the first pause: raise it, or remove it",
)


class HostPath(Model):
    """A directory on the node."""

    path: str = text(
        255,
        HOST_PATH_PATTERN,
        f"is not a path: write {HOST_STORAGE}/NAME. Names have letters, digits, dots, hyphens and underscores, "
        "and begin with a letter or a digit",
        f"A directory in the chart value policy.hostPaths, by default {HOST_STORAGE}, or one below it. It "
        "is created if it does not exist. Files are in a directory of their own, and are removed with the server "
        "unless the chart value policy.keepFiles is true.",
    )


class EmptyDir(Model):
    """A directory that is deleted with the server pod."""


class VolumeClaim(Model):
    """A volume of a storage class. It is created for each server and deleted with it."""

    storage_class_name: StorageClassName


class Storage(Model):
    """The storage of the server's files: exactly one of the three."""

    host_path: HostPath | None = Field(default=None, description="A directory on the node.")
    empty_dir: EmptyDir | None = Field(default=None, description="A directory that is deleted with the server pod.")
    volume_claim_template: VolumeClaim | None = Field(default=None, description="A volume of a storage class.")


_ONE_STORAGE = Rule(
    "[has(self.hostPath), has(self.emptyDir), has(self.volumeClaimTemplate)].filter(x, x).size() == 1",
    f"set exactly one of hostPath, emptyDir and volumeClaimTemplate, for example {{hostPath: {{path: "
    f"{HOST_STORAGE}}}}}",
)

_CACHES_ARE_READ: Final = Rule(
    "!self.directions.exists(d, d == 'Upload') || self.cacheState.all(c, c == 'Unchanged')",
    "cacheState is that of a file that the server reads, and uploads write files: write cacheState: [Unchanged], or "
    "remove Upload from directions",
)
_WGET = "self.clients.engines.exists(e, e == 'Wget')"
_CURL = "self.clients.engines.exists(e, e == 'Curl')"
_LINEAR = "has(self.retry.maxWaitMilliseconds)"
_CONTENT_IS_DROPPED: Final = Rule(
    "!self.verifyDigest || self.clients.engines.all(e, e == 'Native')",
    "Wget and Curl drop the content that they receive: write verifyDigest: false, or clients.engines: [Native]",
)
_WGET_WAITS_FOR_SECONDS: Final = Rule(
    f"!{_WGET} || !{_LINEAR} || (self.retry.waitMilliseconds == 1000 && self.retry.maxWaitMilliseconds % 1000 == 0)",
    "Wget's pauses grow by one second each: write waitMilliseconds: 1000 and a multiple of 1000 in "
    "maxWaitMilliseconds, or remove maxWaitMilliseconds",
)
_CURL_WAITS_FOR_SECONDS: Final = Rule(
    f"!{_CURL} || (self.retry.readTimeoutMilliseconds % 1000 == 0 && self.retry.waitMilliseconds > 0"
    f" && self.retry.waitMilliseconds % 1000 == 0 && !{_LINEAR})",
    "Curl counts in seconds, and all its pauses are the same: write multiples of 1000 in readTimeoutMilliseconds and "
    "waitMilliseconds, and remove maxWaitMilliseconds",
)
_CASES = (
    "size(self.clients.engines) * size(self.directions) * size(self.fileSizes) * size(self.concurrency)"
    " * size(self.cacheState) * size(self.tls)"
    " * size(self.servers.nodeClassNames) * self.servers.nodesPerClass * size(self.clients.nodeClassNames)"
    f" * {levels('self.servers.images')} * {LINK_CASES}"
)
_DEFAULT_STORAGE = Storage(empty_dir=EmptyDir())


class FileTransferSpec(ServiceSpec):
    """The files that nginx serves and receives on each server class, and their transfers to and from each client
    class."""

    servers: FileServers = Field(description="The servers of nginx, and its images.")
    clients: FileClients = Field(description="The clients of nginx, and their programs.")
    file_sizes: Annotated[tuple[Size, ...], AfterValidator(distinct)] = factor(
        ..., "Sizes of the files (a factor).", most=MOST_SIZES
    )
    directions: tuple[TransferDirection, ...] = factor(
        (TransferDirection.DOWNLOAD,),
        "Download from server to client, or Upload: the client sends a file of the same size, which the server writes "
        "to its storage (a factor).",
        most=2,
    )
    concurrency: tuple[Annotated[int, Field(ge=1, le=64)], ...] = factor(
        (1,), "Transfers of the file at the same time by one client (a factor).", most=8
    )
    cache_state: tuple[CacheState, ...] = factor(
        (CacheState.UNCHANGED,),
        "Page cache of the served file before each trial (a factor): Unchanged, Warm (the file was "
        "read) or Cold (the file was dropped).",
        most=3,
    )
    tls: tuple[Tls, ...] = factor((Tls.NONE,), "Protection of the connection (a factor).", most=3)
    access: Access = Field(default=Access.CLUSTER_IP, description=ACCESS % "client to server")
    retry: Retry = Field(default=Retry(), json_schema_extra=rules(_GROWING_WAIT))
    storage: Storage = Field(
        default=_DEFAULT_STORAGE,
        json_schema_extra=rules(_ONE_STORAGE),
        description="The storage of the server's files.",
    )
    verify_digest: bool = Field(
        default=False,
        description="Whether the client compares the SHA-256 of the received content, which costs client CPU. Of an "
        "upload, it reads back what the server has stored, after the time of the trial. It always compares the length.",
    )

    @property
    def other_engines(self) -> bool:
        """Whether clients run other programs than their own."""
        return self.clients.engines != (EngineType.NATIVE,)

    @property
    def uploads(self) -> bool:
        """Whether clients upload files."""
        return TransferDirection.UPLOAD in self.directions

    @property
    def downloads(self) -> bool:
        """Whether clients download files."""
        return TransferDirection.DOWNLOAD in self.directions

    @property
    def policy_subject(self) -> PolicySubject:
        """What an administrator can refuse in this spec, including the directory on the node."""
        path = self.storage.host_path
        return replace(super().policy_subject, host_paths=() if path is None else (path.path,))

    @property
    def parameters(self) -> dict[str, str]:
        """The settings of path, storage and retries."""
        retry, kept = self.retry, self.storage.volume_claim_template
        most = retry.max_wait_milliseconds
        path = "EmptyDir" if self.storage.host_path is None else "HostPath"
        return {
            **super().parameters,
            "access": self.access.value,
            "storage": path if kept is None else kept.storage_class_name[:63],
            "readTimeoutMilliseconds": str(retry.read_timeout_milliseconds),
            "attempts": str(retry.attempts),
            "waitMilliseconds": str(retry.wait_milliseconds),
            **({} if most is None else {"maxWaitMilliseconds": str(most)}),
            "verifyDigest": str(self.verify_digest),
        }


class FileTransferBenchmark(Benchmark):
    """Measures how fast node classes serve and receive files, and up to which size."""

    KIND: ClassVar[Kind] = Kind(
        kind="FileTransferBenchmark",
        short_names=("tbf",),
        categories=("benchmarks",),
        columns=BENCHMARK_COLUMNS,
        description="FileTransferBenchmark measures how fast nginx serves or receives files on each node class: on "
        "which class, and up to which size?",
    )
    PREFIX: ClassVar[str] = "ft"
    SPEC_RULES: ClassVar[tuple[Rule, ...]] = (
        LINKS_NEED_PODS,
        preflight_rule("size(self.clients.nodeClassNames)"),
        _CACHES_ARE_READ,
        _CONTENT_IS_DROPPED,
        _WGET_WAITS_FOR_SECONDS,
        _CURL_WAITS_FOR_SECONDS,
        matrix_rule(_CASES),
        refine_rule("fileSizes"),
    )
    POLICY_SUBJECT: ClassVar[PolicySubjectCel] = PolicySubjectCel(
        host_paths="has(object.spec.storage.hostPath) ? [object.spec.storage.hostPath.path] : []"
    )

    spec: FileTransferSpec
