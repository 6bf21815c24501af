"""What is built for which architecture, and where it is found."""

import sys

import pytest

from images import build
from images.architectures import KNOWN, host
from images.build import BUILT


def test_this_machines_archives_are_where_they_were() -> None:
    assert build.archives(host()) == BUILT


def test_other_architectures_have_a_folder_each() -> None:
    foreign = [one for one in KNOWN.values() if one != host()]
    assert [build.archives(one) for one in foreign] == [BUILT / one.name for one in foreign]


def test_an_unknown_architecture_is_refused_with_the_known(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["images.build", "--arch", "mips"])
    with pytest.raises(SystemExit):
        build.main()
    said = capsys.readouterr().err
    assert all(name in said for name in ("mips", *KNOWN))
