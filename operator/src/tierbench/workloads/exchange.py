"""The client of a broker: Jobs that publish and receive, trial after trial."""

from typing import Any, Final

from tierbench.api.benchmark import Tls
from tierbench.api.broker import BrokerSpec, EngineType, Load, Pacing
from tierbench.api.broker_server import Protocol
from tierbench.api.quantity import parse_size
from tierbench.workloads.agent import CA_FILE, CREDENTIALS, TOKEN_FILE, agent_url
from tierbench.workloads.client_job import client_job
from tierbench.workloads.kafka import BATCH_SIZE, CODEC, LINGER, PARTITIONS
from tierbench.workloads.plan import Case
from tierbench.workloads.providers.provider import Asked, Way
from tierbench.workloads.workload import ClientSite, Manifest, Part, Role, RunningServer

KEY_FILE: Final = f"{CREDENTIALS}/payload-key"
USERNAME_FILE: Final = f"{CREDENTIALS}/username"
PASSWORD_FILE: Final = f"{CREDENTIALS}/password"
_ROLES: Final = {Role.WHOLE: "Both", Role.SENDER: "Publisher", Role.ECHO: "Echo"}


def parts(spec: BrokerSpec, case: Case) -> tuple[Part, ...]:
    """The publishers' pods, and if subscribers stand apart as many of theirs."""
    clients = spec.clients
    if clients.subscribers is None:
        return tuple(Part(index, case.client_class) for index in range(clients.pods))
    senders = (Part(index, case.client_class, Role.SENDER) for index in range(clients.pods))
    echo_class = clients.subscribers.node_class
    echoes = (Part(clients.pods + index, echo_class, Role.ECHO) for index in range(clients.pods))
    return (*senders, *echoes)


def share(pairs: int, pods: int, index: int) -> tuple[int, int]:
    """The number of a pod's first pair, and how many it has: as even as can be."""
    few, more = divmod(pairs, pods)
    return index * few + min(index, more), few + (index < more)


def arguments(asked: Asked, way: Way, case: Case, site: ClientSite, server: RunningServer) -> list[str]:
    """The command line of the engine, the same for both."""
    spec, protocol = asked.spec, asked.broker.protocol
    tls = Tls(case.levels["tls"])
    first, pairs = share(int(case.levels["pairs"]), spec.clients.pods, site.part.index % spec.clients.pods)
    options: dict[str, Any] = {
        "url": f"{protocol.lower()}{'' if tls is Tls.NONE else 's'}://{way.address}",
        "topic": f"tierbench/{server.site.name}/{case.number}",
        "trials": f"{site.trials[0]}-{site.trials[-1]}",
        "warmup": spec.warmup,
        "pairs": pairs,
        "first-pair": first,
        "role": _ROLES[site.part.role],
        "size": parse_size(case.levels["payloadSize"]),
        "content": case.levels["content"],
        "delivery": case.levels["delivery"],
        "compression": case.levels["compression"],
        "encryption": case.levels["encryption"],
        "key-file": KEY_FILE,
        **_pacing(spec.pacing),
        **_load(spec.load),
        "window": spec.window,
        "patience-milliseconds": spec.patience_milliseconds,
        "ready-milliseconds": spec.ready_seconds * 1000,
        "tls": tls.value,
        "agent": agent_url(server),
        "agent-token-file": TOKEN_FILE,
        "barrier": f"r{site.run}-c{case.number}-a{site.attempt}",
        "part": site.part.index,
        "parts": len(parts(spec, case)),
        "output": "json",
        "termination-log": "/dev/termination-log",
    }
    if protocol is Protocol.KAFKA:
        options |= _kafka(case)
    if way.account:
        options |= {"username-file": USERNAME_FILE, "password-file": PASSWORD_FILE}
    if tls is not Tls.NONE:
        options |= {"ca-file": CA_FILE}
    if way.server_name is not None:
        options |= {"server-name": way.server_name}
    flags = [f"--{name}={value}" for name, value in options.items()]
    return ["broker", *flags, *(["--as-fast-as-possible"] if spec.pacing.as_fast_as_possible is not None else [])]


def _kafka(case: Case) -> dict[str, Any]:
    return {
        "codec": case.levels[CODEC],
        "partitions": case.levels[PARTITIONS],
        "linger-milliseconds": case.levels[LINGER],
        "batch-bytes": parse_size(case.levels[BATCH_SIZE]),
    }


def _pacing(pacing: Pacing) -> dict[str, int]:
    if pacing.closed_loop is not None:
        return {"in-flight": pacing.closed_loop.in_flight}
    if pacing.interval_milliseconds is not None:
        return {"interval-milliseconds": pacing.interval_milliseconds}
    return {"messages-per-second": pacing.messages_per_second} if pacing.messages_per_second is not None else {}


def _load(load: Load) -> dict[str, int]:
    if load.messages_per_publisher is not None:
        return {"messages": load.messages_per_publisher}
    return {"duration-seconds": load.duration_seconds or 0}


def broker_job(asked: Asked, way: Way, site: ClientSite, case: Case, server: RunningServer) -> Manifest:
    """The Job of one part."""
    images = asked.images
    image = images.paho if asked.spec.clients.engine is EngineType.PAHO else images.client
    command = arguments(asked, way, case, site, server)
    return client_job(asked.owner, images, site, case, image, command, way.secrets)
