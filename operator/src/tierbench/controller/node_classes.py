"""Nodes and node classes: a view of them that all benchmarks share, and the controller of NodeClass statuses."""

import asyncio
import logging
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final

from tierbench.api.model import API_VERSION
from tierbench.api.node_class import NODE_CLASSES, CollectorAddress, NodeClass, NodeClassStatus
from tierbench.controller.definitions import DefinitionCheck
from tierbench.domain.decision import PodLog
from tierbench.domain.node_classes import Member, Noticed, resolve_members
from tierbench.domain.placement import resolve
from tierbench.domain.views import PARSE_ERRORS, NodeView, PodView, node_view
from tierbench.kube.client import REQUEST_ERRORS, Kube, NotFoundError, is_permanent
from tierbench.kube.meta import wait_for_event
from tierbench.metrics.operator import OperatorMetrics

_PAUSE_SECONDS: Final = 5.0
_RETRY_SECONDS: Final = 5.0
_LOOK_SECONDS: Final = 30.0
_logger = logging.getLogger(__name__)


class ClusterView:
    """The nodes and node classes by name, as watches show them."""

    def __init__(self) -> None:
        self.nodes: dict[str, NodeView] = {}
        self.classes: dict[str, NodeClass] = {}
        self.changed = asyncio.Event()
        """Set when statuses of node classes may have to change."""
        self.noticed = Noticed()
        self.members: dict[str, dict[str, Member]] = {}
        """The members of external classes that have asked for work, by class and name."""
        self.collector: CollectorAddress | None = None
        self.waits_for_collector = False
        """Whether the collector is about to have its key. Until then the statuses of external classes stay."""
        self._rejected: dict[str, NodeClassStatus] = {}

    def observe_node(self, raw: Mapping[str, Any], now: datetime, *, deleted: bool) -> bool:
        """Stores a node, unless it is invalid. Returns whether its view has changed."""
        name = raw["metadata"]["name"]
        before = self.nodes.pop(name, None)
        if deleted:
            self.noticed.forget(name)
        else:
            try:
                self.nodes[name] = node_view(raw)
                if self.noticed.observe_clock(raw, now):
                    self.changed.set()
            except PARSE_ERRORS as error:
                _logger.warning("ignoring invalid object", extra={"kind": "Node", "node": name, "error": str(error)})
        changed = deleted or self.nodes.get(name) != before
        if changed:
            self.changed.set()
        return changed

    def observe_class(self, raw: Mapping[str, Any], *, deleted: bool) -> bool:
        """Stores a node class, unless it is invalid. Returns whether its spec has changed."""
        name = raw["metadata"]["name"]
        before = self.classes.pop(name, None)
        if deleted:
            self.members.pop(name, None)
        else:
            try:
                self.classes[name] = NodeClass.model_validate(raw)
            except PARSE_ERRORS as error:
                fields = {"kind": NodeClass.KIND.kind, "object": name, "error": str(error)}
                _logger.warning("ignoring invalid object", extra=fields)
        after = self.classes.get(name)
        changed = deleted or (before and before.spec) != (after and after.spec)
        if changed:
            self.changed.set()
        return changed

    def observe_logs(self, pods: Iterable[PodView], logs: Mapping[str, PodLog]) -> None:
        """Notes whether the logs of ended clients could be read."""
        if self.noticed.observe_logs(pods, logs):
            self.changed.set()

    def retry_rejected(self) -> None:
        """Writes rejected statuses again, because the served definitions have changed."""
        self._rejected.clear()
        self.changed.set()

    async def write_class_statuses(self, kube: Kube) -> None:
        """Writes the status of each class whose nodes have changed. Raises the first error after all are tried.

        A rejected status is not written again until it, or the served definitions, have changed.
        """
        errors = []
        for item in list(self.classes.values()):
            try:
                status = self._resolve(item, kube.now())
                if status == item.status or self._rejected.get(item.metadata.name) == status:
                    continue
                written = await kube.apply_status(NODE_CLASSES, None, _class_status(item, status))
                self.observe_class(written, deleted=False)
            except NotFoundError:
                continue
            except PARSE_ERRORS as error:
                fields = {"object": item.metadata.name, "error": str(error)}
                _logger.warning("cannot resolve a node class: invalid node", extra=fields)
            except REQUEST_ERRORS as error:
                if is_permanent(error):
                    self._rejected[item.metadata.name] = status
                errors.append(error)
        if errors:
            raise errors[0]

    def _resolve(self, item: NodeClass, now: datetime) -> NodeClassStatus:
        if not item.spec.external:
            return resolve(item, self.nodes.values(), now, self.noticed)
        if self.waits_for_collector:
            return item.status
        invited = {one.name for one in item.spec.invitations}
        members = self.members.get(item.metadata.name, {})
        for name in members.keys() - invited:
            del members[name]
        return resolve_members(item, members, self.collector, now)

    @property
    def has_external(self) -> bool:
        """Whether a class has members, which may fall silent without an event."""
        return any(item.spec.external for item in self.classes.values())


def _class_status(item: NodeClass, status: NodeClassStatus) -> dict[str, Any]:
    metadata = {"name": item.metadata.name}
    if item.metadata.resource_version is not None:
        metadata["resourceVersion"] = item.metadata.resource_version
    return {"apiVersion": API_VERSION, "kind": NodeClass.KIND.kind, "metadata": metadata, "status": status.to_json()}


async def run_node_classes(
    kube: Kube, cluster: ClusterView, metrics: OperatorMetrics, definitions: DefinitionCheck
) -> None:
    """Writes statuses after each change, at most once in five seconds, without end. Retries failed writes.

    While definitions do not match, it writes nothing.
    """
    failed = False
    while True:
        at_most = _LOOK_SECONDS if cluster.has_external else None
        await wait_for_event(cluster.changed, _RETRY_SECONDS if failed else at_most)
        cluster.changed.clear()
        with metrics.track("statuses of node classes"):
            failed = False
            try:
                if not definitions.missing:
                    await cluster.write_class_statuses(kube)
            except REQUEST_ERRORS as error:
                failed = True
                if is_permanent(error):
                    definitions.in_doubt.set()
                _logger.warning("cannot write the status of a node class; retrying", extra={"error": str(error)})
        await asyncio.sleep(_PAUSE_SECONDS)
