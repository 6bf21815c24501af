"""Mosquitto on a node: its configuration, whole."""

from typing import Final

from tierbench.kinds.broker.server import CONFIGURATION, DATA, BrokerServer
from tierbench.kinds.broker.server_spec import Mosquitto
from tierbench.workloads.credentials import CERTIFICATE, CREDENTIALS

PORTS: Final = {"mqtt": 1883, "mqtts": 8883}
PASSWORDS_KEY: Final = "mosquitto-passwords"
PASSWORDS_FILE: Final = f"/{PASSWORDS_KEY}"
_UNLIMITED: Final = "0"


def settings(mosquitto: Mosquitto) -> dict[str, str]:
    """What is set on purpose, by the names of mosquitto.conf(5).

    Small packets leave at once (tcp_nodelay), and no limit drops messages behind the client's back: how many are under
    way is the client's window.
    """
    return {
        "set_tcp_nodelay": "true",
        "max_inflight_messages": str(mosquitto.max_inflight_messages),
        "max_queued_messages": str(mosquitto.max_queued_messages),
        "max_queued_bytes": _UNLIMITED,
        "message_size_limit": str(mosquitto.message_size_limit),
        "persistence": str(mosquitto.persistence).lower(),
    }


def configuration(mosquitto: Mosquitto, tls: bool) -> str:
    """mosquitto.conf, whole."""
    lines = [
        "allow_anonymous false",
        f"password_file {PASSWORDS_FILE}",
        *(f"{name} {value}" for name, value in settings(mosquitto).items()),
        f"persistence_location {DATA}/",
        "connection_messages false",
        "log_dest stderr",
        "log_type error",
        "log_type warning",
        f"listener {PORTS['mqtt']}",
    ]
    if tls:
        lines += [
            f"listener {PORTS['mqtts']}",
            # Before 2.0 there is no TLS without a place of CAs. In this one there is none, so none is sent along.
            f"capath {CREDENTIALS}",
            f"certfile {CREDENTIALS}/tls.crt",
            f"keyfile {CREDENTIALS}/tls.key",
        ]
    return "".join(f"{line}\n" for line in lines)


def mosquitto_server(mosquitto: Mosquitto, image: str, tls: bool) -> BrokerServer:
    """Mosquitto as it is deployed."""
    return BrokerServer(
        name="mosquitto",
        image=image,
        command=("mosquitto", "-c", f"{CONFIGURATION}/mosquitto.conf"),
        process="mosquitto",
        ports=PORTS,
        files={"mosquitto.conf": configuration(mosquitto, tls)},
        credentials=(PASSWORDS_KEY, *(CERTIFICATE if tls else ())),
        # From 2.1 on Mosquitto follows no symbolic link to its passwords.
        plain_credentials={PASSWORDS_KEY: PASSWORDS_FILE},
    )
