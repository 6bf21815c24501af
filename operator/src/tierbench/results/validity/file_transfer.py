"""What could have spoiled the numbers of a file transfer's case, and what explains them."""

from collections.abc import Sequence
from typing import Final

from tierbench.api.contract import ServerSample
from tierbench.api.quantity import parse_size
from tierbench.api.result import Note, ResultSpec, ResultTrial

WARM_PARTS_PER_MILLION: Final = 990_000
COLD_PARTS_PER_MILLION: Final = 10_000
DEVICE_SHARE: Final = 0.5
WAITING_PARTS_PER_MILLION: Final = 50_000


def _file_size(spec: ResultSpec) -> int:
    """Bytes of the file that a case serves; 0 if it serves none."""
    return parse_size(spec.levels["fileSize"]) if "fileSize" in spec.levels else 0


def _cache_cannot_hold(spec: ResultSpec) -> bool:
    """Whether the file is larger than the server node's memory."""
    return 0 < spec.server.memory_bytes < _file_size(spec)


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


def facts(spec: ResultSpec, good: Sequence[ResultTrial]) -> list[Note]:
    """What explains the numbers and spoils nothing: a cache that is too small, a disk that was waited for."""
    notes = []
    if _cache_cannot_hold(spec):
        message = (
            f"The file is larger than the {spec.server.memory_bytes // 2**20} MiB of memory of {spec.server.node}."
        )
        notes.append(Note(reason="CacheCannotHold", message=message))
    bound = sum(map(io_bound, good))
    if bound:
        message = f"In {bound} of {len(good)} trials most bytes came from the disk, and the node waited for it."
        notes.append(Note(reason="IOBound", message=message))
    return notes


def invalid(spec: ResultSpec, good: Sequence[ResultTrial]) -> list[Note]:
    """What could have spoiled the numbers: a cache that was not as asked for."""
    resident = [value for trial in good if (value := _resident(trial.server)) is not None]
    match spec.levels.get("cacheState"):
        case "Warm" if not _cache_cannot_hold(spec) and any(value < WARM_PARTS_PER_MILLION for value in resident):
            message = f"Only {min(resident) / 1e4:.1f} % of the file was in the page cache though memory could hold it."
            return [Note(reason="CacheNotWarm", message=message)]
        case "Cold" if any(value > COLD_PARTS_PER_MILLION for value in resident):
            message = f"{max(resident) / 1e4:.1f} % of the file was still in the page cache."
            return [Note(reason="CacheNotCold", message=message)]
    return []


def _resident(sample: ServerSample | None) -> int | None:
    return None if sample is None else sample.resident_before_parts_per_million
