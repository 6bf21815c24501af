"""The harness itself."""

import pytest

from tests.cluster import Cluster
from tests.e2e.benchmarks import Running, file_transfer
from tests.e2e.kubectl import Kubectl
from tests.e2e.strike import NotStruck, strike


@pytest.mark.release
def test_a_strike_that_lands_in_no_trial_is_named(kubectl: Kubectl, cluster: Cluster) -> None:
    """Trials that are over before any load was seen; each run has twice the load of the one before."""
    struck: list[str] = []
    kubectl.apply(file_transfer(fileSizes=["1Ki"], repetitions=1))
    running = Running(kubectl)
    with pytest.raises(NotStruck, match="in 3 runs"):
        strike(running, cluster, lambda: struck.append("struck"))
    assert not struck
    assert running.object["spec"]["fileSizes"] == ["4Ki"]
