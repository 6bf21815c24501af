"""Tests whether this machine's KVM boots a kernel. Some machines offer KVM but hang."""

import hashlib
import os
import subprocess
from pathlib import Path

from tests.cluster.binaries import cache
from tests.cluster.processes import output
from tests.cluster.vm.board import Board

KVM = "kvm"
EMULATION = "tcg,thread=multi,tb-size=2047"  # MiB of translated code, because Kubernetes' exceeds the default

_SECONDS = 20


def choose(board: Board, kernel: Path) -> str:
    """Returns QEMU's accelerator for the board.

    The kernel is tried once. The result is cached for this host's kernel.
    """
    if not board.native or not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return EMULATION
    host = f"{os.uname().release} {output(board.program, '--version')}"
    remembered = cache() / f"accelerator-{hashlib.sha256(host.encode()).hexdigest()[:12]}"
    if not remembered.exists():
        remembered.write_text(KVM if _boots(board, kernel) else "")
    return KVM if remembered.read_text() == KVM else EMULATION


def _boots(board: Board, kernel: Path) -> bool:
    """Returns whether the kernel boots until it needs its root file system."""
    command = [board.program, "-machine", board.machine, "-accel", KVM, "-cpu", "host", "-m", "512M"]
    quiet = ["-nodefaults", "-no-reboot", "-display", "none", "-serial", "stdio"]
    boot = ["-kernel", str(kernel), "-append", f"console={board.console} panic=-1"]
    try:
        done = subprocess.run([*command, *quiet, *boot], capture_output=True, check=False, timeout=_SECONDS)
    except subprocess.TimeoutExpired:
        return False
    return b"Unable to mount root fs" in done.stdout
