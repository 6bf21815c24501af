"""Whether the network was the limit that the preflight has measured."""

from collections.abc import Sequence
from typing import Final

from tierbench.api.node_network import Way
from tierbench.api.result import Note, ResultSpec, ResultTrial
from tierbench.results.units import show

BOUND_SHARE: Final = 0.9
# A burst, or another network than the one before: then it was not the limit.
BEYOND_SHARE: Final = 1.1


def facts(spec: ResultSpec, good: Sequence[ResultTrial]) -> list[Note]:
    """That trials went as fast as the network between the nodes, where the preflight has measured that."""
    if len(spec.networks) != 1:
        return []
    network = spec.networks[0]
    for name, way in (("down", network.download), ("up", network.upload)):
        rates = [rate for trial in good if way is not None and (rate := _rate(trial, name)) is not None]
        bound = [rate for rate in rates if way is not None and _is_bound(rate, way)]
        if way is not None and bound:
            message = (
                f"In {len(bound)} of {len(good)} trials at least {100 * BOUND_SHARE:.0f} % of the "
                f"{show('throughputBitsPerSecond', way.bits_per_second)} {name} that iperf3 got before: "
                "the network was the limit."
            )
            return [Note(reason="NetworkBound", message=message)]
    return []


def _rate(trial: ResultTrial, way: str) -> float | None:
    """Bits a second that the trial took of a way."""
    transfer, exchange = trial.transfer, trial.exchange
    if transfer is not None and way == "down" and trial.duration_nanoseconds:
        return 8e9 * transfer.bytes / trial.duration_nanoseconds
    if exchange is not None and exchange.session_nanoseconds:
        wire = exchange.wire_received_bytes if way == "down" else exchange.wire_sent_bytes
        return 8e9 * wire / exchange.session_nanoseconds
    return None


def _is_bound(rate: float, way: Way) -> bool:
    return BOUND_SHARE <= rate / max(way.bits_per_second, 1) <= BEYOND_SHARE
