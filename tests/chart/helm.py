"""Runs the program helm."""

import json
import os
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

CHART = Path(__file__).parents[2] / "charts" / "tierbench"

Json = dict[str, Any]


class HelmError(Exception):
    """The message of a failed helm command."""


@dataclass(frozen=True)
class Helm:
    """Runs `program`, with its own files in `home`. Without `kubeconfig`, it has no cluster."""

    program: Path
    home: Path
    kubernetes: str
    kubeconfig: Path = Path("/nowhere")

    def lint(self, values: Json) -> str:
        return self.run("lint", CHART, "--strict", values=values)

    def template(self, values: Json, name: str = "files", namespace: str = "bench") -> list[Json]:
        """Returns the objects that a release would have."""
        text = self._rendered(json.dumps(values), name, namespace)
        return [body for body in yaml.load_all(text, yaml.CSafeLoader) if body]

    def notes(self, values: Json) -> str:
        """Returns the notes that helm prints after the installation."""
        text = self.run("install", "files", CHART, "--namespace=bench", "--dry-run=client", values=values)
        return text.partition("NOTES:\n")[2]

    def install(self, name: str, namespace: str, values: Json, *options: str) -> None:
        self.run("install", name, CHART, f"--namespace={namespace}", *options, values=values)

    def upgrade(self, name: str, namespace: str, values: Json, *options: str) -> None:
        self.run("upgrade", name, CHART, f"--namespace={namespace}", *options, values=values)

    def uninstall(self, name: str, namespace: str) -> None:
        """Runs helm without hooks, because no Job of a hook ends without nodes."""
        self.run("uninstall", name, f"--namespace={namespace}", "--no-hooks")

    def hooks(self, name: str, namespace: str) -> list[Json]:
        """Returns the hooks of a release."""
        return list(yaml.load_all(self.run("get", "hooks", name, f"--namespace={namespace}"), yaml.CSafeLoader))

    def releases(self) -> list[tuple[str, str]]:
        """Returns the names and namespaces of the installed releases."""
        found = json.loads(self.run("list", "--all-namespaces", "--output=json"))
        return [(release["name"], release["namespace"]) for release in found]

    def run(self, *arguments: str | Path, values: Json | None = None) -> str:
        """Returns what helm prints. Raises HelmError."""
        options = [] if values is None else ["--values=-"]
        environment = {**os.environ, "HOME": str(self.home), "KUBECONFIG": str(self.kubeconfig)}
        command = [str(self.program), *map(str, arguments), *options]
        text = json.dumps(values)
        done = subprocess.run(command, input=text, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            raise HelmError(done.stderr + done.stdout)
        return done.stdout

    @cache  # noqa: B019 (there are few instances, and they are needed until the tests end)
    def _rendered(self, values: str, name: str, namespace: str) -> str:
        version = f"--kube-version={self.kubernetes}"
        return self.run("template", name, CHART, f"--namespace={namespace}", version, values=json.loads(values))


def of_kind(objects: Iterable[Json], kind: str) -> list[Json]:
    return [body for body in objects if body["kind"] == kind]
