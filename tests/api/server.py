"""A real etcd and kube-apiserver on loopback, without nodes or controllers, and requests to it."""

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
_INVALID_VALUE = re.compile(r'^Invalid value: (?:("[^"]*"|\S+): )?')  # from 1.36 on, an object is left out
_LATER = Retry(  # until a definition that has changed is served again
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
    """The API server's answer to a request that it refused. `causes` are fields with what is said of their values."""

    def __init__(self, code: int, status: Json) -> None:
        super().__init__(status.get("message", code))
        self.code = code
        self.causes = [
            (cause.get("field", ""), _INVALID_VALUE.sub("", cause["message"]))
            for cause in status.get("details", {}).get("causes", ())
        ]


@dataclass(frozen=True)
class ApiServer:
    """An API server, as its administrator. `folder` holds an admin.kubeconfig, `pid` is its process."""

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
        """The object that answers. Raises RefusedError."""
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
        """Whether it serves, and has made what every cluster has."""
        try:
            self.request("GET", "/api/v1/namespaces/default")
        except (HTTPError, RefusedError):
            return False
        return True

    def tls(self) -> ssl.SSLContext:
        """How it is trusted."""
        return ssl.create_default_context(cafile=self.folder / "pki" / "ca.crt")

    @cached_property
    def _connections(self) -> PoolManager:
        """They are kept: a handshake takes longer than most answers."""
        return PoolManager(maxsize=4, ssl_context=self.tls(), retries=_LATER, timeout=SECONDS)


def _status(answer: bytes) -> Json:
    """What a refusal says: an object, or a line of text for a path that is not served."""
    found: Json = json.loads(answer) if answer.startswith(b"{") else {"message": answer.decode().strip()}
    return found


@contextmanager
def api_server(folder: Path) -> Iterator[ApiServer]:
    """A new API server that keeps everything in `folder` and ends with the block."""
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
    """The controllers and the scheduler of Kubernetes next to an API server. No node is taken for one that is gone.

    What collects garbage knows the types that are served when it starts, and others half a minute later.
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
    """A process that ends with the block, and with the tests however they end."""
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
