"""Reads objects from the API server, and asks for runs."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

from kubernetes.client import ApiClient, ApiException, Configuration, CustomObjectsApi
from kubernetes.config import ConfigException, list_kube_config_contexts, new_client_from_config
from urllib3.exceptions import HTTPError
from yaml import YAMLError

from tierbench.api.benchmark import Benchmark
from tierbench.api.benchmark_kinds import BENCHMARKS
from tierbench.api.model import GROUP, VERSION, Kind
from tierbench.api.node_class import NodeClass
from tierbench.api.result import BenchmarkResult
from tierbench.cli.errors import UserError
from tierbench.cli.objects import Objects, Parsed, Reference, parse_items, parse_object
from tierbench.workloads.names import LABEL_BENCHMARK, LABEL_KIND

TIMEOUTS: Final = (5, 60)
_PAGE: Final = 200
# The client's own have no types.
_new_client: Callable[..., ApiClient] = new_client_from_config
_contexts: Callable[..., tuple[list[dict[str, Any]], dict[str, Any]]] = list_kube_config_contexts
_FORBIDDEN: Final = 403
_NOT_FOUND: Final = 404
_HINTS: Final = {
    401: "the API server does not know you: log in again, or check the kubeconfig",
    403: "you may not do this: ask for get, list and watch on tierbench.io, and for rerun for patch",
    404: "the cluster does not serve tierbench.io: install the chart first",
}


class Cluster:
    """A namespace of a cluster."""

    def __init__(self, api: CustomObjectsApi, namespace: str, address: str) -> None:
        self.api = api
        self.namespace = namespace
        self.address = address

    @classmethod
    def connect(cls, kubeconfig: str | None, context: str | None, namespace: str | None) -> "Cluster":
        """The cluster that a kubeconfig names.

        Raises:
            UserError: the kubeconfig cannot be used.
        """
        settings = Configuration()
        settings.retries = False
        try:
            client = _new_client(kubeconfig, context, client_configuration=settings)
            contexts, active = _contexts(kubeconfig)
        except (ConfigException, OSError, YAMLError, TypeError, AttributeError) as error:
            # The last two: the client does not check the shape of what it reads.
            reason = str(error).splitlines()[0].rstrip(".")
            raise UserError(f"no usable kubeconfig ({reason}): set KUBECONFIG or --kubeconfig, or use --from") from None
        chosen = next((item for item in contexts if item["name"] == context), active)
        default = chosen["context"].get("namespace") or "default"
        return cls(CustomObjectsApi(client), namespace or default, settings.host)

    def list(self, kind: Kind, **selectors: str) -> dict[str, Any]:
        """All objects of a kind in the namespace, page by page, as one List.

        Raises:
            UserError: the API server does not answer, or refuses.
        """
        items: list[dict[str, Any]] = []
        token: str | None = None
        with self._explained():
            while True:
                page: dict[str, Any] = self.lister(kind)(
                    limit=_PAGE, _continue=token, _request_timeout=TIMEOUTS, **selectors
                )
                items += ({"kind": kind.kind, **item} for item in page["items"])
                token = page["metadata"].get("continue")
                if not token:
                    return page | {"items": items}

    def lister(self, kind: Kind) -> Callable[..., Any]:
        """The client's call that lists, or watches, a kind in the namespace."""
        return partial(self.api.list_namespaced_custom_object, GROUP, VERSION, self.namespace, kind.plural)

    def find(self, reference: Reference) -> Benchmark:
        """The benchmark.

        Raises:
            UserError: there is none of that name, or more than one.
        """
        models = BENCHMARKS.values() if reference.kind is None else (reference.kind,)
        found = [benchmark for model in models if (benchmark := self.get(model, reference.name)) is not None]
        if not found:
            kinds = ",".join(model.KIND.plural for model in models)
            raise UserError(
                f"there is no benchmark {reference.name} in namespace {self.namespace}: see `kubectl get {kinds} -A`"
            )
        if len(found) > 1:
            kinds = " or ".join(f"{benchmark.KIND.singular}/{reference.name}" for benchmark in found)
            raise UserError(f"{reference.name} names more than one benchmark: write {kinds}")
        return found[0]

    def get(self, model: type[Parsed], name: str) -> Parsed | None:
        """The object of this name in the namespace, None if there is none.

        Raises:
            UserError: the API server does not answer, or refuses.
        """
        with self._explained():
            try:
                body: Any = self.api.get_namespaced_custom_object(
                    GROUP,
                    VERSION,
                    self.namespace,
                    model.KIND.plural,
                    name,
                    _request_timeout=TIMEOUTS,
                )
            except ApiException as error:
                # A Status means that this object is missing, a plain text that the whole kind is.
                if error.status == _NOT_FOUND and '"Status"' in str(error.body):
                    return None
                raise
        return parse_object(model, body)

    def patch(self, benchmark: Benchmark, change: dict[str, Any]) -> None:
        """Changes a benchmark by a merge patch.

        Raises:
            UserError: the API server does not answer, or refuses.
        """
        with self._explained():
            self.api.patch_namespaced_custom_object(
                GROUP,
                VERSION,
                self.namespace,
                benchmark.KIND.plural,
                benchmark.metadata.name,
                change,
                _request_timeout=TIMEOUTS,
            )

    def read(self, reference: Reference | None) -> Objects:
        """Results and benchmarks, of one name or all.

        Raises:
            UserError: the API server does not answer, or refuses.
        """
        items: list[dict[str, Any]] = []
        for model in BENCHMARKS.values():
            items += self.list(model.KIND)["items"]
        selector = {} if reference is None else {"label_selector": f"{LABEL_BENCHMARK}={reference.name}"}
        items += self.list(BenchmarkResult.KIND, **selector)["items"]
        return parse_items(items, "the cluster")

    def classes(self) -> tuple[NodeClass, ...]:
        """All node classes; none to those who may not read them, since they belong to no namespace."""
        with self._explained():
            try:
                listing: Any = self.api.list_cluster_custom_object(
                    GROUP, VERSION, NodeClass.KIND.plural, _request_timeout=TIMEOUTS
                )
            except ApiException as error:
                if error.status == _FORBIDDEN:
                    return ()
                raise
        return tuple(parse_object(NodeClass, item) for item in listing["items"])

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except ApiException as error:
            raise UserError(f"{_HINTS.get(error.status, reason(error))} ({self.address})") from None
        except HTTPError as error:
            raise UserError(
                f"cannot reach the API server at {self.address} ({reason(error)}): check the network, --context "
                "and --kubeconfig"
            ) from None


def reason(error: ApiException | HTTPError) -> str:
    """Why a request failed, in a few words."""
    if isinstance(error, ApiException):
        return f"{error.status} {error.reason}"
    cause = getattr(error, "reason", None) or error
    return str(cause).rsplit(": ", maxsplit=1)[-1]


def selector_of(benchmark: Benchmark) -> str:
    """The label selector of a benchmark's results."""
    return f"{LABEL_KIND}={benchmark.KIND.kind},{LABEL_BENCHMARK}={benchmark.metadata.name}"
