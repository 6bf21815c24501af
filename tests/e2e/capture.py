"""Counts the packets on a pod's network interface."""

import ctypes
import os
import socket
import struct
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

_ALL_PROTOCOLS = 3
_SO_RCVBUFFORCE, _SO_TIMESTAMPNS = 33, 35
_TIMESPEC = struct.Struct("qq")
_SOL_PACKET, _PACKET_STATISTICS = 263, 6
_ROOM = 64 << 20  # a burst is not lost while another process has the CPU
_CLONE_NEWNET = 0x40000000
_IPV4_ETHERTYPE = b"\x08\x00"
_ETHERNET, _TCP = 14, 6
_ENDS = 0b101  # FIN and RST in the flags of a segment
_SEGMENT = 1448  # an MTU of 1500 without headers and timestamps


@dataclass
class Captured:
    """The bytes of frames from and to one TCP port of the pod, per connection by its other port."""

    port: int
    connections: Counter[int] = field(default_factory=Counter)
    start_times: dict[int, datetime] = field(default_factory=dict)
    ended: set[int] = field(default_factory=set)
    dropped: int = 0

    def bytes_between(self, start: datetime, end: datetime) -> int:
        """Returns the bytes of the connections that were made in this time."""
        return sum(size for port, size in self.connections.items() if start <= self.start_times[port] <= end)

    def take(self, frame: bytes, at: datetime) -> None:
        """Counts a frame of the port with its Ethernet header but without a checksum, as the clients do.

        Between pods of one machine the kernel merges segments into one frame. Each segment counts with its headers.
        """
        if frame[12:14] != _IPV4_ETHERTYPE or frame[_ETHERNET + 9] != _TCP:
            return
        tcp = _ETHERNET + 4 * (frame[_ETHERNET] & 15)
        ports = int.from_bytes(frame[tcp : tcp + 2]), int.from_bytes(frame[tcp + 2 : tcp + 4])
        if self.port in ports:
            headers = tcp + 4 * (frame[tcp + 12] >> 4)
            payload = _ETHERNET + int.from_bytes(frame[_ETHERNET + 2 : _ETHERNET + 4]) - headers
            segments = max(1, -(-payload // _SEGMENT))
            other = ports[0] if ports[1] == self.port else ports[1]
            self.start_times.setdefault(other, at)
            if frame[tcp + 13] & _ENDS:
                self.ended.add(other)
            if other not in self.ended:
                self.connections[other] += payload + segments * headers


@contextmanager
def capturing(pid: int, port: int) -> Iterator[Captured]:
    """Captures packets on eth0 of a process's network namespace."""
    captured, ready, done = Captured(port), threading.Event(), threading.Event()
    thread = threading.Thread(target=_read, args=(pid, captured, ready, done))
    thread.start()
    ready.wait(10)
    try:
        yield captured
    finally:
        done.set()
        thread.join()


def _read(pid: int, captured: Captured, ready: threading.Event, done: threading.Event) -> None:
    """Reads packets in a separate thread, because a thread that has entered a network namespace cannot leave it."""
    libc = ctypes.CDLL(None, use_errno=True)
    with Path(f"/proc/{pid}/ns/net").open() as namespace:
        if libc.setns(namespace.fileno(), _CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ALL_PROTOCOLS)) as packets:
        packets.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _ROOM)
        packets.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        packets.bind(("eth0", 0))
        packets.settimeout(0.2)
        ready.set()
        while True:
            try:
                frame, ((_, _, seen),), *_ = packets.recvmsg(65535, socket.CMSG_SPACE(_TIMESPEC.size))
                captured.take(frame, _time(seen))
            except TimeoutError:  # all packets so far have been read
                if done.is_set():
                    break
            except OSError:  # the interface was deleted, but packets that arrived before can still be read
                continue
        captured.dropped = struct.unpack("II", packets.getsockopt(_SOL_PACKET, _PACKET_STATISTICS, 8))[1]


def _time(timespec: bytes) -> datetime:
    """Returns when the kernel received a packet. This process may have read it much later."""
    seconds, nanoseconds = _TIMESPEC.unpack(timespec)
    return datetime.fromtimestamp(seconds + nanoseconds / 1e9, UTC)
