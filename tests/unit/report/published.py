"""The published table of transfer times as BenchmarkResults.

Times and retries are the published ones. Of all other fields, the paper only describes that files beyond the memory of
the edge node came from its disk. The samples follow that.
"""

import csv
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tierbench.api.contract import Engine, TrialLine
from tierbench.api.quantity import parse_size
from tierbench.api.record import BenchmarkReference, RecordStatus
from tierbench.api.result import BenchmarkResult, NodeFacts, ResultSpec
from tierbench.results.aggregate import add_trials, conclude

TABLE = Path(__file__).parents[3] / "examples" / "papers" / "file-transfer-paper" / "paper" / "published.csv"
START = datetime(2026, 5, 4, 9, 0, tzinfo=UTC)
ENGINE = Engine(name="tierbench-client", version="0.1.0", architecture="amd64")
CLASSES = {"cloud": "cloud", "jetson-nano": "jetson"}
USER = NodeFacts(
    node_class="user",
    node="user-1",
    architecture="amd64",
    kernel="6.1.0-28-amd64",
    os_image="Debian GNU/Linux 12 (bookworm)",
    kubelet="v1.34.2",
    runtime="containerd://1.7.24",
    cpu_millicores=8000,
    memory_bytes=16 * 2**30,
    access_network="ethernet",
)
SERVERS = {
    "cloud": USER.model_copy(
        update={"node_class": "cloud", "node": "cloud-1", "memory_bytes": 32 * 2**30, "storage": "nvme"}
    ),
    "jetson": USER.model_copy(
        update={
            "node_class": "jetson",
            "node": "jetson-1",
            "architecture": "arm64",
            "kernel": "4.9.337-tegra",
            "cpu_millicores": 4000,
            "memory_bytes": 2 * 2**30 + 2**29,
            "storage": "sd-card",
        }
    ),
}
LEVELS = {"concurrency": "1", "cacheState": "Unchanged", "tls": "None"}


def rows() -> Iterator[Mapping[str, str]]:
    with TABLE.open(newline="") as file:
        yield from csv.DictReader(file)


def published(namespace: str = "default", name: str = "file-transfer") -> list[BenchmarkResult]:
    """Returns a result for each size and class, in the order of the cases of a benchmark."""
    groups: dict[tuple[str, str], list[tuple[float, int]]] = {}
    for row in rows():
        place = CLASSES[row["serverClass"]], row["fileSize"]
        groups.setdefault(place, []).append((float(row["durationSeconds"]), int(row["retries"])))
    return [
        measured(server, size, trials, case, namespace=namespace, name=name)
        for case, ((server, size), trials) in enumerate(groups.items(), start=1)
    ]


def measured(
    server: str,
    size: str,
    trials: list[tuple[float, int]],
    case: int = 1,
    run: int = 1,
    namespace: str = "default",
    name: str = "file-transfer",
    levels: Mapping[str, str] = LEVELS,
    node: str | None = None,
    settings: Mapping[str, str] = {},
) -> BenchmarkResult:
    """Returns a result of trials with these times (in seconds) and retries."""
    facts = SERVERS[server] if node is None else SERVERS[server].model_copy(update={"node": node})
    spec = ResultSpec(
        benchmark=BenchmarkReference(kind="FileTransferBenchmark", name=name),
        run=run,
        case=case,
        levels={"fileSize": size, **levels},
        settings=dict(settings),
        server=facts,
        client=USER,
        trials=len(trials),
    )
    begin = START + timedelta(minutes=10 * case)
    lines = [
        TrialLine.model_validate(_line(server, parse_size(size), number, seconds, retries, begin))
        for number, (seconds, retries) in enumerate(trials, start=1)
    ]
    record = add_trials(spec, RecordStatus(), lines, attempt=1)
    status = conclude(spec, record, begin, ENGINE)
    metadata = {"name": f"ft-{name}-r{run}-c{case:03d}", "namespace": namespace}
    return BenchmarkResult.model_validate(
        {"metadata": metadata, "spec": spec.to_json(), "status": status.to_json()}
    ).with_record(record)


def _line(server: str, size: int, number: int, seconds: float, retries: int, begin: datetime) -> dict[str, Any]:
    beyond_memory = size > SERVERS[server].memory_bytes
    first = number == 1 and server == "jetson"
    cached = 0 if first else 120_000 + 9_000 * (number % 10) if beyond_memory else 1_000_000
    return {
        "contract": 1,
        "record": "Trial",
        "trial": number,
        "outcome": "Completed",
        "startTime": (begin + timedelta(seconds=70 * number)).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "durationNanoseconds": round(seconds * 1e9),
        "client": {"cpuNanoseconds": round(seconds * 2.1e8)},
        "server": {
            "residentBeforePartsPerMillion": cached,
            "residentAfterPartsPerMillion": 800_000 if beyond_memory else 1_000_000,
            "deviceReadBytes": size * (1_000_000 - cached) // 1_000_000,
            "ioWaitPartsPerMillion": 180_000 + 4_000 * (number % 10) if cached < 1_000_000 else 1_500,
            "cpuPartsPerMillion": 210_000 if server == "jetson" else 60_000,
            "tcpRetransmits": 4 * retries,
            "tcpSegmentsSent": size // 1448,
            "roundTripNanoseconds": 640_000,
            "roundTripMaxNanoseconds": 2_400_000,
        },
        "transfer": {
            "bytes": size,
            "downloads": 1,
            "retries": retries,
            "retryCauses": {"Stalled": retries},
            "connectNanoseconds": 410_000,
            "firstByteNanoseconds": 1_300_000,
            "longestStallNanoseconds": 1_000_000_000 if retries else 9_000_000,
        },
    }
