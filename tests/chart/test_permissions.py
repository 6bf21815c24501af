"""The chart grants what the table of permissions says, to the operator and to users."""

import pytest

from tests.chart.helm import Helm, Json, of_kind
from tests.chart.rendered import CLUSTER_WIDE, COLLECTING, FULL, NAMESPACED, annotations, expanded, table
from tierbench.api.model import GROUP
from tierbench.api.rbac import Scope, UserRole, user_grants


def roles(objects: list[Json]) -> dict[str, set[tuple[str, str, str]]]:
    """Returns the permissions of the operator per namespace. The empty name has those in all namespaces."""
    found = [role for role in of_kind(objects, "ClusterRole") if "tierbench.io/watch-namespaces" in annotations(role)]
    found += of_kind(objects, "Role")
    return {role["metadata"].get("namespace", ""): expanded(role["rules"]) for role in found}


def for_users(objects: list[Json]) -> list[Json]:
    """Returns the roles that Kubernetes aggregates to its own."""
    prefix = "rbac.authorization.k8s.io/aggregate-to-"
    return [
        role for role in of_kind(objects, "ClusterRole") if any(prefix in key for key in role["metadata"]["labels"])
    ]


def test_cluster_wide_permissions_are_those_of_the_table(helm: Helm) -> None:
    assert roles(helm.template(CLUSTER_WIDE)) == {
        "": table(Scope.CLUSTER, Scope.NAMESPACED),
        "tierbench-leases": table(Scope.LEASES),
    }


def test_namespaced_permissions_are_those_of_the_table(helm: Helm) -> None:
    assert roles(helm.template(NAMESPACED)) == {
        "": table(Scope.CLUSTER),
        "team-a": table(Scope.NAMESPACED),
        "team-b": table(Scope.NAMESPACED),
        "tierbench-leases": table(Scope.LEASES),
    }


@pytest.mark.parametrize("values", [CLUSTER_WIDE, NAMESPACED, FULL, COLLECTING])
def test_every_role_is_bound_only_to_the_operator(helm: Helm, values: Json) -> None:
    objects = helm.template(values)
    (deployment,) = of_kind(objects, "Deployment")
    account = deployment["spec"]["template"]["spec"]["serviceAccountName"]
    for kind in ("ClusterRole", "Role"):
        bindings = of_kind(objects, f"{kind}Binding")
        bound = {(binding["metadata"].get("namespace"), binding["roleRef"]["name"]) for binding in bindings}
        assert bound == {
            (role["metadata"].get("namespace"), role["metadata"]["name"])
            for role in of_kind(objects, kind)
            if role not in for_users(objects) and not role["metadata"]["name"].endswith(":metrics-reader")
        }
        for binding in bindings:
            assert binding["roleRef"]["kind"] == kind
            assert binding["subjects"] == [{"kind": "ServiceAccount", "name": account, "namespace": "bench"}]


def test_one_release_has_the_user_roles_of_the_table(helm: Helm) -> None:
    found = {role["metadata"]["name"]: role for role in for_users(helm.template(CLUSTER_WIDE))}
    assert set(found) == {f"tierbench-{role}" for role in UserRole}
    for role in UserRole:
        body = found[f"tierbench-{role}"]
        assert body["metadata"]["labels"][f"rbac.authorization.k8s.io/aggregate-to-{role}"] == "true"
        assert expanded(body["rules"]) == {
            (GROUP, resource, verb)
            for grant in user_grants()
            if grant.role is role
            for resource in grant.resources
            for verb in grant.verbs
        }
    assert for_users(helm.template(NAMESPACED)) == []
