"""The names and labels of everything that belongs to a benchmark. They are deterministic, so nothing is created
twice."""

from collections.abc import Mapping
from dataclasses import dataclass
from string import ascii_lowercase
from typing import Any, Final

from tierbench.api.model import API_VERSION, GROUP
from tierbench.kinds.registry import BENCHMARKS
from tierbench.workloads.plan import Case

MANAGED_BY: Final = "tierbench"
LABEL_KIND: Final = f"{GROUP}/kind"
LABEL_BENCHMARK: Final = f"{GROUP}/benchmark"
LABEL_RUN: Final = f"{GROUP}/run"
LABEL_ROLE: Final = f"{GROUP}/role"
LABEL_SLOT: Final = f"{GROUP}/slot"
LABEL_LAYOUT: Final = f"{GROUP}/layout"
LAYOUT: Final = "2"
"""The layout of servers. It is raised when clients of an earlier version cannot use them, or the other way around."""
LABEL_CASE: Final = f"{GROUP}/case"
LABEL_PASS: Final = f"{GROUP}/pass"
LABEL_ATTEMPT: Final = f"{GROUP}/attempt"
LABEL_PART: Final = f"{GROUP}/part"
ROLE_SERVER: Final = "server"
ROLE_CLIENT: Final = "client"
CLIENT: Final = "client"
"""The name of the container in a client's pod."""

_UID_CHARACTERS: Final = 8
_OF_TOOLS: Final = ("kubernetes.io", "k8s.io", "helm.sh", "argoproj.io", "fluxcd.io", GROUP)


@dataclass(frozen=True)
class Owner:
    """The benchmark that owns the objects created for it."""

    kind: str
    namespace: str
    name: str
    uid: str

    @property
    def prefix(self) -> str:
        """The prefix of every name."""
        return f"{BENCHMARKS[self.kind].PREFIX}-{self.name}"

    @property
    def selector(self) -> dict[str, str]:
        """The labels of all owned objects."""
        return {LABEL_KIND: self.kind, LABEL_BENCHMARK: self.name}

    def server(self, run: int, slot: int, setup: int = 0) -> str:
        """Returns the name of a server's pod and of what belongs to it.

        `setup` changes each time the server is deployed again, so that an object that is being deleted is not taken for
        a new one.
        """
        return f"{self.prefix}-r{run}-s{slot + 1}" + (f"-{setup}" if setup else "")

    def attached(self, server: str) -> str:
        """Returns the name of a server's Secret, ConfigMap, claim and NetworkPolicy.

        The operator can create and delete these objects, but not read them. So their names contain the benchmark's UID.
        """
        return f"{server}-{self.uid[:_UID_CHARACTERS]}"

    def result(self, run: int, case: Case) -> str:
        """Returns the name of a case's BenchmarkResult."""
        return f"{self.prefix}-r{run}-c{case.number:03d}"

    def job(self, run: int, case: Case, pass_number: int, attempt: int, part: int) -> str:
        """Returns the name of the Job of one part of a case's client.

        Parts are counted from 0. The letter of the name is the pass: a for the first, b for the second.
        """
        client = f"{ascii_lowercase[pass_number - 1]}{attempt}"
        return f"{self.result(run, case)}-{client}" + (f"-p{part + 1}" if part else "")

    def metadata(self, name: str, labels: Mapping[str, str]) -> dict[str, Any]:
        """Returns the metadata of an owned object, with the owner reference that cleans it up."""
        return {
            "name": name,
            "namespace": self.namespace,
            "labels": {**labels, "app.kubernetes.io/managed-by": MANAGED_BY, **self.selector},
            "ownerReferences": [reference(self.kind, self.name, self.uid)],
        }


def server_labels(run: int, slot: int) -> dict[str, str]:
    """Returns the labels of the objects of a server."""
    return {LABEL_RUN: str(run), LABEL_ROLE: ROLE_SERVER, LABEL_SLOT: str(slot), LABEL_LAYOUT: LAYOUT}


def reference(kind: str, name: str, uid: str) -> dict[str, Any]:
    """Returns an owner reference to an object of tierbench's own kinds."""
    return {"apiVersion": API_VERSION, "kind": kind, "name": name, "uid": uid, "controller": True}


def inherited_labels(labels: Mapping[str, str]) -> dict[str, str]:
    """Returns the labels of a benchmark that its results get, too. Labels by which tools recognize their objects are
    not among them."""
    return {key: value for key, value in labels.items() if not key.partition("/")[0].endswith(_OF_TOOLS)}
