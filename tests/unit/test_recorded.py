"""What simulated clients print is what the operator reads."""

from collections.abc import Sequence
from datetime import UTC, datetime

import pytest

from tests.operator.recorded import Script
from tierbench.results.parser import OutputParser, SealState, check_seal

NOW = datetime(2026, 11, 25, tzinfo=UTC)


def _printed(arguments: Sequence[str]) -> tuple[Script, OutputParser]:
    script, reader = Script(arguments), OutputParser()
    for scheduled in script.schedule:
        reader.feed(script.begin(scheduled, NOW))
        reader.feed(script.end(scheduled, NOW))
    return script, reader


@pytest.mark.parametrize(
    "arguments",
    [
        ["download", "--case=3", "--case=4", "--trials=3:1,4:1,3:2", "--warmup=0", "--output=json"],
        ["broker", "--parts=5", "--part=4", "--barrier=r1-c1-a1", "--trials=3:1,4:1,3:12", "--keep-connections"],
    ],
    ids=["download", "broker"],
)
def test_trials_and_seal_are_those_that_the_arguments_ask_for(arguments: Sequence[str]) -> None:
    script, reader = _printed(arguments)
    output = reader.output
    assert output.problems == ()
    assert [(line.case, line.trial) for line in output.trials] == [
        (scheduled.case, scheduled.trial) for scheduled in script.schedule
    ]
    assert output.begun == len(script.schedule)
    assert check_seal(output, script.seal).state is SealState.COMPLETE


def test_a_log_that_lacks_a_line_is_not_what_was_sealed() -> None:
    script, reader = Script(["download", "--trials=1:1,1:2"]), OutputParser()
    for scheduled in script.schedule:
        line = script.end(scheduled, NOW)
        reader.feed(line if scheduled.trial == 1 else b"")
    assert check_seal(reader.output, script.seal).state is SealState.CUT_SHORT
