"""Results with the factors of the papers, and values by simple rules."""

from collections.abc import Iterable, Mapping
from functools import cache
from itertools import product
from typing import Any

from tests.histograms import histogram_of
from tests.unit.kinds.broker import trials as broker
from tests.unit.kinds.network import trials as network
from tests.unit.kinds.network.test_clients import shared
from tests.unit.results.trials import NOW
from tierbench.api.contract import TrialLine
from tierbench.api.quantity import parse_size
from tierbench.api.record import RecordStatus
from tierbench.api.result import BenchmarkResult, ResultSpec
from tierbench.results.aggregate import add_trials, conclude
from tierbench.results.client_output import PartOutput, merge_parts

TRIALS = 10
MESSAGES = 1000
MOBILE = {"pi-lte": "lte", "pi-5g-sa": "5g-sa"}
Client = Mapping[str, str]
NOTHING: Mapping[str, int] = {}
USER: Client = {"nodeClass": "user", "node": "u1"}


def _result(spec: ResultSpec, lines: Iterable[TrialLine], case: int, client: Client, **more: Any) -> BenchmarkResult:
    body = spec.to_json() | {"case": case, "client": dict(client), "trials": TRIALS, **more}
    body["server"] = {"nodeClass": "cloud", "node": "cloud-1"}
    wanted = ResultSpec.model_validate(body)
    own = [line.model_copy(update={"transfer": None}) for line in lines]
    record = add_trials(wanted, RecordStatus(), own, 1)
    status = conclude(wanted, record, NOW, None)
    metadata = {"name": f"paper-r1-c{case:03d}", "namespace": "default"}
    return BenchmarkResult.model_validate(
        {"metadata": metadata, "spec": wanted.to_json(), "status": status.to_json()}
    ).with_record(record)


def broker_result(
    case: int, nanoseconds: float, client: Client = USER, spent: Mapping[str, int] = NOTHING, **levels: str
) -> BenchmarkResult:
    """Returns a case with this time per message. `spent` has the nanoseconds of compression and other steps."""
    parts = {f"{part}Nanoseconds": MESSAGES * time for part, time in spent.items()}
    size = parse_size(levels["payloadSize"])
    lines = []
    for number in range(1, TRIALS + 1):
        time = round(nanoseconds * (1 + 0.02 * ((7 * number + case) % 10 - 4.5)))
        sizes = {"sentBytes": MESSAGES * size, "receivedBytes": MESSAGES * size, "wireSentBytes": MESSAGES * size}
        line = broker.line(number, nanoseconds=time * MESSAGES, **sizes, **parts)
        spread = line.distributions.model_copy(update={"round_trip": histogram_of([time] * 100)})
        lines.append(line.model_copy(update={"distributions": spread}))
    return _result(broker.spec(TRIALS, **levels), lines, case, client)


@cache
def access_networks() -> list[BenchmarkResult]:
    """Returns two brokers on LTE and 5G, with three sizes."""
    found = []
    places = product(("kafka", "mosquitto"), MOBILE.items(), ("1Ki", "10Ki", "100Ki"))
    for case, (name, (client, access), size) in enumerate(places, start=1):
        time = (30e6 if access == "lte" else 22e6) + parse_size(size) * (900 if access == "lte" else 500)
        device = {"nodeClass": client, "node": f"{client}-1", "accessNetwork": access}
        slow = 1.0 if name == "kafka" else 1.06
        found.append(broker_result(case, time * slow, device, broker=name, payloadSize=size))
    return found


@cache
def ratios() -> list[BenchmarkResult]:
    """Returns messages of nine ratios in two sizes, compressed by Gzip, by Zstd, and not compressed."""
    found = []
    places = product(("10000", "100000"), (None, "Gzip", "Zstd"), range(10, 100, 10))
    for case, (size, compression, left) in enumerate(places, start=1):
        per_byte = {"Gzip": 60 - abs(left - 30) // 2, "Zstd": 12}.get(compression or "", 0)
        parts = {"compress": per_byte * int(size), "decompress": per_byte * int(size) // 5} if compression else {}
        transfer = 30e6 + int(size) * 400 * (left / 100 if compression else 1)
        levels = {"payloadSize": size, "content": f"Ratio{left}", "compression": compression or "None"}
        found.append(broker_result(case, transfer + sum(parts.values()), USER, parts, **levels))
    return found


@cache
def contents() -> list[BenchmarkResult]:
    """Returns the results by ratio, and further ones of three other contents."""
    found = ratios()
    places = product(("10000", "100000"), ("None", "Gzip", "Zstd"), enumerate(("Random", "Zeros", "SensorJSON")))
    for case, (size, compression, (kind, content)) in enumerate(places, start=len(found) + 1):
        time = 30e6 + int(size) * (400 if compression == "None" else 130 * (kind + 1))
        found = [*found, broker_result(case, time, payloadSize=size, content=content, compression=compression)]
    return found


@cache
def deliveries() -> list[BenchmarkResult]:
    """Returns MQTT and MQTTS at three QoS levels, with short and long messages, one pair and four pairs."""
    found = []
    kinds = ("AtMostOnce", "AtLeastOnce", "ExactlyOnce")
    places = product(("2", "2000"), ("1", "4"), ("None", "TLSv1.2"), enumerate(kinds, start=1))
    for case, (size, pairs, tls, (steps, delivery)) in enumerate(places, start=1):
        time = (4e6 + 3e6 * steps + int(size) * 500) * (1.1 if tls != "None" else 1.0) / int(pairs)
        found.append(broker_result(case, time, payloadSize=size, pairs=pairs, tls=tls, delivery=delivery))
    return found


DEVICES = ("phone-1", "phone-2", "tablet-1", "tablet-2", "pc")


@cache
def devices() -> list[BenchmarkResult]:
    """Returns five devices on one access point, each alone and all at once."""
    nodes = [{"nodeClass": "device", "node": name} for name in DEVICES]
    alone = [
        _network_result(case, node, [_uploads(megabits)], clientMode="Alone")
        for case, (node, megabits) in enumerate(zip(nodes, (400, 420, 110, 105, 600), strict=True), start=1)
    ]
    parts = [
        [shared(number, megabits * (0.97 + number / 200)) for number in range(1, TRIALS + 1)]
        for megabits in (180, 200, 30, 25, 90)
    ]
    return [*alone, _network_result(6, nodes[0], parts, clients=nodes, clientMode="Simultaneous")]


def _uploads(megabits: float) -> list[TrialLine]:
    rates = (megabits * (0.98 + number / 300) for number in range(1, TRIALS + 1))
    return [network.line(number, upload=network.flow(rate)) for number, rate in enumerate(rates, start=1)]


def _network_result(
    case: int, client: Client, parts: list[list[TrialLine]], clients: list[dict[str, str]] | None = None, **levels: str
) -> BenchmarkResult:
    lines = parts[0] if clients is None else merge_parts([PartOutput(tuple(part)) for part in parts])
    return _result(network.spec(TRIALS, None, **levels), lines, case, client, clients=clients or [])
