"""Trials that are left out as agreed upon, and an interval that does not pretend that they had never been."""

from collections.abc import Sequence

from tests.unit.kinds.network.trials import flow, line, measured
from tierbench.api.contract import TrialLine
from tierbench.api.result import ResultStatus
from tierbench.results.parts import PartOutput, merge_parts

RATES = (80, 100, 10, 90, 95, 300, 85)


def result(rates: Sequence[float] = RATES, **trim: int) -> ResultStatus:
    lines = [line(number, upload=flow(rate, retransmits=number)) for number, rate in enumerate(rates, start=1)]
    return measured(*lines, trim=trim)


def test_lowest_and_highest_are_left_out_and_kept_apart() -> None:
    status = result(lowest=1, highest=1)
    trimmed, whole = (group["throughputBitsPerSecond"] for group in (status.statistics, status.untrimmed))
    assert (trimmed.count, trimmed.mean, trimmed.minimum, trimmed.maximum) == (5, 90_000_000, 80_000_000, 100_000_000)
    assert (whole.count, whole.minimum, whole.maximum) == (7, 10_000_000, 300_000_000)
    assert len(status.trials) == 7
    assert status.valid is True


def test_the_other_quantities_are_those_of_the_same_trials() -> None:
    retransmits = result(lowest=1, highest=1).statistics["retransmits"]
    assert (retransmits.count, retransmits.minimum, retransmits.maximum) == (5, 1, 7)
    assert retransmits.mean == round((1 + 2 + 4 + 5 + 7) / 5)


def test_ends_are_trimmed_each_by_its_own_number() -> None:
    assert result(lowest=2).statistics["throughputBitsPerSecond"].minimum == 85_000_000
    assert result(lowest=2).statistics["throughputBitsPerSecond"].maximum == 300_000_000


def test_nothing_is_trimmed_where_too_few_trials_were_good() -> None:
    status = result((80, 90), lowest=1, highest=1)
    assert status.statistics["throughputBitsPerSecond"].count == 2
    assert status.untrimmed == {}


def test_without_trim_there_is_one_figure() -> None:
    assert result().untrimmed == {}


def shared(trial: int, first: int, second: int) -> TrialLine:
    """Two clients that measured at once."""
    return merge_parts([PartOutput([line(trial, upload=flow(rate))]) for rate in (first, second)])[0]


def test_each_client_is_trimmed_by_its_own_rates() -> None:
    lines = [shared(1, 10, 50), shared(2, 50, 10), shared(3, 30, 30), shared(4, 40, 20)]
    status = measured(*lines, trim={"lowest": 1, "highest": 1, "by": "Client"})
    for name, mean in {"client1BitsPerSecond": 35_000_000, "client2BitsPerSecond": 25_000_000}.items():
        assert (status.statistics[name].count, status.statistics[name].mean) == (2, mean)
        assert (status.untrimmed[name].count, status.untrimmed[name].minimum) == (4, 10_000_000)
    total = status.statistics["throughputBitsPerSecond"]
    assert (total.count, total) == (4, status.untrimmed["throughputBitsPerSecond"])


def test_together_whole_trials_are_left_out() -> None:
    lines = [shared(1, 10, 50), shared(2, 50, 11), shared(3, 30, 32), shared(4, 40, 23)]
    status = measured(*lines, trim={"lowest": 1, "highest": 1})
    assert status.statistics["client1BitsPerSecond"].mean == 40_000_000
