"""`init` proposes a benchmark for clusters of different shapes."""

from collections.abc import Mapping

from tierbench.api.node_class import NodeClass
from tierbench.domain.proposal import ARCHITECTURE, HOSTNAME, Proposal, propose, propose_from_classes
from tierbench.domain.views import NodeView, node_view
from tierbench.kinds.file_transfer.spec import FileTransferBenchmark


def node(name: str, architecture: str = "amd64", labels: Mapping[str, str] | None = None) -> NodeView:
    """A usable node with these labels and those that every kubelet sets."""
    return node_view(
        {
            "metadata": {"name": name, "labels": {HOSTNAME: name, ARCHITECTURE: architecture, **(labels or {})}},
            "status": {
                "conditions": [{"type": "Ready", "status": "True"}],
                "capacity": {"cpu": "4", "memory": "8Gi"},
                "nodeInfo": {"architecture": architecture},
            },
        }
    )


def shape(proposal: Proposal | None) -> tuple[tuple[str, ...], tuple[str, ...], bool]:
    """Returns servers, clients, and whether they may share a node."""
    assert proposal is not None
    for body in proposal.node_classes():
        NodeClass.model_validate(body)
    FileTransferBenchmark.model_validate(proposal.benchmark("first"))
    return proposal.servers, proposal.clients, proposal.colocated


def test_architectures_are_compared_first() -> None:
    nodes = [node("a"), node("b"), node("c", "arm64")]
    assert shape(propose(nodes)) == (("amd64", "arm64"), ("amd64",), False)


def test_instance_types_distinguish_nodes_of_one_architecture() -> None:
    kinds = {"node.kubernetes.io/instance-type": "m5.large"}, {"node.kubernetes.io/instance-type": "c5.large"}
    nodes = [node("a", labels=kinds[0]), node("b", labels=kinds[0]), node("c", labels=kinds[1])]
    assert shape(propose(nodes)) == (("c5-large", "m5-large"), ("m5-large",), False)


def test_boards_distinguish_nodes_of_one_instance_type() -> None:
    boards = {"a": "jetson-nano", "b": "pi-4", "c": "pi-4"}
    same = {"node.kubernetes.io/instance-type": "k3s"}
    nodes = [node(name, labels={"hw": board, **same}) for name, board in boards.items()]
    assert shape(propose(nodes)) == (("jetson-nano", "pi-4"), ("pi-4",), False)


def test_equal_nodes_become_a_class_each_and_a_note_says_so() -> None:
    proposal = propose([node(name) for name in ("one", "two", "three")])
    assert shape(proposal) == (("one", "three"), ("client",), False)
    assert proposal is not None
    assert proposal.selectors["client"] == {HOSTNAME: "two"}
    assert any("All nodes are alike" in note for note in proposal.notes)


def test_init_proposes_no_more_classes_than_a_benchmark_allows() -> None:
    proposal = propose([node(f"node-{number:02d}") for number in range(12)])
    assert proposal is not None
    servers, clients, colocated = shape(proposal)
    assert (len(servers), clients, colocated) == (7, ("client",), False)
    assert any("4 more nodes are left out" in note for note in proposal.notes)


def test_two_nodes_leave_no_node_for_the_client() -> None:
    proposal = propose([node("a"), node("b", "arm64")])
    assert shape(proposal) == (("amd64", "arm64"), ("amd64",), True)
    assert proposal is not None
    assert any("may share its node" in note for note in proposal.notes)


def test_one_node_is_measured_by_itself() -> None:
    proposal = propose([node("only")])
    assert shape(proposal) == (("amd64",), ("amd64",), True)
    assert proposal is not None
    assert any("cannot be compared" in note for note in proposal.notes)


def test_init_proposes_nothing_without_nodes() -> None:
    assert propose([]) is None
    assert propose_from_classes([]) is None


def test_init_compares_existing_classes_if_it_may_not_list_nodes() -> None:
    proposal = propose_from_classes(["pi", "cloud"])
    assert shape(proposal) == (("cloud", "pi"), ("cloud",), True)
    assert proposal is not None
    assert proposal.node_classes() == []


def test_label_values_that_are_not_names_become_different_names() -> None:
    nodes = [node(name, labels={"hw": board}) for name, board in (("a", "Pi_4"), ("b", "Pi.4"), ("c", "client"))]
    proposal = propose(nodes)
    assert proposal is not None
    assert len({*proposal.selectors}) == 3
    shape(proposal)
