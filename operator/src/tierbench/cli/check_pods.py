"""Starts the pods of `kubectl tierbench doctor`, reads what they report, and removes them."""

import asyncio
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from pydantic import ValidationError

from tierbench.api.benchmark import Access
from tierbench.api.contract import CheckLine
from tierbench.cli.cluster import Cluster
from tierbench.domain import reasons
from tierbench.domain.views import Problem, pod_problem
from tierbench.kube.client import REJECTED, REQUEST_ERRORS, ApiError, ConflictError, describe_error
from tierbench.kube.meta import EVENTS, JOBS, NETWORK_POLICIES, PODS, SERVICES, Raw, ResourceType, parse_time
from tierbench.workloads.check import AnsweringPod, CheckRun, Place
from tierbench.workloads.workload import CLIENT, Manifest

RIGHTS: Final = (
    "ask an administrator for `create` and `delete` on jobs, `create` on pods, services and networkpolicies, `list` on "
    "pods and `get` on pods/log in the namespace; the role edit has them"
)
_POLL_SECONDS: Final = 0.5
_TRANSIENT_SECONDS: Final = 10.0  # a registry or a scheduler may recover
_LOG_SECONDS: Final = 15.0
_REMOVAL_SECONDS: Final = 10.0
_LOG_BYTES: Final = 64 << 10
_STARTING_SHARE: Final = 0.6
_FORBIDDEN: Final = 403
_OTHER_ARCHITECTURE: Final = "exec format error"  # of the kernel
_NO_RIGHT: Final = "cannot"  # of RBAC; admission says why it refuses an object


@dataclass(frozen=True)
class Outcome:
    """What became of the pods of a class, as in `Observed`."""

    problem: Problem | None = None
    line: CheckLine | None = None
    log_error: str | None = ""
    created: datetime | None = None
    ended: datetime | None = None
    image_problem: Problem | None = None
    node_port_refused: str = ""


class CheckPods:
    """The pods of one check. `seconds` bounds everything but the removal."""

    def __init__(self, cluster: Cluster, run: CheckRun) -> None:
        self._cluster = cluster
        self._kube = cluster.kube
        self._run = run
        self._begun = time.monotonic()

    async def check(self, places: Sequence[Place]) -> Mapping[str, Outcome]:
        """Returns what became of the pods of each class. Removes them, whatever happens.

        Raises:
            UserError: the user may not do this, or the API server does not answer.
        """
        with self._cluster.explained(f"you may not check classes in namespace {self._run.namespace}: {RIGHTS}"):
            owner = await self._kube.create(JOBS, self._run.namespace, self._run.owner())
            self._run = replace(self._run, uid=owner["metadata"]["uid"])
            try:
                return await self._check(places)
            finally:
                await self._remove()

    async def _remove(self) -> None:
        try:
            async with asyncio.timeout(_REMOVAL_SECONDS):
                await self._kube.delete(JOBS, self._run.namespace, self._run.name, {"uid": self._run.uid})
        except REQUEST_ERRORS as error:
            limit = self._run.owner()["spec"]["activeDeadlineSeconds"]
            print(
                f"Warning: Job {self._run.name} could not be deleted ({describe_error(error)}). It ends {limit} s "
                "after its start, and takes its pods with it.",
                file=sys.stderr,
            )

    async def _check(self, places: Sequence[Place]) -> Mapping[str, Outcome]:
        found: dict[str, Outcome] = {}
        services, refused = await self._create_services(places)
        if self._run.isolated and not self._run.host_network:
            await self._create(NETWORK_POLICIES, self._run.policy(services.values()))
        pods = {place.name: self._run.answering_pod(place) for place in places}
        running = await self._start(pods, found, _is_running, _STARTING_SHARE * self._run.seconds)
        answering = [
            _answering(place, running[place.name]["status"], services[place.name])
            for place in places
            if place.name in running
        ]
        pods = {each.place.name: self._run.asking_pod(each.place, answering) for each in answering}
        ended = await self._start(pods, found, _has_ended, self._run.seconds)
        reports = await asyncio.gather(*(self._read(pod, found[name].ended) for name, pod in ended.items()))
        found |= dict(zip(ended, reports, strict=True))
        images = await self._pull([each.place for each in answering]) if self._run.pulled else {}
        return {
            name: replace(each, image_problem=images.get(name), node_port_refused=refused.get(name, ""))
            for name, each in found.items()
        }

    async def _create_services(self, places: Sequence[Place]) -> tuple[dict[str, Manifest], dict[str, str]]:
        """Creates the Services of pods that answer. Returns them, and why some have no port on nodes, by class."""
        services: dict[str, Manifest] = {}
        refused: dict[str, str] = {}
        for place in places:
            try:
                services[place.name] = await self._create(SERVICES, self._run.service(place, Access.NODE_PORT))
            except ApiError as error:
                if not _is_refused(error):
                    raise
                refused[place.name] = error.message
                services[place.name] = await self._create(SERVICES, self._run.service(place, Access.CLUSTER_IP))
        return services, refused

    async def _pull(self, places: Sequence[Place]) -> dict[str, Problem | None]:
        """Pulls the images of programs, and returns why a node does not have all of them, by class."""
        found: dict[str, Outcome] = {}
        pods = {place.name: self._run.pulling_pod(place) for place in places}
        pulled = await self._start(pods, found, _has_pulled, self._run.seconds)
        return {name: _unusable_image(pulled[name]) if name in pulled else each.problem for name, each in found.items()}

    async def _create(self, resource: ResourceType, manifest: Manifest) -> Manifest:
        return await self._kube.create(resource, self._run.namespace, manifest)

    async def _start(
        self, pods: Mapping[str, Manifest], found: dict[str, Outcome], done: Callable[[Raw], bool], limit: float
    ) -> dict[str, Raw]:
        """Creates pods, and returns those that are `done`, by class. Adds what became of all to `found`."""
        waiting: dict[str, str] = {}
        for name, manifest in pods.items():
            try:
                await self._create(PODS, manifest)
            except ApiError as error:
                if not _is_refused(error):
                    raise
                found[name] = Outcome(Problem(reasons.REFUSED, error.message))
            else:
                waiting[manifest["metadata"]["name"]] = name
        reached: dict[str, Raw] = {}
        since: dict[str, float] = {}
        while waiting:
            seen = {raw["metadata"]["name"]: raw for raw in await self._list()}
            over = time.monotonic() - self._begun > limit
            for pod, name in list(waiting.items()):
                raw = seen.get(pod)
                if raw is not None and done(raw):
                    reached[name], found[name] = raw, Outcome(ended=self._kube.now())
                elif (problem := await self._problem(pod, raw, since, over=over)) is not None:
                    found[name] = Outcome(problem)
                else:
                    continue
                del waiting[pod]
            await asyncio.sleep(_POLL_SECONDS if waiting else 0)
        return reached

    async def _list(self) -> list[Manifest]:
        return await self._kube.list(PODS, self._run.namespace, self._run.labels)

    async def _problem(self, pod: str, raw: Raw | None, since: dict[str, float], *, over: bool) -> Problem | None:
        """Returns why a pod will not be done, once that is certain."""
        status = {} if raw is None else raw.get("status", {})
        problem = pod_problem(status)
        if problem is not None:
            first = since.setdefault(pod, time.monotonic())
            if over or not problem.transient or time.monotonic() - first > _TRANSIENT_SECONDS:
                return problem
            return None
        since.pop(pod, None)
        if status.get("phase") in {"Failed", "Succeeded"}:
            return Problem(reasons.CLIENT_FAILED, _last_words(status))
        if not over:
            return None
        warning = await self._last_warning(pod) or _waiting(status)
        return Problem(reasons.TIMED_OUT, f"it did not start, or did not end, in time: {warning}")

    async def _last_warning(self, pod: str) -> str:
        """Returns the newest warning about a pod, if the user may list events."""
        asked = {"fieldSelector": f"involvedObject.name={pod},type=Warning"}
        try:
            pages = [page async for page in self._kube.pages(EVENTS, self._run.namespace, asked)]
        except REQUEST_ERRORS:
            return ""
        events = (item for page in pages for item in page["items"] or ())
        # Not by their times: a kubelet writes them by its own clock.
        newest: Raw = max(events, key=lambda one: int(one["metadata"]["resourceVersion"]), default={})
        return str(newest.get("message", ""))

    async def _read(self, pod: Raw, ended: datetime | None) -> Outcome:
        """Returns what a pod reported: by its log, or by its status if that cannot be read."""
        name, created = pod["metadata"]["name"], parse_time(pod["metadata"]["creationTimestamp"])
        text, error = "", None
        try:
            async with asyncio.timeout(_LOG_SECONDS):
                text = await self._log(name)
        except ApiError as refused:
            if _lacks_rights(refused):
                raise
            error = str(refused)
        except REQUEST_ERRORS as failed:
            error = "timed out" if isinstance(failed, TimeoutError) else describe_error(failed)
        if error is None and not text.strip():
            error = "the log is empty"
        line = _parse(text) or _parse(_message(pod["status"]))
        if line is None:
            return Outcome(Problem(reasons.CLIENT_FAILED, _last_words(pod["status"], text)), None, error)
        return Outcome(None, line, error, created, ended)

    async def _log(self, name: str) -> str:
        found = bytearray()
        async with aclosing(self._kube.log(self._run.namespace, name, CLIENT, follow=False)) as pieces:
            async for piece in pieces:
                found += piece
                if len(found) >= _LOG_BYTES:
                    break
        return found[:_LOG_BYTES].decode(errors="replace")


def _lacks_rights(error: ApiError) -> bool:
    """Whether RBAC refuses a request."""
    return error.status == _FORBIDDEN and not isinstance(error, ConflictError) and f"{_NO_RIGHT} " in error.message


def _is_refused(error: ApiError) -> bool:
    """Whether a quota, Pod Security or admission refuses an object, and not RBAC."""
    return error.status in REJECTED and not _lacks_rights(error)


def _answering(place: Place, status: Raw, service: Manifest) -> AnsweringPod:
    return AnsweringPod(place, status["podIP"], status["hostIP"], service)


def _is_running(raw: Raw) -> bool:
    status = raw.get("status", {})
    return status.get("phase") == "Running" and bool(status.get("podIP"))


def _has_ended(raw: Raw) -> bool:
    return any("terminated" in item.get("state", {}) for item in raw.get("status", {}).get("containerStatuses", ()))


def _has_pulled(raw: Raw) -> bool:
    """Whether all containers have ended, with whatever exit code: an image may have no such program."""
    states = [item.get("state", {}) for item in raw.get("status", {}).get("containerStatuses", ())]
    return bool(states) and all("terminated" in state for state in states)


def _unusable_image(pod: Raw) -> Problem | None:
    """Returns that an image is for another architecture, although it was pulled."""
    for item in pod["status"]["containerStatuses"]:
        message = item["state"]["terminated"].get("message", "")
        if _OTHER_ARCHITECTURE in message:
            return Problem(reasons.IMAGE_PULL_FAILED, f"container {item['name']}: {message}")
    return None


def _message(status: Raw) -> str:
    ended = [item.get("state", {}).get("terminated", {}) for item in status.get("containerStatuses", ())]
    return str(ended[0].get("message", "")) if ended else ""


def _last_words(status: Raw, log: str = "") -> str:
    """Returns how a pod has ended."""
    states = [item.get("state", {}).get("terminated", {}) for item in status.get("containerStatuses", ())]
    code = f"exit code {states[0]['exitCode']}" if states and "exitCode" in states[0] else status.get("reason", "")
    lines = (_message(status) or log or status.get("message", "")).strip().splitlines()
    return f"it ended early, {code}" + (f": {lines[-1]}" if lines else "")


def _waiting(status: Raw) -> str:
    found = [item.get("state", {}).get("waiting", {}) for item in status.get("containerStatuses", ())]
    texts = (f"{item['reason']} {item.get('message', '')}".strip() for item in found if item.get("reason"))
    return next(texts, "its node reports nothing")


def _parse(text: str) -> CheckLine | None:
    """Returns the report in an output, if there is one."""
    for line in text.splitlines():
        try:
            found = CheckLine.model_validate_json(line)
            parse_time(found.started_at), parse_time(found.ended_at)
        except (ValidationError, ValueError):
            continue
        return found
    return None
