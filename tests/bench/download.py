"""Downloads of 1 GiB from a local nginx, against curl."""

import json
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.bench.measure import ROOT, Comparison, Usage, compare, in_turn

GIB = 2**30
PLAIN, SECURE = 18080, 18443

CONFIGURATION = """\
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
  server {{ listen 127.0.0.1:{plain}; root {folder}; }}
  server {{
    listen 127.0.0.1:{secure} ssl; root {folder}; ssl_protocols TLSv1.3;
    ssl_certificate {folder}/tls.crt; ssl_certificate_key {folder}/tls.key;
  }}
}}
"""


def comparisons(client: Path) -> list[Comparison]:
    """Rate and CPU, plain and with TLS 1.3."""
    found = []
    with nginx(client) as folder:
        for words, scheme, port, tls in (("HTTP", "http", PLAIN, "None"), ("TLS 1.3", "https", SECURE, "TLSv1.3")):
            url = f"{scheme}://localhost:{port}/{GIB}.bin"
            trust = folder / "tls.crt"
            fetch = f"download --url {url} --size {GIB} --tls {tls} --output json --ca-file".split()
            ours: list[str | Path] = [client, *fetch, trust]
            peer: list[str | Path] = [*f"curl --silent --fail --output /dev/null {url} --cacert".split(), trust]
            pairs = in_turn(ours, peer)
            for usage, _ in pairs:
                check(usage)
            found += [
                compare(f"{words}, 1 GiB, rate", "GiB/s", "curl", pairs, lambda usage: 1 / usage.wall),
                compare(f"{words}, 1 GiB, CPU", "s/GiB", "curl", pairs, lambda usage: usage.cpu),
            ]
    return found


def check(usage: Usage) -> None:
    """Refuses a run of ours that did not get all at once: the client ends well after failed trials too."""
    trial = json.loads(usage.printed.splitlines()[-1])
    if trial["outcome"] != "Completed" or trial["transfer"]["bytes"] != GIB or trial["transfer"]["retries"]:
        raise SystemExit(f"not a download to compare with: {usage.printed}")


@contextmanager
def nginx(client: Path) -> Iterator[Path]:
    """A local nginx with a file of 1 GiB; gives its folder."""
    (ROOT / "build").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=ROOT / "build", prefix="bench-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        subprocess.run(
            [client, "prepare", "--directory", folder, "--sizes", str(GIB)], check=True, stdout=subprocess.DEVNULL
        )
        certificate: list[str | Path] = [
            "-keyout",
            folder / "tls.key",
            "-out",
            folder / "tls.crt",
            "-addext",
            "subjectAltName=DNS:localhost",
        ]
        new = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
        subprocess.run([*new, "-subj", "/CN=localhost", *certificate], check=True, stderr=subprocess.DEVNULL)
        text = CONFIGURATION.format(folder=folder, plain=PLAIN, secure=SECURE)
        (folder / "nginx.conf").write_text(text)
        server = subprocess.Popen(["nginx", "-c", folder / "nginx.conf"])
        try:
            url = f"http://localhost:{PLAIN}/{GIB}.bin"
            probe = f"curl --silent --fail --retry 5 --retry-connrefused --head --output /dev/null {url}"
            if subprocess.run(probe.split(), check=False).returncode or server.poll() is not None:
                raise SystemExit(f"nginx does not serve: are the ports {PLAIN} and {SECURE} of this machine free?")
            yield folder
        finally:
            server.terminate()
            server.wait()
