"""Finds and runs tests of the Go client."""

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[1]
MODULE = ROOT / "images" / "client"


def tests(prefix: str, module: Path = MODULE) -> list[tuple[str, str]]:
    """Returns package and name of each test whose name starts with the prefix."""
    pattern = re.compile(rf"^func ({prefix}\w*)\(", re.MULTILINE)
    return [
        (f"./{file.parent.relative_to(module)}", name)
        for file in sorted(module.rglob("*_test.go"))
        for name in pattern.findall(file.read_text())
    ]


def command(package: str, name: str) -> list[str]:
    """Returns the command that runs one test from the module's folder, without cached results."""
    return [str(ROOT / "tools" / "go"), "test", "-count=1", "-timeout=30m", f"-run=^{name}$", package]


def run(package: str, name: str) -> subprocess.CompletedProcess[str]:
    """Runs one test."""
    return subprocess.run(command(package, name), cwd=MODULE, capture_output=True, text=True, check=False)
