"""The operator as a process on this machine, with the environment and the rights that the chart gives it."""

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
HERE = str(Path(__file__).parents[2] / "operator" / "src")
"""The modules of this version."""
_GRACE_SECONDS = 5


class Operator:
    """The program of an operator's pod, as the pod's account. What it prints is added to operator.log in `folder`.

    It asks the API server at `url`. Its modules, as this version or another has them, are in `path`.
    """

    def __init__(
        self,
        server: ApiServer,
        folder: Path,
        token: str,
        pod: Mapping[str, Any],
        changed: Mapping[str, str],
        url: str,
        path: str = HERE,
    ) -> None:
        kubeconfig = json.loads(server.kubeconfig.read_text())
        kubeconfig["users"][0]["user"]["token"] = token
        kubeconfig["clusters"][0]["cluster"]["server"] = url
        own, self.log = folder / "operator.kubeconfig", folder / "operator.log"
        own.write_text(json.dumps(kubeconfig))
        (container,) = pod["containers"]
        (self.port,) = free_ports(1)
        given = {variable["name"]: variable.get("value", "") for variable in container["env"]}
        place = {
            "KUBECONFIG": str(own),
            "TIERBENCH_HTTP_PORT": str(self.port),
            "PYTHONPATH": path,
        }
        command = ["setpriv", "--pdeathsig", "KILL", "--", sys.executable, "-c", _PROGRAM]
        with self.log.open("ab") as output:
            environment = {**os.environ, **given, **changed, **place}
            self.process = subprocess.Popen(command, env=environment, stdout=output, stderr=subprocess.STDOUT)

    def readiness(self) -> str:
        """What /readyz says."""
        return self._ask()[1]

    def is_ready(self) -> bool:
        """Whether it leads, or stands by."""
        return self._ask()[0] == HTTPStatus.OK

    def end(self) -> None:
        """Ends it, as a kubelet ends a container."""
        self.process.terminate()
        try:
            self.process.wait(_GRACE_SECONDS)
        except subprocess.TimeoutExpired:  # it is stopped, or hangs
            self.process.kill()
            self.process.wait()

    def _ask(self) -> tuple[int, str]:
        """Status and text; neither of a process that does not answer."""
        try:
            with urlopen(f"http://127.0.0.1:{self.port}/readyz", timeout=2) as answer:
                return answer.status, answer.read().decode()
        except HTTPError as error:
            return error.code, error.read().decode()
        except OSError:
            return 0, ""


def token_of(server: ApiServer, namespace: str, pod: Mapping[str, Any]) -> str:
    """One of a pod's account."""
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{pod['serviceAccountName']}/token"
    token: str = server.request("POST", path, {"spec": {}})["status"]["token"]
    return token


@contextmanager
def operator(server: ApiServer, folder: Path, deployment: Json, **changed: str) -> Iterator[Operator]:
    """The operator of a release's Deployment; it ends with the block."""
    pod = deployment["spec"]["template"]["spec"]
    token = token_of(server, deployment["metadata"]["namespace"], pod)
    running = Operator(server, folder, token, pod, changed, server.url)
    try:
        yield running
    finally:
        running.process.kill()
        running.process.wait()
