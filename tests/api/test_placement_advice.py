"""The API server accepts every question that the reference describes, and changes to it."""

from typing import Any

import pytest

from tests.api.objects import changed, create, item, smallest
from tests.api.server import ApiServer, RefusedError
from tierbench.api.placement_advice import PlacementAdvice

pytestmark = pytest.mark.apiserver

ACCEPTED: list[dict[str, Any]] = [
    {"workload": {"fileSizes": [{"size": "512Mi", "weight": 3}, {"size": 1024}]}},
    {
        "workload": {"payloadSize": "1Ki", "delivery": "AtLeastOnce"},
        "objective": {"type": "Percentile", "percentile": "P99"},
    },
    {"workload": {"levels": {"tls": "TLSv1.3"}}, "constraints": {"maxRetries": 0, "architectures": ["arm64"]}},
    {"choose": ["broker", "tls", "nodeClass"], "workload": {"delivery": "AtLeastOnce"}},
    {"benchmarks": {"names": ["files"], "matchLabels": {"site": "a"}}, "objective": {"type": "Retries"}},
]


@pytest.mark.parametrize("spec", ACCEPTED)
def test_a_question_is_accepted_and_can_change(server: ApiServer, name: str, spec: dict[str, Any]) -> None:
    body = smallest(PlacementAdvice, name)
    created = create(server, PlacementAdvice, {**body, "spec": {**body["spec"], **spec}})
    path = f"{item(PlacementAdvice, name)}?fieldValidation=Strict"
    updated = server.request("PUT", path, changed(created, "spec.clientClassName", "other"))
    assert (updated["spec"]["clientClassName"], updated["metadata"]["generation"]) == ("other", 2)


@pytest.mark.parametrize(
    ("choose", "hint"),
    [
        ([], "should have at least 1 items"),
        (["nodeClass", "broker", "tls", "pairs"], "must have at most 3 items"),
        (["tls", "tls"], "Duplicate value"),
        (["fileSize"], "supported values: "),
    ],
)
def test_an_invalid_choice_is_rejected(server: ApiServer, name: str, choose: list[str], hint: str) -> None:
    body = smallest(PlacementAdvice, name)
    with pytest.raises(RefusedError) as refused:
        create(server, PlacementAdvice, {**body, "spec": {**body["spec"], "choose": choose}})
    assert refused.value.code == 422
    assert hint in str(refused.value)
