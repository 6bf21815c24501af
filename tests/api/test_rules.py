"""Every CEL rule refuses what it is for, with its message at its place."""

from dataclasses import dataclass
from typing import Any

import pytest

from tests.api.objects import changed, create, schema_path, smallest
from tests.api.server import ApiServer, RefusedError
from tierbench.api.file_transfer import FileTransferBenchmark
from tierbench.api.kinds import KINDS
from tierbench.api.model import IMMUTABLE, Resource
from tierbench.api.node_class import NodeClass
from tierbench.api.result import BenchmarkResult
from tierbench.generate.crd import object_schema, placed_rules

pytestmark = pytest.mark.apiserver

IN_ITS_OWN_TEST = {
    (FileTransferBenchmark, "spec", "the matrix has more than 1000 cases"),
    (BenchmarkResult, "", "a result that is Measured or Failed cannot be changed"),
    (BenchmarkResult, "spec", "the spec of a result cannot be changed"),
}


@dataclass(frozen=True)
class Row:
    """`value` at `path` breaks the rule at `place`, which answers with `message`."""

    model: type[Resource]
    path: str
    value: Any
    place: str
    message: str

    def __str__(self) -> str:
        return f"{self.model.KIND.kind} {self.path}={self.value!r}"[:80]


FILES, CLASSES = FileTransferBenchmark, NodeClass
SELECTOR, LABELS = "spec.nodeSelector", "spec.nodeSelector.matchLabels"
EXPRESSIONS, TOLERATIONS = "spec.nodeSelector.matchExpressions", "spec.tolerations"
PATH, CLAIM = "spec.storage.hostPath.path", "spec.storage.persistentVolumeClaim.storageClassName"
SIZES = "spec.fileSizes"
NO_LABEL_VALUE = "is not the value of a label: see `kubectl get nodes --show-labels`"
NO_LABEL_KEY = "is not the key of a label: see `kubectl get nodes --show-labels`"
NO_CLASS = "is not the name of a NodeClass: see `kubectl get nodeclasses`"
NO_SIZE = "is not a size: write a whole number of bytes, as in 1048576, 512Ki, 1Mi or 5Gi"
NO_WORD = "is not a short name: write letters, digits, spaces"
NEED_VALUES = "In and NotIn need values, Exists and DoesNotExist take none"
ONE_STORAGE = "give exactly one of hostPath, emptyDir and persistentVolumeClaim"
NO_CLASS_OF_STORAGE = "is not the name of a StorageClass"
BAD_PATH = "is not an absolute path"

ROWS = (
    Row(FILES, "metadata.name", "n" * 41, "", "metadata.name is longer than 40 characters: choose a shorter one"),
    Row(FILES, "metadata.name", "files.small", "", "metadata.name has a dot: write a hyphen instead"),
    Row(FILES, "spec.servers.nodeClasses", ["Cloud"], "spec.servers.nodeClasses[]", NO_CLASS),
    Row(FILES, "spec.servers.nodeClasses", ["a.b"], "spec.servers.nodeClasses[]", NO_CLASS),
    Row(FILES, "spec.clients.nodeClasses", ["user-"], "spec.clients.nodeClasses[]", NO_CLASS),
    Row(FILES, SIZES, ["1.5Gi"], "spec.fileSizes[]", NO_SIZE),
    Row(FILES, SIZES, ["1MB"], "spec.fileSizes[]", NO_SIZE),
    Row(FILES, SIZES, ["-1"], "spec.fileSizes[]", NO_SIZE),
    Row(FILES, SIZES, [0], "spec.fileSizes[]", NO_SIZE),
    Row(FILES, SIZES, [-5], "spec.fileSizes[]", NO_SIZE),
    Row(FILES, SIZES, ["17Ti"], "spec.fileSizes[]", "is more than 16Ti"),
    Row(FILES, SIZES, [2**44 + 1], "spec.fileSizes[]", "is more than 16Ti"),
    Row(FILES, SIZES, ["1Ki", 1024], SIZES, "has the same size twice (1Ki and 1024 are the same): name each size once"),
    Row(FILES, SIZES, ["1M", "1000k"], SIZES, "has the same size twice"),
    Row(FILES, "spec.storage", {}, "spec.storage", ONE_STORAGE),
    Row(FILES, "spec.storage", {"emptyDir": {}, "hostPath": {"path": "/files"}}, "spec.storage", ONE_STORAGE),
    Row(FILES, PATH, "files", PATH, BAD_PATH),
    Row(FILES, PATH, "/files/", PATH, BAD_PATH),
    Row(FILES, PATH, "/a:b", PATH, BAD_PATH),
    Row(FILES, PATH, "/files/../../etc", PATH, "must not climb with '..': write the path out"),
    Row(FILES, PATH, "/files/..", PATH, "must not climb with '..'"),
    Row(FILES, CLAIM, "Fast Disk", CLAIM, NO_CLASS_OF_STORAGE),
    Row(CLASSES, "metadata.name", "jetson.nano", "", "metadata.name has a dot or more than 63 characters"),
    Row(CLASSES, "metadata.name", "n" * 64, "", "metadata.name has a dot or more than 63 characters"),
    Row(CLASSES, SELECTOR, {}, SELECTOR, "names no label, so every node would be of the class"),
    Row(CLASSES, LABELS, {"a b": "c"}, LABELS, "has a key that is not the key of a label"),
    Row(CLASSES, LABELS, {"hw": "jetson nano"}, f"{LABELS}.*", NO_LABEL_VALUE),
    Row(CLASSES, EXPRESSIONS, [{"key": "hw", "operator": "In"}], f"{EXPRESSIONS}[]", NEED_VALUES),
    Row(CLASSES, EXPRESSIONS, [{"key": "a", "operator": "Exists", "values": ["b"]}], f"{EXPRESSIONS}[]", NEED_VALUES),
    Row(CLASSES, EXPRESSIONS, [{"key": "a/b/c", "operator": "Exists"}], f"{EXPRESSIONS}[].key", NO_LABEL_KEY),
    Row(
        CLASSES,
        EXPRESSIONS,
        [{"key": "hw", "operator": "In", "values": ["a=b"]}],
        f"{EXPRESSIONS}[].values[]",
        NO_LABEL_VALUE,
    ),
    Row(CLASSES, TOLERATIONS, [{}], f"{TOLERATIONS}[]", "has no key, which only goes with operator Exists"),
    Row(
        CLASSES,
        TOLERATIONS,
        [{"key": "edge", "operator": "Exists", "value": "yes"}],
        f"{TOLERATIONS}[]",
        "has a value, which does not go with operator Exists",
    ),
    Row(CLASSES, TOLERATIONS, [{"key": "a b"}], f"{TOLERATIONS}[].key", "is not the key of a taint"),
    Row(CLASSES, TOLERATIONS, [{"key": "edge", "value": "a b"}], f"{TOLERATIONS}[].value", NO_LABEL_VALUE),
    Row(CLASSES, "spec.accessNetwork", "5g/sa", "spec.accessNetwork", NO_WORD),
    Row(CLASSES, "spec.storage", " ", "spec.storage", NO_WORD),
)


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_rule_refuses_with_its_message_at_its_place(server: ApiServer, name: str, row: Row) -> None:
    body = smallest(row.model, name)
    create(server, row.model, smallest(row.model, f"{name}-good"))
    with pytest.raises(RefusedError) as refused:
        create(server, row.model, changed(body, row.path, row.value))
    assert refused.value.code == 422
    answers = [(schema_path(field), message) for field, message in refused.value.causes]
    assert [place for place, message in answers if message.startswith(row.message)] == [row.place]
    assert "rule evaluation error" not in str(refused.value)


def test_too_large_a_matrix_is_refused_with_its_size(server: ApiServer, name: str) -> None:
    body = changed(smallest(FILES, name), SIZES, [f"{number}Mi" for number in range(1, 33)])
    body = changed(body, "spec.concurrency", [1, 2, 4, 8])
    body = changed(body, "spec.cacheState", ["Natural", "Warm", "Cold"])
    create(server, FILES, changed(body, "spec.servers.nodesPerClass", 2))
    with pytest.raises(RefusedError, match="the matrix has 1152 cases, at most 1000 are allowed: take levels out"):
        create(server, FILES, changed(body, "spec.servers.nodesPerClass", 3))


def test_every_rule_has_a_row() -> None:
    covered = {(row.model, row.place, row.message) for row in ROWS} | IN_ITS_OWN_TEST
    missing = [
        (model.KIND.kind, place, rule["message"])
        for model in KINDS
        for place, rule in placed_rules("", object_schema(model))
        if rule["message"] != IMMUTABLE.message
        and not any((model, place) == row[:2] and rule["message"].startswith(row[2]) for row in covered)
    ]
    assert missing == []
