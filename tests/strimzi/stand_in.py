"""Replaces Strimzi's operator in tests: the same statuses in the same order, and a real broker.

It watches every namespace. Unlike Strimzi, it creates a Kafka's user before the broker starts, and never changes an
object. It never sets `Ready` back to False, which Strimzi does late.
"""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import aiohttp

from tests.strimzi.broker import Json, children, host, listeners, pod_name
from tierbench.kinds.broker.strimzi import GROUP
from tierbench.kube.client import ApiError, ConflictError, Kube, NotFoundError
from tierbench.kube.connect import connect_by_kubeconfig
from tierbench.kube.meta import type_of

VERSION: Final = "4.3.1"
_PERIOD_SECONDS: Final = 0.5
_FINALIZER: Final = "strimzi.io/topic-operator"
_MERGE: Final = "application/merge-patch+json"
_DOOMED: Final = frozenset({"CrashLoopBackOff", "ImagePullBackOff", "ErrImagePull"})


class _RefusedError(Exception):
    """What Strimzi gives as the reason of NotReady, and its words."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


@dataclass
class StandIn:
    """While not `watching` it answers for nothing."""

    kubeconfig: str
    api_version: str
    watching: bool = True

    async def run(self, stop: asyncio.Event) -> None:
        """Reconciles repeatedly until it is stopped."""
        async with connect_by_kubeconfig(self.kubeconfig, None) as (kube, _):
            while not stop.is_set():
                try:
                    if self.watching:
                        await self._look(kube)
                except (ApiError, aiohttp.ClientError, TimeoutError) as error:
                    print(f"stand-in: {error}", flush=True)
                try:
                    await asyncio.wait_for(stop.wait(), _PERIOD_SECONDS)
                except TimeoutError:
                    continue

    async def _look(self, kube: Kube) -> None:
        kinds = ("Kafka", "KafkaNodePool", "KafkaUser", "KafkaTopic")
        found = await asyncio.gather(*(kube.list(self._type(kind)) for kind in kinds))
        kafkas, pools, users, topics = found
        for kafka in kafkas:
            pool, user = _of(pools, kafka), _of(users, kafka)
            if "deletionTimestamp" not in kafka["metadata"] and user is not None:
                await self._bring_up(kube, kafka, pool, user)
        ready = {_key(kafka): kafka for kafka in kafkas if _is_ready(kafka)}
        for user in users:
            if (user["metadata"]["namespace"], _cluster(user)) in ready and not _is_ready(user):
                await self._answer(kube, user, "KafkaUser", _condition("Ready"), username=user["metadata"]["name"])
        for topic in topics:
            of = ready.get((topic["metadata"]["namespace"], _cluster(topic)))
            if of is not None:
                await self._operate(kube, of, topic)

    async def _bring_up(self, kube: Kube, kafka: Json, pool: Json | None, user: Json) -> None:
        if "status" not in kafka:
            await self._answer(kube, kafka, "Kafka", _condition("NotReady", "Creating"), observed=0)
        try:
            pod = await self._make(kube, kafka, pool, user)
        except _RefusedError as error:
            await self._answer(kube, kafka, "Kafka", _condition("NotReady", error.reason, str(error)))
            return
        if _pod_is_ready(pod) and not _is_ready(kafka):
            warning = _condition("Warning", "KafkaStorage", "A Kafka cluster with a single broker node …")
            addresses = [_address(kafka, listener) for listener in listeners(kafka)]
            versions = {"kafkaVersion": VERSION, "operatorLastSuccessfulVersion": "stand-in"}
            await self._answer(kube, kafka, "Kafka", warning, _condition("Ready"), listeners=addresses, **versions)

    async def _make(self, kube: Kube, kafka: Json, pool: Json | None, user: Json) -> Json:
        """What belongs to the Kafka, unless it is there. Raises what Strimzi gives as a reason."""
        version = kafka["spec"]["kafka"].get("version", VERSION)
        if version != VERSION:
            words = f"Unsupported Kafka.spec.kafka.version: {version}. Supported versions are: [{VERSION}]"
            raise _RefusedError("UnsupportedKafkaVersionException", words)
        if pool is None:
            raise _RefusedError("InvalidConfigurationException", "No KafkaNodePools found for this Kafka")
        namespace, name = kafka["metadata"]["namespace"], pod_name(kafka, pool)
        try:
            pod = await kube.get(type_of("v1", "Pod"), namespace, name)
        except NotFoundError:
            for child in children(kafka, pool, user):
                await _create(kube, child)
            return {}
        waiting = [item.get("state", {}).get("waiting", {}) for item in pod["status"].get("containerStatuses", ())]
        doomed = next((item["reason"] for item in waiting if item.get("reason") in _DOOMED), None)
        if doomed is not None:
            raise _RefusedError("FatalProblem", f"Pod {name} is unschedulable or is not starting: {doomed}")
        return pod

    async def _operate(self, kube: Kube, kafka: Json, topic: Json) -> None:
        """As the topic operator, which goes with its Kafka."""
        metadata, container = topic["metadata"], kafka["spec"]["entityOperator"]["template"]["topicOperatorContainer"]
        kind, path = self._type("KafkaTopic"), (metadata["namespace"], metadata["name"])
        if "deletionTimestamp" in metadata:
            await kube.drop_finalizers(kind, *path, metadata["uid"])
            return
        if {"name": "STRIMZI_USE_FINALIZERS", "value": "false"} not in container.get("env", ()):
            body = {"metadata": {"finalizers": [_FINALIZER]}}
            await kube.request("PATCH", kind.path(*path), body=body, content_type=_MERGE)
        if not _is_ready(topic):
            await self._answer(kube, topic, "KafkaTopic", _condition("Ready"), topicName=metadata["name"])

    async def _answer(self, kube: Kube, item: Json, kind: str, *conditions: Json, **status: Any) -> None:
        metadata = item["metadata"]
        body = {"observedGeneration": metadata["generation"], "conditions": list(conditions), **status}
        if "observed" in body:
            body["observedGeneration"] = body.pop("observed")
        if _conditions_of(item) == _conditions_of({"status": body}):
            return
        path = self._type(kind).path(metadata["namespace"], metadata["name"], "status")
        await kube.request("PATCH", path, body={"status": body}, content_type=_MERGE)

    def _type(self, kind: str) -> Any:
        return type_of(f"{GROUP}/{self.api_version}", kind)


@contextmanager
def running(stand_in: StandIn) -> Iterator[StandIn]:
    """Runs the stand-in during the tests."""
    loop, stop = asyncio.new_event_loop(), asyncio.Event()
    thread = threading.Thread(target=lambda: loop.run_until_complete(stand_in.run(stop)))
    thread.start()
    try:
        yield stand_in
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
        loop.close()


async def _create(kube: Kube, child: Json) -> None:
    try:
        await kube.create(type_of(child["apiVersion"], child["kind"]), child["metadata"]["namespace"], child)
    except ConflictError:
        return


def _of(items: list[Json], kafka: Json) -> Json | None:
    return next((item for item in items if (item["metadata"]["namespace"], _cluster(item)) == _key(kafka)), None)


def _key(kafka: Json) -> tuple[str, str]:
    return kafka["metadata"]["namespace"], kafka["metadata"]["name"]


def _cluster(item: Json) -> str:
    name: str = item["metadata"]["labels"]["strimzi.io/cluster"]
    return name


def _condition(kind: str, reason: str = "", message: str = "") -> Json:
    details = {"reason": reason, "message": message} if reason else {}
    return {"type": kind, "status": "True", "lastTransitionTime": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}", **details}


def _conditions_of(item: Json) -> list[tuple[str, str]]:
    return [(one["type"], one.get("reason", "")) for one in item.get("status", {}).get("conditions", ())]


def _is_ready(item: Json) -> bool:
    return ("Ready", "") in _conditions_of(item)


def _pod_is_ready(pod: Json) -> bool:
    conditions = pod.get("status", {}).get("conditions", ())
    return any((item["type"], item["status"]) == ("Ready", "True") for item in conditions)


def _address(kafka: Json, listener: Json) -> Json:
    name, port = host(kafka, listener), listener["port"]
    addresses = [{"host": name, "port": port}]
    return {"name": listener["name"], "addresses": addresses, "bootstrapServers": f"{name}:{port}"}
