"""Results of networks, made from the lines of their clients."""

import gzip
import json
from base64 import b64encode
from collections.abc import Mapping
from statistics import fmean, pstdev
from typing import Any

from tests.histograms import histogram_of
from tests.unit.domain.objects import trial_line
from tests.unit.results.trials import NOW
from tierbench.api.contract import TrialLine
from tierbench.api.record import RecordStatus
from tierbench.api.result import ResultSpec, ResultStatus
from tierbench.results.aggregate import add_trials, conclude

STATES = {"Open": 900_000, "Recovery": 100_000}

ECHOES = (900_000, 1_000_000, 4_000_000)


def spec(trials: int = 3, trim: Mapping[str, int | str] | None = None, **levels: str) -> ResultSpec:
    """A case of one TCP upload."""
    body = {
        "benchmark": {"kind": "NetworkBenchmark", "name": "demo"},
        "run": 1,
        "case": 1,
        "levels": {"protocol": "TCP", "direction": "Upload", "streams": "1", **levels},
        "settings": {"access": "PodIP"},
        "server": {"nodeClass": "cloud", "node": "c1", "accessNetwork": "ethernet"},
        "client": {"nodeClass": "raspberry-pi-4", "node": "p1", "accessNetwork": "5g-sa"},
        "service": {"name": "iperf3", "image": "network:1"},
        "trials": trials,
        "trim": trim,
    }
    return ResultSpec.model_validate(body)


def flow(megabits: float = 90, **fields: Any) -> dict[str, Any]:
    """Traffic in one direction in ten seconds."""
    sent = round(megabits * 1.25e6)
    rate = round(megabits * 1e6)
    return {
        "bitsPerSecond": rate,
        "sentBitsPerSecond": rate + 10**6,
        "receivedBytes": sent,
        "sentBytes": sent,
        **fields,
    }


def line(
    number: int, *, answered: int = 3, cpu: int = 10**8, server_cpu: int = 10**9, limit: int | None = 1000, **flows: Any
) -> TrialLine:
    """A trial of ten seconds, 90 Mbit/s up unless `flows` say otherwise, after three echo requests."""
    body = json.loads(trial_line(number, nanoseconds=10**10, measured={}))
    body["client"] = {"cpuNanoseconds": cpu, "cpuLimitMillicores": limit}
    body["server"] = {"processCpuNanoseconds": server_cpu, "cpuPartsPerMillion": 50_000, "roundTripNanoseconds": 10**6}
    body["server"] |= {"cpuLimitMillicores": limit}
    ping: dict[str, int] = {"sent": 3, "received": answered}
    if answered:
        ping |= {"minNanoseconds": 900_000, "meanNanoseconds": 1_967_000, "maxNanoseconds": 4_000_000}
        ping |= {"standardDeviationNanoseconds": 1_438_000}
        body["distributions"] = {"ping": histogram_of(ECHOES[:answered]).to_json()}
    body["network"] = {**(flows or {"upload": flow(retransmits=5)}), "ping": ping}
    return TrialLine.model_validate(body)


def loaded(number: int, *milliseconds: int, sent: int = 3, **fields: Any) -> TrialLine:
    """A trial with echo requests before the load, of 1.967 ms on average, and these during it."""
    times = [one * 10**6 for one in milliseconds]
    body = line(number, **fields).to_json()
    body["network"]["pingUnderLoad"] = {"sent": sent, "received": len(times)}
    if times:
        found = {
            "min": min(times),
            "mean": round(fmean(times)),
            "max": max(times),
            "standardDeviation": round(pstdev(times)),
        }
        body["network"]["pingUnderLoad"] |= {f"{name}Nanoseconds": value for name, value in found.items()}
        body["distributions"]["pingUnderLoad"] = histogram_of(times).to_json()
    return TrialLine.model_validate(body)


def trace(**columns: list[int]) -> dict[str, Any]:
    """A connection of four samples, 100 ms apart, that recovers at the third, as a client packs it."""
    row: dict[str, Any] = {
        "port": 5201,
        "milliseconds": [100, 200, 300, 400],
        "congestionWindowBytes": [14480, 28960, 43440, 57920],
        "slowStartThresholdBytes": [0, 0, 0, 28960],
        "roundTripMicroseconds": [250, 500, 750, 1000],
        "roundTripVarianceMicroseconds": [50, 50, 50, 50],
        "retransmits": [0, 0, 1, 1],
        "deliveryBitsPerSecond": [9, 9, 9, 9],
        "state": [0, 0, 3, 0],
        **columns,
    }
    body = json.dumps({"intervalMilliseconds": 100, "connections": [row]})
    return {"side": "Client", "data": b64encode(gzip.compress(body.encode())).decode()}


def traced(number: int, *traces: dict[str, Any]) -> TrialLine:
    """A trial with TCP's figures of the sender, and with traces."""
    tcp = {"samples": 100, "statesPartsPerMillion": STATES, "events": {"TCPFastRetrans": 3}}
    body = line(number, upload=flow(tcp=tcp)).to_json()
    return TrialLine.model_validate(body | {"traces": list(traces)})


def measured(*lines: TrialLine, trim: Mapping[str, int | str] | None = None, **levels: str) -> ResultStatus:
    """The result that these lines make."""
    wanted = spec(len(lines), trim, **levels)
    return conclude(wanted, add_trials(wanted, RecordStatus(), lines, 1), NOW, None)
