"""Removes all benchmarks while there is an operator that lets go of them: `python -m tierbench.controller.removal`.

The chart runs it before a release is uninstalled whose CustomResourceDefinitions go, too.
"""

import argparse
import asyncio
import logging
import sys
import time
from collections.abc import AsyncIterator
from typing import Final

from tierbench.controller.logs import LogFormat, log_to_stderr
from tierbench.kinds.registry import BENCHMARKS
from tierbench.kube.client import UNANSWERED, Kube, NotFoundError, ResourceType
from tierbench.kube.connect import connect

_AGAIN_SECONDS: Final = 1.0
_NAMED: Final = 5
_logger = logging.getLogger(__name__)


async def remove_benchmarks(kube: Kube, seconds: float) -> None:
    """Deletes them, and waits until they are gone. Raises TimeoutError with the names of those that stay."""
    deadline = time.monotonic() + seconds
    while left := await _delete_all(kube):
        if time.monotonic() > deadline:
            more = f" and {len(left) - _NAMED} more" if len(left) > _NAMED else ""
            raise TimeoutError(
                f"{', '.join(left[:_NAMED])}{more} still there after {seconds:.0f} s. Does an operator run that "
                "watches their namespaces? Else take their finalizers off, and uninstall again."
            )
        _logger.info("%d benchmarks are going", len(left))
        await asyncio.sleep(_AGAIN_SECONDS)


async def _delete_all(kube: Kube) -> list[str]:
    """What there still was, as kind namespace/name."""
    left = []
    for model in BENCHMARKS.values():
        async for metadata in _metadata(kube, resource := ResourceType.of(model.KIND)):
            namespace, name = metadata["namespace"], metadata["name"]
            left.append(f"{model.KIND.kind} {namespace}/{name}")
            if "deletionTimestamp" not in metadata:
                await kube.delete(resource, namespace, name)
    return left


async def _metadata(kube: Kube, resource: ResourceType) -> AsyncIterator[dict[str, str]]:
    try:
        async for metadata in kube.each_metadata(resource):
            yield metadata
    except NotFoundError:
        return  # the kind is gone already


async def _run(seconds: float) -> None:
    async with connect(lambda method, status: None) as kube:
        await remove_benchmarks(kube, seconds)


def main() -> None:
    """0 when they are gone."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=240, help="how long to wait for (default: %(default)s)")
    arguments = parser.parse_args()
    log_to_stderr("INFO", LogFormat.TEXT)
    try:
        asyncio.run(_run(arguments.seconds))
    except (TimeoutError, *UNANSWERED) as error:
        sys.exit(f"benchmarks are not removed: {error}")


if __name__ == "__main__":
    main()
