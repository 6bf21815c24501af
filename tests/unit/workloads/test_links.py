"""Links of a benchmark: its cases, the container that imitates a link, and the plan of the client."""

import json
from typing import Any

import pytest

from tests.plans import plan_in
from tests.unit.domain.objects import IMAGES, benchmark, broker_benchmark, network_benchmark
from tests.unit.domain.world import World
from tests.unit.workloads.test_pods import templates
from tierbench.api.link import Link
from tierbench.api.policy import Policy
from tierbench.kinds.file_transfer.spec import FileTransferSpec
from tierbench.workloads.pods import RESTRICTED, with_link

ALLOWED = Policy(links=True)
LTE: dict[str, Any] = {
    "name": "lte",
    "up": {"kilobitsPerSecond": 12_000, "delayMicroseconds": 23_200, "lossPartsPerMillion": 10_000},
    "down": {"kilobitsPerSecond": 40_000, "delayMicroseconds": 23_200, "jitterMicroseconds": 500},
}
RECORDED: dict[str, Any] = {"name": "recorded", "trace": {"configMapRef": {"name": "drive"}}}
DIRECT: dict[str, Any] = {"name": "direct"}
LINKS = {"links": [LTE, RECORDED, DIRECT]}
BENCHMARKS = {"files": benchmark(**LINKS), "broker": broker_benchmark(**LINKS), "network": network_benchmark(**LINKS)}


@pytest.mark.parametrize("kind", BENCHMARKS)
def test_every_case_is_measured_with_each_link(kind: str) -> None:
    world = World(policy=ALLOWED, benchmark=BENCHMARKS[kind])
    world.run()
    levels = [dict(result.spec.levels) for result in world.results.values()]
    by_link: dict[str, list[dict[str, str]]] = {}
    for each in levels:
        by_link.setdefault(each.pop("link"), []).append(each)
    assert by_link.keys() == {"direct", "lte", "recorded"}
    assert by_link["direct"] == by_link["lte"] == by_link["recorded"]
    for result in world.results.values():
        declared = result.spec.link
        assert (declared.name if declared else "direct") == result.spec.levels["link"]


def _by_link(world: World, monkeypatch: pytest.MonkeyPatch) -> dict[str, dict[str, Any]]:
    pods = [each["spec"] for each in templates(world, monkeypatch) if each["spec"]["containers"][0]["name"] == "client"]
    return {plan_in(pod["containers"][0]["args"]).get("link", DIRECT)["name"]: pod for pod in pods}


@pytest.mark.parametrize("kind", BENCHMARKS)
def test_only_the_container_of_the_link_has_capabilities(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pods = _by_link(World(policy=ALLOWED, benchmark=BENCHMARKS[kind]), monkeypatch)
    assert pods.keys() == {"lte", "recorded", "direct"}
    assert "initContainers" not in pods["direct"]
    (container,) = pods["lte"]["initContainers"]
    assert container["restartPolicy"] == "Always"
    assert container["securityContext"]["capabilities"] == {
        "drop": ["ALL"],
        "add": ["NET_ADMIN", "NET_RAW", "SYS_NICE"],
    }
    assert pods["lte"]["containers"][0]["securityContext"] == RESTRICTED
    assert not pods["lte"].get("hostNetwork")


def test_container_of_the_link_gets_what_the_spec_declares(monkeypatch: pytest.MonkeyPatch) -> None:
    pods = _by_link(World(policy=ALLOWED, benchmark=BENCHMARKS["files"]), monkeypatch)
    flags = dict(word.removeprefix("--").split("=", 1) for word in pods["lte"]["initContainers"][0]["args"][1:])
    assert json.loads(flags["up"]) == {
        "bitsPerSecond": 12_000_000,
        "delayNanoseconds": 23_200_000,
        "loss": 0.01,
        "queueNanoseconds": 50_000_000,
    }
    assert json.loads(flags["down"])["jitterNanoseconds"] == 500_000
    assert flags["before"] == "eth0"
    container = pods["recorded"]["initContainers"][0]
    assert '"trace": "/trace/down"' in " ".join(container["args"])
    assert {"name": "trace", "mountPath": "/trace", "readOnly": True} in container["volumeMounts"]
    assert [each["configMap"]["name"] for each in pods["recorded"]["volumes"] if each["name"] == "trace"] == ["drive"]


def test_plan_contains_the_declared_rates_of_the_link(monkeypatch: pytest.MonkeyPatch) -> None:
    pods = _by_link(World(policy=ALLOWED, benchmark=BENCHMARKS["files"]), monkeypatch)
    plan = plan_in(pods["lte"]["containers"][0]["args"])
    assert plan["link"] == {"name": "lte", "upKilobitsPerSecond": 12_000, "downKilobitsPerSecond": 40_000}


def test_link_in_the_network_of_a_node_is_refused() -> None:
    link = Link.model_validate(LTE)
    with pytest.raises(ValueError, match="lte cannot be in the network of a node"):
        with_link({"hostNetwork": True, "volumes": []}, link, IMAGES, None, "seed")


def test_each_client_has_its_own_seed_of_losses(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(policy=ALLOWED, benchmark=benchmark(links=[LTE], concurrency=[1, 2]))
    pods = [each["spec"] for each in templates(world, monkeypatch) if each["spec"]["containers"][0]["name"] == "client"]
    seeds = {word for pod in pods for word in pod["initContainers"][0]["args"] if word.startswith("--seed=")}
    assert len(seeds) == len(pods) > 1


def test_results_of_other_links_are_not_combined() -> None:
    def settings(links: list[dict[str, Any]]) -> str | None:
        places = {"servers": {"nodeClassNames": ["cloud"]}, "clients": {"nodeClassNames": ["user"]}}
        spec = FileTransferSpec.model_validate({**places, "fileSizes": ["1Mi"], "links": links})
        return spec.parameters.get("links")

    slower = LTE | {"down": {"kilobitsPerSecond": 20_000}}
    assert settings([]) is None
    assert settings([LTE]) == settings([LTE])
    assert len({settings([LTE]), settings([slower]), settings([LTE, DIRECT])}) == 3
