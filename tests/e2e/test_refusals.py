"""A case that cannot be measured fails with a reason and what to do. tests/operator checks the other reasons."""

import pytest

from tests.e2e.benchmarks import Running, assert_nothing_left, file_transfer
from tests.e2e.kubectl import Kubectl


@pytest.mark.release
def test_files_larger_than_the_disk_fail_with_the_reason(kubectl: Kubectl) -> None:
    kubectl.apply(file_transfer(fileSizes=["16Ti"]))
    running = Running(kubectl)
    running.wait_for_phase("Failed", seconds=90)
    assert_nothing_left(running)
    status = running.results[0]["status"]
    assert status["reason"] == "InsufficientStorage"
    assert "free" in status["message"]
