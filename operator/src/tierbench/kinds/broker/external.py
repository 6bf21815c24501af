"""Brokers that are there already: driven by their users' account, and neither deployed nor observed."""

from typing import cast

from tierbench.api.benchmark import Tls
from tierbench.api.result import ServiceFacts
from tierbench.kinds.broker.endpoints import ACCOUNT, AGENT, Asked, Way
from tierbench.kinds.broker.server_spec import External
from tierbench.workloads.agent import agent_manifests
from tierbench.workloads.credentials import secret_items
from tierbench.workloads.workload import Credentials, Manifest, NodeSize, RunningServer, ServerSite, secret


def facts(asked: Asked, size: NodeSize) -> ServiceFacts:
    """No more than its name."""
    return ServiceFacts(name=asked.broker.name)


def credentials(asked: Asked, site: ServerSite) -> Credentials:
    """For the agent's token and the key for payloads: the rest is the user's."""
    return Credentials(secret(asked.owner, site), certificate=asked.tls, account=True)


def manifests(asked: Asked, site: ServerSite) -> tuple[Manifest, ...]:
    """The agent alone, where clients meet."""
    return agent_manifests(asked.owner, asked.images, site, asked.spec.clients.resources)


def way(asked: Asked, server: RunningServer, tls: Tls) -> Way:
    """Where the user says that it is; account and CA are in the user's Secret."""
    external = cast(External, asked.broker.external)
    ca = () if tls is Tls.NONE else ("ca.crt",)
    users = () if external.secret_ref is None else (secret_items(external.secret_ref.name, *ACCOUNT, *ca),)
    secrets = (secret_items(server.site.attached, *AGENT), *users)
    return Way(external.address, secrets, account=bool(users), refused=asked.policy.refused_networks)
