"""The two ways a machine is connected."""

import socket
from dataclasses import dataclass

_MODEL = "virtio-net-pci,romfile="
_NOT_EARLY = "ip=off"  # systemd takes the first for an interface, the initial file system the last of all


@dataclass(frozen=True)
class UserNetwork:
    """qemu's own network: the machine's ssh listens on `port` of 127.0.0.1.

    The machine reaches what this one reaches; `alone`: nothing.
    """

    port: int
    alone: bool = False

    @property
    def options(self) -> list[str]:
        """qemu's."""
        forward = f"hostfwd=tcp:127.0.0.1:{self.port}-:22"
        restrict = "on" if self.alone else "off"
        return ["-netdev", f"user,id=user,restrict={restrict},{forward}", "-device", f"{_MODEL},netdev=user"]


@dataclass(frozen=True)
class Tap:
    """An interface of type tap, which has to be there: the machine is `address`/24 behind it."""

    interface: str
    station: str
    address: str
    gateway: str

    @property
    def options(self) -> list[str]:
        """qemu's."""
        backend = f"tap,id=tap,ifname={self.interface},script=no,downscript=no"
        return ["-netdev", backend, "-device", f"{_MODEL},netdev=tap,mac={self.station}"]


def parameters(tap: Tap | None) -> str:
    """The kernel's, for a machine with qemu's own network, and before it perhaps a tap."""
    if tap is None:
        return f"ip=eth0:dhcp {_NOT_EARLY}"
    first = f"ip={tap.address}::{tap.gateway}:255.255.255.0::eth0:off"
    return f"{first} ip=10.0.2.15:::255.255.255.0::eth1:off {_NOT_EARLY}"


def free_port() -> int:
    """A port of 127.0.0.1 on which nobody listens."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])
