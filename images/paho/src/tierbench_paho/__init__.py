"""The reference engine for brokers: what a device sees that speaks MQTT with Python's paho-mqtt."""

from typing import Final

VERSION: Final = "0.2.0-dev"
