"""Names and labels of everything that belongs to a benchmark: deterministic, so that nothing is made twice."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from tierbench.api.model import API_VERSION, GROUP
from tierbench.plan import Case

MANAGED_BY: Final = "tierbench"
LABEL_KIND: Final = f"{GROUP}/kind"
LABEL_BENCHMARK: Final = f"{GROUP}/benchmark"
LABEL_RUN: Final = f"{GROUP}/run"
LABEL_ROLE: Final = f"{GROUP}/role"
LABEL_SLOT: Final = f"{GROUP}/slot"
LABEL_CASE: Final = f"{GROUP}/case"
LABEL_ATTEMPT: Final = f"{GROUP}/attempt"
LABEL_PART: Final = f"{GROUP}/part"
ROLE_SERVER: Final = "server"
ROLE_CLIENT: Final = "client"
ROLE_STRIMZI: Final = "strimzi"
CLIENT: Final = "client"
"""The container of a client's pod."""

PREFIXES: Final[Mapping[str, str]] = {"FileTransferBenchmark": "ft", "BrokerBenchmark": "bb", "NetworkBenchmark": "nb"}


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
        return f"{PREFIXES[self.kind]}-{self.name}"

    @property
    def selector(self) -> dict[str, str]:
        """The labels that all children bear."""
        return {LABEL_KIND: self.kind, LABEL_BENCHMARK: self.name}

    def server(self, run: int, slot_index: int) -> str:
        """The name of a slot's server pod, and of what belongs to it."""
        return f"{self.prefix}-r{run}-s{slot_index + 1}"

    def result(self, run: int, case: Case) -> str:
        """The name of a case's BenchmarkResult."""
        return f"{self.prefix}-r{run}-c{case.number:03d}"

    def job(self, run: int, case: Case, attempt: int, part: int) -> str:
        """The name of the Job of a part of a case's client, parts counted from 0."""
        return f"{self.result(run, case)}-a{attempt}" + (f"-p{part + 1}" if part else "")

    def metadata(self, name: str, labels: Mapping[str, str]) -> dict[str, Any]:
        """The metadata of a child, with the owner reference that cleans it up."""
        return {
            "name": name,
            "namespace": self.namespace,
            "labels": {"app.kubernetes.io/managed-by": MANAGED_BY, **self.selector, **labels},
            "ownerReferences": [
                {"apiVersion": API_VERSION, "kind": self.kind, "name": self.name, "uid": self.uid, "controller": True}
            ],
        }
