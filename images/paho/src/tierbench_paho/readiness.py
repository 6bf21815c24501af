"""Whether the broker is ready: when a message has made the round trip, not when its port is open."""

import secrets
import socket
import time
from dataclasses import replace
from queue import Empty, SimpleQueue
from typing import Final

from .connection import Connection, close_all, open_all
from .contract import FailureError
from .envelope import Codec
from .options import Options
from .pool import Pool

_RETRY_SECONDS: Final = 0.2
_DIAL_SECONDS: Final = 5.0
_SMALL: Final = b"ready"
_TRANSIENT: Final = ("BrokerUnreachable", "NothingDelivered")


def await_broker(options: Options, pool: Pool) -> Options:
    """Sends a small message there and back for each pair, then the largest of the load; tries again until one came.

    The answer has the address that the broker was found at: trials look up no names.

    Raises:
        FailureError: why the broker is not ready in time, or never will be.
    """
    deadline = time.monotonic() + options.ready_seconds
    while True:
        try:
            found = _locate(options)
            _probe(found, pool.largest, deadline)
        except FailureError as failure:
            if failure.reason not in _TRANSIENT or time.monotonic() > deadline:
                raise
            time.sleep(_RETRY_SECONDS)
        else:
            return found


def _locate(options: Options) -> Options:
    target = options.target
    try:
        with socket.create_connection((target.host, target.port), _DIAL_SECONDS) as connection:
            address = connection.getpeername()[0]
    except OSError as error:
        message = f"no connection to {target.host}:{target.port}: {error}: check that a broker listens there"
        raise FailureError("BrokerUnreachable", message) from error
    return replace(options, target=replace(target, host=address))


def _probe(options: Options, plain: bytes, deadline: float) -> None:
    probes = [_Probe(options, pair) for pair in options.pairs]
    connections = tuple(probe.connection for probe in probes)
    try:
        failure = open_all(connections, options.timeout_nanoseconds)
        if failure is not None:
            raise failure
        _send_small(probes, min(deadline, time.monotonic() + options.timeout_nanoseconds / 1e9))
        _send_large(options, probes, plain)
    finally:
        close_all(connections)


def _send_small(probes: "list[_Probe]", deadline: float) -> None:
    for probe in probes:
        probe.send(_SMALL)
    if not all(probe.came(_SMALL, deadline) for probe in probes):
        message = "a first message did not return: allow this account to publish and subscribe below --topic"
        raise FailureError("NothingDelivered", message)


def _send_large(options: Options, probes: "list[_Probe]", plain: bytes) -> None:
    encoded = Codec(options.message.compression, options.message.key).encode(plain)
    deadline = time.monotonic() + options.timeout_nanoseconds / 1e9
    for probe in probes:
        probe.send(encoded)
    if not all(probe.came(encoded, deadline) for probe in probes):
        message = (
            f"a small message returned, but one of {len(encoded)} bytes did not: check the broker's limit on the size"
        )
        raise FailureError("PayloadNotDelivered", message)


class _Probe:
    """One connection that talks to itself."""

    def __init__(self, options: Options, pair: int) -> None:
        self._topic = f"{options.topic}/ready/{options.barrier.part}/{pair}"
        self._received: SimpleQueue[bytes] = SimpleQueue()
        self.connection = Connection(
            options.target,
            secrets.token_hex(8),
            options.message.qos,
            topic=self._topic,
            on_message=self._received.put,
        )

    def send(self, message: bytes) -> None:
        self.connection.publish(self._topic, message)

    def came(self, message: bytes, deadline: float) -> bool:
        """Whether a message came back in time."""
        try:
            while self._received.get(timeout=max(deadline - time.monotonic(), 0)) != message:
                pass
        except Empty:
            return False
        return True
