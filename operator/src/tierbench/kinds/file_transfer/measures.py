"""The measurements of a FileTransferBenchmark: quantities, what distorts or explains them, and cells of the report.

The server reads the file of a download, and writes that of an upload. Its page cache and its disk explain the former
only: the kernel writes later what the server has received.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from tierbench.api.contract import Outcome, ServerSample
from tierbench.api.measurements import Transfer, TransferDirection
from tierbench.api.quantity import parse_size
from tierbench.api.record import RecordStatus, ResultTrial
from tierbench.api.result import Note, ResultSpec
from tierbench.results.units import DASH, humanize, show
from tierbench.stats.distributions import parts_per_million, ratio

MAIN: Final = ("durationNanoseconds",)
TIME: Final = MAIN
RATE: Final = "throughputBytesPerSecond"
TIMES: Final = {RATE: "durationNanoseconds"}
TITLES: Final = {
    "lookupNanoseconds": "Lookup of the server's name",
    "firstByteNanoseconds": "Time to the first byte",
}
_NO_SAMPLE: Final = ServerSample()
EVERYTHING: Final = ResultTrial(
    trial=1,
    outcome=Outcome.COMPLETED,
    start_time="",
    duration_nanoseconds=1,
    transfer=Transfer(connect_nanoseconds=1, first_byte_nanoseconds=1),
)
"""A trial that has all quantities."""
WARM_PARTS_PER_MILLION: Final = 990_000
COLD_PARTS_PER_MILLION: Final = 10_000
DEVICE_SHARE: Final = 0.5
WAITING_PARTS_PER_MILLION: Final = 50_000


def quantities(trial: ResultTrial) -> dict[str, float | None]:
    """Returns quantities by name, None if the trial does not have them."""
    transfer, sample = trial.transfer, trial.server or _NO_SAMPLE
    if transfer is None:
        return {}
    return {
        "durationNanoseconds": trial.duration_nanoseconds,
        "throughputBytesPerSecond": ratio(transfer.bytes, trial.duration_nanoseconds / 1e9),
        "lookupNanoseconds": transfer.lookup_nanoseconds or None,
        "firstByteNanoseconds": transfer.first_byte_nanoseconds,
        "connectNanoseconds": transfer.connect_nanoseconds,
        "retries": transfer.retries,
        "clientCpuPartsPerMillion": parts_per_million(trial.client.cpu_nanoseconds, trial.duration_nanoseconds),
        "serverCpuPartsPerMillion": sample.cpu_parts_per_million,
        "serverIoWaitPartsPerMillion": sample.io_wait_parts_per_million,
        "serverIoPressurePartsPerMillion": sample.io_pressure_parts_per_million,
        "serverDeviceReadBytes": sample.device_read_bytes,
        "serverResidentPartsPerMillion": sample.resident_before_parts_per_million,
        # They are those of the server, which sends only acknowledgements of an upload.
        "tcpRetransmits": None if _is_upload(transfer) else sample.tcp_retransmits,
        "tcpRoundTripNanoseconds": None if _is_upload(transfer) else sample.round_trip_nanoseconds,
    }


def _is_upload(transfer: Transfer) -> bool:
    return transfer.direction is TransferDirection.UPLOAD


def _reads(trial: ResultTrial) -> bool:
    """Returns whether the server read a file."""
    return trial.transfer is not None and not _is_upload(trial.transfer)


def _file_size(spec: ResultSpec) -> int:
    """Returns the bytes of the file of a case. Returns 0 if there is none."""
    return parse_size(spec.levels["fileSize"]) if "fileSize" in spec.levels else 0


def _cache_capacity(spec: ResultSpec, good: Sequence[ResultTrial]) -> int | None:
    """Returns the bytes that the page cache could hold in the trial with the least, or None if they are not known."""
    reported = [
        trial.server.memory_available_bytes
        for trial in good
        if trial.server is not None and trial.server.memory_available_bytes is not None
    ]
    return min(reported) if reported else spec.server.memory_bytes or None


def _cache_cannot_hold(spec: ResultSpec, good: Sequence[ResultTrial]) -> bool:
    """Returns whether the file that a server read is larger than what the page cache could hold."""
    room = _cache_capacity(spec, good) if all(map(_reads, good)) else None
    return room is not None and room < _file_size(spec)


def served_once(transfer: Transfer) -> float:
    """Returns the bytes that a disk had to read. Downloads at the same time are of one file, which is read once."""
    return transfer.bytes / max(transfer.downloads, 1)


def io_bound(spec: ResultSpec, trial: ResultTrial) -> bool | None:
    """Returns whether the trial waited for the disk to read, or None if the node does not report it.

    At least half of the file came from the block device, and a task waited for I/O for at least 5% of the time. The
    time is the I/O pressure (PSI), or the I/O wait summed over the CPUs if the kernel does not report PSI. A waiting
    task keeps only one CPU in this state.
    """
    sample, transfer = trial.server, trial.transfer
    if sample is None or transfer is None or sample.device_read_bytes is None or not transfer.bytes:
        return None
    if _is_upload(transfer):
        return None
    if sample.device_read_bytes < DEVICE_SHARE * served_once(transfer):
        return False
    waiting = _waiting(spec, sample)
    return None if waiting is None else waiting >= WAITING_PARTS_PER_MILLION


def _waiting(spec: ResultSpec, sample: ServerSample) -> float | None:
    """Returns the parts per million of the time in which a task waited for I/O."""
    if sample.io_pressure_parts_per_million is not None:
        return sample.io_pressure_parts_per_million
    if sample.io_wait_parts_per_million is None:
        return None
    return sample.io_wait_parts_per_million * max(spec.server.cpu_millicores / 1000, 1)


def facts(spec: ResultSpec, good: Sequence[ResultTrial]) -> list[Note]:
    """Returns what explains the numbers without distorting them: a cache that is too small, and waiting for the
    disk."""
    notes = []
    if _cache_cannot_hold(spec, good):
        message = (
            f"The file is larger than the page cache of {spec.server.node}, which could hold "
            f"{(_cache_capacity(spec, good) or 0) // 2**20} MiB in the available memory or the agent's limit."
        )
        notes.append(Note(reason="CacheCannotHold", message=message))
    bound = sum(io_bound(spec, trial) is True for trial in good)
    if bound:
        message = f"In {bound} of {len(good)} trials most of the file came from the disk, and the node waited for it."
        notes.append(Note(reason="IOBound", message=message))
    return notes


def invalid(spec: ResultSpec, good: Sequence[ResultTrial]) -> list[Note]:
    """Returns what may have distorted the numbers: a cache that was not in the requested state."""
    resident = [value for trial in good if (value := _resident(trial.server)) is not None]
    match spec.levels.get("cacheState"):
        case "Warm" if not _cache_cannot_hold(spec, good) and any(value < WARM_PARTS_PER_MILLION for value in resident):
            message = (
                f"Only {min(resident) / 1e4:.1f}% of the file was in the page cache, although memory could hold it."
            )
            return [Note(reason="CacheNotWarm", message=message)]
        case "Cold" if any(value > COLD_PARTS_PER_MILLION for value in resident):
            message = f"{max(resident) / 1e4:.1f}% of the file was still in the page cache."
            return [Note(reason="CacheNotCold", message=message)]
    return []


def _resident(sample: ServerSample | None) -> int | None:
    return None if sample is None else sample.resident_before_parts_per_million


def bits_per_second(trial: ResultTrial, direction: str) -> float | None:
    """Returns the bits per second that a trial sent. Files go in one direction."""
    if trial.transfer is None or not trial.duration_nanoseconds or (direction == "up") != _is_upload(trial.transfer):
        return None
    return 8e9 * trial.transfer.bytes / trial.duration_nanoseconds


def bytes_served(trial: ResultTrial) -> float | None:
    """Returns the bytes that a disk had to read for a trial."""
    return (
        served_once(trial.transfer) if trial.transfer is not None and _reads(trial) and trial.transfer.bytes else None
    )


def counts(trials: Sequence[ResultTrial]) -> dict[str, Any]:
    """Returns errors, and retries by cause."""
    transfers = [trial.transfer for trial in trials if trial.transfer is not None]
    causes: Counter[str] = Counter()
    for transfer in transfers:
        causes.update(transfer.retry_causes.model_dump(by_alias=True))
    return {
        "retry_causes": {cause: number for cause, number in sorted(causes.items()) if number},
        "errors": sum(one.errors for one in transfers),
    }


def totals(spec: ResultSpec, record: RecordStatus) -> dict[str, int]:
    """Returns the number and the time of trials that waited for the disk. They are absent if no trial reports it."""
    good = [trial for trial in record.trials if not trial.warmup and trial.outcome is Outcome.COMPLETED]
    reported = [(trial, bound) for trial in good if (bound := io_bound(spec, trial)) is not None]
    waited = [trial.duration_nanoseconds for trial, bound in reported if bound]
    return {"ioBoundTrials": len(waited), "ioBoundNanoseconds": sum(waited)} if reported else {}


def derived(values: Mapping[str, float], levels: Mapping[str, str]) -> Mapping[str, float]:
    """Returns the values with the rate that follows from size and time."""
    seconds = values.get("durationNanoseconds", 0) / 1e9
    if "fileSize" not in levels or not seconds:
        return values
    size = parse_size(levels["fileSize"]) * int(levels.get("concurrency", "1"))
    return {RATE: size / seconds, **values}


def cells(trial: ResultTrial) -> dict[str, str]:
    """Returns the cells of a trial by heading."""
    transfer, sample = trial.transfer, trial.server or ServerSample()
    lookup = first = stall = None
    if transfer is not None:
        lookup, first = transfer.lookup_nanoseconds or None, transfer.first_byte_nanoseconds
        stall = transfer.longest_stall_nanoseconds
    return {
        "Content": DASH if transfer is None else _regime(transfer),
        "Lookup": show("lookupNanoseconds", lookup),
        "First byte": show("firstByteNanoseconds", first),
        "Longest stall": show("longestStallNanoseconds", stall),
        "Cached before": show("residentBeforePartsPerMillion", sample.resident_before_parts_per_million),
        "Read from disk": show("deviceReadBytes", sample.device_read_bytes),
        "I/O wait": show("ioWaitPartsPerMillion", sample.io_wait_parts_per_million),
    }


def _regime(transfer: Transfer) -> str:
    """Returns what the client did with the content: the cipher if it decrypted it."""
    if transfer.copied is None:
        return transfer.cipher or DASH
    return transfer.cipher or ("copied" if transfer.copied else "dropped in the kernel")


def retries(trial: ResultTrial) -> str | None:
    """Returns the number of retries, and their causes."""
    if trial.transfer is None:
        return None
    count, causes = trial.transfer.retries, trial.transfer.retry_causes.model_dump(by_alias=True)
    named = [humanize(cause).lower() for cause, times in causes.items() if times]
    return f"{count} ({', '.join(named)})" if count and named else str(count)
