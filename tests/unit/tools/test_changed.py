"""`make test-changed` names targets that exist, for files that exist."""

import re
import subprocess

import pytest

from tests.changed import ROOT, TARGETS, needed


def test_every_target_is_in_the_makefile() -> None:
    known = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert {target for targets in TARGETS.values() for target in targets} <= known


@pytest.mark.parametrize("pattern", TARGETS)
def test_every_pattern_matches_a_file(pattern: str) -> None:
    files = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    assert any(re.match(pattern, file) for file in files)


def test_a_change_of_the_client_needs_faults_and_the_soak() -> None:
    found = needed(["images/client/internal/broker/pair.go", "docs/reference/versions.md"])
    assert {"test-faults", "test-soak"} <= set(found)
    assert needed(["images/client/internal/broker/pair_test.go"]) == {
        "test-soak": ["images/client/internal/broker/pair_test.go"]
    }
