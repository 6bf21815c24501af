"""Starts a local nginx that serves one file, without TLS and with TLS 1.3."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.peers.measure import ROOT, Command
from benchmarks.peers.server import await_port
from tests.ports import free_ports
from tierbench.kinds.file_transfer.server import FOLDER

START_SECONDS = 10

CONFIGURATION = """\
{user}
worker_processes 1;
daemon off;
error_log stderr;
pid {folder}/nginx.pid;
events {{ worker_connections 64; }}
http {{
  access_log off;
  sendfile on;
  client_body_temp_path {folder}/1; proxy_temp_path {folder}/2; fastcgi_temp_path {folder}/3;
  uwsgi_temp_path {folder}/4; scgi_temp_path {folder}/5;
  server {{ listen 127.0.0.1:{plain}; root {folder}/{files}; }}
  server {{
    listen 127.0.0.1:{secure} ssl; root {folder}/{files}; ssl_protocols TLSv1.3;
    ssl_certificate {certificate}; ssl_certificate_key {folder}/tls.key;
  }}
}}
"""


@dataclass(frozen=True)
class Server:
    """The URLs of the file, and the certificate to trust."""

    plain: str
    secure: str
    certificate: Path


@contextmanager
def serving(client: Path, size: int) -> Iterator[Server]:
    """Serves a file of `size` bytes from its own folder."""
    for program in ("nginx", "openssl", "curl"):
        if shutil.which(program) is None:
            raise SystemExit(f"bench: {program} is missing: apt-get install {program}")
    (ROOT / "build").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=ROOT / "build", prefix="bench-") as name:
        folder, ports = Path(name), free_ports(2)
        _make_file(client, folder, size)
        certificate = _make_certificate(folder)
        configuration = folder / "nginx.conf"
        configuration.write_text(
            CONFIGURATION.format(
                user="user root;" if os.geteuid() == 0 else "",  # only this user may read the folder
                folder=folder,
                files=FOLDER,
                plain=ports[0],
                secure=ports[1],
                certificate=certificate,
            )
        )
        process = subprocess.Popen(["nginx", "-e", "stderr", "-c", configuration])
        try:
            for port in ports:
                await_port("nginx", process, port, START_SECONDS)
            file = f"{size}.bin"
            yield Server(f"http://127.0.0.1:{ports[0]}/{file}", f"https://127.0.0.1:{ports[1]}/{file}", certificate)
        finally:
            process.terminate()
            process.wait()


def _make_file(client: Path, folder: Path, size: int) -> None:
    owner = f"{os.geteuid()}:{os.getegid()}"
    whose: Command = ["--owner", owner, "--reserve-bytes", "0"]  # it is deleted soon
    command: Command = [client, "prepare", "--directory", folder, "--sizes", str(size), *whose]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def _make_certificate(folder: Path) -> Path:
    certificate = folder / "tls.crt"
    kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    name = ["-subj", "/CN=bench", "-addext", "subjectAltName=IP:127.0.0.1"]
    files: Command = ["-keyout", folder / "tls.key", "-out", certificate]
    subprocess.run(["openssl", "req", "-x509", *kind, *name, *files], check=True, stderr=subprocess.DEVNULL)
    return certificate
