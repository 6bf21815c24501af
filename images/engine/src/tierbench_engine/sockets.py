"""Reads what the kernel knows about the socket of a connection."""

import socket
from base64 import b64encode
from typing import Final

_TCP_INFO_BYTES: Final = 256


def tcp_info(connection: object) -> str:
    """Returns `struct tcp_info` of a connection in base64, or an empty text if it is closed."""
    if not isinstance(connection, socket.socket):
        return ""
    try:
        return b64encode(connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO_BYTES)).decode()
    except OSError:
        return ""


def local_address(connection: socket.socket) -> str:
    """Returns the address and port of this side."""
    host, port = connection.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
