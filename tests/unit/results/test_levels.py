"""Levels as a person reads them."""

import pytest

from tierbench.results.levels import are_numbers, is_share, level_in_words, levels_in_short, number_of_level, show_level


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


@pytest.mark.parametrize(
    ("levels", "words"),
    [
        ({"fileSize": "1Gi", "concurrency": "1", "cacheState": "Natural", "tls": "None"}, "1Gi"),
        ({"fileSize": "1Gi", "concurrency": "4", "cacheState": "Cold", "tls": "TLSv1.3"}, "1Gi x4 Cold TLSv1.3"),
        ({}, ""),
    ],
)
def test_only_what_differs_from_the_usual_is_named(levels: dict[str, str], words: str) -> None:
    assert levels_in_short(levels) == words


def test_a_ratio_is_the_number_that_is_left() -> None:
    assert number_of_level("Ratio30") == 30
    assert number_of_level("Random") is None
    assert show_level("content", "Ratio30") == "Ratio30"
    assert is_share(("Ratio10", "Ratio90"))
    assert not is_share(("Ratio10", "10"))


def test_names_are_no_numbers() -> None:
    assert are_numbers("payloadSize", ("1Ki", "2000"))
    assert not are_numbers("broker", ("1", "2"))
    assert not are_numbers("content", ("Ratio10", "Zeros"))
