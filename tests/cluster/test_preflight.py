"""The check reports everything that a machine lacks, before anything is created."""

import subprocess
from pathlib import Path

import pytest

from tests.cluster import cgroups
from tests.cluster.preflight import STATE

pytestmark = pytest.mark.release
ROOT = Path(__file__).parents[2]
LITTLE = "echo 128 > {folder}/instances; mount --bind {folder}/instances /proc/sys/fs/inotify/max_user_instances\n"
READ_ONLY = "for place in $(findmnt -rno TARGET -R {place}); do mount -o remount,bind,ro $place; done\n"


def check(preparation: str, *unshare: str) -> subprocess.CompletedProcess[str]:
    """Runs the check after a shell script has prepared a separate mount namespace."""
    script = f"{preparation}exec python3 -m tests.cluster check"
    return subprocess.run(
        ["unshare", "--mount", *unshare, "sh", "-ec", script], cwd=ROOT, capture_output=True, text=True, check=False
    )


def test_check_passes_on_this_machine() -> None:
    before = sorted(STATE.parent.iterdir())
    done = check("")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert sorted(STATE.parent.iterdir()) == before
    assert not cgroups.of_clusters("probe-*")


def test_all_missing_permissions_of_a_container_are_reported(tmp_path: Path) -> None:
    little = LITTLE.format(folder=tmp_path) + READ_ONLY.format(place="/proc/sys/fs/inotify/max_user_instances")
    done = check(little + READ_ONLY.format(place=cgroups.MOUNT))
    assert done.returncode == 1
    assert "no permission to create control groups (Read-only file system" in done.stderr
    assert "128 inotify instances, and no permission to raise them: sysctl -w fs.inotify" in done.stderr


def test_an_overlay_is_reported_with_what_to_do(tmp_path: Path) -> None:
    for name in ("lower", "upper", "work"):
        (tmp_path / name).mkdir()
    layers = f"lowerdir={tmp_path}/lower,upperdir={tmp_path}/upper,workdir={tmp_path}/work"
    done = check(f"mount -t overlay overlay -o {layers} {STATE.parent}\n")
    assert done.returncode == 1
    assert f"overlay file systems in {STATE.parent} (in a container: mount a volume there)" in done.stderr


def test_root_of_a_user_namespace_is_reported() -> None:
    done = check("", "--user", "--map-root-user")
    assert done.returncode == 1
    assert done.stderr.startswith("cluster: the built-in cluster needs root")
    assert "Traceback" not in done.stderr
