"""The API server rejects a benchmark that the administrator's policy does not allow."""

from typing import Any

import pytest

from tests.e2e.benchmarks import file_transfer
from tests.e2e.kubectl import Kubectl, KubectlError, wait_for
from tests.operator.site import Site
from tierbench.kinds.registry import BENCHMARKS

POLICY = "validatingadmissionpolicy"


def test_disallowed_benchmark_is_rejected_and_policies_pass_type_checks(site: Site, kubectl: Kubectl) -> None:
    with pytest.raises(KubectlError, match=r"hostPath.path: /etc is not allowed.*to the chart value policy.hostPaths"):
        kubectl.apply(file_transfer(storage={"hostPath": {"path": "/etc"}}))
    assert kubectl.list("filetransferbenchmarks") == []
    release = f"{site.release.kubectl.namespace}.{site.release.name}"

    def warnings() -> list[Any]:
        names = [f"{release}.{model.KIND.plural}" for model in BENCHMARKS.values()]
        status = [kubectl.get(POLICY, name).get("status", {}) for name in names]
        return [item["typeChecking"] for item in status] if all("typeChecking" in item for item in status) else []

    assert wait_for("policies are type-checked", warnings) == [{}] * len(BENCHMARKS)
