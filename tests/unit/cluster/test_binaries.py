"""The version of Kubernetes that is built."""

import pytest

from tests.cluster import ClusterError, binaries


def test_known_versions_are_sorted_and_pinned() -> None:
    known = binaries.known()
    assert binaries.DEFAULT in known
    assert known == sorted(known, key=lambda minor: tuple(map(int, minor.split("."))))
    for minor in known:
        assert binaries.version(minor).startswith(f"{minor}.")


def test_version_is_read_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for minor in binaries.known():
        monkeypatch.setenv("KUBERNETES", minor)
        assert binaries.asked() == minor
    monkeypatch.setenv("KUBERNETES", "")
    assert binaries.asked() == binaries.DEFAULT


def test_unknown_version_is_rejected_with_a_list_of_known_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBERNETES", "1.29")
    with pytest.raises(ClusterError) as refusal:
        binaries.asked()
    assert str(refusal.value) == f"KUBERNETES=1.29 is not known; there are {', '.join(binaries.known())}"
