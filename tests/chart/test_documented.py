"""The chart accepts the helm commands of the documents."""

import re
import shlex
from pathlib import Path

import pytest

from tests.chart.helm import CHART, Helm
from tests.unit.test_documents import DOCUMENTS, ROOT

COMMAND = re.compile(r"helm ((?:install|upgrade) tierbench charts/tierbench .*)")
OF_A_CLUSTER = {"--create-namespace", "--reset-then-reuse-values"}
VALUES = re.compile(r"`([a-z]+\.yaml)`:\n\n```yaml\n(.*?)```", re.DOTALL)
WATCHED = ["--set", "watchNamespaces={team-a}"]  # an upgrade keeps it


def commands() -> list[tuple[str, str]]:
    """Yields each page and each of its commands, which may continue after a backslash."""
    pages = [(page, page.read_text().replace("\\\n", " ")) for page in DOCUMENTS]
    found = [(page, command) for page, text in pages for command in COMMAND.findall(text)]
    return [
        (str(page.relative_to(ROOT)), command) for page, command in found if "…" not in command and "$(" not in command
    ]


def test_documents_have_commands() -> None:
    assert {"docs/tutorials/getting-started.md", "docs/how-to/install.md", "docs/how-to/run-on-openshift.md"} <= {
        page for page, _ in commands()
    }


@pytest.mark.parametrize(("page", "command"), commands())
def test_chart_accepts_a_documented_command(helm: Helm, page: str, command: str, tmp_path: Path) -> None:
    for name, values in VALUES.findall((ROOT / page).read_text()):
        (tmp_path / name).write_text(values)
        command = command.replace(f"--values {name}", f"--values {tmp_path / name}")
    verb, name, _, *given = [option for option in shlex.split(command) if option not in OF_A_CLUSTER]
    watched = WATCHED if verb == "upgrade" and "watchNamespaces" not in command else []
    rendered = helm.run("template", name, CHART, f"--kube-version={helm.kubernetes}", *given, *watched)
    assert "kind: Deployment" in rendered, page
