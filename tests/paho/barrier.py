"""An agent that knows nothing but barriers, one sample, and what it was asked in which order."""

import json
import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TOKEN = "token"


class _Agent(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.came: dict[str, set[int]] = defaultdict(set)
        self.asked: list[tuple[str, int | None]] = []


class _Handler(BaseHTTPRequestHandler):
    server: _Agent

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.headers["Authorization"] != f"Bearer {TOKEN}":
            self._answer(401, {"reason": "TokenRefused", "message": "another token"})
        elif self.path == "/v1/barrier":
            self._note(body["name"], body["part"])
            came = self.server.came[body["name"]]
            came.add(body["part"])
            self._answer(200 if len(came) == body["parts"] else 202, {})
        else:
            self._note(self.path, None)
            self._answer(200, {"cpuPartsPerMillion": 1} if self.path == "/v1/end" else {})

    def _note(self, what: str, part: int | None) -> None:
        if (what, part) not in self.server.asked:
            self.server.asked.append((what, part))

    def _answer(self, status: int, body: object) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def serving() -> Iterator[tuple[str, list[tuple[str, int | None]]]]:
    """Its URL, and what it was asked first: which part came to which barrier, and what else."""
    with _Agent() as agent:
        threading.Thread(target=agent.serve_forever, args=(0.02,), daemon=True).start()
        yield f"http://127.0.0.1:{agent.server_port}", agent.asked
        agent.shutdown()
