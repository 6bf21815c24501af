"""A local Kafka with its defaults, and without accounts."""

import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.bench.measure import ROOT

START_SECONDS = 60
CLUSTER_ID = "dGllcmJlbmNoLWJlbmNobQ"
CONFIGURATION = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={folder}/data
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
"""


@contextmanager
def broker() -> Iterator[str]:
    """HOST:PORT where it answers."""
    if shutil.which("java") is None:
        raise SystemExit("bench: java is missing: apt-get install openjdk-17-jre-headless")
    jars = ROOT / "build" / "kafka"
    subprocess.run([ROOT / "tools" / "kafka", jars], check=True)
    java = ["java", "-Xms512m", "-Xmx512m", "-cp", f"{jars}/*"]
    with tempfile.TemporaryDirectory() as folder:
        port, controller = _free_port(), _free_port()
        configuration = Path(folder) / "server.properties"
        configuration.write_text(CONFIGURATION.format(port=port, controller=controller, folder=folder))
        form = ["kafka.tools.StorageTool", "format", "--cluster-id", CLUSTER_ID, "--config", str(configuration)]
        subprocess.run([*java, *form], check=True, stdout=subprocess.DEVNULL)
        process = subprocess.Popen([*java, "kafka.Kafka", str(configuration)], stdout=subprocess.DEVNULL)
        try:
            _await(process, port)
            yield f"127.0.0.1:{port}"
        finally:
            process.kill()
            process.wait()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
        return port


def _await(process: subprocess.Popen[bytes], port: int) -> None:
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError as error:
            if process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"bench: Kafka does not answer on port {port}: {error}: see above") from error
            time.sleep(0.02)
        else:
            return
