"""Defines the machines that QEMU emulates for each architecture."""

import shutil
from dataclasses import dataclass

from images.architectures import KNOWN, Architecture, host
from tests.cluster.errors import ClusterError

_LIGHT = ("mitigations=off", "init_on_alloc=0", "transparent_hugepage=never")


@dataclass(frozen=True)
class Board:
    """`machine` and `emulated` are QEMU's names for the machine, and for the processor if it is emulated.

    `parameters` are those of the kernel on an emulated processor.
    """

    architecture: Architecture
    machine: str
    emulated: str
    console: str
    parameters: tuple[str, ...] = _LIGHT

    @property
    def program(self) -> str:
        return f"qemu-system-{self.architecture.qemu}"

    @property
    def native(self) -> bool:
        """Returns whether this machine's processors have the architecture."""
        return self.architecture == host()

    def check(self) -> None:
        """Raises ClusterError if a program for such machines is missing."""
        for program in (self.program, "qemu-img", "ssh"):
            if shutil.which(program) is None:
                raise ClusterError(f"no program '{program}': run tools/setup vm")


_AMD64 = "max,avx=off,avx2=off,erms=off,fsrm=off,la57=off,smap=off"
BOARDS = {
    # By default the kernel distrusts an emulated TSC, and spends half of all time reading a slower clock. Programs
    # would use AVX, which takes three times as long when emulated (SHA-256, searching). Copies by rep movsb are made
    # byte by byte, so erms and fsrm are off. The emulated TLB is emptied whenever the address space changes, or a page
    # near huge pages is freed. A miss costs less with four levels of page tables (without la57), and with one set of
    # entries for the kernel (without smap).
    "amd64": Board(KNOWN["amd64"], "q35", _AMD64, "ttyS0", (*_LIGHT, "tsc=reliable")),
    "arm64": Board(KNOWN["arm64"], "virt", "cortex-a72", "ttyAMA0"),
}
