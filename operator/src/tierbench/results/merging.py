"""Merges the output of the parts of a client: what several pods measured together is one trial."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tierbench.api.contract import ClientSample, Distributions, Histogram, Outcome, TrialLine
from tierbench.kinds.registry import kinds
from tierbench.stats.distributions import merge_buckets


@dataclass(frozen=True)
class PartOutput:
    """The trials that one part of a client printed.

    The part is an `echo` if it only returns messages: its costs count, but the senders count its messages. A part that
    is `lost` prints no more, and the trials of the other parts count without it.
    """

    trials: Sequence[TrialLine]
    echo: bool = False
    lost: bool = False


def merge_parts(parts: Sequence[PartOutput]) -> tuple[TrialLine, ...]:
    """Returns the trials that all parts have printed except those that are lost, in the order of the first part."""
    if len(parts) == 1:
        return tuple(parts[0].trials)
    lines = [{(line.warmup, line.trial): line for line in part.trials} for part in parts]
    required = [known for known, part in zip(lines, parts, strict=True) if not part.lost]
    complete = [key for key in (required[0] if required else ()) if all(key in known for known in required)]
    return tuple(_merge_trial([known.get(key) for known in lines], parts) for key in complete)


def _merge_trial(lines: Sequence[TrialLine | None], parts: Sequence[PartOutput]) -> TrialLine:
    echoes = [part.echo for part in parts]
    merged = _merge_common([(line, echo) for line, echo in zip(lines, echoes, strict=True) if line is not None])
    for kind in kinds():
        merged = kind.measures.merge(merged, lines, echoes)
    return merged


def _merge_common(lines: Sequence[tuple[TrialLine, bool]]) -> TrialLine:
    """Merges what every kind has.

    Trials start together, so the longest one is the duration. The client sample is that of the part that most probably
    distorted the trial. It is the throttled part, or otherwise the one nearest to its CPU limit.
    """
    senders = [line for line, echo in lines if not echo]
    failed = next((line for line, _ in lines if line.outcome is Outcome.FAILED), None)
    return senders[0].model_copy(
        update={
            "outcome": Outcome.COMPLETED if failed is None else Outcome.FAILED,
            "failure": None if failed is None else failed.failure,
            "duration_nanoseconds": max(line.duration_nanoseconds for line in senders),
            "client": max((line.client for line, _ in lines), key=_strain),
            "server": next((line.server for line, _ in lines if line.server is not None), None),
            "distributions": merge_distributions(line.distributions for line in senders),
        }
    )


def _strain(sample: ClientSample) -> tuple[int, float]:
    """Returns how often the client was throttled, and the share of its CPU limit that it used; 0 without a limit."""
    throttles = 0 if sample.computer is None else sample.computer.thermal_throttles or 0
    return throttles, 0 if not sample.cpu_limit_millicores else sample.cpu_nanoseconds / sample.cpu_limit_millicores


def merge_distributions(many: Iterable[Distributions]) -> Distributions:
    """Returns the distributions of all observations, each with those of the same name."""
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
    indexes, counts = merge_buckets(known)
    total = sum(each.sum_nanoseconds for each in known)
    return Histogram(count=sum(counts), sum_nanoseconds=total, indexes=indexes, counts=counts)
