"""Every example, and every manifest in a document, can be applied with kubectl in the current namespace."""

import subprocess
from pathlib import Path

import pytest
import yaml

from tests.api.server import ApiServer
from tests.cluster import binaries
from tests.unit.cli.test_examples import EXAMPLES, FOLDERS
from tests.unit.test_documents import DOCUMENTS
from tests.unit.test_guides import manifests

pytestmark = pytest.mark.apiserver


def apply(server: ApiServer, folder: Path) -> subprocess.CompletedProcess[str]:
    """Creates the objects that `kubectl apply -f FOLDER` would create, and rejects unknown fields."""
    kubectl = [f"{binaries.build(binaries.asked())}/kubectl", f"--kubeconfig={server.kubeconfig}"]
    command = [*kubectl, "apply", "--dry-run=server", "--validate=strict", "--namespace=leases", "-f", str(folder)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("name", FOLDERS)
def test_example_applies(server: ApiServer, name: str) -> None:
    done = apply(server, EXAMPLES / name)
    assert done.returncode == 0, done.stderr
    assert "(server dry run)" in done.stdout


def test_manifests_of_documents_apply(server: ApiServer, tmp_path: Path) -> None:
    """The API server checks all manifests at once, and names each one that it refuses."""
    for number, document in enumerate(document for page in DOCUMENTS for document in manifests(page)):
        (tmp_path / f"{number}.yaml").write_text(yaml.safe_dump(document))
    done = apply(server, tmp_path)
    assert done.returncode == 0, done.stderr
    assert "(server dry run)" in done.stdout


def test_unknown_field_is_refused(server: ApiServer, tmp_path: Path) -> None:
    text = (EXAMPLES / "quick-start" / "benchmark.yaml").read_text()
    (tmp_path / "benchmark.yaml").write_text(text.replace("repetitions:", "repetitionz:"))
    done = apply(server, tmp_path)
    assert done.returncode == 1
    assert "repetitionz" in done.stderr
