"""The real nginx with the configuration of a server: it serves the benchmark's files and nothing else."""

import http.client
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.ports import free_ports
from tierbench.api.benchmark import Tls
from tierbench.workloads.file_volume import DATA, FOLDER
from tierbench.workloads.nginx import PORTS, configuration

START_SECONDS = 10
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
]


@dataclass(frozen=True)
class Server:
    """An nginx, and the folder of the files that it serves."""

    port: int
    folder: Path

    def get(self, path: str, host: str = "127.0.0.1") -> tuple[int, bytes]:
        """Status and content of an answer to exactly this path."""
        connection = http.client.HTTPConnection(host, self.port, timeout=START_SECONDS)
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read()


@pytest.fixture(scope="module")
def server(client: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Files as `prepare` makes them, among those of somebody else, and nginx over their folder."""
    assert shutil.which("nginx"), "nginx is missing: run tools/setup, or apt-get install nginx-light"
    own, storage, (port,) = tmp_path_factory.mktemp("nginx"), tmp_path_factory.mktemp("storage"), free_ports(1)
    server = Server(port, storage / FOLDER)
    files = ["--sizes", ",".join(map(str, SIZES)), "--owner", f"{os.geteuid()}:{os.getegid()}"]
    subprocess.run([client, "prepare", "--directory", storage, *files], check=True)
    for place in (storage, server.folder):
        _put_others_files(place)
    text = configuration([Tls.NONE], SIZES).replace("/tmp", str(own)).replace(DATA, str(server.folder))
    user = "user root;\n" if os.geteuid() == 0 else ""  # the folders are nobody else's
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
    deadline = time.monotonic() + START_SECONDS
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
@pytest.mark.parametrize("target", ["/etc/passwd", "secret", "../secret", "2000.bin"])
def test_no_link_is_followed(server: Server, tmp_path: Path, name: str, target: str) -> None:
    served = server.folder / name
    aside = served.rename(tmp_path / name)
    served.symlink_to(target)
    try:
        status, _ = server.get(f"/{name}")
    finally:
        aside.replace(served)
    assert status == 403
