"""The rules on what a spec multiplies: its cases, the pairs of its preflight, and the sizes that it refines."""

from typing import Final

from tierbench.api.measurements import MAXIMUM_PAIRS
from tierbench.api.model import Rule
from tierbench.api.run_policy import MAXIMUM_CASES

SERVER_NODES: Final = "(has(self.servers) ? size(self.servers.nodeClassNames) * self.servers.nodesPerClass : 0)"
"""The CEL expression for the number of nodes that host the service."""


def refine_rule(sizes: str) -> Rule:
    """Returns the rule that a spec with runPolicy.refine has at least two of `sizes` and two server classes."""
    return Rule(
        "!has(self.runPolicy) || !has(self.runPolicy.refine)"
        f" || has(self.{sizes}) && size(self.{sizes}) > 1"
        " && has(self.servers) && size(self.servers.nodeClassNames) > 1",
        f"runPolicy.refine measures between sizes where another server class takes the lead: name at least two {sizes} "
        "and two servers.nodeClassNames",
    )


def matrix_rule(cases: str) -> Rule:
    """Returns the rule that a spec has at most MAXIMUM_CASES cases. `cases` is the CEL expression for their number."""
    help_text = "remove levels, or make several benchmarks"
    return Rule(
        f"{cases} <= {MAXIMUM_CASES}",
        f"the matrix has more than {MAXIMUM_CASES} cases: {help_text}",
        f"'the matrix has %d cases, at most {MAXIMUM_CASES} are allowed: {help_text}'.format([{cases}])",
    )


def preflight_rule(clients: str) -> Rule:
    """Returns the rule that the pairs of a preflight fit into the status.

    `clients` is the CEL expression for the number of nodes that use each server.
    """
    return Rule(
        f"!has(self.preflight) || {SERVER_NODES} * ({clients}) <= {MAXIMUM_PAIRS}",
        f"preflight would measure between more than {MAXIMUM_PAIRS} pairs of nodes: remove it, or name fewer classes",
    )
