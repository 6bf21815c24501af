"""Quantities and levels in readable form."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tierbench.results.units import (
    are_numbers,
    describe_level,
    is_share,
    level_number,
    show,
    show_interval,
    show_level,
    show_levels,
    show_with_deviation,
    tick,
    title,
)


@pytest.mark.parametrize(
    ("quantity", "value", "text"),
    [
        ("throughputBytesPerSecond", 92.5e6, "92.5 MB/s"),
        ("throughputBitsPerSecond", 941e6, "941 Mbit/s"),
        ("messagesPerSecond", 35_200, "35.20 k/s"),
        ("serverDeviceReadBytes", 512 * 2**20, "512 MiB"),
        ("serverIoWaitPartsPerMillion", 203_000, "20.30%"),
        ("retries", 3, "3"),
        ("wireBytesPerMessage", 3300, "3300 B"),
        ("wirePacketsPerMessagePartsPerMillion", 4_100_000, "4.10"),
        ("wirePacketsPerMessagePartsPerMillion", 31_250, "0.0312"),
        ("anythingElse", 2.5, "2.50"),
        ("durationNanoseconds", None, "–"),
    ],
)
def test_a_value_has_its_unit(quantity: str, value: float | None, text: str) -> None:
    assert show(quantity, value) == text


@pytest.mark.parametrize(
    ("nanoseconds", "text"),
    [
        (12.783e9, "12.78 s"),
        (1234.5e9, "1234.50 s"),
        (999.96e6, "1.00 s"),
        (999.4e6, "999 ms"),
        (34.2e6, "34.2 ms"),
        (9.996e6, "10.0 ms"),
        (812e3, "812 µs"),
        (5, "5.00 ns"),
        (0, "0 ns"),
    ],
)
def test_duration(nanoseconds: float, text: str) -> None:
    assert show("durationNanoseconds", nanoseconds) == text


@pytest.mark.parametrize(
    ("quantity", "rate", "text"),
    [
        ("throughputBytesPerSecond", 84.03e6, "84.0 MB/s"),
        ("throughputBytesPerSecond", 999.999e6, "1.00 GB/s"),
        ("throughputBytesPerSecond", 1.2e3, "1.20 kB/s"),
        ("throughputBitsPerSecond", 90e6, "90.0 Mbit/s"),
        ("throughputMessagesPerSecond", 12_345, "12.3 k msg/s"),
    ],
)
def test_rate(quantity: str, rate: float, text: str) -> None:
    assert show(quantity, rate) == text


@given(st.floats(1, 1e13))
def test_a_duration_reads_back_within_half_of_its_last_digit(nanoseconds: float) -> None:
    number, unit = show("durationNanoseconds", nanoseconds).split()
    factor = {"ns": 1.0, "µs": 1e3, "ms": 1e6, "s": 1e9}[unit]
    assert float(number) * factor == pytest.approx(nanoseconds, rel=0.0051)
    assert unit == "s" or float(number) < 1000


def test_mean_deviation_and_interval_share_a_unit() -> None:
    assert show_with_deviation("durationNanoseconds", 22.106e9, 0.0523e9) == "22.11 ± 0.05 s"
    assert show_with_deviation("durationNanoseconds", 23e6, 4.83e6) == "23.00 ± 4.83 ms"
    assert show_with_deviation("durationNanoseconds", 5e9, None) == "5.00 s"
    assert show_interval("durationNanoseconds", 1.05e9, 0.98e9, 1.1e9) == "1.05 s (0.98–1.10)"


def test_ticks_are_short() -> None:
    assert [tick("durationNanoseconds", value) for value in (0, 1e7, 1e9, 1e11)] == ["0", "10 ms", "1 s", "100 s"]


def test_the_title_of_an_unknown_quantity_is_its_name() -> None:
    assert title("congestionWindowBytes") == "Congestion window"
    assert title("jitterNanoseconds") == "Jitter"


@pytest.mark.parametrize(
    ("factor", "level", "text"),
    [
        ("fileSize", "512M", "512 MB"),
        ("fileSize", "512Mi", "512 MiB"),
        ("fileSize", "1048576", "1 MiB"),
        ("payloadSize", "1000", "1 kB"),
        ("concurrency", "4", "4"),
        ("cacheState", "Warm", "Warm"),
    ],
)
def test_show_level(factor: str, level: str, text: str) -> None:
    assert show_level(factor, level) == text


@pytest.mark.parametrize(
    ("factor", "level", "text"),
    [
        ("fileSize", "3G", "3 GB"),
        ("concurrency", "4", "concurrency 4"),
        ("cacheState", "Warm", "cache state Warm"),
        ("tls", "None", "TLS None"),
        ("tls", "TLSv1.3", "TLSv1.3"),
    ],
)
def test_describe_level(factor: str, level: str, text: str) -> None:
    assert describe_level(factor, level) == text


@pytest.mark.parametrize(
    ("levels", "words"),
    [
        ({"fileSize": "1Gi", "concurrency": "1", "cacheState": "Unchanged", "tls": "None"}, "1Gi"),
        ({"fileSize": "1Gi", "concurrency": "4", "cacheState": "Cold", "tls": "TLSv1.3"}, "1Gi x4 Cold TLSv1.3"),
        ({}, ""),
    ],
)
def test_usual_levels_are_not_shown(levels: dict[str, str], words: str) -> None:
    assert show_levels(levels) == words


def test_a_ratio_is_a_number() -> None:
    assert level_number("Ratio30") == 30
    assert level_number("Random") is None
    assert show_level("content", "Ratio30") == "Ratio30"
    assert is_share(("Ratio10", "Ratio90"))
    assert not is_share(("Ratio10", "10"))


def test_names_are_not_numbers() -> None:
    assert are_numbers("payloadSize", ("1Ki", "2000"))
    assert not are_numbers("broker", ("1", "2"))
    assert not are_numbers("content", ("Ratio10", "Zeros"))
