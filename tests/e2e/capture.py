"""Packets as they pass a pod's own interface, counted."""

import ctypes
import os
import socket
import subprocess
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

_ALL_PROTOCOLS = 3
_CLONE_NEWNET = 0x40000000
_IPV4_ETHERTYPE = b"\x08\x00"
_ETHERNET, _TCP = 14, 6


@dataclass
class Captured:
    """Bytes of frames from and to one TCP port of the pod, by the other side's port: one a connection."""

    port: int
    connections: Counter[int] = field(default_factory=Counter)
    largest: int = 0

    def take(self, frame: bytes) -> None:
        """Counts a frame if it is one of the port's: Ethernet header, and no checksum, as the clients count."""
        if frame[12:14] != _IPV4_ETHERTYPE or frame[_ETHERNET + 9] != _TCP:
            return
        header = _ETHERNET + 4 * (frame[_ETHERNET] & 15)
        ports = int.from_bytes(frame[header : header + 2]), int.from_bytes(frame[header + 2 : header + 4])
        if self.port in ports:
            length = _ETHERNET + int.from_bytes(frame[_ETHERNET + 2 : _ETHERNET + 4])
            self.connections[ports[0] if ports[1] == self.port else ports[1]] += length
            self.largest = max(self.largest, length)


@contextmanager
def capturing(pid: int, port: int) -> Iterator[Captured]:
    """Captures on eth0 of a process's network namespace. Frames are whole segments: offloads are switched off there."""
    command = [
        "nsenter",
        f"--net=/proc/{pid}/ns/net",
        "ethtool",
        "-K",
        "eth0",
        "tso",
        "off",
        "gso",
        "off",
        "gro",
        "off",
    ]
    subprocess.run(command, check=True, capture_output=True)
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
    """In a thread of its own: a network namespace is entered by one thread, and only by one that ends after."""
    libc = ctypes.CDLL(None, use_errno=True)
    with Path(f"/proc/{pid}/ns/net").open() as namespace:
        if libc.setns(namespace.fileno(), _CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ALL_PROTOCOLS)) as packets:
        packets.bind(("eth0", 0))
        packets.settimeout(0.2)
        ready.set()
        while not done.is_set():
            try:
                captured.take(packets.recv(65535))
            except TimeoutError:
                continue
            except OSError:  # the pod is gone, and its interface with it
                return
