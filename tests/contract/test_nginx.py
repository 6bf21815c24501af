"""The real nginx with the configuration of a server: it serves the benchmark's files and nothing else."""

import http.client
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.contract.conftest import HANG_SECONDS
from tests.ports import free_ports
from tierbench.api.benchmark import Tls
from tierbench.kinds.file_transfer.storage import DATA, FOLDER
from tierbench.kinds.file_transfer.workload import PORTS, configuration

SIZES = (1000, 2000)
SECRET = "root:x:0:0"
ELSEWHERE = [
    *(
        "/",
        "/secret",
        "/passwd",
        "/etc/passwd",
        "/folder/",
        "/folder/1000.bin",
        "/3000.bin",
        "/1000.bin.part",
        "/1000.bin/",
    ),
    *(
        "/../secret",
        "/../etc/passwd",
        "/%2e%2e/secret",
        "/%2e%2e%2fsecret",
        "/..%2fsecret",
        "/1000.bin/../secret",
        "//secret",
    ),
    *(
        "/./secret",
        "/folder/../secret",
        "/secret%00.bin",
        "/1000.bin%00",
        "/nginx.conf",
        "/.",
        "/..",
        "/ready/../secret",
    ),
    *(
        "/1000.bin.sha256/../secret",
        "/%252e%252e/secret",
        "/..%c0%afsecret",
        "/..;/secret",
        "/\\..\\secret",
        "/1000.bin%20",
        "/1000.bin%0d%0aX:%20y",
        "/1000.BIN",
        "/proc/self/environ",
    ),
]
OTHER_METHODS = ["OPTIONS", "TRACE", "POST", "PUT", "DELETE", "PATCH", "MKCOL", "MOVE", "COPY", "PROPFIND", "LOCK"]
MOST_OF_AN_ANSWER = 1024  # of headers, and of a page that says no


@dataclass(frozen=True)
class Server:
    """An nginx, and the folder of the files that it serves."""

    port: int
    folder: Path

    def get(self, path: str, host: str = "127.0.0.1") -> tuple[int, bytes]:
        """Status and content of an answer to exactly this path."""
        answer = self.ask("GET", path, host=host)
        return answer.status, answer.read()

    def ask(
        self, method: str, path: str, headers: dict[str, str] | None = None, host: str = "127.0.0.1"
    ) -> http.client.HTTPResponse:
        """An answer whose content is still to be read."""
        connection = http.client.HTTPConnection(host, self.port, timeout=HANG_SECONDS)
        connection.request(method, path, headers=headers or {})
        return connection.getresponse()

    def raw(self, request: bytes) -> bytes:
        """All that is answered until the connection is closed."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=HANG_SECONDS) as connection:
            connection.sendall(request)
            return b"".join(iter(lambda: connection.recv(65536), b""))


@pytest.fixture(scope="module")
def server(client: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Files as `prepare` makes them, among files of another user, and nginx over their folder."""
    assert shutil.which("nginx"), "nginx is missing: run tools/setup, or apt-get install nginx-light"
    own, storage, (port,) = tmp_path_factory.mktemp("nginx"), tmp_path_factory.mktemp("storage"), free_ports(1)
    server = Server(port, storage / FOLDER)
    files = ["--sizes", ",".join(map(str, SIZES)), "--owner", f"{os.geteuid()}:{os.getegid()}"]
    subprocess.run([client, "prepare", "--reserve-bytes=0", "--directory", storage, *files], check=True)
    for place in (storage, server.folder):
        _put_others_files(place)
    text = configuration([Tls.NONE], SIZES).replace("/tmp", str(own)).replace(DATA, str(server.folder))
    text = text.replace("worker_processes auto", "worker_processes 1")
    user = "user root;\n" if os.geteuid() == 0 else ""  # only this user may read the folders
    for anywhere, loopback in {"listen ": "listen 127.0.0.1:", "listen [::]:": "listen [::1]:"}.items():
        text = text.replace(f"{anywhere}{PORTS[Tls.NONE]}", f"{loopback}{port}")
    (own / "nginx.conf").write_text(user + text)
    process = subprocess.Popen(["nginx", "-e", "stderr", "-c", own / "nginx.conf", "-g", "daemon off;"])
    try:
        _await_ready(server, process)
        yield server
    finally:
        process.terminate()
        process.wait()


def _put_others_files(place: Path) -> None:
    (place / "passwd").symlink_to("/etc/passwd")
    (place / "folder").mkdir()
    for name in ("secret", "3000.bin", "1000.bin.part", "folder/1000.bin"):
        (place / name).write_text(SECRET)


def _await_ready(server: Server, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + HANG_SECONDS
    while True:
        try:
            assert server.get("/ready") == (204, b"")
        except ConnectionRefusedError:
            assert process.poll() is None, "nginx ended: see above"
            assert time.monotonic() < deadline, "nginx does not answer"
            time.sleep(0.01)
        else:
            return


@pytest.mark.parametrize("name", [f"{size}.bin{suffix}" for size in SIZES for suffix in ("", ".sha256")])
def test_files_of_the_benchmark_are_served(server: Server, name: str) -> None:
    assert server.get(f"/{name}") == (200, (server.folder / name).read_bytes())


def test_a_file_is_served_by_ipv6_too(server: Server) -> None:
    assert server.get("/1000.bin", "::1") == (200, (server.folder / "1000.bin").read_bytes())


@pytest.mark.parametrize("path", ELSEWHERE)
def test_nothing_else_is_served(server: Server, path: str) -> None:
    status, content = server.get(path)
    assert status in {400, 403, 404}
    assert SECRET.encode() not in content


@pytest.mark.parametrize("name", ["1000.bin", "1000.bin.sha256"])
@pytest.mark.parametrize("target", ["/etc/passwd", "/proc/self/environ", "secret", "../secret", "2000.bin"])
def test_no_link_is_followed(server: Server, tmp_path: Path, name: str, target: str) -> None:
    served = server.folder / name
    aside = served.rename(tmp_path / name)
    served.symlink_to(target)
    try:
        status, _ = server.get(f"/{name}")
    finally:
        aside.replace(served)
    assert status == 403


@pytest.mark.parametrize("method", OTHER_METHODS)
@pytest.mark.parametrize("path", ["/1000.bin", "/4000.bin", "/secret"])
def test_files_are_read_and_nothing_more(server: Server, method: str, path: str) -> None:
    before = sorted((item.name, item.stat().st_mtime_ns) for item in server.folder.iterdir() if not item.is_symlink())
    answer = server.ask(method, path, {"Content-Length": "0", "Destination": "/2000.bin"})
    content = answer.read()
    assert answer.status in {404, 405}
    assert (server.folder / "1000.bin").read_bytes() not in content
    assert SECRET.encode() not in content
    after = sorted((item.name, item.stat().st_mtime_ns) for item in server.folder.iterdir() if not item.is_symlink())
    assert after == before


def test_a_head_is_of_the_same_file(server: Server) -> None:
    answer = server.ask("HEAD", "/1000.bin")
    assert (answer.status, answer.getheader("Content-Length"), answer.read()) == (200, "1000", b"")


def test_retry_resumes_the_transfer(server: Server) -> None:
    tag = server.ask("HEAD", "/2000.bin").getheader("ETag", "")
    answer = server.ask("GET", "/2000.bin", {"Range": "bytes=500-", "If-Range": tag})
    assert answer.status == 206
    assert answer.read() == (server.folder / "2000.bin").read_bytes()[500:]


@pytest.mark.parametrize("ranges", ["0-0,2-2", ",".join(f"{byte}-{byte}" for byte in range(0, 200, 2)), "0-,0-,0-,0-"])
def test_no_answer_has_many_ranges(server: Server, ranges: str) -> None:
    """Each would have headers of its own: an answer could be many times what is asked for."""
    answer = server.ask("GET", "/2000.bin", {"Range": f"bytes={ranges}"})
    assert (answer.status, answer.read()) == (200, (server.folder / "2000.bin").read_bytes())


@pytest.mark.parametrize("path", ["/1000.bin", "/secret", "/ready"])
def test_its_version_is_nobodys_business(server: Server, path: str) -> None:
    answer = server.ask("GET", path)
    assert answer.getheader("Server") == "nginx"
    assert b"nginx/" not in answer.read()


@pytest.mark.parametrize(
    "request_",
    [
        b"GET /" + b"a" * 3000 + b" HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET /ready HTTP/1.1\r\nHost: a\r\nX: " + b"a" * 3000 + b"\r\n\r\n",
        b"GET /ready HTTP/1.1\r\nHost: a\r\n" + b"".join(b"X%d: a\r\n" % each for each in range(500)) + b"\r\n",
        b"GET /1000.bin HTTP/1.1\r\n\r\n",
        b"GET /1000.bin HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        b"GET /secret\r\n",
        b"GET http://127.0.0.1/secret HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET file:///etc/passwd HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET ../secret HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET /\x00/../secret HTTP/1.1\r\nHost: a\r\n\r\n",
        b"CONNECT 127.0.0.1:22 HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET /ready HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    ],
    ids=lambda request: request[:24].decode("latin-1"),
)
def test_what_is_no_request_for_a_file_gets_none(server: Server, request_: bytes) -> None:
    answer = server.raw(request_)
    assert len(answer) < MOST_OF_AN_ANSWER
    assert not answer.startswith(b"HTTP/1.1 2")
    assert SECRET.encode() not in answer
    assert server.get("/ready") == (204, b"")


def test_who_has_been_answered_keeps_no_connection(server: Server) -> None:
    answer = server.raw(b"GET /1000.bin HTTP/1.1\r\nHost: a\r\nConnection: keep-alive\r\n\r\n")
    assert b"Connection: close" in answer
    assert answer.endswith((server.folder / "1000.bin").read_bytes())


def test_connections_that_ask_nothing_make_room_for_those_that_do(server: Server) -> None:
    idle = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(1500)]
    try:
        assert server.get("/1000.bin")[0] == 200
    finally:
        for connection in idle:
            connection.close()
