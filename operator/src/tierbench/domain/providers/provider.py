"""What the life cycle asks of whoever brings servers up. Each module of this folder that does so is one Provider."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from tierbench.domain.actions import Action, Decision
from tierbench.domain.observed import Surroundings
from tierbench.domain.provided import ProviderApi
from tierbench.domain.run import Run
from tierbench.domain.views import Problem
from tierbench.workloads.plan import Case
from tierbench.workloads.workload import RunningServer, ServerSite, Workload


class Provider(Protocol):
    """Beside each server of whatever provider stands a pod of ours: the server itself, or its agent."""

    @property
    def API(self) -> ProviderApi | None:  # noqa: N802 (a constant of the module)
        """What has to be looked at of another operator."""

    def obstacle(self, run: Run, site: ServerSite) -> Problem | None:
        """Why it cannot bring this server up, known before it is asked."""

    def bring_up(
        self, run: Run, workload: Workload, site: ServerSite, current: Sequence[Case], strays: tuple[Action, ...]
    ) -> RunningServer | Problem | Decision:
        """The server of a workload on its site if it is ready; or why it will not be, or what to do."""

    def remains(self, here: Surroundings, keep: Sequence[ServerSite]) -> bool:
        """Whether anything of its servers but some is there that must go before another server starts."""

    def retire(self, here: Surroundings, now: datetime, keep: Sequence[ServerSite]) -> tuple[Action, ...]:
        """The next step on the way out, of all its servers but some."""
