"""Lets paho wait for file descriptors above 1023, which select(2) cannot. Each connection has three."""

import resource
import select
from collections.abc import Sequence
from socket import socket
from types import SimpleNamespace

from paho.mqtt import client

Ready = tuple[list[socket], list[socket], list[socket]]


def select_any(readers: Sequence[socket], writers: Sequence[socket], failed: Sequence[socket], timeout: float) -> Ready:
    """Like select.select, if each writer is a reader, too. Only large descriptors need poll(2), which is slower here.

    Raises:
        ValueError: a socket is closed.
    """
    try:
        return select.select(readers, writers, failed, timeout)
    except ValueError:
        return _poll(readers, writers, timeout)


def _poll(readers: Sequence[socket], writers: Sequence[socket], timeout: float) -> Ready:
    poll = select.poll()
    for one in readers:
        poll.register(one, select.POLLIN | select.POLLOUT if one in writers else select.POLLIN)
    found = dict(poll.poll(timeout * 1000))
    ready = [(one, found.get(one.fileno(), 0)) for one in readers]
    readable = [one for one, events in ready if events & ~select.POLLOUT]
    return readable, [one for one, events in ready if events & select.POLLOUT], []


def wait_for_any_file() -> None:
    """Replaces paho's select, and raises the limit of open files to its maximum."""
    setattr(client, "select", SimpleNamespace(select=select_any))  # noqa: B010 (mypy knows it as a module)
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
