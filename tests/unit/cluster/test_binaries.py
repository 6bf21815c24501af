"""Which Kubernetes is built."""

import pytest

from tests.cluster import ClusterError, binaries


def test_known_versions_are_in_order_and_pinned() -> None:
    known = binaries.known()
    assert binaries.DEFAULT in known
    assert known == sorted(known, key=lambda minor: tuple(map(int, minor.split("."))))
    for minor in known:
        assert binaries.version(minor).startswith(f"{minor}.")


def test_the_environment_asks_for_a_version(monkeypatch: pytest.MonkeyPatch) -> None:
    for minor in binaries.known():
        monkeypatch.setenv("KUBERNETES", minor)
        assert binaries.asked() == minor
    monkeypatch.setenv("KUBERNETES", "")
    assert binaries.asked() == binaries.DEFAULT


def test_unknown_version_is_refused_with_the_known_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBERNETES", "1.29")
    with pytest.raises(ClusterError) as refusal:
        binaries.asked()
    assert str(refusal.value) == f"KUBERNETES=1.29 is not known; there are {', '.join(binaries.known())}"
