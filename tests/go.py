"""The Go client's tests, as other programs of the tests run them."""

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[1]
MODULE = ROOT / "images" / "client"


def tests(prefix: str, module: Path = MODULE) -> list[tuple[str, str]]:
    """Package and name of each test function whose name begins with the prefix."""
    pattern = re.compile(rf"^func ({prefix}\w*)\(", re.MULTILINE)
    return [
        (f"./{file.parent.relative_to(module)}", name)
        for file in sorted(module.rglob("*_test.go"))
        for name in pattern.findall(file.read_text())
    ]


def command(package: str, name: str) -> list[str]:
    """The command that runs one test, whatever the cache of results says, from the module's folder."""
    return [str(ROOT / "tools" / "go"), "test", "-count=1", "-timeout=30m", f"-run=^{name}$", package]


def run(package: str, name: str) -> subprocess.CompletedProcess[str]:
    """Run one test."""
    return subprocess.run(command(package, name), cwd=MODULE, capture_output=True, text=True, check=False)
