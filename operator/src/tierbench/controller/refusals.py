"""Writes of one benchmark that the API server does not take: tried a few times, and then left alone for long."""

import time
from typing import Final

from tierbench.kube.errors import ApiError, UnknownFieldError

TRIES: Final = 4
REST_SECONDS: Final = 600.0
UPGRADE: Final = (
    "If the CustomResourceDefinitions are of another version than the operator, upgrade both: `helm upgrade` does. It "
    "is tried again once they have changed, and every ten minutes."
)


class Refusals:
    """What was refused of one benchmark, by name, and how often.

    All is forgotten once the `basis` has changed, on which it depends what is taken.
    """

    def __init__(self) -> None:
        self._basis: object = None
        self._tries: dict[str, int] = {}
        self._rests: dict[str, float] = {}
        self.results: dict[str, str] = {}
        """What was said of results that are not taken as they were measured, by name."""

    def see(self, basis: object) -> None:
        """On what it depends now."""
        if basis != self._basis:
            self._basis = basis
            self._tries.clear()
            self._rests.clear()
            self.results.clear()

    def add(self, name: str) -> bool:
        """One more refusal; whether the tries are over."""
        self._tries[name] = self._tries.get(name, 0) + 1
        if self._tries[name] < TRIES:
            return False
        self._rests[name] = time.monotonic() + REST_SECONDS
        return True

    def add_result(self, name: str, error: ApiError) -> None:
        """The same of a result. A field that the API server does not know is tried again: definitions are read anew."""
        if self.add(name) or not isinstance(error, UnknownFieldError):
            self.results.setdefault(name, error.message)

    def taken(self, name: str) -> None:
        """It was written."""
        self._tries.pop(name, None)

    def rests(self, name: str) -> bool:
        """Whether it is to be left alone now."""
        return time.monotonic() < self._rests.get(name, 0.0)

    @property
    def unwritable(self) -> frozenset[str]:
        """Results that are not even taken as failed."""
        return frozenset(name for name in self.results if self._tries.get(name, 0) > TRIES)
