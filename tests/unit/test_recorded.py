"""The operator can parse the output of replayed clients."""

from datetime import UTC, datetime

import pytest

from tests.operator.recorded import FOLDER, Replay, recorded
from tests.plans import Plan
from tierbench.api.result import BenchmarkResult
from tierbench.kinds.registry import BENCHMARKS
from tierbench.results.client_output import OutputParser, SealState, check_seal

NOW = datetime(2026, 11, 25, tzinfo=UTC)


def scheduled(*trials: tuple[int, int]) -> list[dict[str, int]]:
    return [{"case": case, "trial": trial} for case, trial in trials]


def _printed(plan: Plan) -> tuple[Replay, OutputParser]:
    replay, reader = Replay(plan), OutputParser()
    for turn in replay.schedule:
        reader.feed(replay.begin(turn, NOW))
        reader.feed(replay.end(turn))
    return replay, reader


@pytest.mark.parametrize(
    "plan",
    [
        {"kind": "Transfer", "schedule": scheduled((3, 1), (4, 1), (3, 2))},
        {
            "kind": "Broker", "parts": 5, "part": 4, "barrier": "r1-c1-a1", "targets": [{"url": "mqtt://h:1"}],
            "schedule": scheduled((3, 1), (4, 1), (3, 12)),
        },
    ],
    ids=["download", "broker"],
)  # fmt: skip
def test_trials_and_seal_follow_the_plan(plan: Plan) -> None:
    replay, reader = _printed(plan)
    output = reader.output
    assert output.problems == ()
    assert [(line.case, line.trial) for line in output.trials] == [(turn.case, turn.trial) for turn in replay.schedule]
    assert output.begun == len(replay.schedule)
    assert check_seal(output, replay.seal).state is SealState.COMPLETE


@pytest.mark.parametrize("name", sorted(path.stem for path in FOLDER.glob("*.json")))
def test_recorded_statuses_have_only_fields_of_this_version(name: str) -> None:
    """The API server refuses a status with another field, so no benchmark could be made from the recording."""
    run = recorded(name)
    benchmark = BENCHMARKS[run.benchmark["kind"]].model_validate(run.benchmark)
    result = BenchmarkResult.model_validate(run.results[0])
    assert (benchmark.status.model_extra, result.status.model_extra) == ({}, {})


def test_a_log_without_one_line_does_not_match_the_seal() -> None:
    replay, reader = Replay({"kind": "Transfer", "schedule": scheduled((1, 1), (1, 2))}), OutputParser()
    for turn in replay.schedule:
        line = replay.end(turn)
        reader.feed(line if turn.trial == 1 else b"")
    assert check_seal(reader.output, replay.seal).state is SealState.CUT_SHORT
