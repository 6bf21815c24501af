"""Images are pushed and archived, and invalid requests are refused."""

import io
import json
import tarfile
from hashlib import sha256
from pathlib import Path

import pytest
import yaml

from images import archive, push, release
from images.architectures import KNOWN, host
from images.naming import reference, version
from images.shell import BuildError
from tests.chart.helm import CHART


def test_platforms_are_the_requested_ones_or_that_of_this_machine() -> None:
    assert release.architectures("") == [host()]
    asked = release.architectures("linux/arm64, linux/arm/v7,linux/arm64")
    assert asked == [KNOWN["arm64"], KNOWN["armv7"]]


def test_unknown_platform_is_refused_with_a_list_of_known_ones() -> None:
    with pytest.raises(BuildError, match=r"no images for the platform arm64: write PLATFORMS=linux/amd64,linux/arm64,"):
        release.architectures("linux/amd64,arm64")


def test_images_match_the_chart() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    named = {name for name, section in values.items() if isinstance(section, dict) and "image" in section}
    assert set(release.images(host())) == named


@pytest.mark.parametrize(
    "registry", ["registry.example", "registry.example/team/", "localhost/a", "192.0.2.1:5000/a/b_c", "mirror:5000"]
)
def test_registry_is_a_host_and_a_path(registry: str) -> None:
    assert push.checked(registry) == registry.rstrip("/")


@pytest.mark.parametrize(
    "registry", ["https://registry.example", "team", "team/project", "a.b/Team", "a.b:x", "a.b/c:1", " "]
)
def test_malformed_registry_is_refused_in_one_line(registry: str) -> None:
    with pytest.raises(BuildError, match="is no registry: write HOST or HOST/PATH") as error:
        push.checked(registry)
    assert "\n" not in str(error.value)


def test_missing_registry_is_refused_with_a_hint() -> None:
    with pytest.raises(BuildError, match="write REGISTRY=HOST/PATH"):
        push.checked("")


def test_image_without_a_requested_platform_is_refused() -> None:
    with pytest.raises(BuildError, match="no image kafka for these platforms"):
        push.push("kafka", "registry.example", [], insecure=False)


def test_archive_has_every_image_and_shared_layers_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    layers = {"nginx": [b"base", b"nginx"], "mosquitto": [b"base", b"mosquitto"]}
    for image, contents in layers.items():
        _write_oci_archive(tmp_path / f"{image}.tar", f"config of {image}".encode(), contents)
    monkeypatch.setattr(archive, "ROOT", tmp_path)
    monkeypatch.setattr(release, "archive", lambda image, _: tmp_path / f"{image}.tar")
    (tmp_path / "build").mkdir()

    written = archive.write(layers, KNOWN["arm64"])

    assert written == tmp_path / "build" / f"tierbench-{version()}-arm64.tar"
    with tarfile.open(written) as tar:
        names = tar.getnames()
        assert len(names) == len(set(names)) == 1 + 2 + 3
        (nginx, mosquitto) = json.loads(_content(tar, "manifest.json"))
        assert (nginx["RepoTags"], mosquitto["RepoTags"]) == ([reference("nginx")], [reference("mosquitto")])
        assert _content(tar, nginx["Config"]) == b"config of nginx"
        for entry, contents in ((nginx, layers["nginx"]), (mosquitto, layers["mosquitto"])):
            assert [_content(tar, layer) for layer in entry["Layers"]] == contents


def _write_oci_archive(path: Path, config: bytes, layers: list[bytes]) -> None:
    with tarfile.open(path, "w") as tar:

        def add(name: str, content: bytes) -> None:
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))

        def blob(content: bytes) -> dict[str, str]:
            digest = sha256(content).hexdigest()
            add(f"blobs/sha256/{digest}", content)
            return {"digest": f"sha256:{digest}"}

        manifest = {"config": blob(config), "layers": [blob(layer) for layer in layers]}
        add("index.json", json.dumps({"manifests": [blob(json.dumps(manifest).encode())]}).encode())


def _content(tar: tarfile.TarFile, name: str) -> bytes:
    file = tar.extractfile(name)
    assert file
    return file.read()
