"""The program of the engine."""

from importlib.metadata import version

from tierbench_engine.pipe import Json
from tierbench_engine.serve import serve
from tierbench_engine.waiting import wait_for_any_file

from . import VERSION
from .connection import Connection
from .settings import COMPRESSIONS, CONSISTENCIES, ENCRYPTIONS


def about() -> Json:
    """Returns what this engine is, and what it can do."""
    return {
        "name": "tierbench-sinetstream",
        "version": f"{VERSION} (sinetstream {version('sinetstream')})",
        "prepares": True,
        "schemes": ["mqtt", "mqtts", "kafka", "kafkas"],
        "deliveries": [*CONSISTENCIES],
        "compressions": COMPRESSIONS,
        "encryptions": ENCRYPTIONS,
    }


def main() -> None:
    """Runs until the harness ends."""
    wait_for_any_file()
    serve(about(), Connection)


if __name__ == "__main__":
    main()
