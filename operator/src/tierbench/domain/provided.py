"""What is observed of another operator, whose objects are servers of a benchmark."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from tierbench.domain.views import Problem
from tierbench.kube.meta import Raw


@dataclass(frozen=True)
class ProviderObject:
    """An object that another operator reconciles. `answered` says whether its status is set."""

    kind: str
    name: str
    run: int
    slot: int
    created: datetime
    deleted: datetime | None = None
    answered: bool = False
    ready: bool = False
    rejection: Problem | None = None
    rejected_since: datetime | None = None
    listeners: Mapping[str, str] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ProviderState:
    """The state of another operator. `installed` says whether its API group is served, `version` is the newest usable
    version or empty, `objects` belong to one benchmark."""

    installed: bool = False
    version: str = ""
    objects: tuple[ProviderObject, ...] = ()

    def of(self, run: int, slot: int) -> tuple[ProviderObject, ...]:
        """Returns the objects of one server."""
        return tuple(item for item in self.objects if (item.run, item.slot) == (run, slot))


@dataclass(frozen=True)
class ProviderApi:
    """The API of another operator. The first served one of `versions` is used. Its pods have the label value `role`,
    and `pod_label` names the object that they belong to. `view` parses an object of a kind."""

    group: str
    versions: tuple[str, ...]
    kinds: tuple[str, ...]
    role: str
    pod_label: str
    view: Callable[[str, Raw], ProviderObject]
