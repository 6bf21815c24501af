"""The machines that qemu makes of each architecture."""

import shutil
from dataclasses import dataclass

from images.architectures import KNOWN, Architecture, host
from tests.cluster.errors import ClusterError

_LIGHT = ("mitigations=off", "init_on_alloc=0", "transparent_hugepage=never")


@dataclass(frozen=True)
class Board:
    """`machine` and `emulated` (its processor, where it is emulated) are qemu's words. `parameters` are what the kernel
    is told where its processor is emulated."""

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
        """Whether this machine's processors are of the architecture."""
        return self.architecture == host()

    def check(self) -> None:
        """Raises ClusterError when a program that such machines need is missing."""
        for program in (self.program, "qemu-img", "ssh"):
            if shutil.which(program) is None:
                raise ClusterError(f"no program '{program}': run tools/setup vm")


_AMD64 = "max,avx=off,avx2=off,erms=off,fsrm=off,la57=off,smap=off"
BOARDS = {
    # Left to itself the kernel distrusts an emulated TSC, and half of all time goes into asking a slower clock; and
    # programs use AVX where they find it, which emulated takes them three times as long (SHA-256, searching), as do
    # copies by rep movsb, which are made byte by byte: without erms and fsrm other instructions are taken. The emulated
    # TLB is emptied whenever the address space changes, or when a page near huge ones goes; then a miss costs less with
    # four levels of page tables (without la57) and with one set of entries for the kernel (without smap).
    "amd64": Board(KNOWN["amd64"], "q35", _AMD64, "ttyS0", (*_LIGHT, "tsc=reliable")),
    "arm64": Board(KNOWN["arm64"], "virt", "cortex-a72", "ttyAMA0"),
}
