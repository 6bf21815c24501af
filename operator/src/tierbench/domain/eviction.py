"""Which runs go for want of room, and when: the oldest that have ended, each announced in time. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from tierbench.api.benchmark import Eviction
from tierbench.api.model import format_time, parse_time
from tierbench.api.policy import Quotas
from tierbench.domain.ledger import Ledger, RunKey, SealedRun
from tierbench.domain.results import BenchmarkKey

MARK_PERCENT: Final = 80


@dataclass(frozen=True)
class Change:
    """What becomes of the runs of one benchmark: `evictions` is what its status is to say. Of those, it does not say
    yet that some are `announced`, or that they have `begun`. The results of all that are `going` are to be deleted."""

    benchmark: BenchmarkKey
    evictions: tuple[Eviction, ...]
    announced: tuple[SealedRun, ...]
    begun: tuple[SealedRun, ...]
    going: tuple[SealedRun, ...]


def mark(quotas: Quotas) -> int:
    """From how many bytes on runs are announced, and down to how many they go."""
    return quotas.most_stored_bytes * MARK_PERCENT // 100


def plan(ledger: Ledger, quotas: Quotas, now: datetime) -> tuple[Change, ...]:
    """What is to be done now, by benchmark. All that is remembered is in the statuses."""
    said = {
        (key, eviction.run): eviction
        for key, benchmark in ledger.benchmarks.items()
        for eviction in benchmark.evictions
    }
    if not said and ledger.total <= mark(quotas):
        return ()
    runs = sorted(ledger.sealed_runs(), key=lambda run: (run.needed, run.last, run.key))
    wanted = _wanted(ledger.total, runs, said, quotas, now)
    changes = [_change(key, runs, said, wanted) for key in sorted({key for key, _ in (*said, *wanted)})]
    return tuple(
        change
        for change in changes
        if change.going or change.evictions != ledger.benchmarks[change.benchmark].evictions
    )


def _wanted(
    total: int, runs: Sequence[SealedRun], said: Mapping[RunKey, Eviction], quotas: Quotas, now: datetime
) -> dict[RunKey, Eviction]:
    """What is to be said, of runs in the order in which they go. What has begun is brought to its end."""
    limit, low = quotas.most_stored_bytes, mark(quotas)
    wanted = {run.key: said[run.key] for run in runs if run.key in said}
    left = total - sum(run.size for run in runs if run.key in said and said[run.key].begun)
    if left <= low:
        return {key: eviction for key, eviction in wanted.items() if eviction.begun}
    notice, room = timedelta(seconds=quotas.eviction_notice_seconds), max(left, limit) - low
    full = left >= limit
    for run in runs:
        eviction = wanted.get(run.key)
        if eviction is not None and eviction.begun:
            continue
        if eviction is None and room > 0:
            wanted[run.key] = Eviction(run=run.key[1], notice_time=format_time(now))
        elif eviction is not None and full and left > low and now - parse_time(eviction.notice_time) >= notice:
            wanted[run.key] = eviction.model_copy(update={"begun": True})
            left -= run.size
        room -= run.size
    return wanted


def _change(
    key: BenchmarkKey, runs: Sequence[SealedRun], said: Mapping[RunKey, Eviction], wanted: Mapping[RunKey, Eviction]
) -> Change:
    mine = [run for run in runs if run.key[0] == key and run.key in wanted]
    going = tuple(run for run in mine if wanted[run.key].begun)
    return Change(
        benchmark=key,
        evictions=tuple(sorted((wanted[run.key] for run in mine), key=lambda eviction: eviction.run)),
        announced=tuple(run for run in mine if run.key not in said),
        begun=tuple(run for run in going if not said[run.key].begun),
        going=going,
    )
