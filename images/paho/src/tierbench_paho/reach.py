"""Keeps from addresses that an administrator refuses, whatever name leads to them."""

import socket
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from .contract import FailureError

Networks = tuple[IPv4Network | IPv6Network, ...]


def parse(texts: Iterable[str]) -> Networks:
    """Networks, as in 127.0.0.0/8 and ::1/128."""
    return tuple(map(ip_network, texts))


def resolve(host: str, refused: Networks) -> str:
    """The first address of a host that is in none of these networks; the host itself where there are none.

    Raises:
        FailureError: LookupFailed or AddressRefused.
    """
    if not refused:
        return host
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError as error:
        message = f"{host}: {error}: check the name, and DNS on the node of the client"
        raise FailureError("LookupFailed", message) from error
    addresses = [_plain(str(place[0])) for *_, place in found]
    free = (str(address) for address in addresses if not any(address in network for network in refused))
    first = next(free, None)
    if first is None:
        raise _refusal(addresses[0], refused)
    return first


def _plain(text: str) -> IPv4Address | IPv6Address:
    """Returns the address without its zone, and an IPv4-mapped address as IPv4."""
    address = ip_address(text.partition("%")[0])
    return (address.ipv4_mapped or address) if isinstance(address, IPv6Address) else address


def _refusal(address: IPv4Address | IPv6Address, refused: Iterable[IPv4Network | IPv6Network]) -> FailureError:
    network = next(network for network in refused if address in network)
    return FailureError(
        "AddressRefused",
        f"the server's name resolves to {address}, which is refused: name another server, or ask an administrator to "
        f"remove {network} from the chart value policy.refusedNetworks",
    )
