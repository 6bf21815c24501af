"""BenchmarkResults of brokers with given round trips."""

from collections.abc import Mapping, Sequence
from itertools import product

from tests.histograms import histogram_of
from tests.unit.kinds.broker.trials import line, spec
from tests.unit.results.trials import NOW
from tierbench.api.contract import Distributions, TrialLine
from tierbench.api.record import RecordStatus
from tierbench.api.result import BenchmarkResult, ResultSpec
from tierbench.results.aggregate import add_trials, conclude

SIZES = ("1Ki", "10Ki", "100Ki")
CLASSES = ("cloud", "jetson", "raspberry-pi-4")
TRIALS = 3


def measured(
    server: str, size: str, round_trips: Sequence[int], case: int = 1, levels: Mapping[str, str] | None = None
) -> BenchmarkResult:
    """Returns a result of trials with these round trips, in nanoseconds."""
    body = spec(TRIALS, payloadSize=size, **(levels or {})).to_json()
    wanted = ResultSpec.model_validate(body | {"case": case, "server": {"nodeClass": server, "node": f"{server}-1"}})
    half = [time // 2 for time in round_trips]
    spread = Distributions(round_trip=histogram_of(round_trips), acknowledge=histogram_of(half))
    lines = [_line(number, spread) for number in range(1, TRIALS + 1)]
    record = add_trials(wanted, RecordStatus(), lines, 1)
    status = conclude(wanted, record, NOW, None)
    metadata = {"name": f"bb-demo-r1-c{case:03d}", "namespace": "default"}
    return BenchmarkResult.model_validate(
        {"metadata": metadata, "spec": wanted.to_json(), "status": status.to_json()}
    ).with_record(record)


def _line(number: int, distributions: Distributions) -> TrialLine:
    return line(number, wireSentBytes=1_200_000, wireReceivedBytes=1_200_000, encodedBytes=1_024_000).model_copy(
        update={"distributions": distributions}
    )


def three_classes(messages: int = 1000) -> list[BenchmarkResult]:
    """Returns three sizes on three classes. On the last class, 3% of the messages take 40 ms longer."""
    results = []
    for case, (size, (slowness, server)) in enumerate(product(SIZES, enumerate(CLASSES, start=1)), start=1):
        base = 400_000 * slowness * (1 + SIZES.index(size))
        late = 40_000_000 if server == CLASSES[-1] else 0
        times = [round(base / (1.02 - n / messages)) + late * (n % 100 < 3) for n in range(messages)]
        results.append(measured(server, size, times, case))
    return results
