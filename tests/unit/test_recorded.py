"""The operator can parse the output of replayed clients."""

from collections.abc import Sequence
from datetime import UTC, datetime

import pytest

from tests.operator.recorded import Replay
from tierbench.results.client_output import OutputParser, SealState, check_seal

NOW = datetime(2026, 11, 25, tzinfo=UTC)


def _printed(arguments: Sequence[str]) -> tuple[Replay, OutputParser]:
    replay, reader = Replay(arguments), OutputParser()
    for scheduled in replay.schedule:
        reader.feed(replay.begin(scheduled, NOW))
        reader.feed(replay.end(scheduled, NOW))
    return replay, reader


@pytest.mark.parametrize(
    "arguments",
    [
        ["download", "--case=3", "--case=4", "--trials=3:1,4:1,3:2", "--warmup=0", "--output=json"],
        ["broker", "--parts=5", "--part=4", "--barrier=r1-c1-a1", "--trials=3:1,4:1,3:12", "--keep-connections"],
    ],
    ids=["download", "broker"],
)
def test_trials_and_seal_follow_the_arguments(arguments: Sequence[str]) -> None:
    replay, reader = _printed(arguments)
    output = reader.output
    assert output.problems == ()
    assert [(line.case, line.trial) for line in output.trials] == [
        (scheduled.case, scheduled.trial) for scheduled in replay.schedule
    ]
    assert output.begun == len(replay.schedule)
    assert check_seal(output, replay.seal).state is SealState.COMPLETE


def test_a_log_without_one_line_does_not_match_the_seal() -> None:
    replay, reader = Replay(["download", "--trials=1:1,1:2"]), OutputParser()
    for scheduled in replay.schedule:
        line = replay.end(scheduled, NOW)
        reader.feed(line if scheduled.trial == 1 else b"")
    assert check_seal(reader.output, replay.seal).state is SealState.CUT_SHORT
