"""What tc is told of a node's link."""

from tests.cluster.network import discipline
from tests.cluster.profiles import Link


def test_rate_alone_is_a_token_bucket() -> None:
    assert discipline(Link("100mbit")) == ["tbf", "rate", "100mbit", "burst", "256kb", "latency", "50ms"]


def test_late_and_lost_packets_are_emulated_with_room_for_all_that_are_under_way() -> None:
    link = Link("100mbit", "20ms", "2ms", "0.1%")
    packets = 578  # 70 ms of 100 Mbit/s in packets of 1514 bytes
    assert discipline(link) == [
        *("netem", "limit", str(packets)),
        *("delay", "20ms", "2ms"),
        *("loss", "0.1%"),
        *("rate", "100mbit"),
    ]
    assert discipline(Link(loss="1%"))[3:] == ["loss", "1%"]
