"""Which network interface packets leave by. Pure over a root folder."""

from collections.abc import Iterator
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from pathlib import Path
from sys import byteorder
from typing import Final, NamedTuple

from .files import text

_UP: Final = 0x1


class _Route(NamedTuple):
    network: IPv4Network | IPv6Network
    metric: int
    interface: str
    flags: int


def interface(root: Path, address: str) -> str | None:
    """That of the route to an address: the one with the longest prefix, then the least metric."""
    target = ip_address(address)
    if target.is_loopback:
        return "lo"
    routes = _ipv4(root) if target.version == 4 else _ipv6(root)
    found = [route for route in routes if route.flags & _UP and target in route.network]
    return min(found, key=lambda route: (-route.network.prefixlen, route.metric)).interface if found else None


def _ipv4(root: Path) -> Iterator[_Route]:
    """Interface, destination, gateway, flags, two counters, metric, mask: addresses as this machine lays them out."""
    for line in text(root / "proc/net/route").splitlines()[1:]:
        fields = line.split()
        destination, mask = (IPv4Address(int(fields[place], 16).to_bytes(4, byteorder)) for place in (1, 7))
        yield _Route(IPv4Network(f"{destination}/{mask}"), int(fields[6]), fields[0], int(fields[3], 16))


def _ipv6(root: Path) -> Iterator[_Route]:
    """Destination and prefix, source and prefix, next hop, metric, two counters, flags, interface."""
    for line in text(root / "proc/net/ipv6_route").splitlines():
        fields = line.split()
        network = IPv6Network((IPv6Address(bytes.fromhex(fields[0])), int(fields[1], 16)))
        yield _Route(network, int(fields[5], 16), fields[9], int(fields[8], 16))
