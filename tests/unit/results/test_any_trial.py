"""Every trial that is parsed has statistics, so the operator need not compute them before it records one."""

import json
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.operator.recorded import recorded
from tierbench.api.record import RecordStatus
from tierbench.api.result import ResultSpec
from tierbench.results.aggregate import add_trials, summarize
from tierbench.results.client_output import parse_output

EXTREMES = st.sampled_from([0, 1, 2**63 - 1])
Path = tuple[str | int, ...]


def numbers(found: Any, path: Path = ()) -> Iterator[Path]:
    """Yields the places of all numbers in JSON."""
    if isinstance(found, dict | list):
        for key, inner in found.items() if isinstance(found, dict) else enumerate(found):
            yield from numbers(inner, (*path, key))
    elif isinstance(found, int) and not isinstance(found, bool):
        yield path


def replace_number(found: Any, path: Path, number: int) -> None:
    """Replaces a number in JSON."""
    for key in path[:-1]:
        found = found[key]
    found[path[-1]] = number


@pytest.mark.parametrize("of", ["files", "brokers", "kafka", "mosquitto", "tcp", "udp"])
def test_any_parsed_trial_has_statistics(of: str) -> None:
    spec = ResultSpec.model_validate(recorded(of).results[0]["spec"])
    printed = recorded(of).clients[0].trials[0]
    parsed: list[int] = []
    places = [path for path in numbers(printed) if path[0] not in {"contract", "trial", "case", "part"}]

    @example({}, {})
    @given(st.dictionaries(st.sampled_from(places), EXTREMES), st.dictionaries(st.sampled_from(places), EXTREMES))
    def check(first: dict[Path, int], second: dict[Path, int]) -> None:
        lines = []
        for number, changes in enumerate((first, second), 1):
            line = {**deepcopy(printed), "trial": number, "warmup": False}
            for path, extreme in changes.items():
                replace_number(line, path, extreme)
            lines.append(json.dumps(line))
        trials = parse_output("\n".join([*lines, ""])).trials
        parsed.append(len(trials))
        summarize(spec, add_trials(spec, RecordStatus(), trials, 1))

    check()
    assert max(parsed) == 2, "no pair of trials was parsed"
