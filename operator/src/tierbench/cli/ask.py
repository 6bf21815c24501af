"""Questions to a cluster."""

import argparse
import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from tierbench.cli.cluster import Cluster

Answer = TypeVar("Answer")


def ask(options: argparse.Namespace, question: "Callable[[Cluster], Awaitable[Answer]]") -> Answer:
    """What the cluster that the arguments name answers.

    Raises:
        UserError: the kubeconfig cannot be used, or the API server does not answer, or refuses.
    """
    from tierbench.cli.cluster import connect  # noqa: PLC0415 (slow to load: --help and --from do without)

    async def answer() -> Answer:
        async with connect(options.kubeconfig, options.context, options.namespace) as cluster:
            return await question(cluster)

    return asyncio.run(answer())
