"""The chart's admission policy gives the operator's messages, and checks that the author may read named Secrets."""

from collections.abc import Iterator
from itertools import product

import pytest

from tests.api.server import ApiServer, Json, RefusedError
from tests.api.waiting import wait_for
from tests.chart.helm import Helm
from tests.chart.rendered import admission_objects
from tests.policies import NAMESPACES, POLICIES, ROWS, Row, operator_message
from tierbench.api.model import API_VERSION
from tierbench.kinds.broker.spec import BrokerBenchmark
from tierbench.kinds.file_transfer.spec import FileTransferBenchmark
from tierbench.kinds.network.spec import NetworkBenchmark
from tierbench.kinds.registry import BENCHMARKS

pytestmark = pytest.mark.apiserver
ADMISSION = "/apis/admissionregistration.k8s.io/v1"
HOME = NAMESPACES["default"]
RBAC = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{HOME}"
PLURALS = {
    "ValidatingAdmissionPolicy": "validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": "validatingadmissionpolicybindings",
}
AUTHOR = {"Impersonate-User": "author"}
DISGUISED = {"address": "[::ffff:7f00:1]:1"}
BENCHMARKS_PATH = f"/apis/{API_VERSION}/namespaces/{HOME}"
OLDER = "older"


def labels(number: int) -> Json:
    return {"labels": {f"l{index}": "v" for index in range(number)}}


def _brokers(external: Json) -> Json:
    return {"spec.brokers": [{"name": "site", "external": external}], "spec.tls": ["TLSv1.2"]}


REFUSED_BY_EVERY_POLICY = [
    Row("", FileTransferBenchmark, {"spec.storage": {"hostPath": {"path": "/proc"}}}),
    Row("", BrokerBenchmark, _brokers({**DISGUISED, "secretRef": {"name": "own"}})),
    Row("", NetworkBenchmark, {"spec.servers": {"external": DISGUISED}}),
]


def create(server: ApiServer, body: Json, namespace: str, headers: Json | None = None) -> None:
    plural = BENCHMARKS[body["kind"]].KIND.plural
    server.request("POST", f"/apis/{API_VERSION}/namespaces/{namespace}/{plural}?dryRun=All", body, headers)


def answer(server: ApiServer, body: Json, namespace: str = HOME, headers: Json | None = None) -> str:
    """Returns the policy's message, or an empty string if the benchmark is accepted."""
    try:
        create(server, body, namespace, headers)
    except RefusedError as refused:
        assert refused.code == 403
        return str(refused).partition(" denied request: ")[2]
    return ""


@pytest.fixture(scope="module")
def author(server: ApiServer) -> None:
    """A user who may create benchmarks and read one Secret and one ConfigMap.

    Also creates a benchmark before any policy exists.
    """
    for namespace in NAMESPACES.values():
        server.request("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
    rules: list[Json] = [
        {"apiGroups": ["tierbench.io"], "resources": ["*"], "verbs": ["*"]},
        {"apiGroups": [""], "resources": ["secrets", "configmaps"], "resourceNames": ["own"], "verbs": ["get"]},
    ]
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "author"}}
    server.request("POST", f"{RBAC}/roles", {**role, "rules": rules})
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "author"}
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "author"}
    binding = {**role, "kind": "RoleBinding", "roleRef": reference, "subjects": [subject]}
    server.request("POST", f"{RBAC}/rolebindings", binding)
    older = Row("", BrokerBenchmark, _brokers({**DISGUISED, "secretRef": {"name": "other"}})).body
    server.request("POST", f"{BENCHMARKS_PATH}/brokerbenchmarks", {**older, "metadata": {"name": OLDER, **labels(40)}})


@pytest.fixture(scope="module", autouse=True)
def _installed_policies(server: ApiServer, helm: Helm, author: None) -> Iterator[None]:
    """Installs each policy in its namespace."""
    paths = []
    for name, policy in POLICIES.items():
        objects = helm.template({"watchNamespaces": [NAMESPACES[name]], "policy": policy}, name=name)
        for kind, plural in PLURALS.items():
            for body in admission_objects(objects, kind):
                server.request("POST", f"{ADMISSION}/{plural}", body)
                paths.append(f"{ADMISSION}/{plural}/{body['metadata']['name']}")
    assert len(paths) == 2 * (len(BENCHMARKS) + 1) * len(POLICIES)

    def refusals() -> list[bool]:
        everywhere = product(NAMESPACES.values(), REFUSED_BY_EVERY_POLICY)
        return [bool(answer(server, row.body, namespace)) for namespace, row in everywhere]

    wait_for(lambda: all(refusals()), "policies")
    yield
    for path in reversed(paths):
        server.request("DELETE", path)
    wait_for(lambda: not any(refusals()), "end of policies")


@pytest.mark.parametrize("policy", POLICIES)
def test_the_policy_gives_the_operators_messages(server: ApiServer, policy: str) -> None:
    rows = [row for row in ROWS if row.policy == policy]
    assert [answer(server, row.body, NAMESPACES[policy]) for row in rows] == [operator_message(row) for row in rows]


def test_the_policy_ignores_other_namespaces(server: ApiServer) -> None:
    for row in REFUSED_BY_EVERY_POLICY:
        create(server, row.body, "default")


@pytest.mark.parametrize(
    ("name", "refused"), [("own", ""), ("other", "you may not read all of the Secrets [other], which")]
)
def test_an_author_may_only_name_secrets_that_they_may_read(server: ApiServer, name: str, refused: str) -> None:
    external = {"address": "broker.example.com:8883", "secretRef": {"name": name}}
    body = Row("", BrokerBenchmark, _brokers(external)).body
    assert answer(server, body) == ""  # the administrator may read all Secrets
    message = answer(server, body, headers=AUTHOR)
    assert message.startswith(refused)
    assert bool(message) == bool(refused)


@pytest.mark.parametrize(
    ("name", "refused"), [("own", ""), ("other", "you may not read all of the ConfigMaps [other], whose")]
)
def test_an_author_may_only_name_messages_that_they_may_read(server: ApiServer, name: str, refused: str) -> None:
    messages = [{"name": "own", "configMapRef": {"name": name}}]
    message = answer(server, Row("", BrokerBenchmark, {"spec.payload": {"messages": messages}}).body, headers=AUTHOR)
    assert message.startswith(refused)
    assert bool(message) == bool(refused)


def test_a_benchmark_older_than_the_policy_can_be_patched(server: ApiServer) -> None:
    """The operator patches its finalizer, and may read none of the Secrets that a benchmark names.

    It has more labels than the policy allows, and keeps them.
    """
    headers = {**AUTHOR, "Content-Type": "application/merge-patch+json"}
    for finalizers in (["tierbench.io/test"], []):
        body = {"metadata": {"finalizers": finalizers}}
        server.request("PATCH", f"{BENCHMARKS_PATH}/brokerbenchmarks/{OLDER}", body, headers)


@pytest.mark.parametrize(
    ("metadata", "refused"),
    [
        (labels(32) | {"annotations": {"a": "v" * 65_000}, "finalizers": ["example.com/f"]}, ""),
        (labels(33), "metadata.labels: there are 33 labels, and at most 32 are allowed: remove some"),
        (
            {"annotations": {"a": "v" * 40_000, "b": "v" * 40_000}},
            "metadata.annotations: together they have 80002 characters, and at most 65536 are allowed: keep large "
            "texts in a ConfigMap",
        ),
        (
            {"finalizers": [f"example.com/f{index}" for index in range(17)]},
            "metadata.finalizers: there are 17 finalizers, and at most 16 are allowed: remove some",
        ),
    ],
)
def test_the_policy_bounds_metadata(server: ApiServer, metadata: Json, refused: str) -> None:
    body = Row("", FileTransferBenchmark, {}).body
    assert answer(server, {**body, "metadata": {**body["metadata"], **metadata}}) == refused


def test_the_policy_bounds_the_metadata_of_all_kinds_that_tenants_write(server: ApiServer) -> None:
    advice = {"apiVersion": API_VERSION, "kind": "PlacementAdvice", "spec": {"clientClassName": "user"}}
    node_class = {"apiVersion": API_VERSION, "kind": "NodeClass", "spec": {"nodeSelector": {"matchLabels": {"a": "b"}}}}
    paths = ((f"{BENCHMARKS_PATH}/placementadvices", advice), (f"/apis/{API_VERSION}/nodeclasses", node_class))
    for path, body in paths:
        with pytest.raises(RefusedError, match="there are 40 labels"):
            server.request("POST", f"{path}?dryRun=All", {**body, "metadata": {"name": "many", **labels(40)}})


def test_a_changed_spec_is_checked_again(server: ApiServer) -> None:
    """This prevents authors from sending a Secret that they may not read to their own address.

    A change of the run policy is not checked.
    """
    headers = {**AUTHOR, "Content-Type": "application/merge-patch+json"}
    path = f"{BENCHMARKS_PATH}/brokerbenchmarks/{OLDER}?dryRun=All"
    server.request("PATCH", path, {"spec": {"runPolicy": {"suspend": True}}}, headers)
    with pytest.raises(RefusedError, match="the external address"):
        server.request("PATCH", path, {"spec": {"repetitions": 3}}, headers)
    allowed = _brokers({"address": "broker.example.com:8883", "secretRef": {"name": "own"}})
    server.request("PATCH", path, {"spec": {"brokers": allowed["spec.brokers"], "tls": ["TLSv1.2"]}}, headers)
