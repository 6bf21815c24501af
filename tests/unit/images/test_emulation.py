"""The kernel registers an emulator for programs of another processor."""

from pathlib import Path

import pytest

from images import emulation
from images.architectures import KNOWN, Architecture, host
from images.shell import BuildError

_FOREIGN = next(one for one in KNOWN.values() if one != host())


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    kernel, rules = tmp_path / "kernel", tmp_path / "rules"
    kernel.mkdir()
    rules.mkdir()
    (kernel / "register").touch()
    monkeypatch.setattr(emulation, "_KERNEL", kernel)
    monkeypatch.setattr(emulation, "_RULES", rules)
    return kernel


def _registered(kernel: Path, text: str, architecture: Architecture = _FOREIGN) -> None:
    (kernel / f"qemu-{architecture.qemu}").write_text(text)


def test_programs_of_this_architecture_need_no_emulator(kernel: Path) -> None:
    (kernel / "register").unlink()
    emulation.ensure(host())


def test_registration_that_containers_can_use_is_kept(kernel: Path) -> None:
    _registered(kernel, "enabled\ninterpreter /usr/bin/qemu\nflags: POF\noffset 0\n")
    emulation.ensure(_FOREIGN)
    assert (kernel / "register").read_text() == ""


@pytest.mark.parametrize("text", ["enabled\nflags: PO\n", "disabled\nflags: POF\n"])
def test_a_registration_that_containers_cannot_use_is_refused(kernel: Path, text: str) -> None:
    _registered(kernel, text)
    with pytest.raises(BuildError, match="echo -1"):
        emulation.ensure(_FOREIGN)


def test_error_about_a_missing_emulator_names_its_package(kernel: Path) -> None:
    with pytest.raises(BuildError, match="qemu-user-static"):
        emulation.ensure(_FOREIGN)


def test_error_about_missing_binfmt_misc_names_the_command(kernel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (kernel / "register").unlink()

    def refuse(*_: str) -> None:
        raise BuildError("mount failed")

    monkeypatch.setattr(emulation, "run", refuse)
    with pytest.raises(BuildError, match="modprobe binfmt_misc"):
        emulation.ensure(_FOREIGN)
