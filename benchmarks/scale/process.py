"""Reads from the kernel what the operator's process uses."""

import os
import time
from dataclasses import dataclass
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
_RESET_PEAK = "5"
_CGROUPS = Path("/sys/fs/cgroup")
_PEAKS = {"memory": ("memory", "memory.max_usage_in_bytes"), "": ("", "memory.peak")}
"""The folder and the file of each hierarchy by its controllers. The hierarchy of version 2 has none."""


@dataclass(frozen=True)
class Process:
    """A process by its pid on this machine."""

    pid: int

    @property
    def cpu_seconds(self) -> float:
        """Returns the user and system time of the process so far."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS

    @property
    def age_seconds(self) -> float | None:
        """Returns the seconds since the process began, or None if it is gone."""
        try:
            fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return None
        return time.clock_gettime(time.CLOCK_BOOTTIME) - int(fields[19]) / _TICKS

    @property
    def peak_mebibytes(self) -> float | None:
        """Returns the peak of its memory since it began or since `forget_peak`, or None if the process is gone."""
        try:
            lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        except OSError:
            return None
        return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM:")), None)

    def forget_peak(self) -> None:
        """Resets the peak of the memory."""
        Path(f"/proc/{self.pid}/clear_refs").write_text(_RESET_PEAK)

    @property
    def group_peak_mebibytes(self) -> float | None:
        """Returns the peak of its container's cgroup with page cache, or None if the kernel does not report it."""
        for line in Path(f"/proc/{self.pid}/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if controllers in _PEAKS:
                found = _CGROUPS / _PEAKS[controllers][0] / path.lstrip("/") / _PEAKS[controllers][1]
                return int(found.read_text()) / 2**20 if found.exists() else None
        return None
