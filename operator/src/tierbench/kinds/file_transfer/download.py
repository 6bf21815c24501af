"""The client of a file transfer: a Job that downloads one file, trial after trial."""

from collections.abc import Sequence

from tierbench.api.benchmark import Tls
from tierbench.api.quantity import parse_size
from tierbench.kinds.file_transfer.manifests import PORT_NAMES, PORTS, file_name
from tierbench.kinds.file_transfer.spec import FileTransferSpec
from tierbench.workloads.access import SERVER_NAME, address
from tierbench.workloads.agent import CLIENT_KEYS
from tierbench.workloads.client_job import client_job, credential_files, flags, series_options
from tierbench.workloads.credentials import secret_items
from tierbench.workloads.names import Owner
from tierbench.workloads.workload import ClientSite, Images, Manifest, RunningServer, Target


def server_url(spec: FileTransferSpec, server: RunningServer, tls: Tls) -> str:
    """Where the client finds the files, by the access that the spec asks for."""
    scheme = "http" if tls is Tls.NONE else "https"
    return f"{scheme}://{address(spec.access, server, PORT_NAMES[tls], PORTS[tls])}"


def arguments(spec: FileTransferSpec, site: ClientSite, targets: Sequence[Target]) -> list[str]:
    """The command line of the engine."""
    levels = targets[0].case.levels
    growing = spec.retry.wait_maximum_milliseconds
    tls, size = Tls(levels["tls"]), parse_size(levels["fileSize"])
    options = {
        "url": [f"{server_url(spec, target.server, tls)}/{file_name(size)}" for target in targets],
        "size": size,
        "concurrency": levels["concurrency"],
        "cache-state": levels["cacheState"],
        "read-timeout-milliseconds": spec.retry.read_timeout_milliseconds,
        "attempts": spec.retry.attempts,
        "wait-milliseconds": spec.retry.wait_milliseconds,
        **({} if growing is None else {"wait-maximum-milliseconds": growing}),
        "trial-seconds": spec.timeouts.trial_seconds,
        "tls": tls.value,
        **series_options(site, spec.warmup, targets),
    }
    if tls is not Tls.NONE:
        options |= {"ca-file": credential_files(targets, "ca.crt"), "server-name": SERVER_NAME}
    switches = {"verify-digest": spec.verify_digest, "copy": _compares_tls(spec)}
    return ["download", *flags(options), *(f"--{name}" for name, on in switches.items() if on)]


def _compares_tls(spec: FileTransferSpec) -> bool:
    """Whether what TLS costs is seen: then every level copies its content, as TLS must, and one regime holds."""
    return len(spec.tls) > 1


def download_job(
    owner: Owner, spec: FileTransferSpec, images: Images, site: ClientSite, targets: Sequence[Target]
) -> Manifest:
    """The Job that downloads one file, trial after trial."""
    keys = CLIENT_KEYS if targets[0].case.levels["tls"] == Tls.NONE else (*CLIENT_KEYS, "ca.crt")
    credentials = [(secret_items(target.server.site.attached, *keys),) for target in targets]
    command = arguments(spec, site, targets)
    return client_job(owner, images, site, targets, images.client, command, spec.clients.resources, credentials)
