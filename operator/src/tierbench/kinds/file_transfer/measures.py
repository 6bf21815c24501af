"""What one trial of a file transfer gives."""

from typing import Final

from tierbench.api.contract import ServerSample
from tierbench.api.result import ResultTrial

MAIN: Final = ("durationNanoseconds",)
TIME: Final = MAIN
RATE: Final = "throughputBytesPerSecond"
TIMES: Final = {RATE: "durationNanoseconds"}
_NOT_SEEN: Final = ServerSample()


def of(trial: ResultTrial) -> dict[str, float | None]:
    """Quantities by name; None where the trial does not tell."""
    transfer, sample = trial.transfer, trial.server or _NOT_SEEN
    if transfer is None:
        return {}
    seconds = trial.duration_nanoseconds / 1e9
    return {
        "durationNanoseconds": trial.duration_nanoseconds,
        "throughputBytesPerSecond": transfer.bytes / seconds if seconds else None,
        "lookupNanoseconds": transfer.dns_nanoseconds or None,
        "firstByteNanoseconds": transfer.first_byte_nanoseconds,
        "connectNanoseconds": transfer.connect_nanoseconds,
        "retries": transfer.retries,
        "clientCpuPartsPerMillion": _share(trial.client.cpu_nanoseconds, trial.duration_nanoseconds),
        "serverCpuPartsPerMillion": sample.cpu_parts_per_million,
        "serverIoWaitPartsPerMillion": sample.io_wait_parts_per_million,
        "serverIoPressurePartsPerMillion": sample.io_pressure_parts_per_million,
        "serverDeviceReadBytes": sample.device_read_bytes,
        "serverResidentPartsPerMillion": sample.resident_before_parts_per_million,
        "tcpRetransmits": sample.tcp_retransmits,
        "tcpRoundTripNanoseconds": sample.round_trip_nanoseconds,
    }


def _share(part: int, whole: int) -> float | None:
    return 1e6 * part / whole if whole else None
