"""`kubectl tierbench join`: invites a machine outside the cluster to an external node class."""

import argparse
import hashlib
import secrets
import shlex
import sys
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final
from urllib.parse import urlsplit

from tierbench.api.node_class import MOST_MEMBERS, CollectorAddress, Invitation, NodeClass
from tierbench.cli.cluster import Cluster
from tierbench.cli.command import ExitCode, UserError, duration, parse_duration, run_with_cluster
from tierbench.domain.node_classes import members_of
from tierbench.kube.meta import format_time, parse_time

_TOKEN_BYTES: Final = 32


def add_join(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `join`."""
    parser.set_defaults(run=join)
    parser.add_argument("node_class", metavar="CLASS", help="the node class, which has external: true")
    parser.add_argument("--name", metavar="NAME", help="the name of the member (default: CLASS-1, or the next number)")
    parser.add_argument(
        "--expires",
        type=parse_duration,
        default=3600.0,
        metavar="DURATION",
        help="how long a machine can join with the token, as in 30m (default: 1h)",
    )
    parser.add_argument(
        "--collector",
        metavar="HOST:PORT",
        help="where the machine reaches the operator's collector (default: the chart value collector.address)",
    )
    parser.add_argument("--remove", metavar="NAME", help="remove a member instead: its credential is then refused")


def join(options: argparse.Namespace) -> ExitCode:
    """Invites a machine and prints the command for it, or removes a member.

    Raises:
        UserError: there is no such external class, the operator has no collector, or you may not change the class.
    """
    if options.remove is not None:
        return run_with_cluster(options, lambda cluster: _remove(cluster, options.node_class, options.remove))
    return run_with_cluster(options, lambda cluster: _invite(cluster, options))


async def _invite(cluster: Cluster, options: argparse.Namespace) -> ExitCode:
    node_class = await _external(cluster, options.node_class)
    address = _address(node_class, options.collector)
    current, now = node_class.spec.invitations, cluster.kube.now()
    name = options.name or _free_name(options.node_class, current)
    if any(one.name == name for one in current):
        raise UserError(
            f"NodeClass {options.node_class} has a member or an invitation {name}: choose another --name, or run "
            f"`kubectl tierbench join {options.node_class} --remove {name}` first"
        )
    kept = _without_expired(node_class, now)
    if len(kept) >= MOST_MEMBERS:
        raise UserError(f"NodeClass {options.node_class} has {len(kept)} members: remove one with --remove NAME")
    token = secrets.token_urlsafe(_TOKEN_BYTES)
    until = format_time(now + timedelta(seconds=options.expires))
    digest = hashlib.sha256(token.encode()).hexdigest()
    invited = Invitation(name=name, token_hash=digest, expiration_time=until)
    await cluster.set_invitations(node_class, (*kept, invited))
    print(
        f"On the machine, run this within {duration(options.expires)}. It joins NodeClass {options.node_class} as "
        f"{name}, and measures until you end it:",
        file=sys.stderr,
        flush=True,
    )
    words = ("tierbench-client", "join", address.url, "--class", options.node_class, "--pin", address.pin)
    print(shlex.join((*words, "--token", token)), flush=True)
    return ExitCode.ANSWER


async def _remove(cluster: Cluster, class_name: str, name: str) -> ExitCode:
    node_class = await _external(cluster, class_name)
    kept = tuple(one for one in node_class.spec.invitations if one.name != name)
    if len(kept) == len(node_class.spec.invitations):
        names = ", ".join(one.name for one in kept) or "none"
        raise UserError(f"NodeClass {class_name} has no member {name}; it has these: {names}")
    await cluster.set_invitations(node_class, kept)
    print(f"member {name} removed", flush=True)
    return ExitCode.ANSWER


async def _external(cluster: Cluster, name: str) -> NodeClass:
    known = {item.metadata.name: item for item in await cluster.classes()}
    found = known.get(name)
    if found is None:
        raise UserError(f"there is no node class {name}: create one with `external: true`")
    if not found.spec.external:
        raise UserError(f"NodeClass {name} consists of nodes: create another one with `external: true` for machines")
    return found


def _address(node_class: NodeClass, asked: str | None) -> CollectorAddress:
    """Returns where the machine reaches the operator. The name of a Service is of no use outside the cluster."""
    known = node_class.status.collector
    if known is None:
        raise UserError(
            "the operator has no collector, or has not written the status of the class yet: set the chart values "
            "collector.enabled and collector.address, and try again"
        )
    if asked is not None:
        return CollectorAddress(url=f"https://{asked}", pin=known.pin)
    if (urlsplit(known.url).hostname or "").endswith(".svc"):
        raise UserError(
            f"a machine outside the cluster does not reach {known.url}: set the chart value collector.address, or name "
            "the address with --collector HOST:PORT"
        )
    return known


def _free_name(class_name: str, current: Iterable[Invitation]) -> str:
    used, number = {one.name for one in current}, 1
    while f"{class_name}-{number}" in used:
        number += 1
    return f"{class_name}-{number}"


def _without_expired(node_class: NodeClass, now: datetime) -> tuple[Invitation, ...]:
    """Returns the invitations without those that expired before anyone had joined."""
    joined = members_of(node_class)
    return tuple(
        one for one in node_class.spec.invitations if one.name in joined or parse_time(one.expiration_time) > now
    )
