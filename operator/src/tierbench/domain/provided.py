"""What other operators are asked for: where their API is, and what they say of its objects."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from tierbench.domain.views import Problem, Raw


@dataclass(frozen=True)
class ProvidedObject:
    """An object that another operator looks after. `answered` says whether it bears any status."""

    kind: str
    name: str
    run: int
    slot: int
    created: datetime
    deleted: datetime | None = None
    answered: bool = False
    ready: bool = False
    refusal: Problem | None = None
    refused_since: datetime | None = None
    listeners: Mapping[str, str] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Provided:
    """Another operator as the API server knows it: not at all, without a version that will do, or with the objects of a
    benchmark."""

    installed: bool = False
    version: str = ""
    objects: tuple[ProvidedObject, ...] = ()

    def of(self, run: int, slot: int) -> tuple[ProvidedObject, ...]:
        """The objects of one server."""
        return tuple(item for item in self.objects if (item.run, item.slot) == (run, slot))


@dataclass(frozen=True)
class ProviderApi:
    """What another operator serves. Of `versions` the first that is there is used; its pods have the label `role`, and
    are made through objects of the kinds `makers`."""

    group: str
    versions: tuple[str, ...]
    kinds: tuple[str, ...]
    role: str
    makers: frozenset[str]
    view: Callable[[str, Raw], ProvidedObject]
