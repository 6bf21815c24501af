"""HTTP as a protocol of messages: a publisher posts them, and a server answers."""

from typing import Final

from tierbench.api.matrix import SERVER_NODES
from tierbench.api.model import ImageNames, Model, Rule, levels


class Http(Model):
    """nginx, deployed on each server class: it answers each message that is posted to it, and keeps none."""

    images: ImageNames = ()


PROTOCOL: Final = "protocol"
"""The setting of such a server that results keep. Those of brokers do not have it."""

_POSTS: Final = "self.brokers.exists(b, has(b.http) || (has(b.external) && b.external.protocol == 'HTTP'))"
HTTP_RULES: Final = (
    Rule(
        f"!{_POSTS} || self.clients.subscribers.type == 'None'",
        "an HTTP server passes no message on, so only publishing is measured: write clients.subscribers: {type: "
        "None} and, for example, pacing: {type: Acknowledged}",
    ),
    Rule(
        f"!{_POSTS} || self.delivery == ['AtLeastOnce']",
        "an HTTP server answers each message, which is AtLeastOnce: write delivery: [AtLeastOnce], and measure other "
        "deliveries of MQTT and Kafka in another benchmark",
    ),
    Rule(
        f"!{_POSTS} || self.clients.engine == 'Native'",
        "clients.engine: Native alone posts messages over HTTP: write Native, or measure HTTP in another benchmark",
    ),
    Rule(
        f"!{_POSTS} || self.tlsClients.handshakes == ['Full'] && self.tlsClients.certificates == ['None']",
        "clients of HTTP make full handshakes and present no certificate: remove tlsClients, or measure HTTP in "
        "another benchmark",
    ),
    Rule(
        f"!{_POSTS} || !has(self.pacing.inFlight) || self.pacing.inFlight == 1",
        "a connection of HTTP/1.1 carries one message at a time: write inFlight: 1, or add pairs",
    ),
)
"""What a spec with such a server must say."""
HTTP_PLACES: Final = (
    f"{SERVER_NODES} * self.brokers.filter(b, has(b.http)).map(b, {levels('b.http.images')}).sum()"
    " + size(self.brokers.filter(b, has(b.external) && b.external.protocol == 'HTTP'))"
)
"""CEL: how many such servers there are, on all nodes and outside."""
