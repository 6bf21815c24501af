"""The operator serves /metrics only to clients that a real API server authorizes."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from functools import partial

import aiohttp
import pytest

from tests.api.server import ApiServer, Json
from tests.api.waiting import eventually
from tests.ports import free_ports
from tierbench.controller.credentials import certificates
from tierbench.domain.results import ResultStore
from tierbench.kube.connect import connect_by_kubeconfig
from tierbench.metrics.operator import OperatorMetrics
from tierbench.metrics.server import Protection, ScrapeGuard, application, may_get, serve, tls_context

ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
RBAC = "/apis/rbac.authorization.k8s.io/v1"


def token_of(server: ApiServer, name: str, *, permitted: bool) -> str:
    """Returns a token of a service account that may get /metrics, if it is `permitted`."""
    server.request("POST", ACCOUNTS, {"metadata": {"name": name}})
    if permitted:
        rule: Json = {"nonResourceURLs": ["/metrics"], "verbs": ["get"]}
        server.request("POST", f"{RBAC}/clusterroles", {"metadata": {"name": name}, "rules": [rule]})
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
        subject = {"kind": "ServiceAccount", "name": name, "namespace": "default"}
        binding = {"metadata": {"name": name}, "roleRef": role, "subjects": [subject]}
        server.request("POST", f"{RBAC}/clusterrolebindings", binding)
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    token: str = server.request("POST", f"{ACCOUNTS}/{name}/token", body)["status"]["token"]
    return token


@pytest.fixture
async def url(server: ApiServer) -> AsyncIterator[str]:
    """Yields the address of the operator's server, which asks this API server to authorize clients."""
    (port,) = free_ports(1)
    store = ResultStore()
    store.mark_filled()
    made = certificates("tierbench-operator")
    async with connect_by_kubeconfig(str(server.kubeconfig), None) as (kube, _):
        guard = ScrapeGuard(partial(may_get, kube, "/metrics"))
        protection = Protection(guard, tls_context(made["tls.crt"], made["tls.key"]))
        metrics = OperatorMetrics()
        metrics.set_leader(True)
        async with serve(port, application(store, metrics, protection), protection.context):
            yield f"https://127.0.0.1:{port}"


async def get(url: str, token: str = "") -> tuple[int, str]:
    """Sends a request as a scraper that trusts any certificate."""
    trusting = ssl.create_default_context()
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with aiohttp.ClientSession() as session, session.get(url, headers=headers, ssl=trusting) as answer:
        return answer.status, await answer.text()


async def test_metrics_are_served_only_to_authorized_clients(server: ApiServer, url: str, name: str) -> None:
    permitted = await asyncio.to_thread(token_of, server, f"{name}-scraper", permitted=True)
    refused = await asyncio.to_thread(token_of, server, f"{name}-other", permitted=False)

    async def is_authorized() -> bool:
        return (await get(f"{url}/metrics", permitted))[0] == 200

    await eventually(is_authorized)
    assert "tierbench_queue_length" in (await get(f"{url}/metrics", permitted))[1]
    assert [(await get(f"{url}/metrics", token))[0] for token in ("", "no-token", refused)] == [401, 401, 403]
    assert await get(f"{url}/healthz") == (200, "ok\n")


async def test_metrics_are_served_only_over_tls(url: str) -> None:
    with pytest.raises(aiohttp.ClientError):
        await get(f"{url.replace('https', 'http')}/metrics", "a-token")
