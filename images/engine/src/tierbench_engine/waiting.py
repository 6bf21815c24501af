"""Lets paho wait by poll(2). It waits by select(2), which knows only the files 0 to 1023: three for each connection."""

import resource
import select
from collections.abc import Sequence
from socket import socket
from types import SimpleNamespace

from paho.mqtt import client


def select_by_poll(
    readers: Sequence[socket], writers: Sequence[socket], _failed: Sequence[socket], timeout: float
) -> tuple[list[socket], list[socket], list[socket]]:
    """Like select.select, where each writer is a reader, too."""
    poll = select.poll()
    for one in readers:
        poll.register(one, select.POLLIN | select.POLLOUT if one in writers else select.POLLIN)
    found = dict(poll.poll(timeout * 1000))
    ready = [(one, found.get(one.fileno(), 0)) for one in readers]
    readable = [one for one, events in ready if events & ~select.POLLOUT]
    return readable, [one for one, events in ready if events & select.POLLOUT], []


def use_poll() -> None:
    """From now on. As many files are allowed as the computer allows this process."""
    setattr(client, "select", SimpleNamespace(select=select_by_poll))  # noqa: B010 (mypy knows it as a module)
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
