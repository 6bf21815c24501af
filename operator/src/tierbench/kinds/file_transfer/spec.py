"""FileTransferBenchmark: from which class of node are files served fastest, and up to which size?"""

from dataclasses import replace
from enum import StrEnum
from typing import Annotated, ClassVar, Final

from pydantic import AfterValidator, Field, JsonValue

from tierbench.api.benchmark import (
    BENCHMARK_COLUMNS,
    Access,
    Benchmark,
    PolicySubject,
    PolicySubjectCel,
    Servers,
    ServiceSpec,
    Tls,
    bounded_pairs,
    refinable,
)
from tierbench.api.model import ImageNames, Kind, Model, Rule, StorageClassName, levels, matching, rules
from tierbench.api.policy import HOST_PATH_PATTERN, HOST_STORAGE
from tierbench.api.quantity import MOST_SIZES, Size, distinct
from tierbench.api.run_policy import MAXIMUM_CASES


class FileServers(Servers):
    """Where nginx runs, and which."""

    images: ImageNames = ()


class CacheState(StrEnum):
    """What the page cache of the server's node holds of the file when a trial begins."""

    NATURAL = "Natural"
    WARM = "Warm"
    COLD = "Cold"


class Retry(Model):
    """What a client does when a transfer stalls or breaks, as wget does it."""

    read_timeout_milliseconds: int = Field(
        default=1000, ge=10, le=900000, description="A wait for data longer than this is a retry."
    )
    attempts: int = Field(default=20, ge=1, le=1000, description="Connections a download may use, the first included.")
    wait_milliseconds: int = Field(default=1000, ge=0, le=600000, description="The pause before each further attempt.")
    wait_maximum_milliseconds: int | None = Field(
        default=None,
        ge=1,
        le=600000,
        description="If given, waitMilliseconds is the first pause of a download, and each further one is longer by as "
        "much, up to this: wget's linear back-off. If not, every pause is the same.",
    )


_GROWING_WAIT: Final = Rule(
    "!has(self.waitMaximumMilliseconds) || self.waitMaximumMilliseconds >= self.waitMilliseconds",
    "waitMaximumMilliseconds is less than waitMilliseconds, the first pause: make it longer, or leave it out",
)

"""Neither the root nor anything with `.` or `..` in it."""


class HostPath(Model):
    """A directory of the node's own file system."""

    path: str = Field(
        max_length=255,
        description="A folder that the chart's value policy.hostPaths names, or one below it: if that is not set, "
        f"{HOST_STORAGE}. It is made if it is not there, and files stay in it for the next run, in a folder of their "
        "own.",
        json_schema_extra=rules(
            matching(
                HOST_PATH_PATTERN,
                f"is not a path: write {HOST_STORAGE}/NAME, names of letters, digits, dots, hyphens and underscores "
                "that begin with a letter or a digit",
            )
        ),
    )


class EmptyDir(Model):
    """A directory that comes and goes with the server pod."""


class VolumeClaim(Model):
    """A volume of a storage class, made for each server and deleted with it."""

    storage_class_name: StorageClassName


class Storage(Model):
    """Where the server keeps its files: exactly one of the three."""

    host_path: HostPath | None = Field(default=None, description="A directory of the node's own file system.")
    empty_dir: EmptyDir | None = Field(default=None, description="A directory that comes and goes with the server pod.")
    persistent_volume_claim: VolumeClaim | None = Field(default=None, description="A volume of a storage class.")


_ONE_STORAGE = Rule(
    "[has(self.hostPath), has(self.emptyDir), has(self.persistentVolumeClaim)].filter(x, x).size() == 1",
    "give exactly one of hostPath, emptyDir and persistentVolumeClaim, "
    f"for example {{hostPath: {{path: {HOST_STORAGE}}}}}",
)

_CASES = (
    "size(self.fileSizes) * size(self.concurrency) * size(self.cacheState) * size(self.tls)"
    " * size(self.servers.nodeClasses) * self.servers.nodesPerClass * size(self.clients.nodeClasses)"
    f" * {levels('self.servers.images')}"
)
_BOUNDED_MATRIX = Rule(
    f"{_CASES} <= {MAXIMUM_CASES}",
    f"the matrix has more than {MAXIMUM_CASES} cases: take levels out, or make several benchmarks",
    f"'the matrix has %d cases, at most {MAXIMUM_CASES} are allowed: "
    f"take levels out, or make several benchmarks'.format([{_CASES}])",
)
_SET: dict[str, JsonValue] = {"x-kubernetes-list-type": "set"}
_DEFAULT_STORAGE = Storage(empty_dir=EmptyDir())


class FileTransferSpec(ServiceSpec):
    """Files of these sizes, served by nginx on each server class, downloaded on each client class."""

    servers: FileServers = Field(description="Where nginx runs, and which.")
    file_sizes: Annotated[tuple[Size, ...], AfterValidator(distinct)] = Field(
        min_length=1,
        max_length=MOST_SIZES,
        json_schema_extra=_SET,
        description="The sizes of the files (a factor).",
    )
    concurrency: tuple[Annotated[int, Field(ge=1, le=64)], ...] = Field(
        default=(1,),
        min_length=1,
        max_length=8,
        json_schema_extra=_SET,
        description="Downloads of the file at the same time, by one client (a factor).",
    )
    cache_state: tuple[CacheState, ...] = Field(
        default=(CacheState.NATURAL,),
        min_length=1,
        max_length=3,
        json_schema_extra=_SET,
        description="Page cache of the served file before each trial (a factor): Natural (never touched), "
        "Warm (read before) or Cold (dropped before).",
    )
    tls: tuple[Tls, ...] = Field(
        default=(Tls.NONE,),
        min_length=1,
        max_length=3,
        json_schema_extra=_SET,
        description="Protection of the connection (a factor).",
    )
    access: Access = Field(default=Access.CLUSTER_IP, description="The path from client to server.")
    retry: Retry = Field(default=Retry(), json_schema_extra=rules(_GROWING_WAIT))
    storage: Storage = Field(
        default=_DEFAULT_STORAGE,
        json_schema_extra=rules(_ONE_STORAGE),
        description="Where the server keeps its files.",
    )
    verify_digest: bool = Field(
        default=False,
        description="Whether the client compares the SHA-256 of what it received. It costs client CPU; the length is "
        "compared always.",
    )

    @property
    def policy_subject(self) -> PolicySubject:
        """The folder of the node, where there is one."""
        path = self.storage.host_path
        return replace(super().policy_subject, host_paths=() if path is None else (path.path,))

    @property
    def parameters(self) -> dict[str, str]:
        """The path, where files are kept, and what a client does when a transfer stalls."""
        retry, kept = self.retry, self.storage.persistent_volume_claim
        most = retry.wait_maximum_milliseconds
        path = "EmptyDir" if self.storage.host_path is None else "HostPath"
        return {
            **super().parameters,
            "access": self.access.value,
            "storage": path if kept is None else kept.storage_class_name[:63],
            "readTimeoutMilliseconds": str(retry.read_timeout_milliseconds),
            "attempts": str(retry.attempts),
            "waitMilliseconds": str(retry.wait_milliseconds),
            **({} if most is None else {"waitMaximumMilliseconds": str(most)}),
            "verifyDigest": str(self.verify_digest),
        }


class FileTransferBenchmark(Benchmark):
    """From which class of node are files served fastest, and up to which size?"""

    KIND: ClassVar[Kind] = Kind(
        kind="FileTransferBenchmark",
        plural="filetransferbenchmarks",
        singular="filetransferbenchmark",
        short_names=("ftb",),
        namespaced=True,
        columns=BENCHMARK_COLUMNS,
        description="FileTransferBenchmark measures how fast nginx serves files from each class of node: "
        "from which class, and up to which size?",
    )
    PREFIX: ClassVar[str] = "ft"
    SPEC_RULES: ClassVar[tuple[Rule, ...]] = (
        bounded_pairs("size(self.clients.nodeClasses)"),
        _BOUNDED_MATRIX,
        refinable("fileSizes"),
    )
    POLICY_SUBJECT: ClassVar[PolicySubjectCel] = PolicySubjectCel(
        host_paths="has(object.spec.storage.hostPath) ? [object.spec.storage.hostPath.path] : []"
    )

    spec: FileTransferSpec
