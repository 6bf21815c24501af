"""The certificates of the cluster pass the checks of the strictest clients: Python from 3.13 on."""

import subprocess
import time
from pathlib import Path

import pytest

from tests.cluster import certificates


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pki")
    certificates.make(folder, "198.18.0.1", "198.18.64.1")
    return folder


@pytest.mark.parametrize(("name", "purpose"), [("apiserver", "sslserver"), ("kubelet-client", "sslclient")])
def test_certificate_passes_strict_verification(made: Path, name: str, purpose: str) -> None:
    strict = ["openssl", "verify", "-x509_strict", "-purpose", purpose, "-CAfile", str(made / "ca.crt")]
    done = subprocess.run([*strict, str(made / f"{name}.crt")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", ["ca", "apiserver", "kubelet-client"])
def test_certificate_is_valid_for_a_node_whose_clock_is_an_hour_late(made: Path, name: str) -> None:
    late = str(round(time.time()) - 3600)
    command = ["openssl", "verify", "-attime", late, "-CAfile", str(made / "ca.crt"), str(made / f"{name}.crt")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
