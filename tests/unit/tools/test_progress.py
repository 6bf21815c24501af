"""A long step is one line, and a failed one shows why."""

import re
import subprocess
import sys
from pathlib import Path

PROGRESS = Path(__file__).parents[3] / "tools" / "progress.py"


def step(log: Path, *command: str) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, str(PROGRESS), "1/2 Images", "60", str(log), *command]
    return subprocess.run(line, capture_output=True, text=True, check=False)


def test_output_of_a_step_goes_only_to_the_log(tmp_path: Path) -> None:
    log = tmp_path / "folder" / "log"
    done = step(log, "echo", "downloading")
    assert (done.returncode, done.stderr) == (0, "")
    assert re.fullmatch(r"1/2 Images …\n1/2 Images: done in \d+ s\n", done.stdout)
    assert log.read_text() == "downloading\n"


def test_a_failed_step_shows_its_own_last_lines(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("of another step\n")
    done = step(log, "sh", "-c", "seq 100; echo broken >&2; exit 3")
    assert done.returncode == 3
    assert re.search(r"\n1/2 Images: failed in \d+ s\n$", done.stdout)
    lines = done.stderr.splitlines()
    assert lines[0] == "82"
    assert lines[-2:] == ["broken", f"(all of it: {log})"]
    assert step(log, "false").stderr == f"(all of it: {log})\n"
