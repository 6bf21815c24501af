"""The client refuses exactly the plans that the schema refuses."""

import json
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.contract.conftest import HANG_SECONDS
from tests.contract.test_schema import changed

SCHEMA = jsonschema.Draft202012Validator(
    json.loads((Path(__file__).parents[2] / "images/client/internal/plan/plan.schema.json").read_text())
)
# A client that accepts the plan ends at once with another reason, because the broker's address is refused.
PLAN: dict[str, Any] = {
    "contract": 1, "kind": "Broker", "schedule": [{"case": 3, "trial": 1}], "refusedNetworks": ["127.0.0.0/8"],
    "targets": [{"case": 3, "url": "mqtt://127.0.0.1:1", "topic": "t"}], "pairs": 2, "load": {"messages": 1},
    "pacing": {"type": "ClosedLoop", "inFlight": 1}, "kafka": {"codec": "None"}, "mqtt": {"version": "5"},
    "connections": "EachMessage",
}  # fmt: skip
DEVIATIONS: list[tuple[str, Any]] = [
    ("contract", 2),
    ("contract", None),
    ("kind", "Brokers"),
    ("schedule", []),
    ("schedule", [{"trial": 0}]),
    ("schedule", [{"trial": 1, "surprise": 1}]),
    ("schedule", [{"case": 3, "trial": 1}] * 205),
    ("schedule", {}),
    ("targets", None),
    ("targets", [{}]),
    ("targets", [{"url": ""}]),
    ("targets", [{"url": "x" * 513}]),
    ("targets", [{"url": "mqtt://h:1", "agent": {}}]),
    ("pairs", 0),
    ("pairs", 257),
    ("pairs", "2"),
    ("pairs", True),
    ("pairs", 1.5),
    ("Pairs", 1),
    ("surprise", 1),
    ("load", 1),
    ("load.messages", -1),
    ("load.messages", 2**31),
    ("pacing.type", "Sometimes"),
    ("pacing", None),
    ("kafka.codec", "Brotli"),
    ("kafka.allowedHosts", ["x" * 254]),
    ("connections", 1),
    ("connections", "Sometimes"),
    ("mqtt.version", "4"),
    ("mqtt.version", 5),
]


def acceptance(client: Path, folder: Path, plan: Any) -> tuple[bool, bool]:
    """Returns whether the schema and the client accept a plan."""
    seal = folder / "seal"
    command: list[str | Path] = [
        client,
        "measure",
        f"--plan={json.dumps(plan)}",
        "--output=json",
        f"--termination-log={seal}",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANG_SECONDS, check=False)
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1, "the error has one line"
    return SCHEMA.is_valid(plan), json.loads(seal.read_text())["failure"]["reason"] != "InvalidArguments"


def test_client_accepts_a_valid_plan(client: Path, tmp_path: Path) -> None:
    assert acceptance(client, tmp_path, PLAN) == (True, True)


@pytest.mark.parametrize(("path", "value"), DEVIATIONS)
def test_client_refuses_an_invalid_plan(client: Path, tmp_path: Path, path: str, value: Any) -> None:
    assert acceptance(client, tmp_path, changed(PLAN, path, value)) == (False, False)
