"""Bytes and packets on the wire, from what the kernel knows of a TCP connection.

Each segment counts with 14 bytes of Ethernet, the IP header (20 or 40), the TCP header with its options, and the data.
Retransmissions count again. Checksum, preamble and gap of Ethernet do not count. Every segment is a packet, also one
that connects, only acknowledges, or is a retransmission.
"""

import socket
import struct
from dataclasses import dataclass
from typing import Final

_ETHERNET: Final = 14
_IP: Final = {socket.AF_INET: 20, socket.AF_INET6: 40}
_TCP: Final = 20
_TIMESTAMPS: Final = 12
_MAXIMUM_SEGMENT_SIZE: Final = 4

# struct tcp_info of linux/tcp.h. Kernels before 4.19 leave out what is beyond tcpi_delivery_rate.
_INFO_BYTES: Final = 256
_OPTIONS: Final = struct.Struct("=5xB")
_SEGMENT_SIZE: Final = struct.Struct("=16xI")
_RETRANSMITS: Final = struct.Struct("=100xI")
_BYTES: Final = struct.Struct("=120xQQII")
_BYTES_SENT: Final = struct.Struct("=200xQ")
_HAS_TIMESTAMPS, _HAS_SACK, _HAS_WINDOW_SCALE = 1, 2, 4


@dataclass(frozen=True)
class Counters:
    """Bytes and packets on the wire, and segments that this side sent again."""

    sent_bytes: int = 0
    received_bytes: int = 0
    sent_packets: int = 0
    received_packets: int = 0
    retransmits: int = 0

    @property
    def bytes(self) -> int:
        """Both ways."""
        return self.sent_bytes + self.received_bytes

    @property
    def packets(self) -> int:
        """Both ways."""
        return self.sent_packets + self.received_packets

    def __add__(self, other: "Counters") -> "Counters":
        return Counters(
            self.sent_bytes + other.sent_bytes,
            self.received_bytes + other.received_bytes,
            self.sent_packets + other.sent_packets,
            self.received_packets + other.received_packets,
            self.retransmits + other.retransmits,
        )

    def __sub__(self, earlier: "Counters") -> "Counters":
        return Counters(
            self.sent_bytes - earlier.sent_bytes,
            self.received_bytes - earlier.received_bytes,
            self.sent_packets - earlier.sent_packets,
            self.received_packets - earlier.received_packets,
            self.retransmits - earlier.retransmits,
        )


def read(connection: socket.socket) -> Counters:
    """Of a connection, since its SYN.

    Raises:
        OSError: it is closed.
    """
    info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _INFO_BYTES)
    return count(info, socket.AddressFamily(connection.family))


def count(info: bytes, family: socket.AddressFamily) -> Counters:
    """What a struct tcp_info says."""
    (options,) = _OPTIONS.unpack_from(info)
    (retransmits,) = _RETRANSMITS.unpack_from(info)
    acknowledged, received, segments_sent, segments_received = _BYTES.unpack_from(info)
    if len(info) >= _BYTES_SENT.size:
        (sent,) = _BYTES_SENT.unpack_from(info)
    else:
        (segment_size,) = _SEGMENT_SIZE.unpack_from(info)
        sent = max(acknowledged - 1, 0) + retransmits * segment_size  # the SYN was acknowledged too
    timestamps = _TIMESTAMPS if options & _HAS_TIMESTAMPS else 0
    header = _ETHERNET + _IP[family] + _TCP + timestamps
    syn = _syn_options(options) - timestamps
    return Counters(
        sent + segments_sent * header + syn,
        received + segments_received * header + syn,
        segments_sent,
        segments_received,
        retransmits,
    )


def _syn_options(options: int) -> int:
    """Bytes of the options of a SYN, as Linux lays them out: with timestamps, that of SACK is in their padding."""
    length = _MAXIMUM_SEGMENT_SIZE
    if options & _HAS_TIMESTAMPS:
        length += _TIMESTAMPS
    elif options & _HAS_SACK:
        length += 4
    return length + (4 if options & _HAS_WINDOW_SCALE else 0)
