"""Each CEL rule rejects an invalid value, with its message and its path."""

import pytest

from tests.api.invalid import BROKERS, FILES, NETWORKS, ROWS, Row
from tests.api.objects import changed, create, schema_path, smallest
from tests.api.server import ApiServer, RefusedError
from tierbench.api.record import BenchmarkRecord
from tierbench.api.result import BenchmarkResult
from tierbench.api.schema import object_schema, resource_types, rules_with_paths
from tierbench.kinds.broker.spec import BrokerBenchmark
from tierbench.kinds.file_transfer.spec import FileTransferBenchmark
from tierbench.kinds.network.spec import NetworkBenchmark

pytestmark = pytest.mark.apiserver

RULES_WITH_OWN_TESTS = {
    (FileTransferBenchmark, "spec", "the matrix has more than 1000 cases"),
    (BrokerBenchmark, "spec", "the matrix has more than 1000 cases"),
    (BrokerBenchmark, "spec", "an external broker has one address"),
    (BrokerBenchmark, "spec", "kafka.heap does not fit into servers.resources"),
    (BrokerBenchmark, "spec", "clients.engine: Native supports four levels of Zstd"),
    (BrokerBenchmark, "spec", "pacing ClosedLoop waits for messages to return"),
    (BrokerBenchmark, "spec", "pacing Acknowledged waits for acknowledgements"),
    (BrokerBenchmark, "spec.clients.subscribers", "type Separate needs a nodeClassName"),
    (BrokerBenchmark, "spec.pacing", "inFlight is only for the types ClosedLoop and Acknowledged"),
    (NetworkBenchmark, "spec", "trim.scope: Client needs clients that measure at the same time"),
    (FileTransferBenchmark, "spec", "cacheState is that of a file that the server reads"),
    (FileTransferBenchmark, "spec", "Wget and Curl drop the content"),
    (FileTransferBenchmark, "spec", "Wget's pauses grow by one second each"),
    (FileTransferBenchmark, "spec", "Curl counts in seconds"),
    (BrokerBenchmark, "spec", "clients.engine: Paho only supports MQTT"),
    (BrokerBenchmark, "spec", "clients.engine: SINETStream has no delivery ExactlyOnce for Kafka"),
    (BrokerBenchmark, "spec", "clients.engine: SINETStream sends each message to Kafka by itself"),
    (BrokerBenchmark, "spec", "clients.engine: Native and Paho encrypt with AES128GCM only"),
    (BrokerBenchmark, "spec", "clients.engine: SINETStream waits for the acknowledgement of each message"),
    (BrokerBenchmark, "spec", "clients.engine: SINETStream measures MQTT 3.1.1 only"),
    (BrokerBenchmark, "spec", "clients.connections: EachMessage is only for MQTT"),
    (BrokerBenchmark, "spec", "clients.connections: EachMessage has one message of a publisher in flight"),
    (BrokerBenchmark, "spec", "clients trust no CA but that of an external broker"),
    (BrokerBenchmark, "spec", "tlsClients is only for connections with TLS"),
    (BrokerBenchmark, "spec", "only clients.engine: Native resumes sessions and presents certificates"),
    (BrokerBenchmark, "spec", "Kafka resumes few sessions, because Java refuses most tickets"),
    (BrokerBenchmark, "spec", "users of Strimzi have a password or a certificate, and not both"),
    (BrokerBenchmark, "spec", "groups need clients.engine: Native"),
    (BrokerBenchmark, "spec", "groups have their subscribers in the pods of their publishers"),
    (BrokerBenchmark, "spec", "groups with subscription: Shared are only for MQTT"),
    (BrokerBenchmark, "spec", "pairs and groups make more than 1024 connections in a case"),
    (BrokerBenchmark, "spec", "messages of several publishers need 8 bytes"),
    (BrokerBenchmark, "spec", "an HTTP server passes no message on"),
    (BrokerBenchmark, "spec", "an HTTP server answers each message"),
    (BrokerBenchmark, "spec", "clients.engine: Native alone posts messages"),
    (BrokerBenchmark, "spec", "clients of HTTP make full handshakes"),
    (BrokerBenchmark, "spec", "a connection of HTTP/1.1 carries one message at a time"),
    (BrokerBenchmark, "spec", "Strimzi does not support access: HostNetwork"),
    (BrokerBenchmark, "spec", "Strimzi's certificates do not contain nodes"),
    (FileTransferBenchmark, "spec", "preflight would measure between more than 64 pairs"),
    (BrokerBenchmark, "spec", "preflight would measure between more than 64 pairs"),
    (NetworkBenchmark, "spec", "the matrix has more than 1000 cases"),
    *((model, "spec", "links are in the network of pods") for model in (FILES, BROKERS, NETWORKS)),
    (NetworkBenchmark, "spec", "tcp.congestionControl is only for TCP"),
    (NetworkBenchmark, "spec", "an external server serves one client at a time"),
    (BenchmarkResult, "", "a result that is Complete or Failed cannot be changed"),
    (BenchmarkResult, "spec", "the spec of a result cannot be changed"),
    (BenchmarkRecord, "", "a record whose case has ended cannot be changed"),
    (BenchmarkRecord, "spec", "the spec of a record cannot be changed"),
}


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_rule_rejects_an_invalid_value_with_its_message(server: ApiServer, name: str, row: Row) -> None:
    body = smallest(row.model, name)
    create(server, row.model, smallest(row.model, f"{name}-good"))
    with pytest.raises(RefusedError) as refused:
        create(server, row.model, changed(body, row.path, row.value))
    assert refused.value.code == 422
    answers = [(schema_path(field), message) for field, message in refused.value.causes]
    assert [place for place, message in answers if message.startswith(row.message)] == [row.place]
    assert "rule evaluation error" not in str(refused.value)


def test_every_rule_has_a_test() -> None:
    covered = {(row.model, row.place, row.message) for row in ROWS} | RULES_WITH_OWN_TESTS
    missing = [
        (model.KIND.kind, place, rule["message"])
        for model in resource_types()
        for place, rule in rules_with_paths("", object_schema(model))
        if not any((model, place) == row[:2] and rule["message"].startswith(row[2]) for row in covered)
    ]
    assert missing == []
