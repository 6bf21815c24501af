"""nginx as a broker of HTTP: it reads each message that is posted to it, answers, and keeps nothing."""

from typing import Final

from tierbench.kinds.broker.server import BrokerServer
from tierbench.kinds.broker.spec import BrokerSpec
from tierbench.workloads import nginx
from tierbench.workloads.pods import TLS_CERTIFICATE

PORTS: Final = {"http": 8080, "https": 8443}

# nginx answers `return` before it has read the message. A mirror makes it read the whole message first. The copy is
# dropped, and because empty_gif refuses every POST without looking at a file, the answer comes from @taken.
_TAKE: Final = (
    "location = /copy { internal; return 204; }",
    "location @taken { return 204; }",
    "location / { limit_except POST { deny all; } mirror /copy; empty_gif; error_page 405 = @taken; }",
)


def settings(spec: BrokerSpec) -> dict[str, str]:
    """Returns the settings that tierbench chooses, by the names of nginx.

    Every message stays in memory, with what compression and encryption may add. A publisher keeps its connection,
    however long and however often it sends.
    """
    largest = spec.payload.largest_bytes
    room = str(largest + largest // 256 + 1024)
    return {
        "client_max_body_size": room,
        "client_body_buffer_size": room,
        "keepalive_timeout": "7200s",
        "keepalive_requests": "1000000000",
    }


def configuration(spec: BrokerSpec, tls: bool, *, ipv6: bool = True) -> str:
    """Returns the complete nginx.conf."""
    directives = "".join(f"  {name} {value};\n" for name, value in settings(spec).items())
    listeners = [nginx.listener(PORTS["http"], _TAKE, ipv6=ipv6)]
    if tls:
        listeners.append(nginx.listener(PORTS["https"], _TAKE, tls="TLSv1.2 TLSv1.3", ipv6=ipv6))
    return nginx.configuration(directives, listeners)


def nginx_server(spec: BrokerSpec, image: str, tls: bool) -> BrokerServer:
    """Returns nginx as it is deployed."""
    return BrokerServer(
        name="nginx",
        image=image,
        command=nginx.COMMAND,
        process="nginx",
        ports=PORTS,
        files=nginx.files(lambda ipv6: configuration(spec, tls, ipv6=ipv6)),
        volumes=(nginx.TMP,),
        credentials=TLS_CERTIFICATE if tls else (),
    )
