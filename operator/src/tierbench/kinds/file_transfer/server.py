"""The server of file transfers: the volume of its files, the container that writes them, and nginx's configuration."""

import posixpath
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from tierbench.api.benchmark import Tls
from tierbench.api.policy import Policy
from tierbench.api.quantity import parse_size
from tierbench.kinds.file_transfer.spec import FileTransferSpec, Storage
from tierbench.workloads import nginx
from tierbench.workloads.pods import RESTRICTED, SERVER_READY_PERIOD_SECONDS, sidecar_resources
from tierbench.workloads.workload import Images, Manifest, ServerInstance

DATA: Final = "/data"
FOLDER: Final = "_tierbench"  # `prepare` creates it in the storage, and the server has no other files there
RECEIVED: Final = "received"  # `prepare` creates it in FOLDER for uploads
RECEIVED_ROOT: Final = "/srv"
COPIES: Final = 3
"""The files that an upload may need at once: one that is stored, one that arrives, and one whose client has left."""
TMP: Final = {"name": "tmp", "mountPath": "/tmp"}  # noqa: S108 (the pod's own)
_PREPARED: Final = "/tmp/prepared"  # noqa: S108 (the pod's own)
_PREPARATION_PROBES: Final = 7 * 24 * 3600  # the operator ends it before, after timeouts.serverReadySeconds
REMOVAL_SECONDS: Final = 30
PORTS: Final = {Tls.NONE: 8080, Tls.TLS12: 8443, Tls.TLS13: 8444}
PORT_NAMES: Final = {Tls.NONE: "http", Tls.TLS12: "https-tls12", Tls.TLS13: "https-tls13"}
_SERVE: Final = """\
  default_type application/octet-stream;
  sendfile on;
  tcp_nopush on;
  etag on;
  disable_symlinks on from=$document_root;
  max_ranges 1;
  keepalive_timeout 0;
  large_client_header_buffers 2 1k;
"""
# Two uploads may come to one name: the one before may have lost its client, and the server has not noticed yet.
_RECEIVE: Final = """\
  limit_conn_zone $uri zone=received:1m;
  limit_conn_log_level warn;
  client_body_timeout {timeout}ms;
  client_body_buffer_size 128k;
"""


@dataclass(frozen=True)
class FileVolume:
    """A volume, and the directory in it that contains the files.

    The files are mounted with a subPath, in which the kubelet does not follow links out of the volume.
    """

    source: dict[str, Any]
    folder: str = ""

    @property
    def volume(self) -> dict[str, Any]:
        """The volume for the pod."""
        return {"name": "data", **self.source}

    @property
    def served(self) -> dict[str, Any]:
        """The mount of the files alone, read-only."""
        return {**self.mount(FOLDER), "readOnly": True}

    @property
    def received(self) -> dict[str, Any]:
        """The mount of the folder for uploads alone."""
        return {**self.mount(f"{FOLDER}/{RECEIVED}"), "mountPath": f"{RECEIVED_ROOT}/{RECEIVED}"}

    def mount(self, folder: str = "") -> dict[str, Any]:
        """Returns the mount of the storage, or of a directory in it."""
        return {"name": "data", "mountPath": DATA, "subPath": posixpath.join(self.folder, folder).rstrip("/")}


def file_volume(storage: Storage, policy: Policy, claim_name: str, needed: int) -> FileVolume:
    """Returns the volume that the storage asks for, with space for `needed` bytes.

    On a node's disk, the volume is a directory that the administrator permits.

    Raises:
        ValueError: no permitted directory contains the path, because the policy changed after the benchmark was
            created.
    """
    if storage.host_path is not None:
        prefix, folder = policy.permitted_directory(storage.host_path.path)
        return FileVolume({"hostPath": {"path": prefix, "type": "DirectoryOrCreate"}}, folder)
    if storage.volume_claim_template is not None:
        return FileVolume({"persistentVolumeClaim": {"claimName": claim_name}})
    return FileVolume({"emptyDir": {"sizeLimit": str(_room(needed))}})


def claims(storage: Storage, metadata: Manifest, needed: int) -> tuple[Manifest, ...]:
    """Returns the claim for `needed` bytes, if the storage asks for one."""
    if storage.volume_claim_template is None:
        return ()
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": storage.volume_claim_template.storage_class_name,
        "resources": {"requests": {"storage": str(_room(needed))}},
    }
    return ({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec},)


def _room(needed: int) -> int:
    """Returns the size of a volume for `needed` bytes, with what the file system needs and what stays free."""
    return needed + needed // 4 + 512 * 2**20


@dataclass(frozen=True)
class Files:
    """The files of a server: the sizes of those that it serves, and the bytes that it may receive.

    `most_received` is the size of the largest upload, and `names` is how many of them come at the same time. Both are
    0 without uploads.
    """

    sizes: tuple[int, ...]
    most_received: int = 0
    names: int = 0

    @property
    def received_bytes(self) -> int:
        """The bytes that uploads may need at once."""
        return COPIES * self.names * self.most_received

    @property
    def needed(self) -> int:
        """The bytes of everything."""
        return sum(self.sizes) + self.received_bytes


def files_of(spec: FileTransferSpec, instance: ServerInstance) -> Files:
    """Returns the files of a server."""
    sizes = tuple(parse_size(size) for size in instance.refined_levels or spec.file_sizes)
    served = sizes if spec.downloads else ()
    return Files(served, max(sizes), max(spec.concurrency)) if spec.uploads else Files(served)


def prepare(
    spec: FileTransferSpec, images: Images, instance: ServerInstance, files: FileVolume, *, holds: bool
) -> dict[str, Any]:
    """Returns the init container that writes the files. It leaves space on the node's disk, but a claim is its own.

    If it `holds` the files, it runs until the pod is deleted, and then removes them.
    """
    wanted = files_of(spec, instance)
    security, owner = (RESTRICTED, []) if spec.storage.host_path is None else _root(images.user)
    asked = ["--sizes", ",".join(map(str, wanted.sizes))] if wanted.sizes else []
    asked += ["--receive-bytes", str(wanted.received_bytes)] if wanted.received_bytes else []
    arguments = ["prepare", "--directory", DATA, *asked, *owner, *_bounds(spec, instance)]
    container = {
        "name": "prepare",
        **images.pulled(images.client),
        "args": arguments,
        "resources": sidecar_resources(spec.servers.resources),
        "securityContext": security,
        "volumeMounts": [files.mount()],
    }
    if not holds:
        return container
    return {
        **container,
        "restartPolicy": "Always",
        "args": [*arguments, "--hold", _PREPARED],
        "startupProbe": {
            "exec": {"command": ["/tierbench-client", "prepared", _PREPARED]},
            "periodSeconds": SERVER_READY_PERIOD_SECONDS,
            "timeoutSeconds": 10,
            "failureThreshold": _PREPARATION_PROBES,
        },
        "volumeMounts": [files.mount(), TMP],
    }


def _bounds(spec: FileTransferSpec, instance: ServerInstance) -> list[str]:
    if spec.storage.volume_claim_template is not None:
        return ["--reserve-bytes", "0"]
    most = [] if not instance.most_file_bytes else ["--most-bytes", str(instance.most_file_bytes)]
    return [*most, *([] if instance.free_bytes is None else ["--reserve-bytes", str(instance.free_bytes)])]


def _root(user: int | None) -> tuple[dict[str, Any], list[str]]:
    """Returns the security context and arguments to write to a hostPath.

    It belongs to root, so the container runs as root, with the right to give files to the server's user. If the
    platform assigns the user, the container reports that it cannot.
    """
    capabilities = {"drop": ["ALL"], "add": ["CHOWN"]}
    security = {**RESTRICTED, "runAsUser": 0, "runAsGroup": 0, "runAsNonRoot": False, "capabilities": capabilities}
    return security, [] if user is None else ["--owner", f"{user}:{user}"]


def configuration(tls: Sequence[Tls], files: Files, *, read_timeout_milliseconds: int = 1000, ipv6: bool = True) -> str:
    """Returns the complete nginx.conf. Port 8080 is always served, for readiness.

    Files are served by their exact names, and never through links, because anybody may write to the node's disk.
    Clients of tierbench send short headers, ask for one range and do not keep connections, and others get no more.
    Uploads have exact names, too, and a size, so everybody who reaches the server can fill only what `prepare` has
    found to be free. One that arrives whole replaces the file of its name.
    """
    receive = _RECEIVE.format(timeout=2 * read_timeout_milliseconds) if files.names else ""
    levels = (level for level in PORTS if level is Tls.NONE or level in tls)
    return nginx.configuration(_SERVE + receive, [_listener(level, files, ipv6) for level in levels])


def file_name(size: int) -> str:
    """Returns the name of the file of a size, as `prepare` creates it."""
    return f"{size}.bin"


def _listener(tls: Tls, files: Files, ipv6: bool) -> str:
    names = [name for size in files.sizes for name in (file_name(size), f"{file_name(size)}.sha256")]
    lines = [
        f"root {DATA};",
        *(f"location = /{name} {{}}" for name in names),
        *(_receiver(name, files.most_received) for name in range(files.names)),
        "location = /ready { return 204; }",
        "location / { return 404; }",
    ]
    return nginx.listener(PORTS[tls], lines, tls="" if tls is Tls.NONE else tls.value, ipv6=ipv6)


def _receiver(name: int, most: int) -> str:
    """Returns the location of an upload. nginx receives it in a file of the same file system, and renames that."""
    return (
        f"location = /{RECEIVED}/{name} {{ root {RECEIVED_ROOT}; dav_methods PUT DELETE; client_max_body_size {most}; "
        f"client_body_temp_path {RECEIVED_ROOT}/{RECEIVED}/partial; limit_conn received 2; }}"
    )
