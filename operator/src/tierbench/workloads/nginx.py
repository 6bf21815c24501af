"""What every nginx of tierbench has in common, whatever it serves: a complete configuration, and no rights."""

from collections.abc import Callable, Sequence
from typing import Final

from tierbench.workloads.pods import CREDENTIALS

FOLDER: Final = "/etc/tierbench"
TMP: Final = "/tmp"  # noqa: S108 (a volume of the pod's own)

_CONFIGURATION: Final = "nginx.conf"
_CONFIGURATION_IPV4: Final = "nginx-ipv4.conf"
# If the kernel has no IPv6, nginx does not start with an IPv6 listener.
COMMAND: Final = (
    "sh",
    "-c",
    f"""\
if [ -e /proc/net/if_inet6 ]; then conf={_CONFIGURATION}; else conf={_CONFIGURATION_IPV4}; fi
exec nginx -c "{FOLDER}/$conf" -g 'daemon off;'
""",
)
_HEAD: Final = f"""\
worker_processes auto;
error_log /dev/stderr warn;
pid {TMP}/nginx.pid;
events {{
  worker_connections 1024;
}}
http {{
  access_log off;
  tcp_nodelay on;
  server_tokens off;
  client_body_temp_path {TMP}/client;
  proxy_temp_path {TMP}/proxy;
  fastcgi_temp_path {TMP}/fastcgi;
  uwsgi_temp_path {TMP}/uwsgi;
  scgi_temp_path {TMP}/scgi;
"""


def files(configuration_of: Callable[[bool], str]) -> dict[str, str]:
    """Returns the configurations with IPv6 and without it, by the names of their files in FOLDER."""
    return {_CONFIGURATION: configuration_of(True), _CONFIGURATION_IPV4: configuration_of(False)}


def configuration(directives: str, listeners: Sequence[str]) -> str:
    """Returns the complete nginx.conf. It needs nothing from the image."""
    return f"{_HEAD}{directives}{''.join(listeners)}}}\n"


def listener(port: int, lines: Sequence[str], *, tls: str = "", ipv6: bool = True) -> str:
    """Returns the server at a port. `tls` names the versions of TLS, and is empty without."""
    secure = " ssl" if tls else ""
    families = ("", "[::]:") if ipv6 else ("",)
    certificate = (
        f"ssl_protocols {tls};",
        f"ssl_certificate {CREDENTIALS}/tls.crt;",
        f"ssl_certificate_key {CREDENTIALS}/tls.key;",
    )
    listens = (f"listen {family}{port}{secure};" for family in families)
    every = (*listens, *(certificate if tls else ()), *lines)
    return "  server {\n" + "".join(f"    {line}\n" for line in every) + "  }\n"
