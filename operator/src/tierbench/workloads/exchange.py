"""The client of a broker: Jobs that publish and receive, trial after trial."""

from typing import Any, Final

from tierbench.api.benchmark import Tls
from tierbench.api.broker import BrokerSpec, EngineType, Load, Pacing
from tierbench.api.broker_server import Broker, Protocol
from tierbench.api.quantity import parse_size
from tierbench.workloads import kafka, mosquitto
from tierbench.workloads.access import SERVER_NAME, address
from tierbench.workloads.agent import CA_FILE, CREDENTIALS, TOKEN_FILE, agent_url
from tierbench.workloads.client_job import client_job, secret_items
from tierbench.workloads.kafka import BATCH_SIZE, CODEC, LINGER, PARTITIONS
from tierbench.workloads.names import Owner
from tierbench.workloads.plan import Case
from tierbench.workloads.strimzi import listener_of, strimzi_names
from tierbench.workloads.workload import ClientSite, Images, Manifest, Part, Role, RunningServer, ServerSite

KEY_FILE: Final = f"{CREDENTIALS}/payload-key"
USERNAME_FILE: Final = f"{CREDENTIALS}/username"
PASSWORD_FILE: Final = f"{CREDENTIALS}/password"
_PORTS: Final = {**mosquitto.PORTS, **kafka.PORTS}
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


def arguments(spec: BrokerSpec, broker: Broker, case: Case, site: ClientSite, server: RunningServer) -> list[str]:
    """The command line of the engine, the same for both."""
    tls = Tls(case.levels["tls"])
    first, pairs = share(int(case.levels["pairs"]), spec.clients.pods, site.part.index % spec.clients.pods)
    options: dict[str, Any] = {
        "url": _url(spec, broker, server, tls),
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
    if broker.protocol is Protocol.KAFKA:
        options |= _kafka(case)
    if _has_account(broker):
        options |= {"username-file": USERNAME_FILE, "password-file": PASSWORD_FILE}
    if tls is not Tls.NONE:
        options |= {"ca-file": CA_FILE}
    if broker.external is None and not broker.by_strimzi and (tls is not Tls.NONE or broker.protocol is Protocol.KAFKA):
        options |= {"server-name": SERVER_NAME}
    flags = [f"--{name}={value}" for name, value in options.items()]
    return ["broker", *flags, *(["--as-fast-as-possible"] if spec.pacing.as_fast_as_possible is not None else [])]


def _has_account(broker: Broker) -> bool:
    return broker.external is None or broker.external.secret_ref is not None


def _url(spec: BrokerSpec, broker: Broker, server: RunningServer, tls: Tls) -> str:
    name = broker.protocol.lower() + ("" if tls is Tls.NONE else "s")
    if broker.external is not None:
        return f"{name}://{broker.external.address}"
    if broker.by_strimzi:
        return f"{name}://{server.listeners[listener_of(tls is not Tls.NONE)]}"
    return f"{name}://{address(spec.access, server, name, _PORTS[name])}"


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


def broker_job(
    owner: Owner,
    spec: BrokerSpec,
    broker: Broker,
    images: Images,
    site: ClientSite,
    case: Case,
    server: RunningServer,
) -> Manifest:
    """The Job of one part."""
    image = images.paho if spec.clients.engine is EngineType.PAHO else images.client
    credentials = _credentials(owner, broker, server.site, Tls(case.levels["tls"]))
    return client_job(owner, images, site, case, image, arguments(spec, broker, case, site, server), credentials)


def _credentials(owner: Owner, broker: Broker, site: ServerSite, tls: Tls) -> tuple[dict[str, Any], ...]:
    """Of our own brokers all from one Secret; the CA from Strimzi's where that made it; of an external broker the
    account and the CA from the user's."""
    ca = () if tls is Tls.NONE else ("ca.crt",)
    secret, account = site.attached, ("username", "password")
    ours = ("agent-token", "payload-key")
    if broker.by_strimzi:
        theirs = strimzi_names(owner, site.run, site.slot_index).authority
        return (secret_items(secret, *ours, *account), *((secret_items(theirs, *ca),) if ca else ()))
    if broker.external is None:
        return (secret_items(secret, *ours, *account, *ca),)
    users = broker.external.secret_ref
    return (secret_items(secret, *ours), *(() if users is None else (secret_items(users.name, *account, *ca),)))
