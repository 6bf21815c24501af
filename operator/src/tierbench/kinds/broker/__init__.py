"""BrokerBenchmark: Mosquitto, Kafka, nginx or an existing broker, with publishers and subscribers as clients."""

from typing import Final

from tierbench.kinds.broker import measures, metrics, report, sinetstream, strimzi_lifecycle
from tierbench.kinds.broker.client_spec import GROUPS, PAIR
from tierbench.kinds.broker.server_spec import KafkaProvider
from tierbench.kinds.broker.spec import BrokerBenchmark
from tierbench.kinds.broker.tls import CERTIFICATE, HANDSHAKE
from tierbench.kinds.broker.workload import BrokerWorkload, not_from_outside
from tierbench.kinds.registry import (
    BenchmarkKind,
    FactorTraits,
    Image,
    Measures,
    Metrics,
    Reasons,
    Report,
    ReportSection,
)

_REASONS: Final = Reasons(
    failures={
        "BrokerUnreachable": "No first message arrived within `timeouts.firstMessageSeconds`. Check the address, the "
        "port and network policies.",
        "CertificateExpired": "The broker's certificate is not valid now. Renew it, and check the clock of the node.",
        "CertificateUnknown": "Another CA signed the broker's certificate, or it has another name. Fix `ca.crt`.",
        "ClientCertificateRefused": "The broker requires a certificate of the client, and got none or refuses it. Fix "
        "`tls.crt` and `tls.key` in the Secret, or write `tlsClients.certificates: [Required]`.",
        "ClientCertificateUnused": "The broker asked for no certificate of the client. Let it require one at this "
        "port, or write `tlsClients.certificates: [None]`.",
        "CredentialsRefused": "The broker refuses the user or the password. Fix the Secret.",
        "EngineFailed": "The program that makes the load ended early. Read the client's log, which has what it wrote.",
        "EngineInvalid": "The program that makes the load broke a rule of its protocol. Use images of one release, or "
        "fix the engine.",
        "EngineSilent": "The program that makes the load wrote or answered nothing for 30 s. Read the client's log.",
        "KafkaVersionUnsupported": "SINETStream's library does not speak to this version of Kafka. Measure it with "
        "`clients.engine: Native`, or choose another of `kafka.images`.",
        "LowerQosGranted": "The broker grants a lower QoS than requested. Choose another `delivery`.",
        "MessagesUnusable": "The ConfigMap of your messages is missing or empty, or a message has less than 9 bytes. "
        "Fix it, and run again.",
        "MqttVersionRefused": "The broker does not speak this version of MQTT. Choose another one of "
        "`mqttClients.versions`.",
        "NotAuthorized": "The user may not use the topic. Fix the access rules of the broker.",
        "NothingAcknowledged": "The load ran, and the broker acknowledged no message. Read its log, and check what "
        "its user may write.",
        "NothingDelivered": "The load ran, and no message came back. Read the broker's log.",
        "PayloadNotDelivered": "A small message arrives, and one of this size does not. Raise the broker's limit, or "
        "use smaller sizes.",
        "PortsExhausted": "Publishers that connect for each message used all ports of the client, because each holds a "
        "closed connection for a minute. Send fewer messages, or use `clients.connections: EachTrial`.",
        "RequestsRefused": "The HTTP server answers messages with another status than 2xx. Fix `external.path` or the "
        "account, or read the server's log.",
        "SecretUnusable": "The Secret of an external broker does not exist, or lacks a key. The message names the key. "
        "TLS needs `ca.crt`, and without TLS a Secret needs `username`.",
        "SeveralBrokers": "The Kafka has more than one broker, and the engine SINETStream supports one. Measure it "
        "with `clients.engine: Native`.",
        "TlsVersionRefused": "The broker does not allow the version of TLS. Choose another `tls`.",
        "TopicRefused": "Kafka refuses that many partitions. Check the broker's policies.",
        "Unconfirmed": "The connection broke off or the broker did not answer, so it is not known what it received. "
        "Read its log, and run again.",
    },
    invalid={
        "AcknowledgedLost": "The broker acknowledged messages and lost them. Check whether it restarted.",
        "MessagesLost": "Messages were lost, and the times are those of messages that arrived.",
        "NotResumed": "Connections that should resume TLS sessions made full handshakes. Check that the broker issues "
        "session tickets, and that it did not restart.",
    },
    facts={
        "BehindPace": "Messages were sent late or not at all, because broker or subscribers were slower than the "
        "pacing.",
        "BrokerSaturated": "The broker or its node used all its CPU, which limited the numbers.",
        "Duplicated": "Messages were received twice.",
        "NotSteady": "Round trips reached no steady state, so no message was left out of them. Make the load longer.",
    },
    unreachable=frozenset(
        {"BrokerUnreachable", "EngineFailed", "EngineSilent", "NothingAcknowledged", "NothingDelivered", "Unconfirmed"}
    ),
)
"""The first sentence of a text is the meaning, the others say what to do."""

KIND: Final = BenchmarkKind(
    model=BrokerBenchmark,
    workload=BrokerWorkload,
    measures=Measures(
        quantities=measures.quantities,
        everything=measures.EVERYTHING,
        main=measures.MAIN,
        time=measures.TIME,
        rate=measures.RATE,
        byte_rate="throughputBytesPerSecond",
        times=measures.TIMES,
        titles=measures.TITLES,
        larger_is_better=("pairFairnessPartsPerMillion",),
        distributions={"roundTripNanoseconds": "round_trip", "acknowledgeNanoseconds": "acknowledge"},
        costs=("wireBytesPerMessage",),  # it matters most on a slow or metered link
        facts=measures.facts,
        invalid=measures.invalid,
        merge=measures.merge,
        condense=measures.condense,
        accumulate=measures.accumulate,
        counts=measures.counts,
        totals=measures.totals,
        bits_per_second=measures.bits_per_second,
    ),
    metrics=Metrics(metrics.FACTORS, metrics.PARAMETERS, metrics.add, metrics.HISTOGRAMS),
    report=Report(
        report.cells,
        losses=report.losses,
        spreads={"round_trip": "Round trip"},
        other_spreads={
            "round_trip_actual": "Round trip from the actual send time",
            "acknowledge": "Time to the acknowledgement",
        },
        sections=(
            ReportSection("shares", "Throughput of each pair", report.pair_share_figures),
            ReportSection("time", "Time of a message, by step", report.message_time_figures),
        ),
    ),
    factors={
        "broker": FactorTraits(names=True, first=True),
        "payloadSize": FactorTraits(first=True, amount=True, refinable=True),
        "content": FactorTraits(usual="Random"),
        HANDSHAKE: FactorTraits(usual="Full", words="{} handshakes"),
        CERTIFICATE: FactorTraits(usual="None", words="client certificates {}"),
        "encryption": FactorTraits(usual="None"),
        "compression": FactorTraits(usual="None"),
        "pairs": FactorTraits(usual="1", words="x{}", load=True),
        "mqttVersion": FactorTraits(usual="3.1.1", words="MQTT {}", names=True),
        GROUPS: FactorTraits(usual=str(PAIR), words="groups of {}"),
        "codec": FactorTraits(usual="None"),
        "partitions": FactorTraits(usual="1", words="{} partitions"),
        "lingerMilliseconds": FactorTraits(usual="0", words="linger {} ms"),
        "batchSize": FactorTraits(usual="1Mi", words="batches of {}"),
    },
    images={
        "mosquitto": Image(
            "The MQTT broker. You can use an official image: "
            '{repository: docker.io/library/eclipse-mosquitto, tag: "2.0"}.',
            alternatives=True,
        ),
        "kafka": Image(
            "Apache Kafka. You can use an official image: {repository: docker.io/apache/kafka, tag: 4.3.1}.",
            alternatives=True,
        ),
        "paho": Image("The client of brokers with clients.engine: Paho."),
        "sinetstream": Image("The client of brokers with clients.engine: SINETStream."),
    },
    not_from_outside=not_from_outside,
    exports={"perftool": report.perftool_json, "perftool-tsv": report.perftool_tsv},
    configurations={"sinetstream": sinetstream.configuration},
    permissions=strimzi_lifecycle.PERMISSIONS,
    providers={KafkaProvider.STRIMZI: strimzi_lifecycle.StrimziProvider()},
    reasons=_REASONS,
    dashboard="tierbench.kinds.broker.dashboard",
)
