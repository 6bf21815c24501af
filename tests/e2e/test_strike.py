"""The strike harness reports when no fault fell into a trial."""

import pytest

from tests.cluster import Cluster
from tests.e2e.benchmarks import Running, file_transfer
from tests.e2e.kubectl import Kubectl
from tests.e2e.strike import NotStruck, strike


@pytest.mark.release
def test_a_strike_outside_of_all_trials_is_reported(kubectl: Kubectl, cluster: Cluster) -> None:
    """Trials end before the harness sees any load. Each run has twice the load of the previous one."""
    struck: list[str] = []
    kubectl.apply(file_transfer(fileSizes=["1Ki"], repetitions=1))
    running = Running(kubectl)
    with pytest.raises(NotStruck, match="in 3 runs"):
        strike(running, cluster, lambda: struck.append("struck"))
    assert not struck
    assert running.object["spec"]["fileSizes"] == ["4Ki"]
