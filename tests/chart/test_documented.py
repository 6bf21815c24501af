"""The chart takes the Helm commands of the documents."""

import re
import shlex

import pytest

from tests.chart.helm import CHART, Helm
from tests.unit.test_documents import DOCUMENTS, ROOT

COMMAND = re.compile(r"helm ((?:install|upgrade) tierbench charts/tierbench .*)")
OF_A_CLUSTER = {"--create-namespace", "--reset-then-reuse-values"}
WATCHED = ["--set", "watchNamespaces={team-a}"]  # an upgrade leaves it as it is


def commands() -> list[tuple[str, str]]:
    """Each page and each of its commands, which may continue after a backslash."""
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
def test_chart_takes_a_documented_command(helm: Helm, page: str, command: str) -> None:
    verb, name, _, *given = [option for option in shlex.split(command) if option not in OF_A_CLUSTER]
    watched = WATCHED if verb == "upgrade" and "watchNamespaces" not in command else []
    rendered = helm.run("template", name, CHART, f"--kube-version={helm.kubernetes}", *given, *watched)
    assert "kind: Deployment" in rendered, page
