"""The runs that a command's arguments ask for, from a cluster or a file."""

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

from tierbench.advice.matrix import Run
from tierbench.cli.cluster import Cluster
from tierbench.cli.files import read_files
from tierbench.cli.objects import Objects, choose, parse_reference


def chosen_runs(options: argparse.Namespace) -> tuple[Sequence[Run], Mapping[tuple[str, str, str], Mapping[str, Any]]]:
    """The runs, and the specs of their benchmarks as far as they are known.

    Raises:
        Problem: there is none, or it cannot be read.
    """
    objects, namespace = read_objects(options, options.name)
    return choose(objects, options.name, namespace, options.number), objects.specs


def read_objects(options: argparse.Namespace, name: str | None = None) -> tuple[Objects, str | None]:
    """All objects of the files, or those of a cluster that `name` needs; and the namespace that is meant.

    Raises:
        Problem: they cannot be read.
    """
    if options.source:
        return read_files(options.source), options.namespace
    cluster = Cluster.connect(options.kubeconfig, options.context, options.namespace)
    return cluster.read(None if name is None else parse_reference(name)), cluster.namespace
