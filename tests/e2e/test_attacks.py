"""What a tenant who measures learns of others: see docs/threat-model.md. What they may write is in tests/chart."""

import pytest

from tests.e2e.benchmarks import Running, file_transfer
from tests.e2e.kubectl import Kubectl, wait_for

pytestmark = pytest.mark.release


def test_whose_benchmark_has_the_nodes_is_not_said_to_strangers(kubectl: Kubectl) -> None:
    other = kubectl.inside(f"{kubectl.namespace}-b")
    other.create_namespace()
    try:
        other.apply(file_transfer("confidential", fileSizes=["64Mi"], repetitions=30))
        Running(other, "confidential").wait_for_trial()
        kubectl.apply(file_transfer())
        running = Running(kubectl)
        queued = wait_for("it waits", lambda: running.condition("Queued").get("status") == "True" and running.status)
        told = f"{queued} {kubectl('describe', 'ftb', 'files')}"
        assert "confidential" not in told
        assert other.namespace not in told
    finally:
        other("delete", "namespace", other.namespace, "--wait=false")
        other("delete", "ftb", "--all", "--wait")
