"""A minimal agent. It serves barriers and one sample, and records its requests in order."""

import hashlib
import json
import ssl
import threading
from base64 import b64encode
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from tests.paho.certificates import make_certificates

TOKEN = "token"


class _Agent(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, folder: Path, certificate: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / f"{certificate}.crt", folder / f"{certificate}.key")
        self.socket = context.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)
        self.arrived: dict[str, set[int]] = defaultdict(set)
        self.requests: list[tuple[str, int | None]] = []
        self.connections = 0


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Agent

    def setup(self) -> None:
        super().setup()
        self.server.connections += 1

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.headers["Authorization"] != f"Bearer {TOKEN}":
            self._answer(401, {"reason": "TokenRefused", "message": "another token"})
        elif self.path == "/v1/barrier":
            self._record(body["name"], body["part"])
            arrived = self.server.arrived[body["name"]]
            arrived.add(body["part"])
            is_open = len(arrived) == body["parts"]
            self._answer(200 if is_open else 202, {"open": is_open})
        else:
            self._record(self.path, None)
            self._answer(200, {"cpuPartsPerMillion": 1} if self.path == "/v1/end" else {})

    def _record(self, request: str, part: int | None) -> None:
        if (request, part) not in self.server.requests:
            self.server.requests.append((request, part))

    def _answer(self, status: int, body: object) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def serving(folder: Path, certificate: str = "expired") -> Iterator[tuple[dict[str, dict[str, str]], _Agent]]:
    """Runs an agent. Yields a target's field that names it, and the agent. An expired certificate must not matter."""
    make_certificates(folder)
    (folder / "token").write_text(TOKEN)
    (folder / "pin").write_text(_pin_of((folder / f"{certificate}.crt").read_bytes()))
    with _Agent(folder, certificate) as agent:
        threading.Thread(target=agent.serve_forever, args=(0.02,), daemon=True).start()
        url = f"https://127.0.0.1:{agent.server_port}"
        yield {"agent": {"url": url, "tokenFile": str(folder / "token"), "pinFile": str(folder / "pin")}}, agent
        agent.shutdown()


def _pin_of(certificate: bytes) -> str:
    """Returns the pin of a certificate's key, as curl writes it."""
    key = x509.load_pem_x509_certificate(certificate).public_key()
    encoded = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return f"sha256//{b64encode(hashlib.sha256(encoded).digest()).decode()}"
