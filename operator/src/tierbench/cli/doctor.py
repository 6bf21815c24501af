"""`kubectl tierbench doctor`: checks whether benchmarks can use node classes."""

import argparse
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from secrets import token_hex
from typing import Any, Final

from rich.table import Table as Grid
from rich.text import Text

from tierbench.api.contract import MAXIMUM_PEERS
from tierbench.api.node_class import NodeClass
from tierbench.cli import console
from tierbench.cli.check_pods import CheckPods, Outcome
from tierbench.cli.cluster import ClientSettings, Cluster, clients_of, explain_unwatched, watched_namespaces
from tierbench.cli.command import ExitCode, UserError, add_output_argument, parse_duration, run_with_cluster
from tierbench.cli.output import data_as, write_output
from tierbench.domain.diagnosis import Check, Diagnosis, Finding, Observed, Setup, State, diagnose
from tierbench.domain.placement import members, usable, without_node
from tierbench.domain.views import node_view
from tierbench.results.units import join_words
from tierbench.workloads.check import CheckRun, Place

_SECONDS: Final = 120.0
_ALL: Final = "all"
_WORDS: Final = {State.OK: "ok", State.UNKNOWN: "–", State.LIMITED: "limited", State.BLOCKED: "no"}
_STYLES: Final = {State.LIMITED: "yellow", State.BLOCKED: "red"}


def add_doctor(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `doctor`."""
    parser.set_defaults(run=doctor)
    parser.add_argument("classes", nargs="*", metavar="CLASS", help="the node classes to check (default: all)")
    parser.add_argument(
        "--timeout",
        type=parse_duration,
        default=_SECONDS,
        metavar="DURATION",
        help="how long the check may take, as in 90s or 5m (default: 2m)",
    )
    parser.add_argument(
        "--host-network",
        action="store_true",
        help="let the check pods use the network of their nodes, as access: HostNetwork does; the namespace must "
        "allow it",
    )
    parser.add_argument(
        "--image",
        metavar="IMAGE",
        help="the image of tierbench-client (default: that of the release that watches the namespace)",
    )
    parser.add_argument(
        "--images",
        type=_words,
        default=(),
        metavar="NAMES",
        help="also let the nodes pull the images of these programs, as in nginx,kafka, or of all",
    )
    add_output_argument(parser, "table", "wide", "json", "yaml")


def _words(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(filter(None, text.split(","))))


def doctor(options: argparse.Namespace) -> ExitCode:
    """Checks classes, and prints what they lack.

    Raises:
        UserError: there is no such class, or the check cannot run.
    """
    setup, observed = run_with_cluster(options, partial(_observe, options))
    found = diagnose(observed, setup)
    if options.output in {"json", "yaml"}:
        write_output(data_as(options.output, {"classes": [_to_json(each) for each in found]}), Path("-"))
    else:
        console.show(_grid(found, wide=options.output == "wide"), *_what_to_do(found))
    return ExitCode.NO if any(each.blocked for each in found) else ExitCode.ANSWER


async def _observe(options: argparse.Namespace, cluster: Cluster) -> tuple[Setup, list[Observed]]:
    """Runs the check pods, and returns what was observed of each class."""
    classes = await _chosen(cluster, options.classes)
    clients = await _clients(cluster, options.image)
    nodes = await cluster.nodes()
    pressed = {node["metadata"]["name"] for node in nodes or () if _has_disk_pressure(node)}
    places, observed = [], []
    for index, node_class in enumerate(classes):
        name, results = node_class.metadata.name, node_class.spec.results
        ready, all_ = _nodes_of(node_class, nodes)
        if not ready:
            observed.append(Observed(name, results, node_problem=without_node(name, all_)))
            continue
        places.append(Place(name, node_class.spec, ready[0], index))
        observed.append(Observed(name, results, ready[0], disk_pressure=ready[0] in pressed))
    run = CheckRun(
        name=f"tierbench-check-{token_hex(4)}",
        namespace=cluster.namespace,
        images=clients.images,
        seconds=int(options.timeout),
        host_network=options.host_network,
        isolated=clients.network_policies,
        pulled=_programs(options.images, clients),
    )
    print(f"Checking {join_words([place.node for place in places]) or 'no node'}.", file=sys.stderr, flush=True)
    outcomes = await CheckPods(cluster, run).check(places) if places else {}
    setup = Setup(collector=bool(clients.collector), host_network=options.host_network)
    return setup, [_joined(each, outcomes.get(each.name)) for each in observed]


def _joined(observed: Observed, outcome: Outcome | None) -> Observed:
    if outcome is None:
        return observed
    return replace(
        observed,
        pod_problem=outcome.problem,
        line=outcome.line,
        log_error=outcome.log_error,
        created=outcome.created,
        ended=outcome.ended,
        image_problem=outcome.image_problem,
        node_port_refused=outcome.node_port_refused,
    )


async def _chosen(cluster: Cluster, names: Sequence[str]) -> tuple[NodeClass, ...]:
    """Returns the classes of these names, or all that have nodes."""
    known = {each.metadata.name: each for each in await cluster.classes()}
    if not known:
        raise UserError(
            "there are no node classes, or you may not list them: see `kubectl get nodeclasses.tierbench.io`, and run "
            "`kubectl tierbench init` to propose some"
        )
    missing = [name for name in names if name not in known]
    if missing:
        raise UserError(f"there is no node class {join_words(missing)}; there are {', '.join(sorted(known))}")
    external = [name for name in names if known[name].spec.external]
    if external:
        raise UserError(
            f"{join_words(external)} has no nodes to check, because it is external: see `kubectl describe nodeclass "
            f"{external[0]}`"
        )
    with_nodes = sorted(name for name, each in known.items() if not each.spec.external)
    chosen = tuple(known[name] for name in dict.fromkeys(names or with_nodes))
    if len(chosen) > MAXIMUM_PEERS:
        raise UserError(f"there are {len(chosen)} node classes: name at most {MAXIMUM_PEERS} of them")
    return chosen


async def _clients(cluster: Cluster, image: str | None) -> ClientSettings:
    """Returns how the release that watches the namespace starts clients. `image` replaces the image."""
    roles = await cluster.cluster_roles()
    watched = watched_namespaces(roles)
    if watched.excludes(cluster.namespace):
        raise UserError(explain_unwatched(watched, cluster.namespace))
    found = clients_of(roles, cluster.namespace)
    if image is not None:
        return ClientSettings(image=image) if found is None else found.model_copy(update={"image": image})
    if found is None:
        raise UserError(
            "you may not read the ClusterRole of the release, or there is none, or it is older than this command: name "
            "the image of tierbench-client with --image"
        )
    return found


def _programs(names: Sequence[str], clients: ClientSettings) -> tuple[str, ...]:
    """Returns the programs of these names, or all."""
    known = sorted(clients.programs)
    if names and not known:
        raise UserError("the release does not say which images it has, so --images cannot pull them: upgrade it")
    chosen = known if _ALL in names else names
    missing = [name for name in chosen if name not in known]
    if missing:
        raise UserError(f"the release has no image of {join_words(missing)}; it has those of {', '.join(known)}")
    return tuple(chosen)


def _nodes_of(node_class: NodeClass, nodes: Iterable[Mapping[str, Any]] | None) -> tuple[list[str], int]:
    """Returns the usable nodes of a class, and the number of all. A user who may not list nodes sees the status."""
    if nodes is None:
        status = node_class.status
        return [each.name for each in status.members if each.ready], status.nodes
    found = members(node_class, map(node_view, nodes))
    return [node.name for node in found if usable(node)], len(found)


def _has_disk_pressure(node: Mapping[str, Any]) -> bool:
    conditions = node.get("status", {}).get("conditions", ())
    return any(item["type"] == "DiskPressure" and item["status"] == "True" for item in conditions)


def _grid(found: Sequence[Diagnosis], *, wide: bool) -> Grid:
    grid = Grid(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="")
    for name in ("CLASS", *(("NODE", "ARCH") if wide else ()), *(check.upper() for check in Check)):
        grid.add_column(name, overflow="fold")
    for each in found:
        more = (each.node or "–", each.architecture or "–") if wide else ()
        grid.add_row(each.name, *more, *(_cell(item, wide=wide) for item in each.findings))
    return grid


def _cell(finding: Finding, *, wide: bool) -> Text:
    word = _WORDS[finding.state]
    if finding.detail in {"in", "out"} and finding.state in _STYLES:
        word = f"{word} {finding.detail}"
    elif wide and finding.state is State.OK and finding.check is not Check.NODE and finding.detail:
        word = finding.detail
    return Text(word, style=_STYLES.get(finding.state, ""))


def _what_to_do(found: Sequence[Diagnosis]) -> list[str]:
    """Returns a line for each problem, those first that keep benchmarks from using a class."""
    problems = [
        (item.state, f"{each.name}, {item.check}: {item.what_to_do}")
        for each in found
        for item in each.findings
        if item.what_to_do
    ]
    lines = [f"- {text}" for wanted in (State.BLOCKED, State.LIMITED) for state, text in problems if state is wanted]
    if not lines:
        return []
    return ["", "What to do:", *lines]


def _to_json(each: Diagnosis) -> dict[str, Any]:
    checks = {
        item.check.lower(): {
            "state": item.state.value,
            **({"detail": item.detail} if item.detail else {}),
            **({"whatToDo": item.what_to_do} if item.what_to_do else {}),
        }
        for item in each.findings
    }
    return {
        "name": each.name,
        "node": each.node,
        "architecture": each.architecture,
        "usable": not each.blocked,
        "checks": checks,
    }
