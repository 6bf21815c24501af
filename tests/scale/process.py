"""The operator's process, by the kernel's account of it."""

import os
from dataclasses import dataclass
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
_RESET_PEAK = "5"


@dataclass(frozen=True)
class Process:
    """By its pid on this machine."""

    pid: int

    @property
    def cpu_seconds(self) -> float:
        """User and system time so far."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS

    @property
    def peak_mebibytes(self) -> float:
        """The most memory that it has held, since it began or the last `forget_peak`."""
        lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        (kibibytes,) = [line.split()[1] for line in lines if line.startswith("VmHWM:")]
        return int(kibibytes) / 1024

    def forget_peak(self) -> None:
        """Begins to look for another peak."""
        Path(f"/proc/{self.pid}/clear_refs").write_text(_RESET_PEAK)

    @property
    def group_peak_mebibytes(self) -> float | None:
        """The same of its container's memory cgroup, page cache included; None where the kernel does not tell."""
        for line in Path(f"/proc/{self.pid}/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            for folder, file in (
                ("memory", "memory.max_usage_in_bytes") if controllers == "memory" else ("", "memory.peak"),
            ):
                found = Path("/sys/fs/cgroup", folder, path.lstrip("/"), file)
                if controllers in {"memory", ""} and found.exists():
                    return int(found.read_text()) / 2**20
        return None
