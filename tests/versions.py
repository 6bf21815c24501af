"""The product as an earlier version was, from this repository's history: its tree, its definitions and its images."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cluster.binaries import cache

VERSION = "v0.1.0"
COMMIT = "11fd495837ad92fd7c538f6cf00a34b947a55c25"
"""Its: not every clone has the tag."""

_ROOT = Path(__file__).parents[1]
_TREE = cache() / "versions" / COMMIT


def definitions() -> list[dict[str, Any]]:
    """Its CustomResourceDefinitions."""
    return [yaml.load(path.read_text(), yaml.CSafeLoader) for path in sorted((tree() / "crds").glob("*.yaml"))]


def images(*names: str) -> list[Path]:
    """Archives of its images, with VERSION as their tag; built once."""
    archives = [tree() / "build" / "images" / f"{name}.tar" for name in names]
    if not all(archive.exists() for archive in archives):
        subprocess.run(["python3", "-m", "images.build", *names, "--tag", VERSION], cwd=tree(), check=True)
    return archives


def path() -> str:
    """PYTHONPATH of its operator: its modules, and those that it needs and this version does not."""
    libraries = _TREE.with_name(f"{COMMIT}.libraries")
    if not libraries.exists():
        partial = libraries.with_suffix(".partial")
        install = [str(_ROOT / "tools" / "uv"), "pip", "install", "--quiet", "--python", sys.executable]
        constraints = str(tree() / "operator" / "constraints.txt")
        subprocess.run([*install, "--target", str(partial), "--constraint", constraints, "kopf"], check=True)
        partial.rename(libraries)
    return f"{tree() / 'operator' / 'src'}:{libraries}"


def tree() -> Path:
    """Its files. In a clone without them the test is skipped."""
    if not _TREE.exists():
        known = subprocess.run(["git", "cat-file", "-e", COMMIT], cwd=_ROOT, capture_output=True, check=False)
        if known.returncode:
            pytest.skip(f"this clone has no {VERSION} ({COMMIT[:12]}): git fetch --unshallow")
        partial = _TREE.with_suffix(".partial")
        partial.mkdir(parents=True, exist_ok=True)
        archive = subprocess.run(["git", "archive", COMMIT], cwd=_ROOT, capture_output=True, check=True).stdout
        subprocess.run(["tar", "--extract", "--directory", partial], input=archive, check=True)
        partial.rename(_TREE)
    return _TREE
