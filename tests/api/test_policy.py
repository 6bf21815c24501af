"""The admission policy of the chart answers what the operator's own check says, and asks who may read what is named."""

from collections.abc import Iterator

import pytest

from tests.api.server import ApiServer, Json, RefusedError
from tests.chart.helm import Helm
from tests.chart.test_render import judges
from tests.cluster import binaries
from tests.cluster.processes import wait
from tests.policies import NAMESPACE, POLICIES, ROWS, Row, own_answer
from tierbench.api.benchmark_kinds import BENCHMARKS
from tierbench.api.broker import BrokerBenchmark
from tierbench.api.file_transfer import FileTransferBenchmark
from tierbench.api.model import API_VERSION
from tierbench.api.network import NetworkBenchmark

pytestmark = pytest.mark.apiserver
ADMISSION = "/apis/admissionregistration.k8s.io/v1"
RBAC = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{NAMESPACE}"
PLURALS = {
    "ValidatingAdmissionPolicy": "validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": "validatingadmissionpolicybindings",
}
AUTHOR = {"Impersonate-User": "author"}
DISGUISED = {"address": "[::ffff:7f00:1]:1"}
BENCHMARKS_PATH = f"/apis/{API_VERSION}/namespaces/{NAMESPACE}"
OLDER = "older"


def _brokers(external: Json) -> Json:
    return {"spec.brokers": [{"name": "site", "external": external}], "spec.tls": ["TLSv1.2"]}


REFUSED_BY_EVERY_POLICY = [
    Row("", FileTransferBenchmark, {"spec.storage": {"hostPath": {"path": "/proc"}}}),
    Row("", BrokerBenchmark, _brokers(DISGUISED)),
    Row("", NetworkBenchmark, {"spec.servers": {"external": DISGUISED}}),
]


def create(server: ApiServer, body: Json, headers: Json | None = None, namespace: str = NAMESPACE) -> None:
    plural = BENCHMARKS[body["kind"]].KIND.plural
    server.request("POST", f"/apis/{API_VERSION}/namespaces/{namespace}/{plural}?dryRun=All", body, headers)


def answer(server: ApiServer, body: Json, headers: Json | None = None) -> str:
    """What a policy says against it; empty if it is taken."""
    try:
        create(server, body, headers)
    except RefusedError as refused:
        assert refused.code == 403
        return str(refused).partition(" denied request: ")[2]
    return ""


@pytest.fixture(scope="module")
def helm(tmp_path_factory: pytest.TempPathFactory) -> Helm:
    kubernetes = binaries.asked()
    return Helm(binaries.build(kubernetes) / "helm", tmp_path_factory.mktemp("helm"), binaries.version(kubernetes))


@pytest.fixture(scope="module")
def namespace(server: ApiServer) -> None:
    """With an author who may create benchmarks, and read one Secret and one ConfigMap; and a benchmark that no policy
    has seen."""
    body: Json = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    server.request("POST", "/api/v1/namespaces", body)
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
    server.request("POST", f"{BENCHMARKS_PATH}/brokerbenchmarks", {**older, "metadata": {"name": OLDER}})


@pytest.fixture(scope="module", params=POLICIES)
def policed(request: pytest.FixtureRequest, server: ApiServer, helm: Helm, namespace: None) -> Iterator[str]:
    """The name of a policy, which holds in the namespace."""
    name: str = request.param
    objects = helm.template({"watchNamespaces": [NAMESPACE], "policy": POLICIES[name]}, name=name)
    paths = []
    for kind, plural in PLURALS.items():
        for body in judges(objects, kind):
            server.request("POST", f"{ADMISSION}/{plural}", body)
            paths.append(f"{ADMISSION}/{plural}/{body['metadata']['name']}")
    assert len(paths) == 2 * len(BENCHMARKS)
    wait(lambda: all(answer(server, row.body) for row in REFUSED_BY_EVERY_POLICY), f"policy {name}", 30)
    yield name
    for path in reversed(paths):
        server.request("DELETE", path)
    wait(lambda: not any(answer(server, row.body) for row in REFUSED_BY_EVERY_POLICY), f"end of policy {name}", 30)


def test_it_says_what_the_operator_says(server: ApiServer, policed: str) -> None:
    rows = [row for row in ROWS if row.policy == policed]
    assert [answer(server, row.body) for row in rows] == [own_answer(row) for row in rows]


def test_other_namespaces_are_not_judged(server: ApiServer, policed: str) -> None:
    for row in REFUSED_BY_EVERY_POLICY:
        create(server, row.body, namespace="default")


DEFAULT = pytest.mark.parametrize("policed", ["default"], indirect=True)


@DEFAULT
@pytest.mark.parametrize(
    ("name", "refused"), [("own", ""), ("other", "you may not read all of the Secrets [other], which")]
)
def test_an_author_names_only_secrets_that_they_may_read(
    server: ApiServer, policed: str, name: str, refused: str
) -> None:
    external = {"address": "broker.example.com:8883", "secretRef": {"name": name}}
    body = Row("", BrokerBenchmark, _brokers(external)).body
    assert answer(server, body) == ""  # of whoever may read all
    said = answer(server, body, AUTHOR)
    assert said.startswith(refused)
    assert bool(said) == bool(refused)


@DEFAULT
@pytest.mark.parametrize(
    ("name", "refused"), [("own", ""), ("other", "you may not read all of the ConfigMaps [other], whose")]
)
def test_an_author_names_only_messages_that_they_may_read(
    server: ApiServer, policed: str, name: str, refused: str
) -> None:
    messages = [{"name": "own", "configMapRef": {"name": name}}]
    said = answer(server, Row("", BrokerBenchmark, {"spec.payload": {"messages": messages}}).body, AUTHOR)
    assert said.startswith(refused)
    assert bool(said) == bool(refused)


@DEFAULT
def test_a_benchmark_that_is_older_can_be_patched_by_who_may_read_none_of_it(server: ApiServer, policed: str) -> None:
    """As the operator does with its finalizer: what came before the policy is the operator's to refuse."""
    headers = {**AUTHOR, "Content-Type": "application/merge-patch+json"}
    for finalizers in (["tierbench.io/test"], []):
        body = {"metadata": {"finalizers": finalizers}}
        server.request("PATCH", f"{BENCHMARKS_PATH}/brokerbenchmarks/{OLDER}", body, headers)
