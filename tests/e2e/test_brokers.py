"""On a real cluster, brokers are measured with all factors. Counts are consistent, and bytes agree with a capture."""

import base64
import json
from datetime import datetime, timedelta
from typing import Any

import pytest

from images.naming import reference
from tests.cluster import Cluster
from tests.e2e.benchmarks import API_VERSION, Running, assert_nothing_left, broker
from tests.e2e.capture import capturing
from tests.e2e.kubectl import Kubectl, tierbench, wait_for
from tests.e2e.operator_release import pids

FRAME_BYTES = 1514
PROGRAMS = {"Native": "client", "Paho": "paho", "SINETStream": "sinetstream"}


def run(kubectl: Kubectl, name: str = "brokers", *, seconds: float = 240, **spec: Any) -> list[dict[str, Any]]:
    """Measures a benchmark, and returns its results. Every case is measured, and every count is consistent."""
    kubectl.apply(broker(name, **spec))
    running = Running(kubectl, name, "brokerbenchmark")
    running.wait_for_phase("Complete", seconds=seconds)
    for result in running.results:
        status = result["status"]
        assert status["phase"] == "Complete", status
        messages = status["counts"]["messages"]
        assert messages["sent"] == messages["received"] + messages["lost"]
        assert messages["lost"] == messages["duplicated"] == status["counts"]["errors"] == 0, messages
        assert status["distributions"]["roundTrip"]["count"] == messages["received"] - messages["discarded"]
    assert_nothing_left(running)
    return running.results


CLEAR = {"delivery": "AtMostOnce", "tls": "None", "compression": "None", "encryption": "None"}
SEALED = {"delivery": "ExactlyOnce", "tls": "TLSv1.3", "compression": "Gzip", "encryption": "AES128GCM"}


@pytest.mark.parametrize("levels", [CLEAR, SEALED], ids=["clear", "sealed"])
def test_both_engines_count_equally(kubectl: Kubectl, levels: dict[str, str]) -> None:
    """Measures the simplest and the most complex messages. The engines' own tests check every combination."""
    assert_engines_count_equally(kubectl, levels, "Native", "Paho")


@pytest.mark.release
@pytest.mark.parametrize("levels", [CLEAR, SEALED], ids=["clear", "sealed"])
def test_sinetstream_counts_the_same_as_the_native_engine(kubectl: Kubectl, levels: dict[str, str]) -> None:
    """SINETStream's messages are longer because the library adds bytes."""
    native, sinetstream = assert_engines_count_equally(kubectl, levels, "Native", "SINETStream")
    added = sinetstream["encodedBytes"] - native["encodedBytes"]
    assert added > 20 * sinetstream["sent"]


@pytest.mark.release
def test_sinetstream_sends_to_kafka(kubectl: Kubectl) -> None:
    clients = {"nodeClassNames": ["user"], "engine": "SINETStream"}
    brokers = [{"name": "kafka", "kafka": {}}]
    for result in run(kubectl, brokers=brokers, clients=clients, tls=["None", "TLSv1.3"], encryption=["AES256EAX"]):
        assert result["status"]["engine"]["name"] == "tierbench-sinetstream"
        exchange = result["status"]["trials"][0]["exchange"]
        assert (exchange["acknowledged"], exchange["received"]) == (50, 50)
        assert (exchange.get("tlsNanoseconds", 0) > 0) == (result["spec"]["levels"]["tls"] != "None")
        assert exchange["wireSentBytes"] > exchange["encodedBytes"] > 50 * (1024 + 26)


def assert_engines_count_equally(kubectl: Kubectl, levels: dict[str, str], *engines: str) -> list[dict[str, Any]]:
    """Asserts that all engines count the same. Returns the exchange of one trial per engine."""
    counted, exchanges = {}, []
    for engine in engines:
        factors: dict[str, Any] = {name: [level] for name, level in levels.items()}
        clients = {"nodeClassNames": ["user"], "engine": engine}
        (result,) = run(kubectl, engine.lower(), clients=clients, pairs=[2], repetitions=1, **factors)
        assert result["status"]["engine"]["name"] == f"tierbench-{PROGRAMS[engine]}"
        exchange = result["status"]["trials"][0]["exchange"]
        assert exchange["connectNanoseconds"] > 0
        assert exchange["wireSentBytes"] > 100 * 100
        assert exchange.get("acknowledged", 0) == (0 if levels["delivery"] == "AtMostOnce" else 100)
        assert (exchange.get("tlsNanoseconds", 0) > 0) == (levels["tls"] != "None")
        assert (exchange.get("compressNanoseconds", 0) > 0) == (levels["compression"] != "None")
        assert (exchange.get("decryptNanoseconds", 0) > 0) == (levels["encryption"] != "None")
        assert result["spec"]["service"]["settings"]["set_tcp_nodelay"] == "true"
        assert result["status"]["trials"][0]["server"]["processCpuNanoseconds"] >= 0
        counted[engine] = {
            name: count for name, count in result["status"]["counts"].items() if name != "goodNanoseconds"
        }
        exchanges.append(exchange)
    assert len({json.dumps(each, sort_keys=True) for each in counted.values()}) == 1, counted
    return exchanges


@pytest.mark.measures
@pytest.mark.release
def test_stronger_deliveries_and_tls_send_more_packets_and_bytes(kubectl: Kubectl) -> None:
    results = run(kubectl, delivery=["AtMostOnce", "AtLeastOnce", "ExactlyOnce"], tls=["None", "TLSv1.3"])
    for quantity in ("wireBytes", "wireBytesPerMessage", "wirePacketsPerMessagePartsPerMillion"):
        found = means(results, quantity)
        assert found["AtMostOnce", "None"] <= found["AtLeastOnce", "None"] < found["ExactlyOnce", "None"], quantity
    for quantity in ("wireBytes", "wireBytesPerMessage", "setupBytes", "setupPackets"):
        found = means(results, quantity)
        assert all(found[delivery, "None"] < found[delivery, "TLSv1.3"] for delivery, _ in found), quantity


def means(results: list[dict[str, Any]], quantity: str) -> dict[tuple[str, ...], int]:
    """Returns the means of a quantity by delivery and TLS."""
    factors = ("delivery", "tls")
    return {
        tuple(one["spec"]["levels"][factor] for factor in factors): one["status"]["statistics"][quantity]["mean"]
        for one in results
    }


@pytest.mark.release
def test_sessions_resume_and_clients_present_certificates(kubectl: Kubectl) -> None:
    """Connecting takes fewer bytes with a resumed session, and more with a certificate."""
    certificates = {"certificates": ["None", "Required"]}
    both = {"handshakes": ["Full", "Resumed"], **certificates}
    setup: dict[tuple[str, ...], int] = {}
    results = run(kubectl, "mosquitto", tls=["TLSv1.2", "TLSv1.3"], tlsClients=both, seconds=600)
    kafka = {"brokers": [{"name": "kafka", "kafka": {}}], "tls": ["TLSv1.3"], "tlsClients": certificates}
    for result in (*results, *run(kubectl, "kafka", **kafka, seconds=600)):
        levels, status = result["spec"]["levels"], result["status"]
        assert "NotResumed" not in {note["reason"] for note in status.get("invalid", ())}
        exchanges = [trial["exchange"] for trial in status["trials"]]
        resumed = [exchange.get("resumedHandshakes", 0) for exchange in exchanges]
        handshakes = [exchange["tlsHandshakes"] for exchange in exchanges]
        assert resumed == (handshakes if levels["handshake"] == "Resumed" else [0] * len(handshakes))
        key = levels["broker"], levels["tls"], levels["handshake"], levels["certificate"]
        setup[key] = status["statistics"]["setupBytes"]["mean"]
    for broker_name, version in ((key[0], key[1]) for key in setup):
        found = {key[2:]: value for key, value in setup.items() if key[:2] == (broker_name, version)}
        assert found["Full", "None"] < found["Full", "Required"], setup
        if broker_name == "mosquitto":
            assert found["Resumed", "None"] < found["Full", "None"], setup
            assert found["Resumed", "Required"] < found["Full", "Required"], setup


@pytest.mark.release
def test_engines_send_the_messages_of_a_config_map(kubectl: Kubectl) -> None:
    """All engines send the messages in turn. Only the cases with a missing ConfigMap fail."""
    data, reading = {"1": "a" * 1000}, json.dumps({"device": "sensor-07", "temperature": 21.4, "humidity": 45})
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "readings"}, "immutable": True}
    kubectl.apply({**body, "data": data, "binaryData": {"2": base64.b64encode(reading.encode()).decode()}})
    for engine in PROGRAMS:
        own = [{"name": name, "configMapRef": {"name": name}} for name in ("readings", "absent")]
        clients = {"nodeClassNames": ["user"], "engine": engine}
        kubectl.apply(broker(engine.lower(), payload={"messages": own}, compression=["None", "Zstd"], clients=clients))
        running = Running(kubectl, engine.lower(), "brokerbenchmark")
        running.wait_for_phase("Complete", seconds=180)
        assert len(running.results) == 4
        for result in running.results:
            levels, status = result["spec"]["levels"], result["status"]
            assert "payloadSize" not in levels
            if levels["content"] == "absent":
                assert (status["phase"], status["reason"]) == ("Failed", "MessagesUnusable")
                assert "absent has no messages: create a ConfigMap" in status["message"]
                continue
            exchange = status["trials"][0]["exchange"]
            assert (exchange["received"], exchange.get("errors", 0)) == (50, 0)
            assert exchange["sentBytes"] == exchange["receivedBytes"] == 25 * (1000 + len(reading))
            assert (exchange["encodedBytes"] < exchange["sentBytes"]) == (levels["compression"] == "Zstd")
        assert_nothing_left(running)


@pytest.mark.release
def test_several_pods_of_a_client_run_all_pairs(kubectl: Kubectl) -> None:
    clients = {"nodeClassNames": ["user"], "pods": 3}
    for result in run(kubectl, clients=clients, pairs=[3, 8], pacing={"type": "OpenLoop", "messagesPerSecond": 100}):
        pairs = int(result["spec"]["levels"]["pairs"])
        assert result["status"]["counts"]["messages"]["sent"] == 2 * 50 * pairs
        assert result["status"]["trials"][0]["exchange"]["pairs"] == pairs


@pytest.mark.measures
@pytest.mark.release
def test_pods_of_a_client_run_at_the_same_time(kubectl: Kubectl) -> None:
    clients = {"nodeClassNames": ["user"], "pods": 3}
    (result,) = run(kubectl, clients=clients, pairs=[3], pacing={"type": "OpenLoop", "messagesPerSecond": 100})
    fastest = min(trial["durationNanoseconds"] for trial in result["status"]["trials"]) / 1e9
    assert 0.4 < fastest < 0.9, "pods that run one after the other take twice 0.49 s"


@pytest.mark.measures
def test_pairs_multiply_the_load(kubectl: Kubectl) -> None:
    load: dict[str, Any] = {
        "pacing": {"type": "OpenLoop", "messagesPerSecond": 50},
        "load": {"durationSeconds": 2},
        "repetitions": 1,
    }
    one, eight = (
        result["status"]["statistics"]["throughputMessagesPerSecond"]["mean"]
        for result in run(kubectl, pairs=[1, 8], **load)
    )
    assert eight == pytest.approx(8 * one, rel=0.1)


@pytest.mark.measures
@pytest.mark.release
def test_the_bottleneck_at_full_speed_is_named(kubectl: Kubectl) -> None:
    load = {"durationSeconds": 2}
    (full,) = run(kubectl, delivery=["AtLeastOnce"], load=load, pairs=[8], pacing={"type": "AsFastAsPossible"})
    assert full["status"]["statistics"]["throughputMessagesPerSecond"]["mean"] > 2 * 8 * 50
    limits = {note["reason"] for note in (*full["status"]["facts"], *full["status"]["invalid"])}
    assert limits & {"BrokerSaturated", "ClientSaturated"}


@pytest.mark.release
def test_subscribers_in_separate_pods_receive_all_messages(kubectl: Kubectl) -> None:
    clients = {"nodeClassNames": ["user"], "subscribers": {"type": "Separate", "nodeClassName": "jetson-nano"}}
    (result,) = run(kubectl, clients=clients)
    assert result["status"]["counts"]["messages"]["sent"] == 100


@pytest.mark.release
def test_publishers_without_subscribers_count_acknowledged_messages(kubectl: Kubectl) -> None:
    """The number of received messages is unknown. This holds for all engines."""
    for engine in PROGRAMS:
        clients = {"nodeClassNames": ["user"], "subscribers": {"type": "None"}, "engine": engine}
        kubectl.apply(broker(engine.lower(), clients=clients, pacing={"type": "AsFastAsPossible"}))
        running = Running(kubectl, engine.lower(), "brokerbenchmark")
        running.wait_for_phase("Complete")
        (result,) = running.results
        status = result["status"]
        messages = status["counts"]["messages"]
        assert (status["phase"], messages["sent"], messages["acknowledged"]) == ("Complete", 100, 100)
        assert not {"received", "lost", "duplicated"} & messages.keys()
        assert status["distributions"].keys() == {"acknowledge"}
        assert status["statistics"]["throughputMessagesPerSecond"]["mean"] > 0
        assert result["spec"]["settings"]["subscribers"] == "None"
        assert_nothing_left(running)


@pytest.mark.release
def test_http_server_is_measured_next_to_mqtt(kubectl: Kubectl) -> None:
    """nginx answers every message. Bytes and packets of both brokers are counted, and an advice ranks them."""
    alone = {"nodeClassNames": ["user"], "subscribers": {"type": "None"}}
    brokers = [{"name": "http", "http": {}}, {"name": "mosquitto", "mosquitto": {}}]
    levels: dict[str, Any] = {
        "brokers": brokers,
        "tls": ["None", "TLSv1.3"],
        "payload": {"sizes": [100]},
        "repetitions": 3,
    }
    kubectl.apply(broker(clients=alone, pacing={"type": "Acknowledged"}, **levels))
    running = Running(kubectl, "brokers", "brokerbenchmark")
    running.wait_for_phase("Complete")
    assert len(running.results) == 4
    for result in running.results:
        status, tls = result["status"], result["spec"]["levels"]["tls"]
        assert status["phase"] == "Complete", status
        messages = status["counts"]["messages"]
        assert (messages["sent"], messages["acknowledged"], status["counts"]["errors"]) == (150, 150, 0)
        statistics = status["statistics"]
        assert statistics["wireBytesPerMessage"]["mean"] > 100 + 2 * 66
        assert statistics["setupPackets"]["mean"] >= 3
        assert (statistics["tlsNanoseconds"]["mean"] > 0) == (tls != "None")
        assert status["trials"][0]["server"]["processCpuNanoseconds"] >= 0
    assert_nothing_left(running)
    advised = advise(kubectl, "--choose=broker", "--level=tls=None", "--level=payloadSize=100")
    assert {one["name"] for one in advised["ranking"]} == {"http", "mosquitto"}


@pytest.mark.release
def test_groups_count_each_delivery_with_both_versions_of_mqtt(kubectl: Kubectl) -> None:
    """Each subscriber of a group receives every message, or shares the messages with the others."""
    groups = [{"publishers": 4}, {"subscribers": 4}, {"publishers": 4, "subscribers": 2, "subscription": "Shared"}]
    kubectl.apply(broker("groups", groups=groups, mqttClients={"versions": ["3.1.1", "5"]}))
    running = Running(kubectl, "groups", "brokerbenchmark")
    running.wait_for_phase("Complete", seconds=240)
    deliveries = {}
    for result in running.results:
        levels, status = result["spec"]["levels"], result["status"]
        messages = status["counts"]["messages"]
        assert (status["phase"], messages["lost"], messages["duplicated"]) == ("Complete", 0, 0), status
        deliveries[levels["groups"], levels["mqttVersion"]] = messages["received"] / messages["sent"]
    each = {"4:1": 1, "1:4": 4, "4:2 Shared": 1}
    assert deliveries == {(group, version): each[group] for group in each for version in ("3.1.1", "5")}
    assert_nothing_left(running)


@pytest.mark.release
def test_a_connection_per_message_costs_bytes(kubectl: Kubectl) -> None:
    """The bytes of a message include those of its connection. TLS adds the most."""
    cost: dict[tuple[str, ...], int] = {}
    for connections in ("Kept", "EachMessage"):
        clients = {"nodeClassNames": ["user"], "connections": connections}
        spec: dict[str, Any] = {"clients": clients, "mqttClients": {"versions": ["5"]}, "tls": ["None", "TLSv1.3"]}
        for (_, tls), value in means(run(kubectl, connections.lower(), **spec), "wireBytesPerMessage").items():
            cost[connections, tls] = value
    assert cost["Kept", "None"] + 7 * 66 < cost["EachMessage", "None"] < cost["EachMessage", "TLSv1.3"] - 2000, cost


@pytest.mark.release
def test_kept_connections_are_set_up_once_and_an_advice_ranks_tls(kubectl: Kubectl) -> None:
    """One client measures servers of two classes in turn. The operator and the command rank TLS equally."""
    question = {"choose": ["tls"], "clientClassName": "user", "workload": {"payloadSize": "1Ki"}}
    advice = {"apiVersion": API_VERSION, "kind": "PlacementAdvice", "metadata": {"name": "tls"}, "spec": question}
    kubectl.apply(advice)
    results = run(
        kubectl,
        servers={"nodeClassNames": ["cloud", "jetson-nano"]},
        clients={"nodeClassNames": ["user"], "connections": "Kept"},
        tls=["None", "TLSv1.3"],
        repetitions=3,
    )
    assert len(results) == 4
    for result in results:
        assert result["spec"]["settings"]["connections"] == "Kept"
        first, *later = (trial["exchange"] for trial in result["status"]["trials"])
        assert (first["connectNanoseconds"] > 0, first["setupPackets"] > 0) == (True, True)
        assert all(exchange["loadPackets"] > 0 for exchange in later)
        assert not any({"connectNanoseconds", "tlsNanoseconds", "setupPackets"} & exchange.keys() for exchange in later)
        assert result["status"]["statistics"]["setupPackets"]["count"] == 1

    advised = advise(kubectl, "--choose=tls", "--level=payloadSize=1Ki")

    status: dict[str, Any] = {}

    def answered() -> bool:
        status.update(kubectl.get("placementadvice", "tls")["status"])
        return bool(status["ranking"] == advised["ranking"])

    wait_for(f"the operator's ranking equals {advised['ranking']}", answered, 60)
    assert {one["name"] for one in status["ranking"]} == {"TLS None", "TLSv1.3"}
    assert {one["nodes"] for one in status["ranking"]} == {2}
    assert "nodeClass" in {effect["factor"] for effect in status["effects"]}


def advise(kubectl: Kubectl, *question: str) -> dict[str, Any]:
    """Returns the status of an advice that `kubectl tierbench advise` derives from the results in the namespace."""
    answer = tierbench(kubectl, "advise", "--namespace", kubectl.namespace, "--output=json", *question)
    status: dict[str, Any] = json.loads(answer)["status"]
    return status


@pytest.mark.release
def test_listed_images_are_a_factor(kubectl: Kubectl) -> None:
    """Each image has its own results, which name it by its digest."""
    brokers = [{"name": "mosquitto", "mosquitto": {"images": ["default", "other"]}}]
    results = run(kubectl, brokers=brokers, repetitions=1)
    assert [result["spec"]["levels"]["image"] for result in results] == ["default", "other"]
    for result in results:
        assert result["spec"]["service"]["image"] == reference("mosquitto")
        assert "sha256:" in result["spec"]["service"]["imageId"]


@pytest.mark.release
def test_brokers_on_one_node_alternate_in_passes(kubectl: Kubectl) -> None:
    """The order is A B B A, so that a steady drift affects both equally."""
    brokers: list[dict[str, Any]] = [{"name": name, "mosquitto": {}} for name in ("one", "two")]
    results = run(kubectl, brokers=brokers, repetitions=4)
    assert [result["spec"]["passes"] for result in results] == [2, 2]
    assert [result["status"]["counts"].get("interruptions", 0) for result in results] == [0, 0]
    trials = sorted(
        (datetime.fromisoformat(trial["startTime"]), result["spec"]["levels"]["broker"], trial["trial"])
        for result in results
        for trial in result["status"]["trials"]
    )
    turns = [("one", 1), ("one", 2), ("two", 1), ("two", 2), ("two", 3), ("two", 4), ("one", 3), ("one", 4)]
    assert [(name, number) for _, name, number in trials] == turns


@pytest.mark.measures
@pytest.mark.release
@pytest.mark.parametrize(("kind", "process", "port"), [("mosquitto", "mosquitto", 8883), ("kafka", "java", 9093)])
def test_wire_bytes_agree_with_a_capture_at_the_broker(
    kubectl: Kubectl, cluster: Cluster, kind: str, process: str, port: int
) -> None:
    """Bytes are those from and to the broker, with headers, of every connection of the trial."""
    spec: dict[str, Any] = {"payload": {"sizes": [1400]}, "load": {"messagesPerPublisher": 400}, "repetitions": 1}
    kubectl.apply(broker(**spec, brokers=[{"name": kind, kind: {}}], tls=["TLSv1.3"], access="PodIP"))
    running = Running(kubectl, "brokers", "brokerbenchmark")
    pod = running.wait_for_pod("server")["metadata"]["name"]
    server = wait_for("the broker's process", lambda: pids(cluster, kubectl.namespace, pod, process))
    with capturing(server[0], port) as captured:
        running.wait_for_phase("Complete")
    assert not captured.dropped, "the capture missed packets"
    trial = running.results[0]["status"]["trials"][0]
    start = datetime.fromisoformat(trial["startTime"])
    session = timedelta(microseconds=trial["exchange"]["sessionNanoseconds"] / 1000)
    passed = captured.bytes_between(start, start + session)
    counted = trial["exchange"]["wireSentBytes"] + trial["exchange"]["wireReceivedBytes"]
    again = trial["server"]["tcpRetransmits"]
    assert counted == pytest.approx(passed, abs=0.002 * passed + FRAME_BYTES * again)
