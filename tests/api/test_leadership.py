"""Operators of two releases run against one real API server."""

import asyncio
import logging
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.api.lossy_proxy import lossy_proxy
from tests.api.operator import operator
from tests.api.server import ApiServer
from tierbench.kube import leader_election
from tierbench.kube.meta import format_micro_time

pytestmark = [pytest.mark.apiserver, pytest.mark.timing]

LEASES = "/apis/coordination.k8s.io/v1/namespaces/leases/leases"
KILLED = "operator.elsewhere.other"


async def test_an_operator_waits_for_the_lease_of_a_killed_one_and_names_its_namespaces(
    server: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "tierbench")
    now = format_micro_time(datetime.now(UTC))
    killed = {
        "metadata": {
            "name": KILLED,
            "labels": {"tierbench.io/operator": "true"},
            "annotations": {"tierbench.io/watch-namespaces": "team-a,default"},
        },
        "spec": {
            "holderIdentity": "other-7d9f-x2x4z",
            "renewTime": now,
            "acquireTime": now,
            "leaseDurationSeconds": 1,
        },
    }
    server.request("POST", LEASES, killed)
    monkeypatch.setattr(leader_election, "_OTHER_RELEASE_SECONDS", (1.0, 1.0))
    async with lossy_proxy(server) as (_, url), operator(url, tmp_path, monkeypatch, "default"):
        other = "release elsewhere/other, which watches team-a, default. Set different namespaces"
        assert f"Another operator watches the same namespaces: {other}" in caplog.text
        lease = await asyncio.to_thread(server.request, "GET", f"{LEASES}/operator.bench.default")
        assert lease["spec"]["acquireTime"]
        assert lease["metadata"]["annotations"] == {"tierbench.io/watch-namespaces": "default"}
    server.request("DELETE", f"{LEASES}/{KILLED}")
