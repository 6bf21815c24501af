"""Fixtures: the programs, the brokers, and a function that runs the engine."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.paho.broker import Mosquitto, make_broker
from tests.paho.engine import Engine, Outcome, install, plan


@pytest.fixture(scope="session", autouse=True)
def _programs(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Installs the client and the engine."""
    install(tmp_path_factory.mktemp("programs"))


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mosquitto]:
    """A broker for all tests."""
    broker = make_broker(tmp_path_factory.mktemp("mosquitto") / "broker")
    broker.start()
    yield broker
    broker.kill()


@pytest.fixture
def own_broker(tmp_path: Path) -> Iterator[Mosquitto]:
    """A broker that a test may stop."""
    broker = make_broker(tmp_path / "broker")
    broker.start()
    yield broker
    broker.kill()


@pytest.fixture
def run(broker: Mosquitto, tmp_path: Path) -> Callable[..., Outcome]:
    """Returns a function that runs the engine with a changed plan until it ends."""
    return lambda **changes: Engine(tmp_path, plan(broker, **changes)).outcome()
