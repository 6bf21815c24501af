"""The RUN steps of an image use the package archives of this machine."""

from pathlib import Path

import pytest

from images import packages


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PIP_CONFIG_FILE", str(tmp_path / "pip.conf"))
    monkeypatch.setenv("PIP_CERT", "/certificates")


def test_environment_comes_before_files(tmp_path: Path) -> None:
    (tmp_path / "pip.conf").write_text("[global]\nproxy = http://proxy.example\ncert = /other\nno-color = yes\n")
    options = packages.pip_options()
    assert (options["proxy"], options["cert"]) == ("http://proxy.example", "/certificates")
    assert "no-color" not in options


def test_certificates_are_mounted_where_pip_looks(tmp_path: Path) -> None:
    volumes = packages.volumes(tmp_path)
    assert volumes[Path("/certificates")] == "/run/certificates.crt"
    assert "cert = /run/certificates.crt" in (tmp_path / "pip.conf").read_text()
