"""Runs a real etcd and kube-apiserver on loopback, without nodes or controllers, and sends requests to them."""

import json
import re
import secrets
import ssl
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from http import HTTPStatus
from itertools import chain
from pathlib import Path
from typing import Any

from urllib3 import PoolManager, Retry
from urllib3.exceptions import HTTPError

from tests.api.waiting import SECONDS, wait_for
from tests.cluster import binaries, certificates
from tests.ports import free_ports

Json = dict[str, Any]

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_INVALID_VALUE = re.compile(
    r'^Invalid value: (?:("[^"]*"|\S+): )?'
)  # Kubernetes 1.36 and later omit the value if it is an object
_LATER = Retry(  # until a changed definition is served again
    connect=0,
    read=0,
    redirect=0,
    status=int(10 * SECONDS),
    status_forcelist={HTTPStatus.TOO_MANY_REQUESTS},
    allowed_methods=None,
    backoff_factor=0.02,
    backoff_max=0.1,
    respect_retry_after_header=False,
    raise_on_status=False,
)
_LOOPBACK = "127.0.0.1"
_SERVICES, _FIRST_SERVICE = "198.18.64.0/20", "198.18.64.1"


class RefusedError(Exception):
    """The API server rejected a request. `causes` has the fields, each with the message about its value."""

    def __init__(self, code: int, status: Json) -> None:
        super().__init__(status.get("message", code))
        self.code = code
        self.causes = [
            (cause.get("field", ""), _INVALID_VALUE.sub("", cause["message"]))
            for cause in status.get("details", {}).get("causes", ())
        ]


@dataclass(frozen=True)
class ApiServer:
    """An API server, with an administrator's token. `folder` has an admin.kubeconfig, and `pid` is its process."""

    url: str
    token: str
    folder: Path
    pid: int = 0

    @property
    def kubeconfig(self) -> Path:
        return self.folder / "admin.kubeconfig"

    def request(
        self, method: str, path: str, body: Json | None = None, headers: Mapping[str, str] | None = None
    ) -> Json:
        """Returns the object in the response. Raises RefusedError."""
        answer = self._connections.request(
            method,
            self.url + path,
            body=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {self.token}", "Content-Type": "application/json", **(headers or {})},
        )
        if answer.status >= HTTPStatus.BAD_REQUEST:
            raise RefusedError(answer.status, _status(answer.data))
        found: Json = json.loads(answer.data)
        return found

    def is_ready(self) -> bool:
        """Returns whether the API server is ready and has created the default namespace."""
        try:
            self.request("GET", "/api/v1/namespaces/default")
        except (HTTPError, RefusedError):
            return False
        return True

    def tls(self) -> ssl.SSLContext:
        """Returns a context that trusts the API server's certificate."""
        return ssl.create_default_context(cafile=self.folder / "pki" / "ca.crt")

    @cached_property
    def _connections(self) -> PoolManager:
        """Keeps connections open, because a handshake takes longer than most requests."""
        return PoolManager(maxsize=4, ssl_context=self.tls(), retries=_LATER, timeout=SECONDS)


def _status(answer: bytes) -> Json:
    """Returns the status of a failure. For a path that is not served, it is a line of text."""
    found: Json = json.loads(answer) if answer.startswith(b"{") else {"message": answer.decode().strip()}
    return found


@contextmanager
def api_server(folder: Path) -> Iterator[ApiServer]:
    """Starts a new API server with its files in `folder`, and stops it at the end of the block."""
    programs, pki = binaries.build(binaries.asked()), folder / "pki"
    certificates.make(pki, _LOOPBACK, _FIRST_SERVICE)
    etcd_port, peer_port, port = free_ports(3)
    server = ApiServer(f"https://{_LOOPBACK}:{port}", secrets.token_hex(16), folder)
    (folder / "tokens.csv").write_text(f"{server.token},admin,admin,system:masters\n")
    server.kubeconfig.write_text(_kubeconfig(server))
    etcd = f"http://{_LOOPBACK}:{etcd_port}"
    peers = f"http://{_LOOPBACK}:{peer_port}"
    with ExitStack() as running:
        running.enter_context(
            _process(
                folder / "etcd.log",
                [f"{programs}/etcd", f"--data-dir={folder}/etcd", "--unsafe-no-fsync"],
                [f"--listen-client-urls={etcd}", f"--advertise-client-urls={etcd}"],
                [f"--listen-peer-urls={peers}", f"--initial-advertise-peer-urls={peers}"],
                [f"--initial-cluster=default={peers}"],
            )
        )
        process = running.enter_context(
            _process(
                folder / "apiserver.log",
                [f"{programs}/kube-apiserver", f"--etcd-servers={etcd}"],
                [f"--bind-address={_LOOPBACK}", f"--secure-port={port}", f"--service-cluster-ip-range={_SERVICES}"],
                [f"--tls-cert-file={pki}/apiserver.crt", f"--tls-private-key-file={pki}/apiserver.key"],
                [f"--token-auth-file={folder}/tokens.csv", "--authorization-mode=RBAC"],
                ["--service-account-issuer=https://kubernetes.default.svc"],
                [f"--service-account-key-file={pki}/sa.pub", f"--service-account-signing-key-file={pki}/sa.key"],
                ["--kubelet-preferred-address-types=InternalIP"],
            )
        )
        wait_for(server.is_ready, f"API server, see {folder}/apiserver.log")
        yield replace(server, pid=process.pid)


@contextmanager
def controllers(server: ApiServer) -> Iterator[None]:
    """Runs Kubernetes' controllers, except the node lifecycle controller, and its scheduler against an API server.

    The garbage collector knows the types that are served when it starts. It discovers others half a minute later.
    """
    programs, pki = binaries.build(binaries.asked()), server.folder / "pki"
    common = [f"--kubeconfig={server.kubeconfig}", "--leader-elect=false", "--secure-port=0"]
    quick = ["--kube-api-qps=500", "--kube-api-burst=500"]
    manager = [
        "--controllers=*,-node-lifecycle-controller",
        "--use-service-account-credentials=true",
        f"--service-account-private-key-file={pki}/sa.key",
        f"--root-ca-file={pki}/ca.crt",
        f"--cluster-signing-cert-file={pki}/ca.crt",
        f"--cluster-signing-key-file={pki}/ca.key",
        f"--flex-volume-plugin-dir={server.folder}/flexvolume",
    ]
    with (
        _process(
            server.folder / "controller-manager.log", [f"{programs}/kube-controller-manager", *common, *quick, *manager]
        ),
        _process(server.folder / "scheduler.log", [f"{programs}/kube-scheduler", *common, *quick]),
    ):
        yield


@contextmanager
def _process(log: Path, *arguments: list[str]) -> Iterator["subprocess.Popen[bytes]"]:
    """Runs a process until the end of the block, or until the tests end in any way."""
    command = ["setpriv", "--pdeathsig", "KILL", "--", *chain.from_iterable(arguments)]
    with log.open("wb") as output, subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT) as process:
        try:
            yield process
        finally:
            process.kill()


def _kubeconfig(server: ApiServer) -> str:
    cluster = {"server": server.url, "certificate-authority": str(server.folder / "pki" / "ca.crt")}
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "test", "cluster": cluster}],
            "users": [{"name": "admin", "user": {"token": server.token}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "admin"}}],
            "current-context": "test",
        }
    )
