"""What control groups allow this process of its CPUs. Pure over a root folder.

A container sees its own group, and may see those above it, such as its pod's; each may have a quota.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from .files import text

_PYTHON_MILLICORES: Final = 1000  # it runs one thread at a time


def cpu_limit_millicores(root: Path) -> int:
    """CPU that this process can use at once, in thousandths of one: its one thread's, or the least quota's."""
    quotas = (_quota(group) for group in _groups(root))
    return min([_PYTHON_MILLICORES, *(quota for quota in quotas if quota is not None)])


def throttled_nanoseconds(root: Path) -> int | None:
    """How long quotas have held back, so far, the group on the way up that they held back most."""
    times = (_throttled(group) for group in _groups(root))
    return max((time for time in times if time is not None), default=None)


def _groups(root: Path) -> Iterator[Path]:
    """The folders of this process's group of CPU and of those above it, as far as they can be seen.

    A container without a namespace of its own reads a path that is not below its mount, which is its own group then.
    """
    for line in text(root / "proc/self/cgroup").splitlines():
        hierarchy, controllers, path = line.split(":", 2)
        top = root / "sys/fs/cgroup"
        if "cpu" in controllers.split(","):
            top /= "cpu"
        elif hierarchy != "0":
            continue
        own = Path(path.replace("/..", "").lstrip("/"))
        yield from (top / group for group in (own, *own.parents))


def _quota(group: Path) -> int | None:
    """Thousandths of a CPU; None without a quota."""
    unified = text(group / "cpu.max").split()
    separate = [text(group / f"cpu.cfs_{name}_us") for name in ("quota", "period")]
    quota, period = unified if len(unified) == 2 else separate
    if not (quota.isdecimal() and period.isdecimal() and int(quota) and int(period)):  # "max", or -1
        return None
    return max(1, int(quota) * 1000 // int(period))


def _throttled(group: Path) -> int | None:
    fields = dict(line.split(maxsplit=1) for line in text(group / "cpu.stat").splitlines() if " " in line)
    for name, unit in (("throttled_usec", 1000), ("throttled_time", 1)):
        if fields.get(name, "").isdecimal():
            return int(fields[name]) * unit
    return None
