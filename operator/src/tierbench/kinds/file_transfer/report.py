"""What a report shows of each trial of a file transfer."""

from typing import Final

from tierbench.api.contract import ServerSample
from tierbench.api.measurements import Transfer
from tierbench.api.result import ResultTrial
from tierbench.results.units import DASH, humanize, show

HEADINGS: Final = ("Content", "Lookup", "First byte", "Longest stall", "Cached before", "Read from disk", "I/O wait")


def cells(trial: ResultTrial) -> tuple[str, ...]:
    """Returns the cells in the order of HEADINGS."""
    transfer, sample = trial.transfer, trial.server or ServerSample()
    return (
        DASH if transfer is None else _regime(transfer),
        DASH if transfer is None else show("lookupNanoseconds", transfer.dns_nanoseconds or None),
        DASH if transfer is None else show("firstByteNanoseconds", transfer.first_byte_nanoseconds),
        DASH if transfer is None else show("longestStallNanoseconds", transfer.longest_stall_nanoseconds),
        show("residentBeforePartsPerMillion", sample.resident_before_parts_per_million),
        show("deviceReadBytes", sample.device_read_bytes),
        show("ioWaitPartsPerMillion", sample.io_wait_parts_per_million),
    )


def _regime(transfer: Transfer) -> str:
    """Returns what the client did with the content: the cipher if it decrypted it."""
    if transfer.copied is None:
        return DASH
    return transfer.cipher or ("copied" if transfer.copied else "dropped in the kernel")


def retries(trial: ResultTrial) -> str | None:
    """Returns the number of retries, and their causes."""
    if trial.transfer is None:
        return None
    count, causes = trial.transfer.retries, trial.transfer.retry_causes.model_dump(by_alias=True)
    named = [humanize(cause).lower() for cause, times in causes.items() if times]
    return f"{count} ({', '.join(named)})" if count and named else str(count)
