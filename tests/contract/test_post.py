"""The real client posts to the real nginx, configured as a server, which reads all messages and keeps none."""

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.contract.conftest import HANG_SECONDS
from tests.contract.test_client import validate
from tests.ports import free_ports
from tests.unit.domain.objects import broker_benchmark
from tierbench.api.benchmark import Delivery
from tierbench.api.contract import CONTRACT_VERSION, TrialLine
from tierbench.api.trial_plan import (
    BrokerPlan,
    BrokerTarget,
    PacingType,
    PlannedLoad,
    PlannedPacing,
    PlannedTrial,
    Role,
)
from tierbench.kinds.broker.nginx import PORTS, configuration
from tierbench.results.client_output import parse_output
from tierbench.workloads.manifests import plan_document
from tierbench.workloads.nginx import TMP
from tierbench.workloads.pods import SERVER_NAME

LARGEST = 16 * 2**20
DEFAULT_REQUESTS = 1000  # per connection
SEGMENT = 14 + 20 + 20 + 12  # headers of Ethernet, IPv4, and TCP with timestamps
HEADERS = "POST / HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/octet-stream\r\nContent-Length: {size}\r\n\r\n"


@dataclass(frozen=True)
class Nginx:
    """An nginx, its folder and its log."""

    port: int
    folder: Path
    log: Path

    def raw(self, request: bytes) -> bytes:
        """Sends a request and nothing more. Returns everything that nginx sends."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=HANG_SECONDS) as connection:
            connection.sendall(request)
            connection.shutdown(socket.SHUT_WR)
            return b"".join(iter(lambda: connection.recv(65536), b""))

    @property
    def stored(self) -> list[Path]:
        """The files that nginx has written, except its process ID, configuration and log."""
        own = {".conf", ".pid", ".log"}
        return [file for file in self.folder.rglob("*") if file.is_file() and file.suffix not in own]


@pytest.fixture(scope="module")
def nginx(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nginx]:
    assert shutil.which("nginx"), "nginx is missing: run tools/setup, or apt-get install nginx-light"
    own, (port,) = tmp_path_factory.mktemp("nginx"), free_ports(1)
    spec = broker_benchmark(brokers=[{"name": "nginx", "http": {}}], payload={"sizes": ["100", LARGEST]}).spec
    text = configuration(spec, tls=False, ipv6=False).replace(TMP, str(own))
    text = text.replace(f"listen {PORTS['http']}", f"listen 127.0.0.1:{port}")
    user = "user root;\n" if os.geteuid() == 0 else ""  # only this user may write to the folder
    made = Nginx(port, own, own / "error.log")
    (own / "nginx.conf").write_text(user + text.replace("/dev/stderr", str(made.log)))
    process = subprocess.Popen(["nginx", "-e", "stderr", "-c", own / "nginx.conf", "-g", "daemon off;"])
    try:
        deadline = time.monotonic() + HANG_SECONDS
        while not _answers(made):
            assert process.poll() is None, "nginx ended: see above"
            assert time.monotonic() < deadline, "nginx does not answer"
            time.sleep(0.01)
        yield made
    finally:
        process.terminate()
        process.wait()


def _answers(nginx: Nginx) -> bool:
    try:
        return nginx.raw(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n") != b""
    except ConnectionRefusedError:
        return False


def post(client: Path, nginx: Nginx, tmp_path: Path, *, messages: int, **fields: Any) -> TrialLine:
    """Returns the trial of a publisher that waits for each response."""
    plan = BrokerPlan(
        contract=CONTRACT_VERSION,
        kind="Broker",
        schedule=(PlannedTrial(trial=1),),
        targets=(BrokerTarget(url=f"http://127.0.0.1:{nginx.port}"),),
        server_name=SERVER_NAME,
        role=Role.ALONE,
        delivery=Delivery.AT_LEAST_ONCE,
        pacing=PlannedPacing(type=PacingType.ACKNOWLEDGED, in_flight=1),
        load=PlannedLoad(messages=messages),
        warm_rounds=0,
        **fields,
    )
    words = [
        str(client),
        "measure",
        f"--plan={plan_document(plan)}",
        "--output=json",
        f"--termination-log={tmp_path}/end",
    ]
    done = subprocess.run(words, capture_output=True, text=True, timeout=HANG_SECONDS, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    for line in done.stdout.splitlines():
        validate(line)
    (trial,) = parse_output(done.stdout).trials
    assert trial.failure is None
    return trial


def test_a_connection_carries_any_number_of_messages(client: Path, nginx: Nginx, tmp_path: Path) -> None:
    exchange = post(client, nginx, tmp_path, messages=2 * DEFAULT_REQUESTS, size_bytes=100, tuning="Light").exchange
    assert exchange is not None
    assert (exchange.acknowledged, exchange.received) == (2 * DEFAULT_REQUESTS, None)
    assert (exchange.connections, exchange.reconnects, exchange.retried, exchange.errors) == (1, 0, 0, 0)
    if exchange.tcp_retransmits == 0:
        request = HEADERS.format(host=SERVER_NAME, size=100)
        answer = nginx.raw(request.encode() + bytes(100)).decode()
        assert answer.startswith("HTTP/1.1 204 ")
        wire = exchange.load_bytes - SEGMENT * exchange.load_packets
        assert wire == exchange.sent * (len(request) + 100 + len(answer))


@pytest.mark.parametrize("size", [2, 900, 1100, 20_000, LARGEST])
def test_messages_of_every_size_are_read_and_not_stored(client: Path, nginx: Nginx, tmp_path: Path, size: int) -> None:
    exchange = post(client, nginx, tmp_path, messages=20, size_bytes=size, pairs=2).exchange
    assert exchange is not None
    assert (exchange.acknowledged, exchange.reconnects, exchange.retried, exchange.errors) == (40, 0, 0, 0)
    assert exchange.acknowledged_bytes == 40 * size
    assert nginx.stored == []
    assert "temporary file" not in nginx.log.read_text()


@pytest.mark.parametrize("size", [1000, 100_000])
def test_half_a_message_is_not_acknowledged(nginx: Nginx, size: int) -> None:
    head = HEADERS.format(host="a", size=size).encode()
    assert b"204" not in nginx.raw(head + bytes(size // 2))
    assert nginx.raw(head + bytes(size)).startswith(b"HTTP/1.1 204 ")


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", 403),
        (b"GET /etc/passwd HTTP/1.1\r\nHost: a\r\n\r\n", 403),
        (b"PUT /a HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\na", 403),
        (b"POST /copy HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\na", 404),
        (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999\r\n\r\na", 413),
        (b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nffffffff\r\na", 413),
    ],
)
def test_other_requests_are_rejected(nginx: Nginx, request_: bytes, status: int) -> None:
    assert nginx.raw(request_).startswith(b"HTTP/1.1 %d " % status)
    assert nginx.stored == []
