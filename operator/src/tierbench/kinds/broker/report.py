"""What a report shows of each trial of a broker."""

from typing import Final

from tierbench.api.contract import Exchange
from tierbench.api.result import ResultTrial
from tierbench.results.quantities import quantities
from tierbench.results.units import DASH, show

HEADINGS: Final = ("Round trip", "99th percentile", "Acknowledged after", "Received", "Lost", "Late", "Broker's CPU")


def cells(trial: ResultTrial) -> tuple[str, ...]:
    """The cells in the order of HEADINGS."""
    exchange, spread = trial.exchange or Exchange(), trial.round_trip
    busy = quantities([trial]).get("brokerCpuPartsPerMillion", [None])[0]
    return (
        DASH if spread is None else show("roundTripNanoseconds", spread.mean),
        DASH if spread is None else show("roundTripP99Nanoseconds", spread.p99),
        DASH if trial.acknowledge is None else show("acknowledgeNanoseconds", trial.acknowledge.mean),
        DASH if exchange.received is None else str(exchange.received),
        DASH if exchange.received is None else str(exchange.lost),
        str(exchange.late_sends),
        show("brokerCpuPartsPerMillion", busy),
    )
