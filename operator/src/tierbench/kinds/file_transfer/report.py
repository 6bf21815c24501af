"""What a report shows of each trial of a file transfer."""

from tierbench.api.contract import ServerSample
from tierbench.api.measurements import Transfer
from tierbench.api.record import ResultTrial
from tierbench.results.units import DASH, humanize, show


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
