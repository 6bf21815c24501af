"""The runs that a command's arguments ask for, from a cluster or a file."""

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

from tierbench.advice.matrix import Run
from tierbench.cli.cluster import Cluster
from tierbench.cli.objects import choose, parse_reference, read_file


def chosen_runs(options: argparse.Namespace) -> tuple[Sequence[Run], Mapping[tuple[str, str, str], Mapping[str, Any]]]:
    """The runs, and the specs of their benchmarks as far as they are known.

    Raises:
        Problem: there is none, or it cannot be read.
    """
    if options.source is not None:
        objects, namespace = read_file(options.source), options.namespace
    else:
        reference = None if options.name is None else parse_reference(options.name)
        cluster = Cluster.connect(options.kubeconfig, options.context, options.namespace)
        objects, namespace = cluster.read(reference), cluster.namespace
    return choose(objects, options.name, namespace, options.number), objects.specs
