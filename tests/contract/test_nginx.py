"""The real nginx, configured as a server, serves the benchmark's files and nothing else."""

import http.client
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.contract.conftest import HANG_SECONDS
from tests.contract.test_client import run, validate
from tests.ports import free_ports
from tierbench.api.benchmark import Tls
from tierbench.api.measurements import TransferDirection
from tierbench.kinds.file_transfer.server import (
    COPIES,
    DATA,
    FOLDER,
    PORTS,
    RECEIVED,
    RECEIVED_ROOT,
    Files,
    configuration,
)

SIZES = (1000, 2000)
UPLOAD_LIMIT = 300_000  # bytes of an upload: more than nginx keeps in memory
FILES = Files(SIZES, most_received=UPLOAD_LIMIT, names=2)
SECRET = "root:x:0:0"
OTHER_PATHS = [
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
ERROR_LIMIT = 1024  # bytes of headers and an error page


@dataclass(frozen=True)
class Server:
    """An nginx, and the folder of the files that it serves."""

    port: int
    folder: Path

    def get(self, path: str, host: str = "127.0.0.1") -> tuple[int, bytes]:
        """Returns status and content of the response for exactly this path."""
        answer = self.ask("GET", path, host=host)
        return answer.status, answer.read()

    def ask(
        self, method: str, path: str, headers: dict[str, str] | None = None, host: str = "127.0.0.1"
    ) -> http.client.HTTPResponse:
        """Returns a response whose content is unread."""
        connection = http.client.HTTPConnection(host, self.port, timeout=HANG_SECONDS)
        connection.request(method, path, headers=headers or {})
        return connection.getresponse()

    def put(self, path: str, content: bytes) -> int:
        """Returns the status of an upload."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=HANG_SECONDS)
        connection.request("PUT", path, body=content)
        return connection.getresponse().status

    @property
    def received(self) -> list[str]:
        """The names of all complete and incomplete uploads."""
        place = self.folder / RECEIVED
        return sorted(str(item.relative_to(place)) for item in place.rglob("*") if not item.is_dir())

    def raw(self, request: bytes) -> bytes:
        """Returns everything that nginx sends until it closes the connection."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=HANG_SECONDS) as connection:
            connection.sendall(request)
            return b"".join(iter(lambda: connection.recv(65536), b""))


@pytest.fixture(scope="module")
def server(client: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Runs nginx with files that `prepare` wrote, in folders that contain other files too."""
    assert shutil.which("nginx"), "nginx is missing: run tools/setup, or apt-get install nginx-light"
    own, storage, (port,) = tmp_path_factory.mktemp("nginx"), tmp_path_factory.mktemp("storage"), free_ports(1)
    server = Server(port, storage / FOLDER)
    files = ["--sizes", ",".join(map(str, SIZES)), "--owner", f"{os.geteuid()}:{os.getegid()}"]
    files += ["--receive-bytes", str(FILES.received_bytes)]
    subprocess.run([client, "prepare", "--reserve-bytes=0", "--directory", storage, *files], check=True)
    for place in (storage, server.folder):
        _add_other_files(place)
    text = configuration([Tls.NONE], FILES, read_timeout_milliseconds=300_000)
    text = text.replace("/tmp", str(own)).replace(RECEIVED_ROOT, str(server.folder)).replace(DATA, str(server.folder))
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


def _add_other_files(place: Path) -> None:
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


def test_file_is_served_over_ipv6(server: Server) -> None:
    assert server.get("/1000.bin", "::1") == (200, (server.folder / "1000.bin").read_bytes())


@pytest.mark.parametrize("path", OTHER_PATHS)
def test_other_paths_are_not_served(server: Server, path: str) -> None:
    status, content = server.get(path)
    assert status in {400, 403, 404}
    assert SECRET.encode() not in content


@pytest.mark.parametrize("name", ["1000.bin", "1000.bin.sha256"])
@pytest.mark.parametrize("target", ["/etc/passwd", "/proc/self/environ", "secret", "../secret", "2000.bin"])
def test_symbolic_links_are_not_followed(server: Server, tmp_path: Path, name: str, target: str) -> None:
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
def test_other_methods_are_rejected(server: Server, method: str, path: str) -> None:
    before = sorted((item.name, item.stat().st_mtime_ns) for item in server.folder.iterdir() if not item.is_symlink())
    answer = server.ask(method, path, {"Content-Length": "0", "Destination": "/2000.bin"})
    content = answer.read()
    assert answer.status in {404, 405}
    assert (server.folder / "1000.bin").read_bytes() not in content
    assert SECRET.encode() not in content
    after = sorted((item.name, item.stat().st_mtime_ns) for item in server.folder.iterdir() if not item.is_symlink())
    assert after == before


def test_head_returns_the_size_of_the_file(server: Server) -> None:
    answer = server.ask("HEAD", "/1000.bin")
    assert (answer.status, answer.getheader("Content-Length"), answer.read()) == (200, "1000", b"")


def test_retry_resumes_the_transfer(server: Server) -> None:
    tag = server.ask("HEAD", "/2000.bin").getheader("ETag", "")
    answer = server.ask("GET", "/2000.bin", {"Range": "bytes=500-", "If-Range": tag})
    assert answer.status == 206
    assert answer.read() == (server.folder / "2000.bin").read_bytes()[500:]


@pytest.mark.parametrize("ranges", ["0-0,2-2", ",".join(f"{byte}-{byte}" for byte in range(0, 200, 2)), "0-,0-,0-,0-"])
def test_request_for_many_ranges_gets_the_whole_file(server: Server, ranges: str) -> None:
    """Each range would have its own headers, so the response could be many times as large as the ranges."""
    answer = server.ask("GET", "/2000.bin", {"Range": f"bytes={ranges}"})
    assert (answer.status, answer.read()) == (200, (server.folder / "2000.bin").read_bytes())


@pytest.mark.parametrize("path", ["/1000.bin", "/secret", "/ready"])
def test_nginx_hides_its_version(server: Server, path: str) -> None:
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
def test_malformed_or_unusual_request_gets_no_file(server: Server, request_: bytes) -> None:
    answer = server.raw(request_)
    assert len(answer) < ERROR_LIMIT
    assert not answer.startswith(b"HTTP/1.1 2")
    assert SECRET.encode() not in answer
    assert server.get("/ready") == (204, b"")


def test_nginx_closes_the_connection_after_its_response(server: Server) -> None:
    answer = server.raw(b"GET /1000.bin HTTP/1.1\r\nHost: a\r\nConnection: keep-alive\r\n\r\n")
    assert b"Connection: close" in answer
    assert answer.endswith((server.folder / "1000.bin").read_bytes())


def test_idle_connections_do_not_block_requests(server: Server) -> None:
    idle = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(1500)]
    try:
        assert server.get("/1000.bin")[0] == 200
    finally:
        for connection in idle:
            connection.close()


def test_only_a_complete_upload_replaces_the_file_of_its_name(server: Server) -> None:
    assert (server.put("/received/0", b"a" * UPLOAD_LIMIT), server.received) == (201, ["0"])
    with socket.create_connection(("127.0.0.1", server.port), timeout=HANG_SECONDS) as connection:
        connection.sendall(_put_head("/received/0") + b"b" * (UPLOAD_LIMIT - 1))
        _wait_for(lambda: len(server.received) == COPIES - 1)  # the new upload is a separate file
        assert server.get("/received/0") == (200, b"a" * UPLOAD_LIMIT)
    _wait_for(lambda: server.received == ["0"])
    assert server.get("/received/0") == (200, b"a" * UPLOAD_LIMIT)
    assert server.put("/received/0", b"c") == 204
    assert server.get("/received/0") == (200, b"c")
    assert (server.ask("DELETE", "/received/0").status, server.received) == (204, [])


def test_upload_larger_than_the_limit_is_rejected(server: Server) -> None:
    assert b" 413 " in server.raw(_put_head("/received/1", UPLOAD_LIMIT + 1)).splitlines()[0]
    chunked = b"PUT /received/1 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n" % (UPLOAD_LIMIT + 1)
    assert b" 413 " in server.raw(chunked + b"a").splitlines()[0]
    assert server.received == []


def test_at_most_two_uploads_of_a_name_run_at_once(server: Server) -> None:
    head = _put_head("/received/1")
    uploads = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(2)]
    try:
        for connection in uploads:
            connection.sendall(head + b"a" * (UPLOAD_LIMIT - 1))
        _wait_for(lambda: len(server.received) == len(uploads))
        assert b" 503 " in server.raw(head + b"a" * UPLOAD_LIMIT).splitlines()[0]
        assert server.put("/received/0", b"a") == 201
    finally:
        for connection in uploads:
            connection.close()
    _wait_for(lambda: server.received == ["0"])
    assert server.ask("DELETE", "/received/0").status == 204


@pytest.mark.parametrize(
    "path",
    [
        "/received/2", "/received/00", "/received/0/", "/received/", "/received/partial/0000000001", "/received/.",
        "/x", "/received/../1000.bin", "/received/0/../../secret", "/received/%2e%2e/secret", "/received%2f0%00",
    ],
)  # fmt: skip
@pytest.mark.parametrize("method", ["PUT", "DELETE", "GET"])
def test_request_for_another_upload_path_changes_nothing(server: Server, method: str, path: str) -> None:
    before = (server.folder / "1000.bin").read_bytes()
    answer = server.ask(method, path, {"Content-Length": "0"})
    assert answer.status in {400, 404, 405} or (method, path) == ("GET", "/received/../1000.bin")
    assert SECRET.encode() not in answer.read()
    assert server.received == []
    assert (server.folder / "1000.bin").read_bytes() == before


@pytest.mark.parametrize("method", ["MKCOL", "MOVE", "COPY", "POST", "PATCH", "PROPFIND", "LOCK"])
def test_other_methods_on_an_upload_are_rejected(server: Server, method: str) -> None:
    assert server.put("/received/0", b"a") == 201
    answer = server.ask(method, "/received/0", {"Content-Length": "0", "Destination": "/received/1"})
    assert answer.status == 405
    assert server.received == ["0"]
    assert server.ask("DELETE", "/received/0").status == 204


def test_symbolic_link_among_uploads_is_not_followed(server: Server, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text(SECRET)
    (server.folder / RECEIVED / "0").symlink_to(secret)
    assert server.get("/received/0")[0] == 403
    assert server.put("/received/0", b"a") == 204
    assert server.get("/received/0") == (200, b"a")
    assert server.ask("DELETE", "/received/0").status == 204
    assert secret.read_text() == SECRET


def test_client_uploads_and_leaves_no_file(client: Path, server: Server, tmp_path: Path) -> None:
    code, log, _ = run(
        client, tmp_path, f"http://127.0.0.1:{server.port}/received", trials=(1, 2),
        size_bytes=UPLOAD_LIMIT, direction=TransferDirection.UPLOAD, concurrency=2, verify_digest=True,
    )  # fmt: skip
    assert code == 0
    trials = [validate(each) for each in log.splitlines()]
    found = [trial["transfer"] for trial in trials if trial["record"] == "Trial"]
    assert [(each["direction"], each["bytes"], each["errors"]) for each in found] == 2 * [
        ("Upload", 2 * UPLOAD_LIMIT, 0)
    ]
    assert server.received == []


def _put_head(path: str, size: int = UPLOAD_LIMIT) -> bytes:
    return f"PUT {path} HTTP/1.1\r\nHost: a\r\nContent-Length: {size}\r\n\r\n".encode()


def _wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + HANG_SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)
