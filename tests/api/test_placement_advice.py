"""A question may be asked in every way that the reference names, and changed afterwards."""

from typing import Any

import pytest

from tests.api.objects import changed, create, item, smallest
from tests.api.server import ApiServer
from tierbench.api.placement_advice import PlacementAdvice

pytestmark = pytest.mark.apiserver

ACCEPTED: list[dict[str, Any]] = [
    {"workload": {"fileSizes": [{"size": "512Mi", "weight": 3}, {"size": 1024}]}},
    {
        "workload": {"payloadSize": "1Ki", "delivery": "AtLeastOnce"},
        "objective": {"type": "Percentile", "percentile": "P99"},
    },
    {"workload": {"levels": {"tls": "TLSv1.3"}}, "constraints": {"maximumRetries": 0, "architectures": ["arm64"]}},
    {"benchmarks": {"names": ["files"], "matchLabels": {"site": "a"}}, "objective": {"type": "Retries"}},
]


@pytest.mark.parametrize("spec", ACCEPTED)
def test_a_question_is_taken_and_can_change(server: ApiServer, name: str, spec: dict[str, Any]) -> None:
    body = smallest(PlacementAdvice, name)
    created = create(server, PlacementAdvice, {**body, "spec": {**body["spec"], **spec}})
    path = f"{item(PlacementAdvice, name)}?fieldValidation=Strict"
    updated = server.request("PUT", path, changed(created, "spec.clientClass", "other"))
    assert (updated["spec"]["clientClass"], updated["metadata"]["generation"]) == ("other", 2)
