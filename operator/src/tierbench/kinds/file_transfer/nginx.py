"""The configuration of nginx: it serves the files of a benchmark, receives those of its clients, and nothing else."""

from collections.abc import Sequence
from typing import Final

from tierbench.api.benchmark import Tls
from tierbench.kinds.file_transfer.storage import DATA, RECEIVED, RECEIVED_ROOT, Files
from tierbench.workloads import nginx

PORTS: Final = {Tls.NONE: 8080, Tls.TLS12: 8443, Tls.TLS13: 8444}
PORT_NAMES: Final = {Tls.NONE: "http", Tls.TLS12: "https-tls12", Tls.TLS13: "https-tls13"}

_SERVE: Final = """\
  default_type application/octet-stream;
  sendfile on;
  tcp_nopush on;
  etag on;
  disable_symlinks on from=$document_root;
  max_ranges 1;
  keepalive_timeout 0;
  large_client_header_buffers 2 1k;
"""
# Two uploads may come to one name: the one before may have lost its client, and the server has not noticed yet.
_RECEIVE: Final = """\
  limit_conn_zone $uri zone=received:1m;
  limit_conn_log_level warn;
  client_body_timeout {timeout}ms;
  client_body_buffer_size 128k;
"""


def configuration(tls: Sequence[Tls], files: Files, *, read_timeout_milliseconds: int = 1000, ipv6: bool = True) -> str:
    """Returns the complete nginx.conf. Port 8080 is always served, for readiness.

    Files are served by their exact names, and never through links, because anybody may write to the node's disk.
    Clients of tierbench send short headers, ask for one range and do not keep connections, and others get no more.
    Uploads have exact names, too, and a size, so everybody who reaches the server can fill only what `prepare` has
    found to be free. One that arrives whole replaces the file of its name.
    """
    receive = _RECEIVE.format(timeout=2 * read_timeout_milliseconds) if files.names else ""
    levels = (level for level in PORTS if level is Tls.NONE or level in tls)
    return nginx.configuration(_SERVE + receive, [_listener(level, files, ipv6) for level in levels])


def file_name(size: int) -> str:
    """Returns the name of the file of a size, as `prepare` creates it."""
    return f"{size}.bin"


def _listener(tls: Tls, files: Files, ipv6: bool) -> str:
    names = [name for size in files.sizes for name in (file_name(size), f"{file_name(size)}.sha256")]
    lines = [
        f"root {DATA};",
        *(f"location = /{name} {{}}" for name in names),
        *(_receiver(name, files.most_received) for name in range(files.names)),
        "location = /ready { return 204; }",
        "location / { return 404; }",
    ]
    return nginx.listener(PORTS[tls], lines, tls="" if tls is Tls.NONE else tls.value, ipv6=ipv6)


def _receiver(name: int, most: int) -> str:
    """Returns the location of an upload. nginx receives it in a file of the same file system, and renames that."""
    return (
        f"location = /{RECEIVED}/{name} {{ root {RECEIVED_ROOT}; dav_methods PUT DELETE; client_max_body_size {most}; "
        f"client_body_temp_path {RECEIVED_ROOT}/{RECEIVED}/partial; limit_conn received 2; }}"
    )
