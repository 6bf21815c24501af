"""Names the targets beyond the gate that a change needs: `make test-changed BASE=HEAD~1`."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]

TARGETS = {
    r"images/(client|engine|paho|sinetstream)/.*(?<!_test\.go)$": ("test-faults", "test-kinds", "test-soak", "bench"),
    r"images/(kafka|mosquitto|nginx|network|pause|transfer)/": ("test-kinds", "test-faults"),
    r"images/[a-z]+\.py|images/compile": ("test-arm", "test-kinds"),
    r"operator/src/tierbench/(controller|domain|kube)/": ("test-faults", "test-kinds", "test-edge", "scale"),
    r"operator/src/tierbench/(advice|results)/": ("test-properties", "calibrate"),
    r"operator/src/tierbench/(workloads|kinds)/": ("test-kinds", "test-strimzi"),
    r"operator/src/tierbench/kinds/([a-z_]+/([a-z]+_)?spec|registry)\.py": ("test-versions",),
    r"operator/src/tierbench/kinds/([a-z_]+/measures|registry)\.py": ("test-properties", "calibrate"),
    r"operator/src/tierbench/kinds/broker/strimzi_lifecycle\.py": ("test-faults", "scale"),
    r"operator/src/tierbench/(api|generate)/": ("test-versions", "test-kinds"),
    r"operator/(pyproject\.toml|constraints\.txt)": ("test-versions", "test-debian"),
    r"(charts|crds)/": ("test-kinds", "test-versions"),
    r"tests/cluster/kube/": ("test-versions",),
    r"tests/cluster/": ("test-kinds", "test-debian", "test-vm"),
    r"tests/operator/": ("test-faults", "test-edge"),
    r"tests/e2e/": ("test-release",),
    r"tests/paho/|images/client/.*_test\.go$": ("test-soak",),
    r"tools/(setup|check|uv|go|demo)": ("test-debian",),
    r"tools/demo-": ("test-kinds",),
}
"""Patterns of changed files, and the targets that test what the gate does not."""


def needed(files: list[str]) -> dict[str, list[str]]:
    """Returns the targets, each with the changed files that need it."""
    found: dict[str, list[str]] = {}
    for file in files:
        for pattern, targets in TARGETS.items():
            if re.match(pattern, file):
                for target in targets:
                    found.setdefault(target, []).append(file)
    return found


def changed(base: str) -> list[str]:
    """Returns the files that differ from the base, committed or not."""
    command = ["git", "diff", "--name-only", "--merge-base", base]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()


def main() -> int:
    """Prints the targets, and the files that need each."""
    (base,) = sys.argv[1:]
    found = needed(changed(base))
    print("make test" + ("" if found else ": no other target is needed"))
    for target, files in found.items():
        more = f" and {len(files) - 1} more" if len(files) > 1 else ""
        print(f"make {target:16} {files[0]}{more}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
