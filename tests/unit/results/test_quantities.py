from typing import Any

from tests.unit.results.test_record import line, sample
from tierbench.api.contract import TrialFields
from tierbench.api.result import ResultTrial
from tierbench.results.quantities import quantities

TRANSFER: dict[str, Any] = {"bytes": 2**20, "downloads": 1, "retries": 0, "firstByteNanoseconds": 7}


def trial(**fields: Any) -> ResultTrial:
    known = line(1, **fields)
    return ResultTrial(**{name: getattr(known, name) for name in TrialFields.model_fields})


def test_units_are_those_of_the_names() -> None:
    values = quantities(
        [
            trial(
                nanoseconds=2 * 10**9,
                client={"cpuNanoseconds": 5 * 10**8},
                transfer=TRANSFER,
                server=sample(deviceReadBytes=12, tcpRetransmits=3, ioWaitPartsPerMillion=4),
            )
        ]
    )
    assert values["durationNanoseconds"] == [2 * 10**9]
    assert values["throughputBytesPerSecond"] == [2**19]
    assert values["clientCpuPartsPerMillion"] == [250_000]
    assert values["firstByteNanoseconds"] == [7]
    assert values["serverDeviceReadBytes"] == [12]
    assert values["serverIoWaitPartsPerMillion"] == [4]
    assert values["tcpRetransmits"] == [3]


def test_a_lookup_is_a_quantity_of_its_own_where_there_was_one() -> None:
    assert quantities([trial(transfer={**TRANSFER, "dnsNanoseconds": 9})])["lookupNanoseconds"] == [9]
    assert "lookupNanoseconds" not in quantities([trial(transfer={**TRANSFER, "dnsNanoseconds": 0})])


def test_zero_is_a_value_and_what_was_not_told_is_none() -> None:
    values = quantities([trial(transfer=TRANSFER, server=sample(tcpRetransmits=0)), trial(transfer=TRANSFER)])
    assert values["retries"] == [0, 0]
    assert values["tcpRetransmits"] == [0]
    assert "serverDeviceReadBytes" not in values


def test_a_trial_that_moved_nothing_gives_nothing() -> None:
    assert quantities([trial(transfer=None)]) == {}
    assert quantities([]) == {}
