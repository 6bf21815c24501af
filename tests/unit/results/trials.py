"""Trials and results of file transfers, for tests."""

import json
from datetime import UTC, datetime
from typing import Any

from tests.unit.domain.objects import trial_line
from tierbench.api.contract import TrialLine
from tierbench.api.record import RecordStatus
from tierbench.api.result import BenchmarkResult, ResultSpec, ResultStatus
from tierbench.results.aggregate import add_trials, conclude

NOW = datetime(2026, 1, 1, tzinfo=UTC)
GIB = 2**30
COMPUTER: dict[str, Any] = {
    "cpuFrequencyKilohertz": 1_500_000, "cpuMaxKilohertz": 1_500_000, "cpuGovernor": "performance",
    "powerMode": "MODE_15W_6CORE", "temperatureMillidegrees": 61_500, "thermalThrottles": 0,
    "quotaThrottledNanoseconds": 0, "interface": "eth0", "mtuBytes": 1500, "congestionControl": "cubic",
}  # fmt: skip
EXHAUSTED: dict[str, Any] = {
    "outcome": "Failed",
    "failure": {"reason": "AttemptsExhausted", "message": "20 attempts"},
}


def spec(*, trials: int = 5, warmup: int = 1, memory: int = 4 * GIB, **levels: str) -> ResultSpec:
    body = {
        "benchmark": {"kind": "FileTransferBenchmark", "name": "demo"},
        "run": 1,
        "case": 1,
        "levels": {"fileSize": "1Gi", "concurrency": "1", "cacheState": "Unchanged", "tls": "None", **levels},
        "settings": {"access": "PodIP"},
        "server": {"nodeClass": "jetson", "node": "j1", "memoryBytes": memory},
        "client": {"nodeClass": "user", "node": "u1"},
        "trials": trials,
        "warmupTrials": warmup,
    }
    return ResultSpec.model_validate(body)


def line(number: int, *, warmup: bool = False, nanoseconds: int = 10**9, **more: object) -> TrialLine:
    body = json.loads(trial_line(number, warmup=warmup, nanoseconds=nanoseconds))
    body["distributions"] = {
        "downloadDuration": {"schema": 6, "count": 1, "sumNanoseconds": nanoseconds, "indexes": [1914], "counts": [1]}
    }
    return TrialLine.model_validate(body | more)


def sample(**fields: Any) -> dict[str, Any]:
    return {"residentBeforePartsPerMillion": 1_000_000, **fields}


def client(nanoseconds: int, limit: int | None, **computer: Any) -> dict[str, Any]:
    return {"cpuNanoseconds": nanoseconds, "cpuLimitMillicores": limit, "computer": computer or None}


def recorded(lines: list[TrialLine], **options: Any) -> BenchmarkResult:
    """Returns the result of these lines, with its record."""
    wanted = spec(**{"trials": len(lines), "warmup": 0, **options})
    record = add_trials(wanted, RecordStatus(), lines, 1)
    body = {"metadata": {"name": "r", "namespace": "ns"}, "spec": wanted, "status": conclude(wanted, record, NOW, None)}
    return BenchmarkResult.model_validate(body).with_record(record)


def measured(lines: list[TrialLine], **options: Any) -> ResultStatus:
    return recorded(lines, **options).status
