"""Starts a local Kafka with its defaults and without accounts."""

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.peers.measure import ROOT
from benchmarks.peers.server import await_port
from tests.ports import free_ports

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
file.delete.delay.ms=1000
"""
MEMORY = Path("/dev/shm")
"""The folder of logs. A disk that is busy with the logs of one run would slow down the next."""


@contextmanager
def broker() -> Iterator[str]:
    """Yields the HOST:PORT of the broker."""
    if shutil.which("java") is None:
        raise SystemExit("bench: java is missing: apt-get install default-jre-headless")
    jars = ROOT / "build" / "kafka"
    subprocess.run([ROOT / "tools" / "kafka", jars], check=True)
    java = ["java", "-Xms512m", "-Xmx512m", "-cp", f"{jars}/*"]
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        port, controller = free_ports(2)
        configuration = Path(folder) / "server.properties"
        configuration.write_text(CONFIGURATION.format(port=port, controller=controller, folder=folder))
        form = ["kafka.tools.StorageTool", "format", "--cluster-id", CLUSTER_ID, "--config", str(configuration)]
        subprocess.run([*java, *form], check=True, stdout=subprocess.DEVNULL)
        process = subprocess.Popen([*java, "kafka.Kafka", str(configuration)], stdout=subprocess.DEVNULL)
        try:
            await_port("Kafka", process, port, START_SECONDS)
            yield f"127.0.0.1:{port}"
        finally:
            process.kill()
            process.wait()
