"""The estimate of a run from its spec."""

from typing import Any

import pytest

from tierbench.domain.proposal import Estimate, estimate
from tierbench.kinds.registry import BENCHMARKS

SERVERS = {"nodeClassNames": ["cloud", "jetson"]}
CLIENTS = {"nodeClassNames": ["user"]}


def estimate_of(kind: str, rate: float = 100e6, **spec: Any) -> Estimate:
    body = {"metadata": {"name": "a"}, "spec": {"servers": SERVERS, "clients": CLIENTS, **spec}}
    return estimate(BENCHMARKS[kind].model_validate(body), rate)


def files(rate: float = 100e6, **spec: Any) -> Estimate:
    return estimate_of(
        "FileTransferBenchmark", rate, **{"fileSizes": ["1Mi", "64Mi"], "repetitions": 3, "warmupTrials": 1, **spec}
    )


def test_every_trial_of_a_file_transfer_counts() -> None:
    found = files()
    assert (found.servers, found.cases, found.trials) == (2, 2 * 2, 2 * 2 * (1 + 3))
    assert found.bytes_moved == 2 * (1 + 3) * 65 * 2**20
    assert found.bytes_on_disk == 65 * 2**20
    assert found.bytes_stored == 4 * (6_000 + 4 * 900)
    assert 60 < found.seconds < 180


def test_more_work_takes_longer_and_a_faster_network_less() -> None:
    base = files().seconds
    assert files(repetitions=6).seconds > base
    assert files(fileSizes=["1Mi", "64Mi", "1Gi"]).seconds > base + 2 * 4 * 8 * 2**30 / 100e6
    assert files(concurrency=[4]).seconds > base
    assert files(rate=1e9).seconds < base


def test_files_take_longer_over_a_slow_link() -> None:
    link = {"name": "slow", "up": {"delayMicroseconds": 9}, "down": {"kilobitsPerSecond": 10_000}}
    direct = files(links=[{"name": "direct"}])
    assert direct.seconds == files().seconds
    assert files(links=[link]).seconds == pytest.approx(files(rate=10e6).seconds)
    assert files(links=[link], rate=1e6).seconds == files(rate=1e6).seconds


def test_servers_of_different_images_take_turns() -> None:
    """They share a node, so each is set up once per pass."""
    found = files(servers={**SERVERS, "images": ["default", "other"]}, warmupTrials=0)
    assert found.servers == 2 * 2 * 2
    assert found.trials == 2 * 2 * 2 * 3


def test_the_warm_up_is_repeated_in_every_pass() -> None:
    found = files(servers={**SERVERS, "images": ["default", "other"]})
    assert found.trials == 2 * 2 * 2 * (3 + 2 * 1)


def test_the_network_is_measured_between_each_pair_of_nodes() -> None:
    without = files().seconds
    assert files(preflight={}).seconds == without + 2 * 2 * 15


def test_the_spec_decides_the_duration_of_a_network_measurement() -> None:
    found = estimate_of("NetworkBenchmark", durationSeconds=10, ping={"count": 0}, repetitions=5, directions=["Upload"])
    assert found.bytes_moved is None
    assert found.bytes_on_disk == 0
    assert found.seconds == pytest.approx(2 * 20 + 5 + 2 * 5 * 10)


BROKERS: dict[str, Any] = {
    "brokers": [{"name": "m", "mosquitto": {}}],
    "repetitions": 2,
    "warmupTrials": 0,
    "pairs": [2],
}


@pytest.mark.parametrize(
    ("load", "pacing", "moved", "seconds"),
    [
        ({"durationSeconds": 30}, {"type": "AsFastAsPossible"}, None, 30),
        ({"durationSeconds": 30}, {"type": "OpenLoop", "messagesPerSecond": 100}, 2 * 3000 * 1024, 30),
        ({"messagesPerPublisher": 600}, {"type": "OpenLoop", "intervalMilliseconds": 100}, 2 * 600 * 1024, 60),
        (
            {"messagesPerPublisher": 600},
            {"type": "AsFastAsPossible"},
            2 * 600 * 1024,
            2 * 600 * 8 * (1024 + 4096) / 100e6,
        ),
    ],
)
def test_load_and_pacing_decide_the_duration_of_a_broker_measurement(
    load: dict[str, Any], pacing: dict[str, Any], moved: int | None, seconds: float
) -> None:
    found = estimate_of("BrokerBenchmark", **BROKERS, load=load, pacing=pacing, payload={"sizes": ["1Ki"]})
    trials = 2 * 2
    assert found.bytes_moved == (None if moved is None else trials * moved)
    assert found.seconds == pytest.approx(2 * 20 + 5 + trials * seconds)
