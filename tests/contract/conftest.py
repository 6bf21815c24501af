"""The real client, and a server whose faults a test chooses."""

import subprocess
import threading
from collections.abc import Callable, Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
SIZE = 300_000
HANG_SECONDS = 300


class Server(ThreadingHTTPServer):
    """Serves a folder. `misbehave` gets each request with its number, from 1, and returns True if it has answered."""

    daemon_threads = True

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.folder = folder
        self.numbers = count(1)
        self.misbehave: Callable[[int, SimpleHTTPRequestHandler], bool] = lambda *_: False

    @property
    def url(self) -> str:
        """The address of the server."""
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(SimpleHTTPRequestHandler):
    server: Server

    def __init__(self, request: Any, address: Any, server: Server) -> None:
        super().__init__(request, address, server, directory=str(server.folder))

    def do_GET(self) -> None:
        if not self.server.misbehave(next(self.server.numbers), self):
            super().do_GET()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="session")
def client(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The client, built from its sources."""
    program = tmp_path_factory.mktemp("client") / "tierbench-client"
    subprocess.run([ROOT / "tools/go", "build", "-o", program, "."], cwd=ROOT / "images/client", check=True)
    return program


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """A server with one file of SIZE bytes."""
    folder = tmp_path / "served"
    folder.mkdir()
    (folder / "file.bin").write_bytes(b"x" * SIZE)
    with Server(folder) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture
def url(server: Server) -> str:
    """The address of the server."""
    return server.url
