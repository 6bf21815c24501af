"""The arguments of tc, and of the packet pump, for the link of a node."""

import math

from tests.cluster.links import path
from tests.cluster.network import discipline
from tests.cluster.profiles import Link


def test_link_with_only_a_rate_is_a_token_bucket() -> None:
    assert discipline(Link("100mbit")) == ["tbf", "rate", "100mbit", "burst", "256kb", "latency", "50ms"]


def test_queue_of_the_emulated_link_has_room_for_all_delayed_packets() -> None:
    link = Link("100mbit", "20ms", "2ms", "0.1%")
    packets = 578  # 70 ms of 100 Mbit/s in packets of 1514 bytes
    assert discipline(link) == [
        *("netem", "limit", str(packets)),
        *("delay", "20ms", "2ms"),
        *("loss", "0.1%"),
        *("rate", "100mbit"),
    ]
    assert discipline(Link(loss="1%"))[3:] == ["loss", "1%"]


def test_queue_is_the_declared_one() -> None:
    assert discipline(Link("10mbit", queue="200ms"))[-1] == "200ms"
    packets = math.ceil(100e6 * 0.22 / (8 * 1514))
    assert discipline(Link("100mbit", "20ms", queue="200ms"))[2] == str(packets)
    assert path(Link("12mbit", "20ms", queue="200ms"))["queueNanoseconds"] == 200_000_000


def test_pump_takes_its_rate_from_a_trace() -> None:
    found = path(Link(trace="/drive.csv", delay="20ms"))
    assert (found["trace"], found["queueNanoseconds"]) == ("/drive.csv", 50_000_000)
    assert "bitsPerSecond" not in found


def test_pump_has_the_queue_of_the_token_bucket() -> None:
    assert path(Link("12mbit", "23.2ms", "2ms", "0.1%")) == {
        "bitsPerSecond": 12_000_000,
        "queueNanoseconds": 50_000_000,
        "delayNanoseconds": 23_200_000,
        "jitterNanoseconds": 2_000_000,
        "loss": 0.001,
    }
    assert path(Link(loss="1%")) == {"delayNanoseconds": 0, "jitterNanoseconds": 0, "loss": 0.01}
