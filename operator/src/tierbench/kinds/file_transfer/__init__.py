"""FileTransferBenchmark: clients download files of each size from nginx, or upload them to it."""

from typing import Final

from tierbench.kinds.file_transfer import measures, metrics, reasons, report
from tierbench.kinds.file_transfer.spec import FileTransferBenchmark
from tierbench.kinds.file_transfer.workload import FileTransfer, not_from_outside
from tierbench.kinds.registry import BenchmarkKind, FactorTraits, Image, Measures, Metrics, Report

KIND: Final = BenchmarkKind(
    model=FileTransferBenchmark,
    workload=FileTransfer,
    measures=Measures(
        quantities=measures.quantities,
        everything=measures.EVERYTHING,
        main=measures.MAIN,
        time=measures.TIME,
        rate=measures.RATE,
        times=measures.TIMES,
        titles=measures.TITLES,
        facts=measures.facts,
        invalid=measures.invalid,
        counts=measures.counts,
        totals=measures.totals,
        derived=measures.derived,
        bits_per_second=measures.bits_per_second,
        bytes_served=measures.bytes_served,
    ),
    metrics=Metrics(metrics.FACTORS, metrics.PARAMETERS, metrics.add, metrics.HISTOGRAMS),
    report=Report(
        report.cells,
        retries=report.retries,
        spreads={"download_duration": "Time of a single transfer"},
    ),
    factors={
        "fileSize": FactorTraits(first=True, amount=True, refinable=True),
        "concurrency": FactorTraits(usual="1", words="x{}", load=True),
        "cacheState": FactorTraits(usual="Unchanged"),
        "engine": FactorTraits(usual="Native"),
    },
    implied={"direction": "Download", "engine": "Native"},
    images={
        "nginx": Image(
            'The file server. You can use an official image: {repository: docker.io/library/nginx, tag: "1.29"}.',
            alternatives=True,
        ),
        "transfer": Image("wget and curl, the clients of file transfers with clients.engines."),
    },
    not_from_outside=not_from_outside,
    first={
        "fileSizes": ["1Mi", "64Mi"],
        "storage": {"emptyDir": {}},
        # The first download of a file from a new server takes longer, and three trials cannot absorb that.
        "warmupTrials": 1,
        "repetitions": 3,
    },
    reasons=reasons.REASONS,
    dashboard="tierbench.kinds.file_transfer.dashboard",
)
