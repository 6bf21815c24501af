"""The lines of a client's parts, merged: what several pods measured together is one trial."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tierbench.api.contract import (
    ClientSample,
    Distributions,
    Histogram,
    Outcome,
    TrialLine,
)
from tierbench.kinds.registry import kinds
from tierbench.results.pairs import join_pairs
from tierbench.stats import histogram


@dataclass(frozen=True)
class PartOutput:
    """The trials that a part has printed. An echo's costs count; its messages are those that the senders count.

    A part that is `lost` prints no more, and the others are kept without it.
    """

    trials: Sequence[TrialLine]
    echo: bool = False
    lost: bool = False


def merge_parts(parts: Sequence[PartOutput]) -> tuple[TrialLine, ...]:
    """The trials that all parts have printed but those that are lost, in the order of the first."""
    if len(parts) == 1:
        return tuple(parts[0].trials)
    lines = [{(line.warmup, line.trial): line for line in part.trials} for part in parts]
    waited_for = [known for known, part in zip(lines, parts, strict=True) if not part.lost]
    together = [key for key in (waited_for[0] if waited_for else ()) if all(key in known for known in waited_for)]
    return tuple(_together([known.get(key) for known in lines], parts) for key in together)


def _together(lines: Sequence[TrialLine | None], parts: Sequence[PartOutput]) -> TrialLine:
    merged = _merge([(line, part.echo) for line, part in zip(lines, parts, strict=True) if line is not None])
    for kind in kinds():
        merged = kind.measures.merge(merged, lines, [part.echo for part in parts])
    return merged


def _merge(lines: Sequence[tuple[TrialLine, bool]]) -> TrialLine:
    """Trials begin together, so the longest is the whole; the client is the part that could have spoiled most: that was
    throttled, or else was nearest to its limit."""
    senders = [line for line, echo in lines if not echo]
    failed = next((line for line, _ in lines if line.outcome is Outcome.FAILED), None)
    return senders[0].model_copy(
        update={
            "outcome": Outcome.COMPLETED if failed is None else Outcome.FAILED,
            "failure": None if failed is None else failed.failure,
            "duration_nanoseconds": max(line.duration_nanoseconds for line in senders),
            "client": max((line.client for line, _ in lines), key=_load),
            "server": next((line.server for line, _ in lines if line.server is not None), None),
            "distributions": merge_distributions(line.distributions for line in senders),
            "pair_shares": join_pairs([line.pair_shares for line in senders if line.pair_shares is not None]),
        }
    )


def _load(sample: ClientSample) -> tuple[int, float]:
    """How often it was throttled, and its share of its limit; a limit that is unknown was not come near."""
    slowed = 0 if sample.computer is None else sample.computer.thermal_throttles or 0
    return slowed, 0 if not sample.cpu_limit_millicores else sample.cpu_nanoseconds / sample.cpu_limit_millicores


def merge_distributions(many: Iterable[Distributions]) -> Distributions:
    """Distributions of the same kind together."""
    known = tuple(many)
    merged: dict[str, Histogram] = {}
    for name in Distributions.model_fields:
        parts = [part for one in known if (part := getattr(one, name)) is not None]
        if parts:
            merged[name] = merge_histograms(parts)
    return Distributions(**merged)


def merge_histograms(histograms: Iterable[Histogram]) -> Histogram:
    """Returns the histogram of all observations."""
    known = tuple(histograms)
    indexes, counts = histogram.merge(known)
    total = sum(each.sum_nanoseconds for each in known)
    return Histogram(count=sum(counts), sum_nanoseconds=total, indexes=indexes, counts=counts)
