"""The two ways a machine is connected."""

import socket
from dataclasses import dataclass

_NOT_EARLY = "ip=off"  # systemd takes the first of the two, the initial file system the last


@dataclass(frozen=True)
class UserNetwork:
    """qemu's own network: the machine reaches what this one reaches; its ssh listens on `port` of 127.0.0.1."""

    port: int
    address: str = "127.0.0.1"

    @property
    def options(self) -> list[str]:
        """qemu's."""
        return [
            "-netdev",
            f"user,id=network,hostfwd=tcp:{self.address}:{self.port}-:22",
            "-device",
            "virtio-net-pci,netdev=network,romfile=",
        ]

    @property
    def parameter(self) -> str:
        """The kernel's."""
        return f"ip=eth0:dhcp {_NOT_EARLY}"


@dataclass(frozen=True)
class Tap:
    """An interface of type tap, which has to be there: the machine is `address`/24 behind it, its ssh on port 22."""

    interface: str
    station: str
    address: str
    gateway: str
    port: int = 22

    @property
    def options(self) -> list[str]:
        """qemu's."""
        return [
            "-netdev",
            f"tap,id=network,ifname={self.interface},script=no,downscript=no",
            "-device",
            f"virtio-net-pci,netdev=network,mac={self.station},romfile=",
        ]

    @property
    def parameter(self) -> str:
        """The kernel's."""
        return f"ip={self.address}::{self.gateway}:255.255.255.0::eth0:off {_NOT_EARLY}"


def free_port() -> int:
    """A port of 127.0.0.1 on which nobody listens."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])
