"""A matrix has at most 1000 cases, and a preflight at most 64 pairs of nodes."""

import pytest

from tests.api.invalid import (
    BROKERS,
    FILES,
    LINKS,
    MESSAGES,
    NETWORKS,
    OUTSIDE,
    PAYLOAD_SIZES,
    SIZES,
    external,
    kafka,
    link,
    own_messages,
)
from tests.api.objects import changed, create, smallest
from tests.api.server import ApiServer, Json, RefusedError
from tierbench.api.model import Resource

pytestmark = pytest.mark.apiserver


def test_file_transfers_have_at_most_1000_cases(server: ApiServer, name: str) -> None:
    body = changed(smallest(FILES, name), SIZES, [f"{number}Mi" for number in range(1, 31)])
    body = changed(body, "spec.concurrency", [1, 2, 4, 8])
    body = changed(body, "spec.cacheState", ["Unchanged", "Warm", "Cold"])
    create(server, FILES, changed(body, "spec.servers.nodesPerClass", 2))
    with pytest.raises(RefusedError, match="the matrix has 1080 cases, at most 1000 are allowed: remove levels"):
        create(server, FILES, changed(body, "spec.servers.nodesPerClass", 3))


def test_each_direction_of_files_multiplies_the_cases(server: ApiServer, name: str) -> None:
    body = changed(smallest(FILES, name), SIZES, [f"{number}Mi" for number in range(1, 31)])
    body = changed(body, "spec.directions", ["Upload", "Download"])
    create(server, FILES, changed(body, "spec.servers.nodesPerClass", 16))
    body = changed(body, "spec.servers.nodesPerClass", 9)
    with pytest.raises(RefusedError, match="the matrix has 1080 cases, at most 1000 are allowed"):
        create(server, FILES, changed(body, "spec.concurrency", [1, 2]))
    with pytest.raises(RefusedError, match="the matrix has 1080 cases, at most 1000 are allowed"):
        create(server, FILES, changed(body, "spec.clients.engines", ["Wget", "Curl"]))


def test_each_image_of_a_server_multiplies_the_cases(server: ApiServer, name: str) -> None:
    body = changed(smallest(FILES, name), SIZES, [f"{number}Mi" for number in range(1, 31)])
    body = changed(body, "spec.concurrency", [1, 2, 4, 8])
    body = changed(body, "spec.cacheState", ["Unchanged", "Warm", "Cold"])
    create(server, FILES, changed(body, "spec.servers.images", ["default", "1.19.6"]))
    with pytest.raises(RefusedError, match="the matrix has 1080 cases, at most 1000 are allowed"):
        create(server, FILES, changed(body, "spec.servers.images", ["default", "1.19.6", "debian"]))
    body = changed(smallest(BROKERS, name), PAYLOAD_SIZES, list(range(100, 116)))
    body = changed(body, "spec.pairs", [1, 2, 4, 8, 16, 32, 64, 128])
    body = changed(body, "spec.brokers", [*kafka(images=["default", "3.9.1"]), {"name": "m", "mosquitto": {}}])
    create(server, BROKERS, changed(body, "spec.delivery", ["AtMostOnce", "AtLeastOnce"]))
    with pytest.raises(RefusedError, match="the matrix has 1152 cases, at most 1000 are allowed"):
        create(server, BROKERS, changed(body, "spec.delivery", ["AtMostOnce", "AtLeastOnce", "ExactlyOnce"]))


def test_each_link_multiplies_the_cases(server: ApiServer, name: str) -> None:
    body = changed(smallest(NETWORKS, name), "spec.streams", list(range(1, 9)))
    body = changed(body, "spec.servers.nodesPerClass", 16)
    create(server, NETWORKS, changed(body, LINKS, [link(name=each) for each in "abc"]))
    with pytest.raises(RefusedError, match="the matrix has 1024 cases, at most 1000 are allowed"):
        create(server, NETWORKS, changed(body, LINKS, [link(name=each) for each in "abcd"]))


def test_brokers_have_at_most_1000_cases(server: ApiServer, name: str) -> None:
    body = changed(smallest(BROKERS, name), PAYLOAD_SIZES, list(range(100, 116)))
    body = changed(body, "spec.pairs", [1, 2, 4, 8, 16, 32, 64, 128])
    body = changed(body, "spec.brokers", [*external(), {"name": "mosquitto", "mosquitto": {}}])
    create(server, BROKERS, changed(body, "spec.delivery", ["AtMostOnce", "AtLeastOnce", "ExactlyOnce"]))
    with pytest.raises(RefusedError, match="the matrix has 1280 cases, at most 1000 are allowed: remove levels"):
        create(
            server, BROKERS, changed(body, "spec.compression", [f"Gzip:{level}" for level in range(1, 5)] + ["None"])
        )


def test_each_of_the_users_messages_multiplies_the_cases(server: ApiServer, name: str) -> None:
    body = changed(smallest(BROKERS, name), MESSAGES, own_messages(*"abcdefghijkl"))
    body = changed(body, "spec.compression", [f"Gzip:{level}" for level in range(1, 9)])
    create(server, BROKERS, changed(body, "spec.pairs", list(range(1, 9))))
    body = changed(body, "spec.encryption", ["None", "AES128GCM"])
    with pytest.raises(RefusedError, match="the matrix has 1536 cases, at most 1000 are allowed"):
        create(server, BROKERS, changed(body, "spec.pairs", list(range(1, 9))))


def test_factors_of_kafka_multiply_only_the_cases_of_kafka(server: ApiServer, name: str) -> None:
    body = changed(smallest(BROKERS, name), PAYLOAD_SIZES, list(range(100, 110)))
    body = changed(body, "spec.kafkaClients", {"codecs": ["None", "Lz4", "Zstd"], "partitions": list(range(1, 9))})
    create(server, BROKERS, changed(body, "spec.pairs", [1, 2, 3, 4]))
    body = changed(body, "spec.brokers", [*kafka(), {"name": "mosquitto", "mosquitto": {}}])
    create(server, BROKERS, changed(changed(body, "spec.pairs", [1, 2, 3, 4]), "metadata.name", f"{name}-both"))
    with pytest.raises(RefusedError, match="the matrix has 1250 cases, at most 1000 are allowed"):
        create(server, BROKERS, changed(body, "spec.pairs", [1, 2, 3, 4, 5]))


def test_versions_of_mqtt_multiply_only_the_cases_of_mqtt(server: ApiServer, name: str) -> None:
    body = changed(smallest(BROKERS, name), PAYLOAD_SIZES, list(range(100, 116)))
    body = changed(body, "spec.pairs", [1, 2, 4, 8, 16, 32, 64, 128])
    body = changed(body, "spec.mqttClients", {"versions": ["3.1.1", "5"]})
    given = changed(body, "spec.brokers", [*kafka(), *external(), {"name": "mosquitto", "mosquitto": {}}])
    create(server, BROKERS, changed(given, "metadata.name", f"{name}-good"))
    with pytest.raises(RefusedError, match="the matrix has 1280 cases, at most 1000 are allowed"):
        create(server, BROKERS, changed(given, "spec.delivery", ["AtMostOnce", "AtLeastOnce"]))


def test_factors_of_tls_multiply_only_the_cases_with_tls(server: ApiServer, name: str) -> None:
    body = changed(smallest(BROKERS, name), PAYLOAD_SIZES, list(range(100, 116)))
    both = {"handshakes": ["Full", "Resumed"], "certificates": ["None", "Required"]}
    body = changed(changed(body, "spec.tlsClients", both), "spec.tls", ["None", "TLSv1.2", "TLSv1.3"])
    create(server, BROKERS, changed(body, "spec.pairs", [1, 2, 3, 4, 5, 6]))
    with pytest.raises(RefusedError, match="the matrix has 1008 cases, at most 1000 are allowed"):
        create(server, BROKERS, changed(body, "spec.pairs", [1, 2, 3, 4, 5, 6, 7]))


def test_networks_have_at_most_1000_cases(server: ApiServer, name: str) -> None:
    body = changed(smallest(NETWORKS, name), "spec.streams", list(range(1, 9)))
    body = changed(body, "spec.directions", ["Upload", "Download", "Bidirectional"])
    body = changed(body, "spec.servers.nodeClassNames", ["a", "b", "c"])
    create(server, NETWORKS, changed(body, "spec.servers.nodesPerClass", 13))
    with pytest.raises(RefusedError, match="the matrix has 1008 cases, at most 1000 are allowed: remove levels"):
        create(server, NETWORKS, changed(body, "spec.servers.nodesPerClass", 14))


def test_congestion_control_and_an_external_server_add_cases(server: ApiServer, name: str) -> None:
    body = changed(smallest(NETWORKS, name), "spec.streams", list(range(1, 9)))
    body = changed(body, "spec.directions", ["Upload", "Download", "Bidirectional"])
    body = changed(body, "spec.tcp", {"congestionControl": [f"a{number}" for number in range(8)]})
    body = changed(body, "spec.servers.nodesPerClass", 5)
    create(server, NETWORKS, changed(body, "metadata.name", f"{name}-good"))
    with pytest.raises(RefusedError, match="the matrix has 1152 cases, at most 1000 are allowed"):
        create(server, NETWORKS, changed(body, "spec.servers.external", OUTSIDE))


def test_clients_alone_and_all_at_once_are_separate_cases(server: ApiServer, name: str) -> None:
    body = changed(smallest(NETWORKS, name), "spec.streams", list(range(1, 9)))
    body = changed(body, "spec.directions", ["Upload", "Download", "Bidirectional"])
    body = changed(body, "spec.servers.nodesPerClass", 3)
    body = changed(body, "spec.clients.nodesPerClass", 16)
    create(server, NETWORKS, changed(body, "spec.clients.modes", ["Simultaneous"]))
    with pytest.raises(RefusedError, match="the matrix has 1224 cases, at most 1000 are allowed"):
        create(server, NETWORKS, changed(body, "spec.clients.modes", ["Alone", "Simultaneous"]))


@pytest.mark.parametrize(
    ("model", "good", "bad"),
    [
        (FILES, {"nodeClassNames": ["x", "y"]}, {"nodeClassNames": ["x", "y", "z"]}),
        (
            BROKERS,
            {"nodeClassNames": ["x"], "subscribers": {"type": "Separate", "nodeClassName": "y"}},
            {"nodeClassNames": ["x"], "pods": 3},
        ),
    ],
)
def test_preflight_measures_at_most_64_pairs_of_nodes(
    server: ApiServer, name: str, model: type[Resource], good: Json, bad: Json
) -> None:
    body = changed(smallest(model, name), "spec.servers", {"nodeClassNames": ["a", "b"], "nodesPerClass": 16})
    body = changed(body, "spec.preflight", {})
    if model is BROKERS:
        body = changed(body, "spec.pairs", [4])
    create(server, model, changed(changed(body, "metadata.name", f"{name}-good"), "spec.clients", good))
    without = changed(changed(body, "metadata.name", f"{name}-without"), "spec.preflight", None)
    create(server, model, changed(without, "spec.clients", bad))
    with pytest.raises(RefusedError, match="preflight would measure between more than 64 pairs of nodes: remove it"):
        create(server, model, changed(body, "spec.clients", bad))
