"""The arguments of tc for the link of a node."""

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
