"""A kubeconfig decides the server, the namespace and the credentials."""

import json
import socket
import ssl
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import AddrInfoType
from kubernetes.config import kube_config

from tests.unit.apiserver.client import serve_in_thread
from tests.unit.apiserver.server import ApiServer
from tierbench.kinds.file_transfer.spec import FileTransferBenchmark
from tierbench.kube import connect as connect_module
from tierbench.kube.connect import KubeconfigError, abortive_socket, connect_by_kubeconfig

PLUGIN = """#!/bin/sh
echo >> "$0.calls"
echo "$KUBERNETES_EXEC_INFO" > "$0.info"
cat <<END
{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",
 "status": {"token": "token-$(wc -l < "$0.calls" | tr -d " ")", "expirationTimestamp": "2020-01-01T00:00:00Z"}}
END
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[ApiServer, Path]]:
    api = ApiServer()
    with serve_in_thread(api, tmp_path) as kubeconfig:
        yield api, Path(kubeconfig)


def change(kubeconfig: Path, user: dict[str, Any], **context: str) -> str:
    raw = json.loads(kubeconfig.read_text())
    raw["users"][0]["user"] = user
    raw["contexts"].append({"name": "other", "context": {"cluster": "c", "user": "u", **context}})
    kubeconfig.write_text(json.dumps(raw))
    return str(kubeconfig)


async def test_expired_token_is_renewed(server: tuple[ApiServer, Path], tmp_path: Path) -> None:
    """The tokens of cloud plugins expire after a quarter of an hour, before a benchmark ends."""
    plugin = tmp_path / "plugin"
    plugin.write_text(PLUGIN)
    plugin.chmod(0o755)
    run = {"apiVersion": "client.authentication.k8s.io/v1", "command": str(plugin), "provideClusterInfo": True}
    async with connect_by_kubeconfig(change(server[1], {"exec": run}), None) as (kube, _):
        for _ in range(2):
            await kube.list(FileTransferBenchmark.KIND.resource, "default")
        address = kube.address
    assert json.loads(plugin.with_suffix(".info").read_text())["spec"]["cluster"]["server"] == address
    first, second = (request.headers["Authorization"] for request in server[0].requests)
    assert first.startswith("Bearer token-")
    assert second.startswith("Bearer token-")
    assert first != second


async def test_namespace_is_read_from_the_context(server: tuple[ApiServer, Path]) -> None:
    kubeconfig = change(server[1], {}, namespace="lab")
    async with connect_by_kubeconfig(kubeconfig, None) as (_, namespace):
        assert namespace == "default"
    async with connect_by_kubeconfig(kubeconfig, "other") as (_, namespace):
        assert namespace == "lab"


@pytest.mark.parametrize(("path", "context", "reason"), [("none", None, "No configuration"), ("kubeconfig", "x", "x")])
async def test_unusable_kubeconfig_is_reported_with_the_reason(
    server: tuple[ApiServer, Path], path: str, context: str | None, reason: str
) -> None:
    with pytest.raises(KubeconfigError, match=reason):
        async with connect_by_kubeconfig(str(server[1].with_name(path)), context):
            pass


async def test_unsent_requests_are_discarded_when_the_process_ends(
    server: tuple[ApiServer, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the kernel sends them when the network works again, long after the process has ended."""
    lingers: list[tuple[int, int]] = []

    def record_socket(address: AddrInfoType) -> socket.socket:
        found = abortive_socket(address)
        on, seconds = struct.unpack("ii", found.getsockopt(socket.SOL_SOCKET, socket.SO_LINGER, 8))
        lingers.append((on, seconds))
        return found

    monkeypatch.setattr(connect_module, "abortive_socket", record_socket)
    monkeypatch.setattr(kube_config, "KUBE_CONFIG_DEFAULT_LOCATION", str(server[1]))
    async with connect_module.connect(lambda method, status: None) as kube:
        await kube.list(FileTransferBenchmark.KIND.resource, "default")
    assert set(lingers) == {(1, 0)}


async def test_certificates_that_kubectl_accepts_are_accepted(
    server: tuple[ApiServer, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """From 3.13 on, Python by default rejects certificates of an authority without key usage."""
    make = ssl.create_default_context

    def strict(*arguments: Any, **named: Any) -> ssl.SSLContext:
        context = make(*arguments, **named)
        context.verify_flags |= ssl.VERIFY_X509_STRICT
        return context

    monkeypatch.setattr(ssl, "create_default_context", strict)
    async with connect_by_kubeconfig(str(server[1]), None) as (kube, _):
        assert not kube._client.rest_client.ssl_context.verify_flags & ssl.VERIFY_X509_STRICT
