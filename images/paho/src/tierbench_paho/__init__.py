"""The Paho engine for brokers: it measures what a device sees that uses Python's paho-mqtt.

It speaks the protocol of docs/reference/engine-protocol.md.
"""

from typing import Final

VERSION: Final = "0.2.0-dev"
