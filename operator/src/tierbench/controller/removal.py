"""Deletes all benchmarks while an operator can remove their finalizers: `python -m tierbench.controller.removal`.

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
from tierbench.kube.client import REQUEST_ERRORS, Kube, NotFoundError
from tierbench.kube.connect import connect
from tierbench.kube.meta import ResourceType

_PERIOD_SECONDS: Final = 1.0
_MOST_NAMES: Final = 5
_logger = logging.getLogger(__name__)


async def remove_benchmarks(kube: Kube, seconds: float) -> None:
    """Deletes all benchmarks, and waits until they are gone. Raises TimeoutError with the names of the others."""
    deadline = time.monotonic() + seconds
    while left := await _delete_all(kube):
        if time.monotonic() > deadline:
            more = f" and {len(left) - _MOST_NAMES} more" if len(left) > _MOST_NAMES else ""
            raise TimeoutError(
                f"{', '.join(left[:_MOST_NAMES])}{more} still there after {seconds:.0f} s. Does an operator run that "
                "watches their namespaces? Else take their finalizers off, and uninstall again."
            )
        _logger.info("waiting for the deletion of benchmarks", extra={"benchmarks": len(left)})
        await asyncio.sleep(_PERIOD_SECONDS)


async def _delete_all(kube: Kube) -> list[str]:
    """Deletes all benchmarks. Returns those that there were, as kind namespace/name."""
    left = []
    for model in BENCHMARKS.values():
        async for metadata in _metadata(kube, resource := model.KIND.resource):
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
    """Exits with 0 when all benchmarks are gone."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=240, help="how long to wait for (default: %(default)s)")
    arguments = parser.parse_args()
    log_to_stderr("INFO", LogFormat.TEXT)
    try:
        asyncio.run(_run(arguments.seconds))
    except (TimeoutError, *REQUEST_ERRORS) as error:
        sys.exit(f"benchmarks are not removed: {error}")


if __name__ == "__main__":
    main()
