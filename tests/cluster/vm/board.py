"""The machines that qemu makes of each architecture."""

import shutil
from dataclasses import dataclass

from images.architectures import KNOWN, Architecture, host
from tests.cluster.errors import ClusterError


@dataclass(frozen=True)
class Board:
    """`machine` and `emulated` (its processor, where it is emulated) are qemu's words. `parameters` are what the kernel
    is told where its processor is emulated."""

    architecture: Architecture
    machine: str
    emulated: str
    console: str
    parameters: tuple[str, ...] = ("mitigations=off",)

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


BOARDS = {
    # Left to itself the kernel distrusts an emulated TSC, and half of all time goes into asking a slower clock; and
    # programs use AVX where they find it, which emulated takes them three times as long (SHA-256, searching).
    "amd64": Board(KNOWN["amd64"], "q35", "max,avx=off,avx2=off", "ttyS0", ("mitigations=off", "tsc=reliable")),
    "arm64": Board(KNOWN["arm64"], "virt", "cortex-a72", "ttyAMA0"),
}
