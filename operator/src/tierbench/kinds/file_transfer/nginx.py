"""The configuration of nginx: it serves the files of a benchmark, receives those of its clients, and nothing else."""

from collections.abc import Sequence
from typing import Final

from tierbench.api.benchmark import Tls
from tierbench.kinds.file_transfer.storage import DATA, RECEIVED, RECEIVED_ROOT, Files
from tierbench.workloads.pods import CREDENTIALS

PORTS: Final = {Tls.NONE: 8080, Tls.TLS12: 8443, Tls.TLS13: 8444}
PORT_NAMES: Final = {Tls.NONE: "http", Tls.TLS12: "https-tls12", Tls.TLS13: "https-tls13"}

_HEAD: Final = """\
worker_processes auto;
error_log /dev/stderr warn;
pid /tmp/nginx.pid;
events {
  worker_connections 1024;
}
http {
  access_log off;
  default_type application/octet-stream;
  sendfile on;
  tcp_nopush on;
  tcp_nodelay on;
  etag on;
  disable_symlinks on from=$document_root;
  server_tokens off;
  max_ranges 1;
  keepalive_timeout 0;
  large_client_header_buffers 2 1k;
  client_body_temp_path /tmp/client;
  proxy_temp_path /tmp/proxy;
  fastcgi_temp_path /tmp/fastcgi;
  uwsgi_temp_path /tmp/uwsgi;
  scgi_temp_path /tmp/scgi;
"""
# Two uploads may come to one name: the one before may have lost its client, and the server has not noticed yet.
_RECEIVE: Final = """\
  limit_conn_zone $uri zone=received:1m;
  limit_conn_log_level warn;
  client_body_timeout {timeout}ms;
  client_body_buffer_size 128k;
"""


def configuration(tls: Sequence[Tls], files: Files, *, read_timeout_milliseconds: int = 1000, ipv6: bool = True) -> str:
    """Returns the complete nginx.conf. It needs nothing from the image. Port 8080 is always served, for readiness.

    Files are served by their exact names, and never through links, because anybody may write to the node's disk.
    Clients of tierbench send short headers, ask for one range and do not keep connections, and others get no more.
    Uploads have exact names, too, and a size, so everybody who reaches the server can fill only what `prepare` has
    found to be free. One that arrives whole replaces the file of its name.
    """
    receive = _RECEIVE.format(timeout=2 * read_timeout_milliseconds) if files.names else ""
    levels = (level for level in PORTS if level is Tls.NONE or level in tls)
    return _HEAD + receive + "".join(_listener(level, files, ipv6) for level in levels) + "}\n"


def file_name(size: int) -> str:
    """Returns the name of the file of a size, as `prepare` creates it."""
    return f"{size}.bin"


def _listener(tls: Tls, files: Files, ipv6: bool) -> str:
    secure = "" if tls is Tls.NONE else " ssl"
    families = ("", "[::]:") if ipv6 else ("",)
    lines = [*(f"listen {family}{PORTS[tls]}{secure};" for family in families), f"root {DATA};"]
    if tls is not Tls.NONE:
        lines += [
            f"ssl_protocols {tls.value};",
            f"ssl_certificate {CREDENTIALS}/tls.crt;",
            f"ssl_certificate_key {CREDENTIALS}/tls.key;",
        ]
    names = [name for size in files.sizes for name in (file_name(size), f"{file_name(size)}.sha256")]
    lines += [f"location = /{name} {{}}" for name in names]
    lines += [_receiver(name, files.most_received) for name in range(files.names)]
    lines += ["location = /ready { return 204; }", "location / { return 404; }"]
    return "  server {\n" + "".join(f"    {line}\n" for line in lines) + "  }\n"


def _receiver(name: int, most: int) -> str:
    """Returns the location of an upload. nginx receives it in a file of the same file system, and renames that."""
    return (
        f"location = /{RECEIVED}/{name} {{ root {RECEIVED_ROOT}; dav_methods PUT DELETE; client_max_body_size {most}; "
        f"client_body_temp_path {RECEIVED_ROOT}/{RECEIVED}/partial; limit_conn received 2; }}"
    )
