import pytest
from hypothesis import given
from hypothesis import strategies as st

from tierbench.results.display import byte_rate, case_words, duration


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
    assert duration(nanoseconds) == text


@pytest.mark.parametrize(("rate", "text"), [(84.03e6, "84.0 MB/s"), (999.999e6, "1.00 GB/s"), (1.2e3, "1.20 kB/s")])
def test_byte_rate(rate: float, text: str) -> None:
    assert byte_rate(rate) == text


@given(st.floats(1, 1e13))
def test_a_duration_reads_back_within_half_of_its_last_digit(nanoseconds: float) -> None:
    number, unit = duration(nanoseconds).split()
    factor = {"ns": 1.0, "µs": 1e3, "ms": 1e6, "s": 1e9}[unit]
    assert float(number) * factor == pytest.approx(nanoseconds, rel=0.0051)
    assert unit == "s" or float(number) < 1000


@pytest.mark.parametrize(
    ("levels", "words"),
    [
        ({"fileSize": "1Gi", "concurrency": "1", "cacheState": "Natural", "tls": "None"}, "1Gi"),
        ({"fileSize": "1Gi", "concurrency": "4", "cacheState": "Cold", "tls": "TLSv1.3"}, "1Gi x4 Cold TLSv1.3"),
        ({}, ""),
    ],
)
def test_only_what_differs_from_the_usual_is_named(levels: dict[str, str], words: str) -> None:
    assert case_words(levels) == words
