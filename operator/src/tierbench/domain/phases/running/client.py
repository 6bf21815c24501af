"""The client of a case, as it is in the cluster: a Job a part, all started anew if one is lost."""

from dataclasses import dataclass
from functools import cached_property

from tierbench.domain.actions import Action, DeleteJob
from tierbench.domain.observed import PodLog
from tierbench.domain.run import Run
from tierbench.domain.views import JobView, PodView
from tierbench.workloads.names import ROLE_CLIENT
from tierbench.workloads.plan import Case
from tierbench.workloads.workload import Part, Workload


@dataclass(frozen=True)
class Client:
    """Of a case of a workload. `known_attempts` are those that its result tells of."""

    run: Run
    workload: Workload
    case: Case
    known_attempts: int = 0

    @property
    def parts(self) -> tuple[Part, ...]:
        """The parts that a client of this case has."""
        return self.workload.parts(self.case)

    @cached_property
    def jobs(self) -> tuple[JobView, ...]:
        """The case's Jobs, oldest first."""
        mine = [job for job in self.run.observed.jobs if self._is_mine(job)]
        return tuple(sorted(mine, key=lambda job: (job.attempt, job.part)))

    @cached_property
    def pods(self) -> tuple[PodView, ...]:
        """The case's pods, oldest first; a pod may outlive its Job."""
        mine = [pod for pod in self.run.observed.pods if pod.role == ROLE_CLIENT and self._is_mine(pod)]
        return tuple(sorted(mine, key=lambda pod: pod.attempt))

    def _is_mine(self, view: JobView | PodView) -> bool:
        return (view.run, view.case) == (self.run.status.number, self.case.number)

    @property
    def attempts(self) -> int:
        """How many clients the case has had."""
        return max([self.known_attempts, *(job.attempt for job in self.jobs)])

    @cached_property
    def newest(self) -> tuple[tuple[JobView, PodView | None], ...]:
        """The parts of the newest client that are there, each with its pod."""
        newest = self.attempts
        pods = {pod.part: pod for pod in self.pods if pod.attempt == newest}
        return tuple((job, pods.get(job.part)) for job in self.jobs if job.attempt == newest)

    def log(self, pod: PodView) -> PodLog:
        """What a pod has printed."""
        return self.run.observed.logs.get(pod.uid, PodLog())

    def delete(self) -> tuple[Action, ...]:
        """Removes all of its Jobs."""
        return tuple(DeleteJob(job.name) for job in self.jobs if not job.deleting)

    def delete_others(self) -> tuple[Action, ...]:
        """Removes Jobs of cases that have ended, or of other runs."""
        others = (job for job in self.run.observed.jobs if not self._is_mine(job))
        return tuple(DeleteJob(job.name) for job in others if not job.deleting)
