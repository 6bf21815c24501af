"""What could have spoiled the numbers of a case, and what explains them."""

from collections.abc import Sequence
from typing import Final

from tierbench.api.contract import ServerSample
from tierbench.api.quantity import parse_size
from tierbench.api.result import Note, ResultSpec, ResultTrial, Statistic
from tierbench.results.delivery import broker_facts, broker_invalid
from tierbench.results.networks import network_bound
from tierbench.results.quantities import main_quantity
from tierbench.results.transmission import network_facts, network_invalid

SATURATED_CORE_SHARE: Final = 0.9
WARM_PARTS_PER_MILLION: Final = 990_000
COLD_PARTS_PER_MILLION: Final = 10_000
WIDE_VARIATION: Final = 0.3
NARROW_NANOSECONDS: Final = 10_000_000
DEVICE_SHARE: Final = 0.5
WAITING_PARTS_PER_MILLION: Final = 50_000


def file_size(spec: ResultSpec) -> int:
    """Bytes of the file that a case serves; 0 if it serves none."""
    return parse_size(spec.levels["fileSize"]) if "fileSize" in spec.levels else 0


def cache_cannot_hold(spec: ResultSpec) -> bool:
    """Whether the file is larger than the server node's memory."""
    return 0 < spec.server.memory_bytes < file_size(spec)


def io_bound(trial: ResultTrial) -> bool:
    """Whether there is evidence that the trial waited for the disk.

    At least half of the bytes served came from the block device, and the node waited for I/O for at least 5 % of the
    time (pressure, or CPU time in I/O wait where the kernel tells no pressure).
    """
    sample, transfer = trial.server, trial.transfer
    if sample is None or transfer is None or sample.device_read_bytes is None or not transfer.bytes:
        return False
    waiting = max(sample.io_pressure_parts_per_million or 0, sample.io_wait_parts_per_million or 0)
    return sample.device_read_bytes >= DEVICE_SHARE * transfer.bytes and waiting >= WAITING_PARTS_PER_MILLION


def facts(spec: ResultSpec, good: Sequence[ResultTrial], interruptions: int) -> tuple[Note, ...]:
    """What explains the numbers and spoils nothing."""
    notes = []
    if cache_cannot_hold(spec):
        message = (
            f"The file is larger than the {spec.server.memory_bytes // 2**20} MiB of memory of {spec.server.node}."
        )
        notes.append(Note(reason="CacheCannotHold", message=message))
    bound = sum(map(io_bound, good))
    if bound:
        message = f"In {bound} of {len(good)} trials most bytes came from the disk, and the node waited for it."
        notes.append(Note(reason="IOBound", message=message))
    notes += [*broker_facts(good), *network_facts(spec, good), *network_bound(spec, good)]
    if interruptions:
        message = f"The client was lost {interruptions} time(s); a new one went on with the trial that was missing."
        notes.append(Note(reason="Resumed", message=message))
    return tuple(notes)


def invalid(
    spec: ResultSpec, counted: Sequence[ResultTrial], good: Sequence[ResultTrial], main: Statistic | None
) -> tuple[Note, ...]:
    """What could have spoiled the numbers; `main` is the quantity that the kind is read by."""
    notes = [*_incomplete(spec, counted, good), *_cache(spec, good), *broker_invalid(good), *network_invalid(good)]
    saturated = sum(map(_client_saturated, good))
    if saturated:
        message = f"In {saturated} of {len(good)} trials the client used all its CPU: it may be what was measured."
        notes.append(Note(reason="ClientSaturated", message=message))
    if good and all(trial.server is None for trial in good):
        message = "The agent beside the server gave no sample: disk, cache and CPU of the server's node are unknown."
        notes.append(Note(reason="ServerNotObserved", message=message))
    if main is not None and _wide(main, main_quantity(spec.benchmark.kind)):
        share = 100 * (main.standard_deviation or 0) / main.mean
        message = f"The standard deviation is {share:.0f} % of the mean: repeat more often, or look for other load."
        notes.append(Note(reason="SpreadTooWide", message=message))
    return tuple(notes)


def _incomplete(spec: ResultSpec, counted: Sequence[ResultTrial], good: Sequence[ResultTrial]) -> list[Note]:
    notes = []
    if len(counted) < spec.trials:
        message = f"Only {len(counted)} of {spec.trials} trials were run."
        notes.append(Note(reason="TrialsMissing", message=message))
    if len(good) < len(counted):
        message = f"{len(counted) - len(good)} of {len(counted)} trials failed and are not in the statistics."
        notes.append(Note(reason="TrialsFailed", message=message))
    return notes


def _cache(spec: ResultSpec, good: Sequence[ResultTrial]) -> list[Note]:
    resident = [value for trial in good if (value := _resident(trial.server)) is not None]
    match spec.levels.get("cacheState"):
        case "Warm" if not cache_cannot_hold(spec) and any(value < WARM_PARTS_PER_MILLION for value in resident):
            message = f"Only {min(resident) / 1e4:.1f} % of the file was in the page cache though memory could hold it."
            return [Note(reason="CacheNotWarm", message=message)]
        case "Cold" if any(value > COLD_PARTS_PER_MILLION for value in resident):
            message = f"{max(resident) / 1e4:.1f} % of the file was still in the page cache."
            return [Note(reason="CacheNotCold", message=message)]
    return []


def _resident(sample: ServerSample | None) -> int | None:
    return None if sample is None else sample.resident_before_parts_per_million


def _client_saturated(trial: ResultTrial) -> bool:
    cores = (trial.client.cpu_limit_millicores or 1000) / 1000
    return trial.client.cpu_nanoseconds >= SATURATED_CORE_SHARE * cores * trial.duration_nanoseconds


def _wide(main: Statistic, quantity: str) -> bool:
    """A spread of a few milliseconds is the noise of any machine, whatever share of a short time it is."""
    spread = main.standard_deviation or 0
    narrow = NARROW_NANOSECONDS if quantity.endswith("Nanoseconds") else 0
    return spread > narrow and spread > WIDE_VARIATION * main.mean
