"""Rules about fields that depend on each other: one object is rejected, a similar one is accepted."""

from typing import Any

import pytest

from tests.api.invalid import (
    BETWEEN_SIZES,
    BROKERS,
    FILES,
    LINKS,
    NETWORKS,
    OUTSIDE,
    PAYLOAD_SIZES,
    REFINE,
    SIZES,
    TRACE,
    claim,
    external,
    kafka,
    link,
    strimzi,
)
from tests.api.objects import changed, create, smallest
from tests.api.server import ApiServer, RefusedError
from tierbench.api.model import Resource

pytestmark = pytest.mark.apiserver


@pytest.mark.parametrize(("model", "sizes"), [(FILES, SIZES), (BROKERS, PAYLOAD_SIZES)])
def test_refinement_requires_two_sizes_and_two_classes(
    server: ApiServer, name: str, model: type[Resource], sizes: str
) -> None:
    body = changed(changed(smallest(model, name), sizes, ["1Ki", "1Mi"]), REFINE, {})
    body = changed(body, "spec.servers.nodeClassNames", ["cloud", "edge"])
    create(server, model, changed(body, "metadata.name", f"{name}-good"))
    for lacking in ((sizes, ["1Mi"]), ("spec.servers.nodeClassNames", ["cloud"])):
        with pytest.raises(RefusedError, match=BETWEEN_SIZES):
            create(server, model, changed(body, *lacking))


def test_congestion_control_requires_tcp_as_the_only_protocol(server: ApiServer, name: str) -> None:
    body = changed(smallest(NETWORKS, name), "spec.tcp", {"congestionControl": ["cubic", "bbr"]})
    create(server, NETWORKS, changed(body, "metadata.name", f"{name}-good"))
    body = changed(body, "spec.udp", {"kilobitsPerSecond": 1000})
    with pytest.raises(RefusedError, match=r"tcp\.congestionControl is only for TCP: write protocols: \[TCP\]"):
        create(server, NETWORKS, changed(body, "spec.protocols", ["TCP", "UDP"]))


def test_external_server_serves_one_client_at_a_time(server: ApiServer, name: str) -> None:
    body = changed(smallest(NETWORKS, name), "spec.servers", {"external": OUTSIDE})
    create(server, NETWORKS, changed(body, "metadata.name", f"{name}-good"))
    with pytest.raises(
        RefusedError, match=r"an external server serves one client at a time: remove Simultaneous from clients\.modes"
    ):
        create(server, NETWORKS, changed(body, "spec.clients.modes", ["Alone", "Simultaneous"]))


@pytest.mark.parametrize("model", [FILES, BROKERS, NETWORKS])
def test_links_do_not_support_host_network(server: ApiServer, name: str, model: type[Resource]) -> None:
    links = [link(up={"delayMicroseconds": 9}), link(name="recorded", trace=TRACE, down={"delayMicroseconds": 9})]
    body = changed(changed(smallest(model, name), "spec.access", "NodePort"), LINKS, links)
    create(server, model, changed(body, "metadata.name", f"{name}-good"))
    with pytest.raises(RefusedError, match="links are in the network of pods, and access: HostNetwork measures"):
        create(server, model, changed(body, "spec.access", "HostNetwork"))


def test_external_broker_has_one_level_of_tls(server: ApiServer, name: str) -> None:
    body = changed(smallest(BROKERS, name), "spec.brokers", external())
    create(server, BROKERS, changed(changed(body, "spec.servers", None), "metadata.name", f"{name}-good"))
    with pytest.raises(RefusedError, match="an external broker has one address: write one level of tls"):
        create(server, BROKERS, changed(body, "spec.tls", ["None", "TLSv1.3"]))


def test_heap_is_smaller_than_the_memory_limit(server: ApiServer, name: str) -> None:
    limits = {"limits": {"memory": "1Gi"}}
    limited = changed(smallest(BROKERS, name), "spec.servers.resources", limits)
    create(server, BROKERS, changed(limited, "spec.brokers", kafka(heap="512Mi")))
    with pytest.raises(RefusedError, match=r"kafka\.heap does not fit into servers\.resources\.limits\.memory"):
        create(server, BROKERS, changed(limited, "spec.brokers", kafka(heap="1Gi")))


def test_uploads_require_an_unchanged_cache_state(server: ApiServer, name: str) -> None:
    body = changed(smallest(FILES, name), "spec.directions", ["Download", "Upload"])
    create(server, FILES, changed(body, "metadata.name", f"{name}-good"))
    with pytest.raises(RefusedError, match=r"uploads write files: write cacheState: \[Unchanged\], or remove Upload"):
        create(server, FILES, changed(body, "spec.cacheState", ["Unchanged", "Cold"]))


ENGINES = "spec.clients.engines"


def test_wget_and_curl_do_not_verify_digests(server: ApiServer, name: str) -> None:
    body = changed(smallest(FILES, name), "spec.verifyDigest", True)
    create(server, FILES, changed(body, "metadata.name", f"{name}-good"))
    for engines in (["Wget"], ["Native", "Curl"]):
        with pytest.raises(RefusedError, match=r"write verifyDigest: false, or clients\.engines: \[Native\]"):
            create(server, FILES, changed(body, ENGINES, engines))


@pytest.mark.parametrize(
    ("engine", "retry", "good"),
    [
        ("Wget", {"waitMilliseconds": 500, "maxWaitMilliseconds": 5000}, {"waitMilliseconds": 500}),
        ("Wget", {"maxWaitMilliseconds": 1500}, {"maxWaitMilliseconds": 10000, "readTimeoutMilliseconds": 700}),
        ("Curl", {"readTimeoutMilliseconds": 1500}, {"readTimeoutMilliseconds": 2000}),
        ("Curl", {"waitMilliseconds": 0}, {"waitMilliseconds": 3000}),
        ("Curl", {"waitMilliseconds": 1500}, {}),
        ("Curl", {"maxWaitMilliseconds": 10000}, {"attempts": 1}),
    ],
)
def test_wget_and_curl_restrict_the_retry_settings(
    server: ApiServer, name: str, engine: str, retry: dict[str, int], good: dict[str, int]
) -> None:
    body = changed(smallest(FILES, name), "spec.retry", retry)
    create(server, FILES, changed(body, "metadata.name", f"{name}-native"))
    message = {"Wget": "Wget's pauses grow by one second each", "Curl": "Curl counts in seconds"}[engine]
    with pytest.raises(RefusedError, match=message):
        create(server, FILES, changed(body, ENGINES, ["Native", engine]))
    create(server, FILES, changed(changed(body, ENGINES, ["Native", engine]), "spec.retry", good))


@pytest.mark.parametrize("broker", [kafka(), external(protocol="Kafka")])
def test_sinetstream_supports_neither_transactions_nor_batches(
    server: ApiServer, name: str, broker: list[dict[str, Any]]
) -> None:
    body = changed(smallest(BROKERS, name), "spec.clients.engine", "SINETStream")
    exactly = changed(body, "spec.delivery", ["AtLeastOnce", "ExactlyOnce"])
    create(server, BROKERS, changed(exactly, "metadata.name", f"{name}-mqtt"))
    with pytest.raises(RefusedError, match="has no delivery ExactlyOnce for Kafka: remove it, or write Native"):
        create(server, BROKERS, changed(exactly, "spec.brokers", broker))
    create(server, BROKERS, changed(body, "spec.brokers", broker))
    for field, levels in (("codecs", ["Gzip"]), ("partitions", [2]), ("lingerMilliseconds", [0, 5])):
        batched = changed(changed(body, "spec.brokers", broker), "spec.kafkaClients", {field: levels})
        with pytest.raises(RefusedError, match="to one partition: remove kafkaClients, or write Native"):
            create(server, BROKERS, batched)


@pytest.mark.parametrize("broker", [kafka(), external(protocol="Kafka")])
def test_paho_supports_only_mqtt(server: ApiServer, name: str, broker: list[dict[str, Any]]) -> None:
    body = changed(smallest(BROKERS, name), "spec.clients.engine", "Paho")
    create(server, BROKERS, changed(body, "metadata.name", f"{name}-good"))
    with pytest.raises(RefusedError, match=r"clients\.engine: Paho only supports MQTT: write Native"):
        create(server, BROKERS, changed(body, "spec.brokers", broker))


def test_sinetstream_supports_only_one_version_of_mqtt(server: ApiServer, name: str) -> None:
    body = changed(smallest(BROKERS, name), "spec.mqttClients", {"versions": ["3.1.1", "5"]})
    create(server, BROKERS, changed(body, "spec.clients.engine", "Paho"))
    with pytest.raises(RefusedError, match=r"measures MQTT 3\.1\.1 only: remove mqttClients, or write Native or Paho"):
        create(server, BROKERS, changed(body, "spec.clients.engine", "SINETStream"))


def test_only_native_mqtt_connects_for_each_message(server: ApiServer, name: str) -> None:
    body = changed(smallest(BROKERS, name), "spec.clients.connections", "EachMessage")
    create(server, BROKERS, changed(body, "metadata.name", f"{name}-good"))
    outside = changed(changed(body, "spec.brokers", external()), "spec.servers", None)
    create(server, BROKERS, changed(outside, "metadata.name", f"{name}-outside"))
    for path, value in (
        ("spec.clients.engine", "Paho"),
        ("spec.brokers", kafka()),
        ("spec.brokers", external(protocol="Kafka")),
        ("spec.brokers", [{"name": "nginx", "http": {}}]),
    ):
        with pytest.raises(RefusedError, match="EachMessage is only for MQTT and the engine Native: write EachTrial"):
            create(server, BROKERS, changed(body, path, value))
    paced = {"type": "Acknowledged", "inFlight": 2}
    with pytest.raises(RefusedError, match=r"one message of a publisher in flight: remove pacing\.inFlight"):
        create(server, BROKERS, changed(body, "spec.pacing", paced))
    create(server, BROKERS, changed(body, "spec.pacing", {"type": "Acknowledged", "inFlight": 1}))


@pytest.mark.parametrize("broker", [[{"name": "nginx", "http": {}}], external(protocol="HTTP", path="/readings?key=1")])
def test_http_server_only_receives_messages(server: ApiServer, name: str, broker: list[dict[str, Any]]) -> None:
    body = changed(smallest(BROKERS, name), "spec.brokers", [*broker, {"name": "mosquitto", "mosquitto": {}}])
    body = changed(body, "spec.clients.subscribers", {"type": "None"})
    for number, pacing in enumerate(
        ({"type": "Acknowledged"}, {"type": "AsFastAsPossible"}, {"type": "OpenLoop", "messagesPerSecond": 9})
    ):
        good = changed(body, "spec.pacing", pacing)
        create(server, BROKERS, changed(good, "metadata.name", f"{name}-{number}"))
    for path, value, message in (
        ("spec.clients.subscribers", {"type": "WithPublishers"}, r"write clients\.subscribers: \{type: None\}"),
        ("spec.delivery", ["AtLeastOnce", "ExactlyOnce"], r"write delivery: \[AtLeastOnce\]"),
        ("spec.clients.engine", "Paho", "write Native, or measure HTTP in another benchmark"),
        ("spec.tlsClients", {"handshakes": ["Resumed"]}, "present no certificate: remove tlsClients"),
        ("spec.pacing", {"type": "Acknowledged", "inFlight": 2}, "write inFlight: 1, or add pairs"),
    ):
        with pytest.raises(RefusedError, match=message):
            create(server, BROKERS, changed(good, path, value))


def test_trim_by_client_requires_simultaneous_clients(server: ApiServer, name: str) -> None:
    body = changed(smallest(NETWORKS, name), "spec.trim", {"lowest": 1, "highest": 1, "scope": "Client"})
    with pytest.raises(RefusedError, match=r"write clients\.modes: \[Simultaneous\], or remove trim\.scope"):
        create(server, NETWORKS, body)
    create(server, NETWORKS, changed(body, "spec.clients.modes", ["Simultaneous"]))


def test_publishers_without_subscribers_wait_for_acknowledgements(server: ApiServer, name: str) -> None:
    alone = changed(smallest(BROKERS, name), "spec.clients.subscribers", {"type": "None"})
    with pytest.raises(RefusedError, match=r"none returns: write pacing: \{type: Acknowledged\}"):
        create(server, BROKERS, alone)
    paced = changed(alone, "spec.pacing", {"type": "Acknowledged"})
    with pytest.raises(
        RefusedError,
        match=r"AtMostOnce has none: remove AtMostOnce, or measure .* with pacing: \{type: AsFastAsPossible\}",
    ):
        create(server, BROKERS, changed(paced, "spec.delivery", ["AtMostOnce", "AtLeastOnce"]))
    with pytest.raises(RefusedError, match="type Separate needs a nodeClassName"):
        create(server, BROKERS, changed(paced, "spec.clients.subscribers", {"nodeClassName": "x", "type": "None"}))
    with pytest.raises(RefusedError, match="inFlight is only for the types"):
        create(server, BROKERS, changed(paced, "spec.pacing", {"inFlight": 1, "type": "AsFastAsPossible"}))
    create(server, BROKERS, paced)


def test_native_engine_supports_four_levels_of_zstd(server: ApiServer, name: str) -> None:
    body = changed(smallest(BROKERS, name), "spec.compression", ["Zstd:19"])
    with pytest.raises(RefusedError, match=r"write Zstd:1, Zstd:3, Zstd:7 or Zstd:11, or clients\.engine: Paho"):
        create(server, BROKERS, body)
    create(server, BROKERS, changed(body, "spec.compression", ["Gzip:9", "Zstd", "Zstd:11"]))
    for engine in ("Paho", "SINETStream"):
        other = changed(body, "spec.clients.engine", engine)
        create(server, BROKERS, changed(other, "metadata.name", f"{name}-{engine.lower()}"))


def test_only_sinetstream_supports_other_ciphers(server: ApiServer, name: str) -> None:
    body = changed(smallest(BROKERS, name), "spec.encryption", ["AES128GCM", "AES256CBC"])
    with pytest.raises(RefusedError, match=r"write None or AES128GCM, or clients\.engine: SINETStream"):
        create(server, BROKERS, body)
    create(server, BROKERS, changed(body, "spec.clients.engine", "SINETStream"))


def test_tls_clients_require_tls_and_an_engine_and_broker_that_support_them(server: ApiServer, name: str) -> None:
    body = changed(
        smallest(BROKERS, name), "spec.tlsClients", {"handshakes": ["Resumed"], "certificates": ["Required"]}
    )
    with pytest.raises(RefusedError, match=r"only for connections with TLS: write, for example, tls: \[TLSv1\.3\]"):
        create(server, BROKERS, body)
    body = changed(body, "spec.tls", ["None", "TLSv1.3"])
    for engine in ("Paho", "SINETStream"):
        with pytest.raises(RefusedError, match=r"only clients\.engine: Native resumes sessions"):
            create(server, BROKERS, changed(body, "spec.clients.engine", engine))
    full = changed(changed(body, "spec.brokers", strimzi()), "spec.tlsClients.handshakes", ["Full"])
    with pytest.raises(RefusedError, match="users of Strimzi have a password or a certificate, and not both"):
        create(server, BROKERS, full)
    outside = changed(changed(body, "spec.brokers", external()), "spec.tls", ["TLSv1.3"])
    with pytest.raises(RefusedError, match=r"a secretRef whose Secret has the keys tls\.crt and tls\.key"):
        create(server, BROKERS, outside)
    for broker in (kafka(), external(protocol="Kafka", secretRef={"name": "site"})):
        with pytest.raises(RefusedError, match="Kafka resumes few sessions"):
            create(server, BROKERS, changed(changed(body, "spec.brokers", broker), "spec.tls", ["TLSv1.3"]))
    full = changed(changed(body, "spec.brokers", kafka()), "spec.tlsClients.handshakes", ["Full"])
    create(server, BROKERS, changed(full, "metadata.name", f"{name}-kafka"))
    create(server, BROKERS, body)


def test_external_broker_with_tls_requires_a_secret(server: ApiServer, name: str) -> None:
    body = changed(smallest(BROKERS, name), "spec.tls", ["TLSv1.3"])
    own = body["spec"]["brokers"]
    outside = changed(body, "spec.brokers", [*own, *external()])
    with pytest.raises(RefusedError, match=r"write external\.secretRef, and give its Secret the key ca\.crt"):
        create(server, BROKERS, outside)
    create(server, BROKERS, changed(outside, "spec.tls", ["None"]))
    secret = changed(body, "spec.brokers", [*own, *external(secretRef={"name": "site"})])
    create(server, BROKERS, changed(secret, "metadata.name", f"{name}-secret"))


def test_sinetstream_sends_one_message_at_a_time(server: ApiServer, name: str) -> None:
    body = changed(smallest(BROKERS, name), "spec.clients.engine", "SINETStream")
    with pytest.raises(RefusedError, match="the acknowledgement of each message: write inFlight: 1, or add pairs"):
        create(server, BROKERS, changed(body, "spec.pacing", {"type": "Acknowledged", "inFlight": 2}))
    for number, pacing in enumerate(({"type": "Acknowledged"}, {"type": "ClosedLoop", "inFlight": 8})):
        create(server, BROKERS, changed(changed(body, "spec.pacing", pacing), "metadata.name", f"{name}-{number}"))


def test_strimzi_supports_neither_host_network_nor_certificates_of_nodes(server: ApiServer, name: str) -> None:
    """Strimzi does not use the network of the node, and its certificates do not contain nodes."""
    body = changed(smallest(BROKERS, name), "spec.brokers", strimzi())
    with pytest.raises(RefusedError, match="Strimzi does not support access: HostNetwork: write ClusterIP"):
        create(server, BROKERS, changed(body, "spec.access", "HostNetwork"))
    body = changed(body, "spec.access", "NodePort")
    with pytest.raises(RefusedError, match=r"Strimzi's certificates do not contain nodes: .* write tls: \[None\]"):
        create(server, BROKERS, changed(body, "spec.tls", ["None", "TLSv1.3"]))
    create(server, BROKERS, body)


@pytest.mark.parametrize("lacking", ["storageClassName", "size"])
def test_volume_requires_a_storage_class_and_a_size(server: ApiServer, name: str, lacking: str) -> None:
    half = {key: value for key, value in claim().items() if key != lacking}
    body = changed(smallest(BROKERS, name), "spec.brokers", strimzi(volumeClaimTemplate=half))
    with pytest.raises(RefusedError, match=rf"volumeClaimTemplate\.{lacking}: Required value"):
        create(server, BROKERS, body)
