"""The client of a block, as it is in the cluster: a Job a part, all started anew if one is lost."""

from dataclasses import dataclass
from functools import cached_property

from tierbench.domain.actions import Action, DeleteJob
from tierbench.domain.observed import PodLog
from tierbench.domain.run import Run
from tierbench.domain.views import JobView, PodView
from tierbench.workloads.names import LAYOUT, ROLE_CLIENT, ROLE_SERVER
from tierbench.workloads.plan import Case
from tierbench.workloads.workload import Part, Workload


@dataclass(frozen=True)
class Client:
    """Of cases of a workload that differ in nothing but their server, in one pass. `known_attempts` are those that
    their results tell of."""

    run: Run
    workload: Workload
    cases: tuple[Case, ...]
    pass_number: int = 1
    known_attempts: int = 0

    @property
    def first(self) -> Case:
        """The case by which its Jobs are known."""
        return self.cases[0]

    @property
    def parts(self) -> tuple[Part, ...]:
        """The parts that a client of these cases has."""
        return self.workload.parts(self.first)

    @cached_property
    def jobs(self) -> tuple[JobView, ...]:
        """Its Jobs, oldest first."""
        mine = [job for job in self.run.observed.jobs if self._is_mine(job)]
        return tuple(sorted(mine, key=lambda job: (job.attempt, job.part)))

    @cached_property
    def pods(self) -> tuple[PodView, ...]:
        """Its pods, oldest first; a pod may outlive its Job."""
        mine = [pod for pod in self.run.observed.pods if pod.role == ROLE_CLIENT and self._is_mine(pod)]
        return tuple(sorted(mine, key=lambda pod: pod.attempt))

    def _is_mine(self, view: JobView | PodView) -> bool:
        mine = (self.run.status.number, self.first.number, self.pass_number)
        return (view.run, view.case, view.pass_number) == mine

    @property
    def attempts(self) -> int:
        """How many clients the cases have had in this pass."""
        return max([self.known_attempts, *(job.attempt for job in self.jobs)])

    @cached_property
    def newest(self) -> tuple[tuple[JobView, PodView | None], ...]:
        """The parts of the newest client that are there, each with its pod."""
        newest = self.attempts
        pods = {pod.part: pod for pod in self.pods if pod.attempt == newest}
        return tuple((job, pods.get(job.part)) for job in self.jobs if job.attempt == newest)

    @property
    def is_to_start(self) -> bool:
        """Whether there is none, or not all of it."""
        return not self.newest or self.is_half_made

    @cached_property
    def is_half_made(self) -> bool:
        """Whether the newest lacks parts, and none has begun: an operator was killed between two of its Jobs."""
        waits = all(
            not job.finished and not job.deleting and (pod is None or self._waits(pod)) for job, pod in self.newest
        )
        return waits and 0 < len(self.newest) < len(self.parts)

    @property
    def waits_in_vain(self) -> bool:
        """Whether it waits for what a server of another version would have: that version was here in between."""
        ours = any(pod.role == ROLE_SERVER and pod.layout == LAYOUT for pod in self.run.observed.pods)
        waiting = all(pod is None or self._waits(pod) for _, pod in self.newest)
        return ours and waiting and any(job.layout != LAYOUT and not job.finished for job, _ in self.newest)

    def _waits(self, pod: PodView) -> bool:
        output = self.log(pod).output
        return pod.terminated is None and not output.begun and not output.lines

    def log(self, pod: PodView) -> PodLog:
        """What a pod has printed."""
        return self.run.observed.logs.get(pod.uid, PodLog())

    def delete(self) -> tuple[Action, ...]:
        """Removes all of its Jobs."""
        return tuple(DeleteJob(job.name) for job in self.jobs if not job.deleting)

    def delete_others(self) -> tuple[Action, ...]:
        """Removes Jobs of blocks that have ended, or of other passes and runs."""
        others = (job for job in self.run.observed.jobs if not self._is_mine(job))
        return tuple(DeleteJob(job.name) for job in others if not job.deleting)
