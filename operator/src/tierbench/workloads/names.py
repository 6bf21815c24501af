"""Names and labels of everything that belongs to a benchmark: deterministic, so that nothing is made twice."""

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
"""Of servers: raised when clients of an earlier version could not use them, or clients of this one theirs."""
LABEL_CASE: Final = f"{GROUP}/case"
LABEL_PASS: Final = f"{GROUP}/pass"
LABEL_ATTEMPT: Final = f"{GROUP}/attempt"
LABEL_PART: Final = f"{GROUP}/part"
ROLE_SERVER: Final = "server"
ROLE_CLIENT: Final = "client"
CLIENT: Final = "client"
"""The container of a client's pod."""

_UID_CHARACTERS: Final = 8
_OF_TOOLS: Final = ("kubernetes.io", "k8s.io", "helm.sh", "argoproj.io", "fluxcd.io", GROUP)


@dataclass(frozen=True)
class Owner:
    """The benchmark that owns what is made for it."""

    kind: str
    namespace: str
    name: str
    uid: str

    @property
    def prefix(self) -> str:
        """What every name begins with."""
        return f"{BENCHMARKS[self.kind].PREFIX}-{self.name}"

    @property
    def selector(self) -> dict[str, str]:
        """The labels that all children bear."""
        return {LABEL_KIND: self.kind, LABEL_BENCHMARK: self.name}

    def server(self, run: int, slot: int, setup: int = 0) -> str:
        """The name of a slot's server pod, and of what belongs to it: another one each time that it is set up, for what
        is being deleted must not be taken for what is new."""
        return f"{self.prefix}-r{run}-s{slot + 1}" + (f"-{setup}" if setup else "")

    def attached(self, server: str) -> str:
        """The name of a server's Secret, ConfigMap, claim and NetworkPolicy: those can be made and deleted, but not be
        seen, so their name has to tell whose they are."""
        return f"{server}-{self.uid[:_UID_CHARACTERS]}"

    def result(self, run: int, case: Case) -> str:
        """The name of a case's BenchmarkResult."""
        return f"{self.prefix}-r{run}-c{case.number:03d}"

    def job(self, run: int, case: Case, pass_number: int, attempt: int, part: int) -> str:
        """The name of the Job of a part of a case's client, parts counted from 0; a is the first pass, b the second."""
        client = f"{ascii_lowercase[pass_number - 1]}{attempt}"
        return f"{self.result(run, case)}-{client}" + (f"-p{part + 1}" if part else "")

    def metadata(self, name: str, labels: Mapping[str, str]) -> dict[str, Any]:
        """The metadata of a child, with the owner reference that cleans it up."""
        return {
            "name": name,
            "namespace": self.namespace,
            "labels": {**labels, "app.kubernetes.io/managed-by": MANAGED_BY, **self.selector},
            "ownerReferences": [reference(self.kind, self.name, self.uid)],
        }


def server_labels(run: int, slot: int) -> dict[str, str]:
    """Of what makes up a server of ours."""
    return {LABEL_RUN: str(run), LABEL_ROLE: ROLE_SERVER, LABEL_SLOT: str(slot), LABEL_LAYOUT: LAYOUT}


def reference(kind: str, name: str, uid: str) -> dict[str, Any]:
    """The reference to an owner of tierbench's own kinds."""
    return {"apiVersion": API_VERSION, "kind": kind, "name": name, "uid": uid, "controller": True}


def inherited_labels(labels: Mapping[str, str]) -> dict[str, str]:
    """Of a benchmark's labels those that its results bear too: not those by which a tool knows what it manages."""
    return {key: value for key, value in labels.items() if not key.partition("/")[0].endswith(_OF_TOOLS)}
