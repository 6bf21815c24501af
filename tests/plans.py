"""Reads the trial plan that a Job gives to its client."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

Plan = dict[str, Any]


def plan_of(job: Mapping[str, Any]) -> Plan:
    """Returns the plan in the manifest of a Job."""
    return plan_in(job["spec"]["template"]["spec"]["containers"][0]["args"])


def plan_in(arguments: Sequence[str]) -> Plan:
    """Returns the plan in the arguments of a container."""
    (text,) = (word.removeprefix("--plan=") for word in arguments if word.startswith("--plan="))
    plan: Plan = json.loads(text)
    return plan
