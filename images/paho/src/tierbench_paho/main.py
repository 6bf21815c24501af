"""The program of the engine."""

from importlib.metadata import version

from tierbench_engine.pipe import Json
from tierbench_engine.serve import serve
from tierbench_engine.waiting import wait_for_any_file

from . import VERSION
from .connection import DELIVERIES, VERSION5, Connection
from .envelope import COMPRESSIONS, ENCRYPTIONS


def about() -> Json:
    """Returns what this engine is, and what it can do."""
    return {
        "name": "tierbench-paho",
        "version": f"{VERSION} (paho-mqtt {version('paho-mqtt')})",
        "schemes": ["mqtt", "mqtts"],
        "deliveries": DELIVERIES,
        "mqttVersions": [VERSION5],
        "compressions": COMPRESSIONS,
        "encryptions": ENCRYPTIONS,
    }


def main() -> None:
    """Runs until the harness ends."""
    wait_for_any_file()
    serve(about(), Connection)


if __name__ == "__main__":
    main()
