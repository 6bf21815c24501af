"""The output of a client is parsed among other lines of its log, and compared with its seal."""

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.domain.objects import packed, seal, trial_line
from tierbench.api.contract import MAXIMUM_SEAL_BYTES, MAXIMUM_TRIALS
from tierbench.api.record import CollectedBy
from tierbench.results.client_output import (
    MAXIMUM_LINE_BYTES,
    Output,
    OutputParser,
    SealState,
    add_sealed,
    check_seal,
    parse_output,
)

STARTED = '{"contract":1,"record":"TrialStarted","trial":1,"warmup":false,"time":"2026-01-01T00:00:00Z"}\n'


def numbers(log: str) -> list[int]:
    return [trial.trial for trial in parse_output(log).trials]


@given(st.text(), st.integers(0, 400))
def test_a_log_can_contain_other_lines_and_end_anywhere(noise: str, cut: int) -> None:
    log = trial_line(1) + noise + "\n" + trial_line(2)
    assert numbers(log[: len(log) - cut]) in ([1, 2], [1], [])
    assert cut or numbers(log) == [1, 2]


def test_an_incomplete_line_is_not_parsed() -> None:
    """A newline is part of what is sealed."""
    log = trial_line(1) + trial_line(2)
    assert numbers(log[:-1]) == [1]
    assert check_seal(parse_output(log[:-1]), seal(log)).state is SealState.CUT_SHORT


@pytest.mark.parametrize(
    "garbage",
    [
        "[" * 200_000,
        '{"contract":1,"record":"Trial","trial":' + "9" * 5000 + "}",
        "\0" * 1000,
        "null",
        '["Trial"]',
        "panic: runtime error",
    ],
)
def test_other_lines_are_skipped(garbage: str) -> None:
    log = trial_line(1) + garbage + "\n" + STARTED + trial_line(2)
    assert numbers(log) == [1, 2]
    assert parse_output(log).problems == ()
    assert check_seal(parse_output(log), seal(trial_line(1) + trial_line(2))).state is SealState.COMPLETE
    assert check_seal(parse_output(log), garbage).state is SealState.MISSING


@pytest.mark.parametrize("separator", ["\x0b", "\x1c", "\x85", "\u2028", "\r"])
def test_only_a_newline_ends_a_line(separator: str) -> None:
    body = json.loads(trial_line(1, outcome="Failed"))
    body["failure"]["message"] = f"one{separator}two"
    log = json.dumps(body, ensure_ascii=False) + "\n"
    assert numbers(log) == [1]
    message = json.dumps(json.loads(seal(log)) | {"trials": 1})
    assert check_seal(parse_output(log), message).state is SealState.COMPLETE


def test_an_invalid_trial_is_a_problem_with_its_line() -> None:
    output = parse_output(trial_line(1) + trial_line(2).replace('"trial": 2', '"trial": 0'))
    assert [trial.trial for trial in output.trials] == [1]
    assert output.problems[0].startswith("line 2: trial: ")


def test_another_version_is_a_problem_and_not_a_trial() -> None:
    output = parse_output(trial_line(1).replace('"contract": 1', '"contract": 9'))
    assert output.trials == ()
    assert "contract 9" in output.problems[0]


def test_seal_is_compared_with_the_output() -> None:
    log = trial_line(1) + trial_line(2)
    assert check_seal(parse_output(log), seal(log)).state is SealState.COMPLETE
    assert check_seal(parse_output(trial_line(1)), seal(log)).state is SealState.CUT_SHORT
    assert check_seal(parse_output(log + trial_line(2)[:40]), seal(log)).state is SealState.COMPLETE
    assert check_seal(parse_output(log.replace("1000000000", "1000000001")), seal(log)).state is SealState.CUT_SHORT
    assert check_seal(parse_output(trial_line(2) + trial_line(1)), seal(log)).state is SealState.CUT_SHORT
    assert check_seal(parse_output(""), seal("")).state is SealState.COMPLETE
    miscounted = json.dumps(json.loads(seal(log)) | {"trials": 3})
    assert check_seal(parse_output(log), miscounted).state is SealState.CUT_SHORT
    assert check_seal(parse_output(log), "").state is SealState.MISSING
    assert check_seal(parse_output(log), "Killed").state is SealState.MISSING
    assert check_seal(parse_output(log), seal(log)[:-20]).state is SealState.MISSING
    assert check_seal(parse_output(log), trial_line(2)).state is SealState.MISSING  # the end of a killed client's log


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ('{"contract": 2}', "speaks contract 2, the operator 1"),
        ('{"contract": 1}', "ends with another seal (trials: Field required)"),
        ("a line\ntierbench-client: unknown flag: --x\n", "does not know what the operator asks of it (unknown flag: "),
    ],
)
def test_a_client_of_another_version_is_recognized(message: str, expected: str) -> None:
    check = check_seal(parse_output(trial_line(1)), message)
    assert check.state is SealState.OTHER_VERSION
    assert expected in check.message


def test_the_seal_contains_why_a_client_ended_early() -> None:
    check = check_seal(parse_output(trial_line(1)), seal(trial_line(1), {"reason": "NotFound", "message": "404"}))
    assert check.seal is not None
    assert check.seal.failure is not None
    assert check.seal.failure.reason == "NotFound"


def read(pieces: list[bytes]) -> OutputParser:
    reader = OutputParser()
    for piece in pieces:
        reader.feed(piece)
    return reader


@given(st.binary(max_size=300), st.lists(st.integers(0, 1200), max_size=6))
def test_a_log_can_arrive_in_any_pieces(noise: bytes, cuts: list[int]) -> None:
    log = trial_line(1).encode() + noise + b"\n" + STARTED.encode() + trial_line(2).encode()
    places = [0, *sorted(min(cut, len(log)) for cut in cuts), len(log)]
    pieces = [log[start:end] for start, end in pairwise(places)]
    assert read(pieces).output == read([log]).output
    assert [trial.trial for trial in read(pieces).output.trials] == [1, 2]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(1 - 2**63, 2**63 - 1) | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)


@given(st.dictionaries(st.sampled_from([*json.loads(trial_line(1)), "network", "exchange", "traces"]), JSON))
def test_any_trial_is_parsed_or_a_problem(changes: dict[str, object]) -> None:
    trial = {**json.loads(trial_line(1)), **changes}
    output = parse_output(json.dumps(trial) + "\n")
    assert len(output.trials) + len(output.problems) == (trial["record"] == "Trial")


def test_an_endless_line_takes_bounded_memory() -> None:
    reader = read([b"x" * 2**16] * 64)
    assert len(reader._rest) <= MAXIMUM_LINE_BYTES
    reader.feed(b"\n" + trial_line(1).encode())
    assert [trial.trial for trial in reader.output.trials] == [1]
    assert reader.output.problems == ("line 1 is longer than 1 MiB",)


def test_the_rest_of_a_too_large_output_is_not_read() -> None:
    line = b"y" * (2**19 - 1) + b"\n"
    reader = read([trial_line(1).encode(), *[line] * 32, trial_line(2).encode()])
    assert reader.is_full
    assert reader.output.full
    assert [trial.trial for trial in reader.output.trials] == [1]
    assert reader.output.problems == ()


def test_feed_reports_once_that_the_output_became_full() -> None:
    line = b"y" * (2**19 - 1) + b"\n"
    reader = read([line] * 15)
    assert [reader.feed(line), reader.feed(b"y"), reader.feed(b"y")] == [False, True, False]


def test_output_keeps_at_most_the_maximum_number_of_trials() -> None:
    given = "".join(trial_line(number % 30 + 1, case=number + 1) for number in range(MAXIMUM_TRIALS))
    assert not parse_output(given + trial_line(1, case=1)).full
    output = parse_output(given + trial_line(1, case=1000) * 3)
    assert (output.full, len(output.printed)) == (True, MAXIMUM_TRIALS)


HUGE = "9" * 400


@pytest.mark.parametrize("number", [f'"{HUGE}"', '"1"', "1.0", "1e30", "true", str(2**63)])
def test_a_number_is_an_integer_of_63_bits(number: str) -> None:
    """A larger number in a string ended each reconcile with an OverflowError."""
    line = trial_line(1)
    for name in ("trial", "durationNanoseconds"):
        value = json.loads(line)[name]
        assert numbers(line.replace(f'"{name}": {value}', f'"{name}": {number}')) == []
    assert (
        numbers(line.replace('"trial": 1', f'"pairShares": {{"received": [{number}], "nanoseconds": [1]}}, "trial": 1'))
        == []
    )
    buckets = f'{{"schema": 6, "count": {number}, "indexes": [5], "counts": [{number}]}}'
    assert numbers(line.replace('"trial": 1', f'"distributions": {{"ping": {buckets}}}, "trial": 1')) == []
    assert check_seal(parse_output(line), seal(line).replace('"trials": 1', f'"trials": {number}')).seal is None


def test_parser_replaces_control_characters() -> None:
    words = {"message": "a\x1b]0;owned\x07\x1b[2Jb\r\nc\x9bd\u2028e"}
    line = trial_line(1, outcome="Failed").replace("20 attempts", json.dumps(words["message"])[1:-1])
    (trial,) = parse_output(line).trials
    assert trial.failure is not None
    assert trial.failure.message == "a ]0;owned [2Jb c d e"
    sealed = check_seal(parse_output(line), seal(line, {"reason": "BrokerRefused", **words})).seal
    assert sealed is not None
    assert sealed.failure is not None
    assert sealed.failure.message == "a ]0;owned [2Jb c d e"
    governor = line.replace('"cpuNanoseconds"', '"computer": {"cpuGovernor": "x\\u001b[2J"}, "cpuNanoseconds"')
    (trial,) = parse_output(governor).trials
    assert trial.client.computer is not None
    assert trial.client.computer.cpu_governor == "x [2J"


def test_a_trial_that_is_printed_repeatedly_is_kept_once() -> None:
    output = parse_output(trial_line(1) * 1000)
    assert (len(output.trials), output.lines) == (1, 1000)


@pytest.mark.parametrize("odd", ['"\\ud800"', "NaN", "1e999", "[" * 200 + "]" * 200])
def test_a_parsed_trial_can_be_decompressed(odd: str) -> None:
    """Each pass unpacks the line, and an error there stopped its benchmark."""
    output = parse_output(trial_line(1).replace('"trial": 1', f'"further": {odd}, "trial": 1') + trial_line(2))
    assert [trial.trial for trial in output.trials] == [1, 2]


def test_only_the_newest_trial_is_kept_parsed() -> None:
    """It is read at once. More of them would take the memory that packing saves."""
    output = parse_output("".join(map(trial_line, (1, 2, 3))))
    assert [trial.parsed is not None for trial in output.printed] == [False, False, True]
    large = trial_line(4).replace('"trial": 4', f'"further": "{"x" * (1 << 16)}", "trial": 4')
    assert parse_output(large).printed[0].parsed is None


LOG = "".join(map(trial_line, range(1, 6)))


@given(st.integers(0, 5), st.integers(0, 5))
def test_trials_of_a_seal_complete_the_log(arrived: int, held: int) -> None:
    lines = LOG.splitlines(keepends=True)
    message = seal(LOG, held="".join(lines[5 - held :]))
    output = add_sealed(parse_output("".join(lines[:arrived])), message)
    assert output == add_sealed(output, message), "each trial counts once"
    by_log, by_status = [*range(1, arrived + 1)], [*range(max(arrived, 5 - held) + 1, 6)]
    found = {trial.trial: trial.collected_by for trial in output.printed}
    assert found == {**dict.fromkeys(by_log, CollectedBy.LOGS), **dict.fromkeys(by_status, CollectedBy.STATUS)}
    expected = SealState.COMPLETE if arrived + held >= 5 else SealState.CUT_SHORT
    assert check_seal(output, message).state is expected


@pytest.mark.parametrize("lines", ["!", "AAAA", packed("no line\n"), packed("x" * 2**23)[:MAXIMUM_SEAL_BYTES]])
def test_invalid_lines_of_a_seal_are_ignored(lines: str) -> None:
    message = json.dumps({**json.loads(seal(LOG)), "lines": lines})
    assert add_sealed(Output(), message) == Output()
    assert check_seal(Output(), message).state is SealState.CUT_SHORT
