"""Nodes without the images get them from a registry or from an archive, as nodes of users do."""

import os
import secrets
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from images import release as images
from images.architectures import host
from images.naming import reference, version
from tests import registry
from tests.cluster import Cluster
from tests.cluster.processes import output
from tests.e2e.benchmarks import Running, assert_every_trial_once, file_transfer, node_class
from tests.e2e.kubectl import Kubectl
from tests.e2e.operator_release import Release
from tests.ports import free_ports

pytestmark = pytest.mark.release
ROOT = Path(__file__).parents[2]
NODES = "\n".join(f'[[node]]\nname = "{name}-1"\nlabels = {{ hw = "{name}" }}\n' for name in ("cloud", "user"))
PLATFORMS = ("linux/amd64", "linux/arm64", "linux/arm/v7")


@pytest.fixture
def bare(tmp_path: Path) -> Iterator[Cluster]:
    """A new cluster of two nodes that have only the sandbox image."""
    nodes = tmp_path / "nodes.toml"
    nodes.write_text(NODES)
    cluster = Cluster(f"images-{secrets.token_hex(3)}")
    try:
        cluster.up(nodes)
        assert not any("tierbench" in name for name in names(cluster))
        yield cluster
    finally:
        cluster.down()


@pytest.fixture
def release(bare: Cluster) -> Release:
    """A release in the new cluster, without values for images."""
    path = f"{bare.binaries}:{os.environ['PATH']}"
    environment = {**os.environ, "KUBECONFIG": str(bare.kubeconfig), "PATH": path}
    return Release("tierbench", Kubectl(environment, "tierbench"), built_in=False)


def names(cluster: Cluster) -> set[str]:
    """Returns the names of the images on all nodes."""
    return {name for node in cluster.nodes for name in output(*node.ctr("images", "list", "--quiet")).split()}


def make(*arguments: str) -> str:
    done = subprocess.run(["make", "--silent", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def make_namespaces(release: Release) -> tuple[Kubectl, Kubectl]:
    """Creates the namespaces of the release and of a benchmark."""
    found = release.kubectl, release.kubectl.inside("bench")
    for kubectl in found:
        kubectl.create_namespace("restricted")
    return found


def run_benchmark(release: Release) -> Running:
    """Runs the chart's test, which waits for the operator, and a benchmark of one file."""
    release.kubectl("delete", "pods", "--selector=app.kubernetes.io/name=tierbench", "--wait=false")
    release.test()
    kubectl = release.kubectl.inside("bench")
    kubectl.apply(node_class("cloud", hw="cloud"), node_class("user", hw="user"), file_transfer(repetitions=1))
    running = Running(kubectl)
    running.wait_for_phase("Complete")
    assert_every_trial_once(running, 1)
    return running


def test_cluster_without_images_pulls_them_from_a_registry(bare: Cluster, release: Release) -> None:
    address = bare.trust_registry(*free_ports(1))
    with registry.serving(address):
        output = make("push", f"REGISTRY={address}/team", "INSECURE=1")
        assert f"--set global.imageRegistry={address}/team" in output
        make_namespaces(release)
        release.install(f"global.imageRegistry={address}/team")
        running = run_benchmark(release)
    assert running.results[0]["spec"]["service"]["image"] == reference("nginx", f"{address}/team")


def test_registry_with_a_password_needs_a_login_and_a_pull_secret(
    bare: Cluster, release: Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = bare.trust_registry(*free_ports(1))
    monkeypatch.setenv("REGISTRY_AUTH_FILE", str(tmp_path / "auth.json"))
    login = ["buildah", "login", "--tls-verify=false", "--username", registry.USER, "--password-stdin", address]
    account = (f"--docker-username={registry.USER}", f"--docker-password={registry.PASSWORD}")
    with registry.serving(address, closed=True):
        subprocess.run(login, input=registry.PASSWORD, text=True, check=True)
        make("push", f"REGISTRY={address}", "INSECURE=1")
        for kubectl in make_namespaces(release):
            kubectl("create", "secret", "docker-registry", "registry", f"--docker-server={address}", *account)
        release.install(f"global.imageRegistry={address}", "imagePullSecrets[0].name=registry")
        run_benchmark(release)


def test_cluster_without_images_imports_an_archive(bare: Cluster, release: Release) -> None:
    archive = Path(make("images-archive").strip())
    assert archive == ROOT / "build" / f"tierbench-{version()}-{host().name}.tar"
    for node in bare.nodes:
        with archive.open("rb") as file:
            subprocess.run(node.ctr("images", "import", "-"), stdin=file, check=True)
    assert {reference(image) for image in images.images(host())} <= names(bare)
    make_namespaces(release)
    release.install()
    run_benchmark(release)


def test_pushed_image_is_one_index_of_all_platforms() -> None:
    address = f"127.0.0.1:{free_ports(1)[0]}"
    with registry.serving(address):
        make("push", f"REGISTRY={address}", f"PLATFORMS={','.join(PLATFORMS)}", "INSECURE=1", "ONLY=client")
        found = registry.index(address, "tierbench/client", version())
    platforms = [manifest["platform"] for manifest in found["manifests"]]
    parts = [[one["os"], one["architecture"], *([one["variant"]] if "variant" in one else [])] for one in platforms]
    assert tuple("/".join(each) for each in parts) == PLATFORMS
