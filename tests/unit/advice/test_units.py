"""Numbers and levels as a person reads them."""

import pytest

from tierbench.advice.units import level_in_words, show, show_interval, show_level, show_with_deviation, tick, title


@pytest.mark.parametrize(
    ("quantity", "value", "text"),
    [
        ("throughputBytesPerSecond", 92.5e6, "92.5 MB/s"),
        ("throughputBitsPerSecond", 941e6, "941 Mbit/s"),
        ("messagesPerSecond", 35_200, "35.20 k/s"),
        ("serverDeviceReadBytes", 512 * 2**20, "512 MiB"),
        ("serverIoWaitPartsPerMillion", 203_000, "20.30 %"),
        ("retries", 3, "3"),
        ("anythingElse", 2.5, "2.50"),
        ("durationNanoseconds", None, "–"),
    ],
)
def test_a_value_has_its_unit(quantity: str, value: float | None, text: str) -> None:
    assert show(quantity, value) == text


def test_mean_deviation_and_interval_share_a_unit() -> None:
    assert show_with_deviation("durationNanoseconds", 22.106e9, 0.0523e9) == "22.11 ± 0.05 s"
    assert show_with_deviation("durationNanoseconds", 23e6, 4.83e6) == "23.00 ± 4.83 ms"
    assert show_with_deviation("durationNanoseconds", 5e9, None) == "5.00 s"
    assert show_interval("durationNanoseconds", 1.05e9, 0.98e9, 1.1e9) == "1.05 s (0.98 to 1.10)"


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
def test_a_level_alone(factor: str, level: str, text: str) -> None:
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
def test_a_level_in_a_sentence(factor: str, level: str, text: str) -> None:
    assert level_in_words(factor, level) == text


def test_ticks_are_short() -> None:
    assert [tick("durationNanoseconds", value) for value in (0, 1e7, 1e9, 1e11)] == ["0", "10 ms", "1 s", "100 s"]


def test_quantities_unknown_here_are_named_from_their_name() -> None:
    assert title("congestionWindowBytes") == "Congestion window"
    assert title("jitterNanoseconds") == "Jitter"
