"""TCP ports of this machine."""

import socket


def free_ports(count: int) -> list[int]:
    """Ports on loopback that nobody listens at now, all different."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [int(one.getsockname()[1]) for one in sockets]
    for one in sockets:
        one.close()
    return ports
