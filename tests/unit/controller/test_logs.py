"""Each log entry is one line."""

import json
import logging
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.unit.controller.test_settings import ENVIRONMENT
from tierbench.controller.logs import JsonFormatter, LogFormat, TextFormatter, log_to_stderr

FORGED = "no such node\n2026-01-01 00:00:00 INFO tierbench: all is well\r\x1b[2K\x85\u2028"


def record(message: str, *, failed: bool = False) -> logging.LogRecord:
    try:
        float(FORGED)
    except ValueError:
        caught = sys.exc_info() if failed else None
    return logging.LogRecord("tierbench.x", logging.WARNING, "x.py", 1, "rejected: %s", (message,), caught)


@pytest.mark.parametrize("formatter", [TextFormatter(), JsonFormatter()])
@pytest.mark.parametrize("failed", [False, True])
def test_entry_is_one_line_of_printable_characters(formatter: logging.Formatter, failed: bool) -> None:
    line = formatter.format(record(FORGED, failed=failed))
    assert line.isprintable()
    assert len(line.splitlines()) == 1


def test_text_entry_has_time_level_logger_and_message() -> None:
    line = TextFormatter().format(record("pod a\nb of Zoë", failed=True))
    assert " WARNING tierbench.x: rejected: pod a\\nb of Zoë\\nTraceback (most recent call last):\\n" in line


def test_fields_follow_the_message() -> None:
    entry = record("x")
    vars(entry).update(benchmark="ns/demo", error='no "such" node\n', run=3, reason="")
    line = TextFormatter().format(entry)
    assert line.endswith(r' tierbench.x: rejected: x benchmark=ns/demo error="no \"such\" node\n" run=3 reason=""')
    fields = json.loads(JsonFormatter().format(entry))
    assert (fields["message"], fields["benchmark"], fields["run"]) == ("rejected: x", "ns/demo", 3)


def test_entry_of_kopf_names_its_object() -> None:
    entry = record("x")
    reference = {"apiVersion": "v1", "kind": "Pod", "name": "p", "namespace": "ns", "uid": "u"}
    vars(entry).update(k8s_ref=reference, k8s_skip=True, settings=object())
    assert TextFormatter().format(entry).endswith("rejected: x kind=Pod object=ns/p")
    assert json.loads(JsonFormatter().format(entry)).keys() == {"time", "level", "logger", "message", "kind", "object"}


def test_json_entry_has_separate_fields() -> None:
    entry = json.loads(JsonFormatter().format(record(FORGED, failed=True)))
    assert entry.pop("time").endswith("+00:00")
    assert entry.pop("exception").startswith("Traceback (most recent call last):\n")
    assert entry == {"level": "WARNING", "logger": "tierbench.x", "message": f"rejected: {FORGED}"}


@pytest.fixture
def _restored_logging() -> Iterator[None]:
    root = logging.getLogger()
    before, level, kopf = root.handlers[:], root.level, logging.getLogger("kopf").level
    yield
    root.handlers[:] = before
    root.setLevel(level)
    logging.getLogger("kopf").setLevel(kopf)
    logging.captureWarnings(False)


@pytest.mark.usefixtures("_restored_logging")
def test_libraries_log_in_the_same_format(capsys: pytest.CaptureFixture[str]) -> None:
    log_to_stderr("INFO", LogFormat.JSON)
    names = ["tierbench.x", "kopf.objects", "aiohttp.server", "asyncio", "py.warnings"]
    for name in names:
        logging.getLogger(name).warning("a\nb")
    logging.getLogger("kopf.objects").info("every event of every object")
    entries = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [entry["logger"] for entry in entries] == names


def test_fatal_error_is_one_line() -> None:
    """Without a cluster, the operator does not start."""
    environment = dict.fromkeys(ENVIRONMENT, "x/y") | {"TIERBENCH_IMAGE_ALTERNATIVES": "{}"}
    environment |= {"TIERBENCH_LOG_FORMAT": "json", "KUBECONFIG": "/nowhere", "PYTHONPATH": ":".join(sys.path)}
    command = [sys.executable, "-c", "from tierbench.controller.main import main; main()"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert json.loads(line)["message"] == "the operator failed"
