"""Results of brokers, made from the lines of their clients."""

import json
from typing import Any

from tests.histograms import histogram_of
from tests.unit.domain.objects import trial_line
from tests.unit.results.trials import NOW
from tierbench.api.contract import TrialLine
from tierbench.api.record import RecordStatus
from tierbench.api.result import BenchmarkResult, ResultSpec, ResultStatus
from tierbench.results.aggregate import add_trials, conclude

ACKNOWLEDGEMENTS = (100_000, 300_000)
ROUND_TRIPS = (200_000, 250_000, 300_000, 4_000_000)


def spec(trials: int = 3, **levels: str) -> ResultSpec:
    """A case of one pair through Mosquitto."""
    usual = {
        "broker": "mosquitto",
        "payloadSize": "1Ki",
        "content": "Random",
        "delivery": "AtLeastOnce",
        "tls": "None",
        "encryption": "None",
        "compression": "None",
        "pairs": "1",
    }
    body = {
        "benchmark": {"kind": "BrokerBenchmark", "name": "demo"},
        "run": 1,
        "case": 1,
        "levels": {**usual, **levels},
        "settings": {"access": "PodIP"},
        "server": {"nodeClass": "jetson", "node": "j1"},
        "client": {"nodeClass": "user", "node": "u1"},
        "trials": trials,
    }
    return ResultSpec.model_validate(body)


def line(number: int, *, nanoseconds: int = 10**9, cpu: int = 10**7, limit: int = 4000, **exchange: Any) -> TrialLine:
    """A trial of 1000 messages of 1 KiB, none lost unless `exchange` says so."""
    fields = {"pairs": 1, "sent": 1000, "received": 1000, "receivedBytes": 1_024_000, "sentBytes": 1_024_000}
    body = json.loads(trial_line(number, nanoseconds=nanoseconds, measured={}))
    body["client"] = {"cpuNanoseconds": cpu, "cpuLimitMillicores": limit}
    body["server"] = {"processCpuNanoseconds": nanoseconds // 10, "cpuPartsPerMillion": 100_000}
    body.pop("transfer", None)
    body["exchange"] = {**fields, "acknowledged": 1000, "sessionNanoseconds": nanoseconds + 10**8, **exchange}
    body["distributions"] = {
        "roundTrip": histogram_of(ROUND_TRIPS).to_json(),
        "acknowledge": histogram_of(ACKNOWLEDGEMENTS).to_json(),
    }
    return TrialLine.model_validate(body)


def recorded(*lines: TrialLine, **levels: str) -> BenchmarkResult:
    """The result that these lines make, with its record."""
    wanted = spec(len(lines), **levels)
    record = add_trials(wanted, RecordStatus(), lines, 1)
    body = {
        "metadata": {"name": "bb-demo-r1-c001", "namespace": "default"},
        "spec": wanted,
        "status": conclude(wanted, record, NOW, None),
    }
    return BenchmarkResult.model_validate(body).with_record(record)


def measured(*lines: TrialLine, **levels: str) -> ResultStatus:
    """The result that these lines make."""
    return recorded(*lines, **levels).status
