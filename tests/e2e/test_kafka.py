"""Kafka and Mosquitto are compared on a real cluster."""

from tests.e2e.benchmarks import Running, assert_every_trial_once, assert_nothing_left, broker
from tests.e2e.kubectl import Kubectl


def test_kafka_and_mosquitto_are_measured_under_equal_conditions(kubectl: Kubectl) -> None:
    """Both brokers use TLS. Kafka has the settings for its node."""
    kubectl.apply(
        broker(
            brokers=[{"name": "mosquitto", "mosquitto": {}}, {"name": "kafka", "kafka": {}}],
            delivery=["ExactlyOnce"],
            tls=["TLSv1.3"],
            order={"passes": 1},
            kafkaClients={"codecs": ["Lz4"], "partitions": [2]},
        )
    )
    running = Running(kubectl, "brokers", "brokerbenchmark")
    running.wait_for_phase("Complete", seconds=300)
    assert_every_trial_once(running, trials=2)
    results = running.results
    assert [item["spec"]["levels"]["broker"] for item in results] == ["kafka", "mosquitto"]
    for item in results:
        messages = item["status"]["counts"]["messages"]
        assert (messages["received"], messages.get("lost", 0)) == (100, 0)
    kafka = results[0]
    assert kafka["spec"]["levels"]["codec"] == "Lz4"
    assert kafka["spec"]["service"]["settings"]["heap"].endswith("i")
    assert {"batchMessages", "brokerCpuPartsPerMillion"} <= set(kafka["status"]["statistics"])
    assert_nothing_left(running)
