"""Hooks and fixtures for all tests: they print failures at once, and provide an API server and Helm.

For tests of magnitudes, they measure how much CPU the machine loses.
"""

import os
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests import fitness
from tests.api.definitions import ours, put_definitions
from tests.api.server import ApiServer, api_server
from tests.chart.helm import Helm
from tests.cluster import Cluster, binaries

settings.register_profile("gate", deadline=None, derandomize=True, database=None, max_examples=50)
settings.register_profile("release", deadline=None, print_blob=True, max_examples=500)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "gate"))

ROOT = Path(__file__).parents[1]
IN_RELEASE_TIER = os.environ.get("TIER") == "release"
"""In the release tier, a test of magnitudes can fail even on an unfit machine."""

_FITNESS = pytest.StashKey[fitness.Fitness]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None]:
    if item.get_closest_marker("measures") is None:
        return (yield)
    with fitness.watched() as item.stash[_FITNESS]:
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Reports a test of magnitudes as UNFIT if it fails on a machine that lost its processors."""
    report = yield
    found = item.stash.get(_FITNESS, None)
    if call.when == "call" and call.excinfo and report.failed and found and found.unfit and not IN_RELEASE_TIER:
        path, line, _ = item.location
        reason = f"UNFIT: {found.unfit}; the test failed with: {call.excinfo.exconly()}"
        report.outcome, report.longrepr = "skipped", (path, (line or 0) + 1, reason)
    return report


class _Printer:
    """Prints each failure when it happens, because the summary of a long session comes much later."""

    def __init__(self, terminal: pytest.TerminalReporter) -> None:
        self._terminal = terminal

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._print("FAILED" if report.when == "call" else "ERROR", report)
        elif report.skipped and "UNFIT: " in str(report.longrepr):
            self._print("UNFIT", report)

    def _print(self, word: str, report: pytest.TestReport) -> None:
        self._terminal.ensure_newline()
        self._terminal.write_line(f"{word} {report.nodeid} after {report.duration:.1f} s")


def pytest_sessionstart(session: pytest.Session) -> None:
    terminal = session.config.pluginmanager.get_plugin("terminalreporter")
    if isinstance(terminal, pytest.TerminalReporter):
        session.config.pluginmanager.register(_Printer(terminal))


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """An API server that serves all kinds. A fixture that changes it for other tests reverts the change."""
    with api_server(tmp_path_factory.mktemp("apiserver")) as running:
        put_definitions(running, ours())
        for name in ("leases", "bench", "team-a", "team-b"):
            running.request("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        yield running


@pytest.fixture(scope="session")
def helm(tmp_path_factory: pytest.TempPathFactory) -> Helm:
    """Helm without a cluster."""
    kubernetes = binaries.asked()
    return Helm(binaries.build(kubernetes) / "helm", tmp_path_factory.mktemp("helm"), binaries.version(kubernetes))


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """The running built-in cluster with the images loaded. Network policies are enforced, and no disk stalls.

    Another session on the same cluster waits for the end of this one, because both install the operator. So all folders
    of tests share this fixture, because a second one would wait for the first.
    """
    cluster = Cluster(os.environ.get("CLUSTER_NAME", "tierbench"))
    with cluster.lock(f"{cluster.name}-tests"):
        cluster.up()
        cluster.stalls(False)
        cluster.network_policies(True)
        cluster.load(sorted((ROOT / "build" / "images").glob("*.tar")))
        yield cluster
