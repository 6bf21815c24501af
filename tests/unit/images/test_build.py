"""Builds of images: when they are repeated, and where their archives are."""

import shutil
import sys
from pathlib import Path

import pytest

from images import build
from images.architectures import KNOWN, host
from images.build import BUILT, ROOT


def test_archives_of_this_architecture_are_in_the_build_folder() -> None:
    assert build.archives(host()) == BUILT


def test_other_architectures_have_one_folder_each() -> None:
    foreign = [one for one in KNOWN.values() if one != host()]
    assert [build.archives(one) for one in foreign] == [BUILT / one.name for one in foreign]


def test_unknown_architecture_is_refused_with_a_list_of_known_ones(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["images.build", "--arch", "mips"])
    with pytest.raises(SystemExit):
        build.main()
    errors = capsys.readouterr().err
    assert all(name in errors for name in ("mips", *KNOWN))


def test_image_is_built_again_only_if_one_of_its_sources_has_changed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    made: list[str] = []

    def buildah(context: Path, name: str, platform: str, origin: str, archive: Path) -> None:
        made.append(name)
        archive.touch()

    for source in ("images/client", "operator/pyproject.toml", "images/compile", "tools/go"):
        place = tmp_path / source
        place.parent.mkdir(parents=True, exist_ok=True)
        copy = shutil.copytree if (ROOT / source).is_dir() else shutil.copy
        copy(ROOT / source, place)
    monkeypatch.setattr(build, "ROOT", tmp_path)
    monkeypatch.setattr(build, "BUILT", tmp_path / "built")
    monkeypatch.setattr(build, "CACHE", tmp_path / "cache")
    monkeypatch.setattr(build, "_fill", lambda *_: None)
    monkeypatch.setattr(build, "_buildah", buildah)
    (tmp_path / "cache").mkdir()
    for changed in (None, None, "images/client/main.go", "images/compile", None):
        if changed:
            (tmp_path / changed).write_text("changed")
        assert build.build("client", host()).exists()
    assert len(made) == 3
    shutil.rmtree(tmp_path / "built")  # as in another checkout of the same sources
    assert build.build("client", host()).exists()
    assert len(made) == 3


def test_sources_of_every_image_exist() -> None:
    folders = {path.parent.name for path in ROOT.glob("images/*/Dockerfile")}
    assert set(build._SOURCES) == folders
    assert all((ROOT / source).exists() for sources in build._SOURCES.values() for source in sources)
