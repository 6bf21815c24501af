"""Creates disks with a stock Debian with mmdebstrap once, and caches them by the hash of their sources."""

import fcntl
import hashlib
import os
import shutil
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from images import base, emulation, packages
from images.architectures import Architecture
from images.shell import BuildError
from images.shell import run as build
from tests.cluster.binaries import cache
from tests.cluster.errors import ClusterError
from tests.cluster.processes import output, run
from tests.cluster.vm.board import BOARDS, Board

RELEASES = ("bookworm", "trixie")

_PACKAGES = (
    "ca-certificates",
    "dbus",
    "iproute2",
    "iputils-ping",
    "kmod",
    "openssh-server",
    "procps",
    "systemd-sysv",
    "udev",
    "zstd",
)
_SIZE = "8G"  # sparse, and a machine's own layer is larger: the file system grows when it boots
_FILES = {
    "etc/fstab": "/dev/vda / ext4 defaults,discard,x-systemd.growfs 0 1\n",
    "etc/resolv.conf": "nameserver 10.0.2.3\n",  # the address in QEMU's own network
    "etc/ssh/sshd_config.d/sessions.conf": "MaxSessions 100\nMaxStartups 100\n",
    "etc/systemd/journald.conf.d/kept.conf": "[Journal]\nStorage=persistent\n",
}
# A small initial file system boots in half the time where processors are emulated.
_INITIAL = {
    "etc/initramfs-tools/conf.d/modules": "MODULES=list\n",
    "usr/share/initramfs-tools/modules.d/virtual-machine": "ext4\nvirtio_blk\nvirtio_pci\n",
}
_CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")  # this machine's proxy, if it needs one
_ENABLED = ("ssh", "systemd-networkd", "systemd-network-generator")
_DISABLED = (
    "apt-daily.timer",
    "apt-daily-upgrade.timer",
    "dpkg-db-backup.timer",
    "e2scrub_all.timer",
    "fstrim.timer",
    "systemd-networkd-wait-online.service",
)


@dataclass(frozen=True)
class Disk:
    """A disk in its folder. Machines boot from layers over `image`, and accept logins with `key`."""

    board: Board
    folder: Path

    @property
    def image(self) -> Path:
        return self.folder / "disk.raw"

    @property
    def kernel(self) -> Path:
        return self.folder / "vmlinuz"

    @property
    def initial(self) -> Path:
        return self.folder / "initrd"

    @property
    def key(self) -> Path:
        return self.folder / "key"


@dataclass(frozen=True)
class Debian:
    """The contents of a disk: Debian's cloud kernel, systemd, ssh and the extra packages.

    The shell script `setup` runs after these `files` (text by absolute path) are written. The package archives are
    those of this machine.
    """

    release: str
    architecture: str
    packages: tuple[str, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    setup: str = ""

    def disk(self) -> Disk:
        """Returns the disk, and creates it if it is not cached. Raises ClusterError if it cannot be created."""
        if self.release not in RELEASES or self.architecture not in BOARDS:
            known = f"{', '.join(RELEASES)} for {', '.join(BOARDS)}"
            raise ClusterError(f"no machines with Debian {self.release} for {self.architecture}; known are {known}")
        name = f"debian-{self.release}-{self.architecture}-{self._digest}"
        disk = Disk(BOARDS[self.architecture], cache() / name)
        if (disk.folder / "built").exists():
            return disk
        disk.folder.mkdir(parents=True, exist_ok=True)
        with (disk.folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not (disk.folder / "built").exists():
                print(
                    f"making a disk with Debian {self.release} for {self.architecture} (once, minutes) …",
                    file=sys.stderr,
                    flush=True,
                )
                self._make(disk)
                (disk.folder / "built").touch()
        return disk

    @property
    def _digest(self) -> str:
        recipe = (self.packages, self.files, self.setup, _PACKAGES, _SIZE, _FILES, _INITIAL, _ENABLED, _DISABLED)
        return hashlib.sha256(repr(recipe).encode()).hexdigest()[:12]

    def _make(self, disk: Disk) -> None:
        if os.geteuid() != 0:
            raise ClusterError("making a Debian disk needs root: run this with sudo")
        with tempfile.TemporaryDirectory(dir=disk.folder) as folder:
            root = Path(folder, "root")
            try:
                self._bootstrap(root, Path(folder), disk.board.architecture)
            except BuildError as error:
                raise ClusterError(str(error)) from error
            self._configure(root, disk.key)
            for name, file in (("vmlinuz", disk.kernel), ("initrd.img", disk.initial)):
                shutil.copyfile(next((root / "boot").glob(f"{name}-*")), file)
            run("truncate", f"--size={_SIZE}", str(disk.image))
            run("mkfs.ext4", "-q", "-F", "-d", str(root), str(disk.image))

    def _bootstrap(self, root: Path, folder: Path, architecture: Architecture) -> None:
        emulation.ensure(architecture)
        initial, apt = folder / "initial", folder / "apt.conf"
        _write(initial, _INITIAL)
        apt.write_text(packages.apt_configuration())
        hooks = self._hooks(folder / "files", folder / "volumes") if self.setup else []
        build(
            "mmdebstrap",
            "--quiet",
            "--format=directory",
            "--variant=minbase",
            "--skip=check/qemu",  # emulation.ensure has made sure
            f"--architectures={architecture.debian}",
            f"--include={','.join([*_PACKAGES, f'linux-image-cloud-{architecture.debian}', *self.packages])}",
            f"--aptopt={apt}",
            "--dpkgopt=force-unsafe-io",
            f"--essential-hook=copy-in {initial}/etc {initial}/usr /",
            *hooks,
            self.release,
            str(root),
            *base.sources(self.release),
        )

    def _hooks(self, files: Path, volumes: Path) -> list[str]:
        """Returns mmdebstrap's options for `files` and `setup`."""
        volumes.mkdir()
        ways = {place: source.read_text() for source, place in packages.volumes(volumes).items()}
        if _CERTIFICATES.exists():
            ways[str(_CERTIFICATES)] = _CERTIFICATES.read_text()
        texts = {**ways, **self.files, "/opt/setup": self.setup}
        _write(files, {name.lstrip("/"): text for name, text in texts.items()})
        return [f"--customize-hook=sync-in {files} /", '--customize-hook=chroot "$1" sh -e /opt/setup']

    def _configure(self, root: Path, key: Path) -> None:
        key.unlink(missing_ok=True)
        run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(key))
        (root / "etc/resolv.conf").unlink(missing_ok=True)
        _write(root, _FILES | {"root/.ssh/authorized_keys": key.with_suffix(".pub").read_text(), "etc/machine-id": ""})
        (root / "root/.ssh").chmod(0o700)
        output("chroot", str(root), "systemctl", "enable", *_ENABLED)
        output("chroot", str(root), "systemctl", "disable", *_DISABLED)


def _write(root: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
