"""What a report shows of each trial of a network."""

from typing import Final

from tierbench.api.result import ResultTrial
from tierbench.results.quantities import quantities
from tierbench.results.units import show

HEADINGS: Final = ("Sent", "Sent again", "Packets lost", "Jitter", "Ping", "Ping lost", "iperf3's CPU")


def cells(trial: ResultTrial) -> tuple[str, ...]:
    """The cells in the order of HEADINGS."""
    values = quantities([trial])
    names = (
        "sentBitsPerSecond", "retransmits", "lostPartsPerMillion", "jitterNanoseconds", "pingNanoseconds",
        "pingLostPartsPerMillion", "iperf3CpuPartsPerMillion",
    )  # fmt: skip
    return tuple(show(name, values.get(name, [None])[0]) for name in names)
