"""Runs Debian machines in QEMU: a disk that is created once, a copy-on-write layer per machine, and ssh.

machine = VirtualMachine("try", folder, Debian("bookworm", "amd64").disk(), UserNetwork(free_port()))
machine.boot()
machine.ssh.copy_in(Path("."), "/root/project")
machine.ssh.call("cd /root/project && make test-unit")
machine.shut_down()
"""

from tests.cluster.vm.board import BOARDS, Board
from tests.cluster.vm.disk import Debian, Disk
from tests.cluster.vm.network import Tap, UserNetwork, free_port
from tests.cluster.vm.ssh import Ssh
from tests.cluster.vm.virtual_machine import Drive, VirtualMachine

__all__ = [
    "BOARDS",
    "Board",
    "Debian",
    "Disk",
    "Drive",
    "Ssh",
    "Tap",
    "UserNetwork",
    "VirtualMachine",
    "free_port",
]
