"""Reads, watches, creates and changes objects through the API server."""

from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from typing import Any, Final

from tierbench.advice.tables import RunResults
from tierbench.api.benchmark import Benchmark
from tierbench.api.model import GROUP, Kind, Model
from tierbench.api.node_class import NODE_CLASSES, Invitation, NodeClass
from tierbench.api.placement_advice import PlacementAdvice
from tierbench.api.record import BenchmarkRecord
from tierbench.api.result import BenchmarkResult
from tierbench.cli.command import UserError
from tierbench.cli.objects import Objects, Parsed, Reference, parse_items, parse_object
from tierbench.domain.placement import usable
from tierbench.domain.views import NodeView, node_view
from tierbench.kinds.registry import BENCHMARKS
from tierbench.kube.client import REQUEST_ERRORS, ApiError, ConflictError, Kube, NotFoundError, describe_error
from tierbench.kube.connect import KubeconfigError, connect_by_kubeconfig
from tierbench.kube.informer import Update, WatchError, list_and_watch
from tierbench.kube.meta import CLUSTER_ROLES, NODES, ResourceType, selector
from tierbench.workloads.workload import LABEL_BENCHMARK, LABEL_KIND, LABEL_RUN, Images

ANNOTATION: Final = "tierbench.io/watch-namespaces"
"""The annotation on the ClusterRole of a release that lists the namespaces it watches. Empty means all."""
ANNOTATION_CLIENTS: Final = "tierbench.io/clients"
"""The annotation on the same ClusterRole that says how the release starts clients: `ClientSettings` as JSON."""
_FORBIDDEN: Final = 403
_HINTS: Final = {
    401: "the API server does not accept your credentials: log in again, or check the kubeconfig",
    403: "you may not do this: ask an administrator for get, list and watch on tierbench.io, for patch to rerun, "
    "suspend and resume, and for delete to delete runs",
    404: "the cluster does not serve tierbench.io: install the chart first",
}


class ClientSettings(Model):
    """How a release starts clients, from the values of its chart. `programs` are the images of other programs."""

    image: str
    programs: Mapping[str, str] = {}
    pull_policies: Mapping[str, str] = {}
    pull_secrets: tuple[str, ...] = ()
    user: int | None = None
    priority_class: str = ""
    collector: str = ""
    network_policies: bool = False

    @property
    def images(self) -> Images:
        """The images, and how to run them."""
        return Images(
            client=self.image,
            programs=self.programs,
            pull_secrets=self.pull_secrets,
            pull_policies=self.pull_policies,
            user=self.user,
            priority_class=self.priority_class,
            collector=self.collector,
        )


@dataclass(frozen=True)
class WatchedNamespaces:
    """The namespaces that operators watch. `known` is False if the user may not read them, or there is no operator."""

    namespaces: tuple[str, ...] = ()
    known: bool = False
    everywhere: bool = False

    def excludes(self, namespace: str) -> bool:
        """Returns whether it is certain that no operator watches this namespace."""
        return self.known and not self.everywhere and namespace not in self.namespaces


@asynccontextmanager
async def connect(kubeconfig: str | None, context: str | None, namespace: str | None) -> AsyncIterator["Cluster"]:
    """Connects to the cluster that a kubeconfig names.

    Raises:
        UserError: the kubeconfig is unusable.
    """
    try:
        async with connect_by_kubeconfig(kubeconfig, context) as (kube, default):
            yield Cluster(kube, namespace or default)
    except KubeconfigError as error:
        raise UserError(f"no usable kubeconfig ({error}): set KUBECONFIG or --kubeconfig, or use --from") from None


class Cluster:
    """A namespace of a cluster. Methods raise UserError if the API server does not answer or refuses a request."""

    def __init__(self, kube: Kube, namespace: str) -> None:
        self.kube = kube
        self.namespace = namespace

    async def find(self, reference: Reference) -> Benchmark:
        """Returns the benchmark.

        Raises:
            UserError: no benchmark has this name, or several have it.
        """
        models = BENCHMARKS.values() if reference.kind is None else (reference.kind,)
        found = [benchmark for model in models if (benchmark := await self.get(model, reference.name)) is not None]
        if not found:
            kinds = ",".join(model.KIND.plural for model in models)
            raise UserError(
                f"there is no benchmark {reference.name} in namespace {self.namespace}: see `kubectl get {kinds} -A`"
            )
        if len(found) > 1:
            kinds = " or ".join(f"{benchmark.KIND.singular}/{reference.name}" for benchmark in found)
            raise UserError(f"several benchmarks have the name {reference.name}: write {kinds}")
        return found[0]

    async def get(self, model: type[Parsed], name: str, namespace: str | None = None) -> Parsed | None:
        """Returns the object of this name in a namespace, by default that of the cluster, or None."""
        with self.explained():
            try:
                body = await self.kube.get(model.KIND.resource, namespace or self.namespace, name)
            except NotFoundError as error:
                # A Status has a reason: the object is missing. An answer in plain text means that the kind is missing.
                if error.reason:
                    return None
                raise
        return parse_object(model, body)

    async def patch(self, benchmark: Benchmark, change: dict[str, Any]) -> None:
        """Applies a merge patch to a benchmark."""
        with self.explained():
            await self.kube.merge(benchmark.KIND.resource, self.namespace, benchmark.metadata.name, change)

    async def read(
        self, reference: Reference | None, labels: str = "", *, everywhere: bool = False
    ) -> tuple[Objects, str | None]:
        """Returns all benchmarks, the results of one benchmark or of all, and their namespace, None for all.

        `labels` is a label selector of results.
        """
        namespace = None if everywhere else self.namespace
        items = [item for model in BENCHMARKS.values() for item in await self._list(model.KIND, namespace)]
        of_benchmark = f"{LABEL_BENCHMARK}={reference.name}" if reference else ""
        items += await self._list(BenchmarkResult.KIND, namespace, ",".join(filter(None, (of_benchmark, labels))))
        return parse_items(items, "the cluster"), namespace

    async def read_to_advise(
        self, name: str | None, labels: str = "", *, everywhere: bool = False
    ) -> tuple[Objects, str | None]:
        """Returns what `read` does for all benchmarks, with the node classes, and the PlacementAdvice of this name."""
        advice = None if name is None else await self.get(PlacementAdvice, name)
        objects, namespace = await self.read(None, labels, everywhere=everywhere)
        return replace(objects, classes=await self.classes(), advices=(advice,) if advice else ()), namespace

    async def records(self, runs: Iterable[RunResults]) -> tuple[BenchmarkRecord, ...]:
        """Returns the records of these runs. A case without a trial has none."""
        items = []
        for run in runs:
            labels = {LABEL_KIND: run.benchmark.kind, LABEL_BENCHMARK: run.benchmark.name, LABEL_RUN: run.number}
            selector = ",".join(f"{label}={value}" for label, value in labels.items())
            items += await self._list(BenchmarkRecord.KIND, run.namespace, selector)
        return parse_items(items, "the cluster").records

    async def _list(self, kind: Kind, namespace: str | None, labels: str = "") -> list[dict[str, Any]]:
        query = {"labelSelector": labels} if labels else {}
        with self.explained():
            pages = [page async for page in self.kube.pages(kind.resource, namespace, query)]
        return [{"kind": kind.kind, **item} for page in pages for item in page["items"] or ()]

    async def _list_if_allowed(self, resource: ResourceType) -> list[dict[str, Any]] | None:
        """Returns all objects of a cluster-scoped type, or None if the user may not list them."""
        with self.explained():
            try:
                return await self.kube.list(resource)
            except ApiError as error:
                if error.status == _FORBIDDEN:
                    return None
                raise

    async def classes(self) -> tuple[NodeClass, ...]:
        """Returns all node classes, or none if the user may not list them."""
        found = await self._list_if_allowed(NODE_CLASSES)
        return tuple(parse_object(NodeClass, item) for item in found or ())

    async def nodes(self) -> list[dict[str, Any]] | None:
        """Returns all nodes, or None if the user may not list them."""
        return await self._list_if_allowed(NODES)

    async def schedulable_nodes(self) -> tuple[NodeView, ...] | None:
        """Returns the nodes that are Ready, uncordoned and without taints, or None if the user may not list nodes."""
        found = await self.nodes()
        if found is None:
            return None
        views = [node_view(item) for item in found if not _is_tainted(item)]
        return tuple(view for view in views if usable(view))

    async def class_names(self) -> tuple[str, ...]:
        """Returns the names of the node classes that have nodes, or none if the user may not list classes."""
        return tuple(item.metadata.name for item in await self.classes() if not item.spec.external)

    async def watched_namespaces(self) -> WatchedNamespaces:
        """Returns the namespaces that operators watch. They are unknown if the user may not list ClusterRoles."""
        return watched_namespaces(await self.cluster_roles())

    async def cluster_roles(self) -> list[dict[str, Any]]:
        """Returns the metadata of all ClusterRoles, or nothing if the user may not list them."""
        try:
            return [role async for role in self.kube.each_metadata(CLUSTER_ROLES)]
        except REQUEST_ERRORS:
            return []

    async def create_class(self, body: Mapping[str, Any]) -> None:
        """Creates a node class, unless one with the same selector exists.

        Raises:
            UserError: a node class of this name has another selector.
        """
        name, wanted = body["metadata"]["name"], NodeClass.model_validate(body)
        with self.explained():
            try:
                await self.kube.create(NODE_CLASSES, None, body)
            except ConflictError:
                existing = parse_object(NodeClass, await self.kube.get(NODE_CLASSES, None, name))
                if existing.spec.node_selector != wanted.spec.node_selector:
                    raise UserError(
                        f"NodeClass {name} exists with another selector: see `kubectl get nodeclass {name} -o yaml`; "
                        "run init without --apply, and rename the class in what it prints"
                    ) from None

    async def set_invitations(self, node_class: NodeClass, invitations: Iterable[Invitation]) -> None:
        """Replaces the invitations of an external class, unless someone has changed it meanwhile."""
        change = {
            "metadata": {"resourceVersion": node_class.metadata.resource_version},
            "spec": {"invitations": [one.to_json() for one in invitations]},
        }
        with self.explained():
            await self.kube.merge(NODE_CLASSES, None, node_class.metadata.name, change)

    async def create_benchmark(self, body: Mapping[str, Any]) -> None:
        """Creates a benchmark in the namespace.

        Raises:
            UserError: a benchmark of this name exists.
        """
        with self.explained():
            try:
                await self.kube.create(BENCHMARKS[body["kind"]].KIND.resource, self.namespace, body)
            except ConflictError:
                name = body["metadata"]["name"]
                raise UserError(
                    f"benchmark {name} exists in namespace {self.namespace}: choose another --name, or start a new run "
                    f"with `kubectl tierbench rerun {name}`"
                ) from None

    async def benchmark_names(self) -> list[str]:
        """Returns the names of all benchmarks of the namespace."""
        with self.explained():
            found = [
                metadata["name"]
                for model in BENCHMARKS.values()
                async for metadata in self.kube.each_metadata(model.KIND.resource, self.namespace)
            ]
        return sorted(found)

    async def results_of(self, benchmark: Benchmark) -> tuple[BenchmarkResult, ...]:
        """Returns all results of a benchmark, by run and case."""
        labels = {LABEL_KIND: benchmark.KIND.kind, LABEL_BENCHMARK: benchmark.metadata.name}
        found = parse_items(await self._list(BenchmarkResult.KIND, self.namespace, selector(labels)), "the cluster")
        return tuple(sorted(found.results, key=lambda result: (result.spec.run, result.spec.case)))

    async def delete_results(self, results: Iterable[BenchmarkResult]) -> None:
        """Deletes results, unless they were replaced meanwhile, and prints their names."""
        for result in results:
            kind, metadata = result.KIND, result.metadata
            with self.explained():
                await self.kube.delete(kind.resource, metadata.namespace, metadata.name, {"uid": metadata.uid})
            print(f'{kind.singular}.{GROUP} "{metadata.name}" deleted')

    def watch(self, benchmark: Benchmark) -> tuple[AsyncGenerator[Update], AsyncGenerator[Update]]:
        """Watches the results of the benchmark, and the benchmark, without end. An error says what the user can do."""
        labels = {LABEL_KIND: benchmark.KIND.kind, LABEL_BENCHMARK: benchmark.metadata.name}
        return (
            self._watch(BenchmarkResult.KIND, {"labelSelector": selector(labels)}),
            self._watch(benchmark.KIND, {"fieldSelector": f"metadata.name={benchmark.metadata.name}"}),
        )

    async def _watch(self, kind: Kind, query: Mapping[str, str]) -> AsyncGenerator[Update]:
        async for event in list_and_watch(self.kube, kind.resource, self.namespace, query):
            yield WatchError(self._problem(event.error)) if isinstance(event, WatchError) else event

    @contextmanager
    def explained(self, forbidden: str = "") -> Iterator[None]:
        """Raises a UserError for a request that fails. `forbidden` says what to do without the right to it."""
        try:
            yield
        except REQUEST_ERRORS as error:
            raise self._problem(error, forbidden) from None

    def _problem(self, error: Exception, forbidden: str = "") -> UserError:
        """Returns an error that says what the user can do."""
        address, reason = self.kube.address, describe_error(error)
        if forbidden and isinstance(error, ApiError) and error.status == _FORBIDDEN:
            return UserError(f"{forbidden} ({error.message})")
        if isinstance(error, ApiError):
            return UserError(f"{_HINTS.get(error.status, reason)} ({address})")
        return UserError(
            f"cannot reach the API server at {address} ({reason}): check the network, --context and --kubeconfig"
        )


def _is_tainted(node: Mapping[str, Any]) -> bool:
    """Returns whether a pod needs a toleration to run on the node."""
    taints = node.get("spec", {}).get("taints") or ()
    return any(taint.get("effect") in {"NoSchedule", "NoExecute"} for taint in taints)


def clients_of(roles: Iterable[Mapping[str, Any]], namespace: str) -> ClientSettings | None:
    """Returns how the release that watches a namespace starts clients, if the metadata of a ClusterRole says so."""
    for annotations in (role.get("annotations") or {} for role in roles):
        watched = annotations.get(ANNOTATION, "-").split(",")
        if (watched == [""] or namespace in watched) and ANNOTATION_CLIENTS in annotations:
            return ClientSettings.model_validate_json(annotations[ANNOTATION_CLIENTS])
    return None


def watched_namespaces(roles: Iterable[Mapping[str, Any]]) -> WatchedNamespaces:
    """Returns the watched namespaces from the metadata of all ClusterRoles."""
    annotations = [role.get("annotations") or {} for role in roles]
    found = [each[ANNOTATION] for each in annotations if ANNOTATION in each]
    names = sorted({name for text in found for name in text.split(",") if name})
    return WatchedNamespaces(tuple(names), known=bool(found), everywhere="" in found)


def explain_unwatched(watched: WatchedNamespaces, namespace: str) -> str:
    """Returns a message that no operator watches the namespace, and what to do."""
    return (
        f"The operator does not watch namespace {namespace}, only {', '.join(watched.namespaces)}. Use a namespace "
        f"that it watches, or add {namespace} to the chart value watchNamespaces."
    )


def explain_missing_status(watched: WatchedNamespaces, name: str, namespace: str, seconds: float) -> str:
    """Returns a message why a benchmark may have no status after this time, and what to do."""
    symptom = f"{name} has no status after {seconds:.0f} s."
    if watched.excludes(namespace):
        return f"{symptom} {explain_unwatched(watched, namespace)}"
    if watched.known:
        return (
            f"{symptom} An operator for namespace {namespace} is installed, but does not answer: see `kubectl get pods "
            "-A -l app.kubernetes.io/name=tierbench`."
        )
    return (
        f"{symptom} Either the operator does not watch namespace {namespace}, or it does not run. Ask the person who "
        f"installed tierbench whether the chart value watchNamespaces contains {namespace}."
    )
