"""BrokerBenchmark: Mosquitto, Kafka, nginx or an existing broker, with publishers and subscribers as clients."""

from typing import Final

from tierbench.kinds.broker import measures, metrics, reasons, report, sinetstream, strimzi_lifecycle
from tierbench.kinds.broker.groups import GROUPS, PAIR
from tierbench.kinds.broker.server_spec import KafkaProvider
from tierbench.kinds.broker.spec import BrokerBenchmark
from tierbench.kinds.broker.tls import CERTIFICATE, HANDSHAKE
from tierbench.kinds.broker.workload import BrokerWorkload, not_from_outside
from tierbench.kinds.registry import BenchmarkKind, FactorTraits, Image, Measures, Metrics, Report, ReportSection

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
    reasons=reasons.REASONS,
    dashboard="tierbench.kinds.broker.dashboard",
)
