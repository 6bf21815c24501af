"""Sources of the packages in the base image."""

import platform

import pytest

from images import base

_LINES = """\
http://mirror.example/debian bookworm main
http://mirror.example/debian bookworm contrib
http://mirror.example/debian bookworm-updates main
http://security.example/debian bookworm-security main
http://mirror.example/debian bookworm-backports main
http://other.example/apt tools main
"""


def _machine(monkeypatch: pytest.MonkeyPatch, **release: str) -> None:
    monkeypatch.setattr(platform, "freedesktop_os_release", lambda: release)
    monkeypatch.setattr(base, "output", lambda *_: _LINES)


def test_base_image_uses_the_archives_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    _machine(monkeypatch, ID="debian", VERSION_CODENAME="bookworm")
    assert base.sources("bookworm") == [
        "deb http://mirror.example/debian bookworm main",
        "deb http://mirror.example/debian bookworm-updates main",
        "deb http://security.example/debian bookworm-security main",
    ]


def test_archives_of_this_machine_have_other_releases_too(monkeypatch: pytest.MonkeyPatch) -> None:
    _machine(monkeypatch, ID="debian", VERSION_CODENAME="bookworm")
    assert base.sources("trixie") == [
        "deb http://mirror.example/debian trixie main",
        "deb http://mirror.example/debian trixie-updates main",
        "deb http://security.example/debian trixie-security main",
    ]


def test_archives_of_another_distribution_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    _machine(monkeypatch, ID="ubuntu", VERSION_CODENAME="tools")
    assert base.sources("trixie") == []
