"""Runs the operator as a process on this machine, with the environment and the permissions of the chart."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

from tests.api.server import ApiServer, Json
from tests.ports import free_ports

_PROGRAM = "from tierbench.controller.main import main; main()"
_MODULES = str(Path(__file__).parents[2] / "operator" / "src")
_GRACE_SECONDS = 5


class Operator:
    """The process of an operator's pod, with the token of its service account.

    Its output is added to operator.log in `folder`. It connects to the API server at `url`.
    """

    def __init__(
        self,
        server: ApiServer,
        folder: Path,
        token: str,
        pod: Mapping[str, Any],
        changed: Mapping[str, str],
        url: str,
    ) -> None:
        kubeconfig = json.loads(server.kubeconfig.read_text())
        kubeconfig["users"][0]["user"]["token"] = token
        kubeconfig["clusters"][0]["cluster"]["server"] = url
        own, self.log = folder / "operator.kubeconfig", folder / "operator.log"
        own.write_text(json.dumps(kubeconfig))
        (container,) = pod["containers"]
        self.port, self.collector, probes = free_ports(3)
        given = {variable["name"]: variable.get("value", "") for variable in container["env"]}
        local = {
            "KUBECONFIG": str(own),
            "TIERBENCH_HTTP_PORT": str(self.port),
            "TIERBENCH_PROBE_PORT": str(probes),
            "TIERBENCH_COLLECTOR_PORT": str(self.collector),
            "PYTHONPATH": _MODULES,
        }
        command = ["setpriv", "--pdeathsig", "KILL", "--", sys.executable, "-c", _PROGRAM]
        with self.log.open("ab") as output:
            environment = {**os.environ, **given, **changed, **local}
            self.process = subprocess.Popen(command, env=environment, stdout=output, stderr=subprocess.STDOUT)

    def readiness(self) -> str:
        """Returns the text of /readyz."""
        return self._readyz()[1]

    def is_ready(self) -> bool:
        """Returns whether the operator leads or is on standby."""
        return self._readyz()[0] == HTTPStatus.OK

    def end(self) -> None:
        """Stops the operator as a kubelet stops a container."""
        self.process.terminate()
        try:
            self.process.wait(_GRACE_SECONDS)
        except subprocess.TimeoutExpired:  # the process is stopped or hangs
            self.process.kill()
            self.process.wait()

    def _readyz(self) -> tuple[int, str]:
        """Returns the status and the text of /readyz, or 0 and no text if the process does not respond."""
        try:
            with urlopen(f"http://127.0.0.1:{self.port}/readyz", timeout=2) as answer:
                return answer.status, answer.read().decode()
        except HTTPError as error:
            return error.code, error.read().decode()
        except OSError:
            return 0, ""


def token_of(server: ApiServer, namespace: str, pod: Mapping[str, Any]) -> str:
    """Returns a token of the pod's service account."""
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{pod['serviceAccountName']}/token"
    token: str = server.request("POST", path, {"spec": {}})["status"]["token"]
    return token


@contextmanager
def operator(server: ApiServer, folder: Path, deployment: Json, **changed: str) -> Iterator[Operator]:
    """Yields the operator of a release's Deployment, and kills it at the end of the block."""
    pod = deployment["spec"]["template"]["spec"]
    token = token_of(server, deployment["metadata"]["namespace"], pod)
    running = Operator(server, folder, token, pod, changed, server.url)
    try:
        yield running
    finally:
        running.process.kill()
        running.process.wait()
