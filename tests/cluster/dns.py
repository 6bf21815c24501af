"""Queries a DNS server without a library."""

import socket

_PORT = 53
_SECONDS = 2.0
_QUERY = b"\x00\x01\x01\x00\x00\x01" + bytes(6)
"""The header of a query with one question (RFC 1035, section 4.1.1)."""
_ADDRESS = b"\x00\x01\x00\x01"
"""Type A, class IN."""


def resolves(server: str, name: str) -> bool:
    """Returns whether the server at this address answers with an address of the name."""
    labels = b"".join(bytes([len(label)]) + label.encode() for label in name.split("."))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        asked.settimeout(_SECONDS)
        try:
            asked.sendto(_QUERY + labels + b"\x00" + _ADDRESS, (server, _PORT))
            answer = asked.recv(512)
        except OSError:
            return False
    return answer[3] & 0x0F == 0 and answer[6:8] != b"\x00\x00"
