"""Defines the two ways to connect a machine."""

import socket
from dataclasses import dataclass

_MODEL = "virtio-net-pci,romfile="
_NOT_EARLY = "ip=off"  # systemd uses the first for an interface, and the initial file system uses the last


@dataclass(frozen=True)
class UserNetwork:
    """QEMU's network. The machine's ssh listens on `port` of 127.0.0.1.

    The machine reaches the same addresses as this one, or no address if it is `alone`.
    """

    port: int
    alone: bool = False

    @property
    def options(self) -> list[str]:
        """QEMU's options."""
        forward = f"hostfwd=tcp:127.0.0.1:{self.port}-:22"
        restrict = "on" if self.alone else "off"
        return ["-netdev", f"user,id=user,restrict={restrict},{forward}", "-device", f"{_MODEL},netdev=user"]


@dataclass(frozen=True)
class Tap:
    """An existing tap interface. The machine behind it has `address`/24."""

    interface: str
    station: str
    address: str
    gateway: str

    @property
    def options(self) -> list[str]:
        """QEMU's options."""
        backend = f"tap,id=tap,ifname={self.interface},script=no,downscript=no"
        return ["-netdev", backend, "-device", f"{_MODEL},netdev=tap,mac={self.station}"]


def parameters(tap: Tap | None) -> str:
    """Returns the kernel's parameters for QEMU's network, and for the tap before it if there is one."""
    if tap is None:
        return f"ip=eth0:dhcp {_NOT_EARLY}"
    first = f"ip={tap.address}::{tap.gateway}:255.255.255.0::eth0:off"
    return f"{first} ip=10.0.2.15:::255.255.255.0::eth1:off {_NOT_EARLY}"


def free_port() -> int:
    """Returns a port of 127.0.0.1 on which no process listens."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])
