"""The pod that stands in for a member of an external class: it offers the work, and prints what the member measures."""

from collections.abc import Sequence
from typing import Any, Final

from tierbench.workloads.pods import NOT_READY
from tierbench.workloads.workload import ClientInstance, Images, Owner, Target

STAND_IN: Final = "stand-in"
PLAN: Final = "--plan="
CLASS: Final = "--class="
SIGNATURE: Final = "--signature="


def stand_in_arguments(arguments: Sequence[str], owner: Owner, images: Images, instance: ClientInstance) -> list[str]:
    """Returns the arguments of a client, for the program that offers its plan to a member."""
    return [
        STAND_IN,
        *arguments[1:],
        f"{CLASS}{instance.part.node_class}",
        f"--work={images.collector}/v1/work/{owner.namespace}/$(POD_NAME)",
        f"--absent-seconds={instance.absent_seconds}",
        f"--silent-seconds={instance.silent_seconds}",
    ]


def stand_in_place(instance: ClientInstance, targets: Sequence[Target]) -> dict[str, Any]:
    """Returns the affinity and tolerations of a stand-in. If possible, it does not run where servers are measured."""
    nodes = sorted({target.server.instance.node for target in targets})
    fields = [{"key": "metadata.name", "operator": "NotIn", "values": [node]} for node in nodes]
    elsewhere = {"weight": 100, "preference": {"matchFields": fields}}
    return {
        "affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [elsewhere]}},
        "tolerations": [*(toleration.to_json() for toleration in instance.node_class.tolerations), *NOT_READY],
    }
