"""NetworkBenchmark: iperf3 and ping between nodes, or to a server outside the cluster."""

from typing import Final

from tierbench.kinds.network import measures, metrics, reasons, report
from tierbench.kinds.network.spec import NetworkBenchmark
from tierbench.kinds.network.workload import PROBE, NetworkWorkload
from tierbench.kinds.registry import BenchmarkKind, FactorTraits, Image, Measures, Metrics, Report

KIND: Final = BenchmarkKind(
    model=NetworkBenchmark,
    workload=NetworkWorkload,
    measures=Measures(
        quantities=measures.quantities,
        everything=measures.EVERYTHING,
        main=measures.MAIN,
        time=measures.TIME,
        rate=measures.RATE,
        titles=measures.TITLES,
        larger_is_better=("fairnessPartsPerMillion",),
        distributions={"pingNanoseconds": "ping", "pingUnderLoadNanoseconds": "ping_under_load"},
        costs=("pingUnderLoadNanoseconds",),
        facts=measures.facts,
        invalid=measures.invalid,
        merge=measures.merge,
        condense=measures.condense,
        is_client_rate=measures.is_client_rate,
    ),
    metrics=Metrics(metrics.FACTORS, metrics.PARAMETERS, metrics.add, metrics.HISTOGRAMS),
    report=Report(
        report.cells,
        answers=report.answers,
        figures=report.device_figures,
        spreads={
            "ping": "Round trip of an echo request",
            "ping_under_load": "Round trip of an echo request under load",
        },
    ),
    factors={
        "protocol": FactorTraits(competing=False),  # UDP sends at the rate in the spec
        "streams": FactorTraits(usual="1", words="x{}", load=True),
        "clientMode": FactorTraits(
            usual="Alone",
            phrases={"Alone": "alone", "Simultaneous": "all at once"},
            sum=True,
        ),
    },
    images={"network": Image("iperf3 and ping, servers and clients.")},
    reasons=reasons.REASONS,
    dashboard="tierbench.kinds.network.dashboard",
    probe=PROBE,
)
