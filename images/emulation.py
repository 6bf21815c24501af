"""Runs programs of another processor on this machine: by QEMU's user emulation and the kernel's binfmt_misc."""

from pathlib import Path

from images.architectures import Architecture, host
from images.shell import BuildError, run

_KERNEL = Path("/proc/sys/fs/binfmt_misc")
_RULES = Path("/usr/lib/binfmt.d")  # where Debian's qemu-user-static has a registration for each processor
_FIXED = "F"  # the kernel keeps the emulator open, so a container does not need it


def ensure(architecture: Architecture) -> None:
    """Lets the kernel run the architecture's programs, also in containers. Raises BuildError that says what to do."""
    if architecture == host():
        return
    entry = _KERNEL / f"qemu-{architecture.qemu}"
    if not (_KERNEL / "register").exists():
        _mount()
    if not entry.exists():
        _register(_RULES / f"{entry.name}.conf")
    state, *fields = entry.read_text().splitlines()
    flags = next((field.removeprefix("flags: ") for field in fields if field.startswith("flags: ")), "")
    if state != "enabled" or _FIXED not in flags:
        raise BuildError(
            f"{entry} is {state} with flags '{flags}', but containers need it enabled with {_FIXED}: "
            f"remove it as root (echo -1 >{entry}), then run this again"
        )


def _mount() -> None:
    try:
        run("mount", "-t", "binfmt_misc", "binfmt_misc", str(_KERNEL))
    except BuildError as error:
        raise BuildError(
            f"{error}\nPrograms of other processors need the kernel's binfmt_misc. Run this as root on a kernel with "
            "it (modprobe binfmt_misc), or on a machine of that architecture"
        ) from error


def _register(rule: Path) -> None:
    if not rule.exists():
        raise BuildError(f"no {rule}: install Debian's qemu-user-static")
    try:
        (_KERNEL / "register").write_bytes(rule.read_bytes().strip())
    except OSError as error:
        raise BuildError(f"{_KERNEL} refuses {rule} ({error.strerror}): run this as root") from error
