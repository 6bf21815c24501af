"""The runs that a command's arguments ask for, from a cluster or a file."""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from tierbench.advice.tables import RunResults
from tierbench.advice.workload import same
from tierbench.api.result import BenchmarkResult
from tierbench.cli.ask import ask
from tierbench.cli.errors import UserError
from tierbench.cli.files import read_files
from tierbench.cli.objects import Objects, choose, parse_reference
from tierbench.kinds.registry import kind_of
from tierbench.report.timeline import Traces
from tierbench.results.conditions import circumstances
from tierbench.results.units import joined


def chosen_runs(
    options: argparse.Namespace,
) -> tuple[Sequence[RunResults], Mapping[tuple[str, str, str], Mapping[str, Any]]]:
    """The runs, and the specs of their benchmarks as far as they are known.

    Raises:
        UserError: there is none, or it cannot be read.
    """
    objects, namespace = read_objects(options, options.name)
    return _kept(options, objects, namespace), objects.specs


def chosen_with_traces(
    options: argparse.Namespace,
) -> tuple[Sequence[RunResults], Mapping[tuple[str, str, str], Mapping[str, Any]], Traces]:
    """The same, with the traces of their cases: from a cluster, each is asked for by its name.

    Raises:
        UserError: there is no run, or something cannot be read.
    """
    objects, namespace = read_objects(options, options.name)
    runs = _kept(options, objects, namespace)
    traces = objects.traces
    traced = [result for run in runs for result in run.results if _has_traces(result)]
    if traced and not options.source:
        traces = ask(options, lambda cluster: cluster.traces(traced))
    return runs, objects.specs, {(t.metadata.namespace or "default", t.metadata.name): t for t in traces}


def _has_traces(result: BenchmarkResult) -> bool:
    return kind_of(result.spec.benchmark.kind).measures.has_traces(result)


def _kept(options: argparse.Namespace, objects: Objects, namespace: str | None) -> Sequence[RunResults]:
    """The runs, with the results that are asked for."""
    chosen = choose(objects, options.name, namespace, options.number)
    kept = [
        replace(each, results=found)
        for each in chosen
        if (found := tuple(r for r in each.results if _asked(options, r)))
    ]
    if not kept:
        classes = joined(list(dict.fromkeys(name for each in chosen for name in (*each.classes, *each.clients))))
        levels = "; ".join(f"{name} {', '.join(all_)}" for each in chosen for name, all_ in each.factors.items())
        raise UserError(f"no case is as asked for; there are the classes {classes}, and the levels {levels}")
    return kept


def _asked(options: argparse.Namespace, result: BenchmarkResult) -> bool:
    """Whether a result has the classes and levels that are asked for."""
    spec = result.spec
    return (
        options.server in {None, spec.server.node_class}
        and options.client in {None, spec.client.node_class}
        and all(same(circumstances(result).get(factor, "")) == same(level) for factor, level in options.where)
    )


def read_objects(options: argparse.Namespace, name: str | None = None) -> tuple[Objects, str | None]:
    """All objects of the files, or those of a cluster that `name` needs; and the namespace that is meant.

    Raises:
        UserError: they cannot be read.
    """
    if options.source:
        return read_files(options.source), options.namespace
    reference = None if name is None else parse_reference(name)
    return ask(options, lambda cluster: cluster.read(reference))
