"""Tenants learn little about other tenants: see docs/explanation/threat-model.md. tests/chart checks writes."""

import pytest

from tests.e2e.benchmarks import Running, file_transfer
from tests.e2e.kubectl import Kubectl, wait_for

pytestmark = pytest.mark.release


def test_the_holder_of_nodes_is_hidden_from_other_namespaces(kubectl: Kubectl) -> None:
    other = kubectl.inside(f"{kubectl.namespace}-b")
    other.create_namespace()
    try:
        other.apply(file_transfer("confidential", fileSizes=["64Mi"], repetitions=30))
        Running(other, "confidential").wait_for_trial()
        kubectl.apply(file_transfer())
        running = Running(kubectl)
        queued = wait_for(
            "the benchmark is queued", lambda: running.condition("Queued").get("status") == "True" and running.status
        )
        visible = f"{queued} {kubectl('describe', 'tbf', 'files')}"
        assert "confidential" not in visible
        assert other.namespace not in visible
    finally:
        other("delete", "namespace", other.namespace, "--wait=false")
        other("delete", "tbf", "--all", "--wait")
