"""FileTransferBenchmark: clients download files of each size from nginx, or upload them to it."""

from typing import Final

from tierbench.kinds.file_transfer import measures, metrics
from tierbench.kinds.file_transfer.spec import FileTransferBenchmark
from tierbench.kinds.file_transfer.workload import FileTransfer, not_from_outside
from tierbench.kinds.registry import BenchmarkKind, FactorTraits, Image, Measures, Metrics, Reasons, Report

_REASONS: Final = Reasons(
    failures={
        "AttemptsExhausted": "A transfer used all `retry.attempts`. The message has the last cause: check the network "
        "and the server's log.",
        "CacheStateFailed": "The agent could not bring a file into the requested cache state. The message has the "
        "error.",
        "CertificateRefused": "The client does not trust the server's certificate. Check that no one replaced the "
        "Secret of the benchmark.",
        "EngineFailed": "wget or curl ended with an error that it does not retry. The message has its last line.",
        "FileNotFound": "The file is not in the server's folder. Check that nothing deletes files from `storage`.",
        "ForeignFile": "A file that tierbench did not create is in its folder. Delete it, or choose another "
        "`storage.hostPath.path`.",
        "InsufficientStorage": "The node's disk has too little room for the files that are served and received. Use "
        "smaller sizes or a lower `concurrency`, free space, or choose another `storage`.",
        "InvalidURL": "Client and operator are of different versions. Use images of one version.",
        "NoDigest": "The server offers no SHA-256 of the file. Read the log of the preparation.",
        "NotFound": "The server does not have the file. Read the log of the preparation.",
        "NotStored": "The client could not look at the file that it has uploaded. Read the server's log.",
        "ProgramMissing": "The image of the client lacks wget or curl. Use images of one release.",
        "RequestRefused": "The server refuses the request. The message has the HTTP status.",
        "TLSFailed": "The TLS handshake with the server failed. The message has the error: read the server's log.",
        "UserNotNamed": "`storage.hostPath` needs a user id, and `workloads.runAsUser` is null. Choose another "
        "`storage`, or set the value of the chart.",
        "WrongDigest": "The server has stored another content than was sent. Check the node's disk and memory.",
        "WrongLength": "The file on the server has another size. Check that nothing changes files in `storage`.",
    },
    invalid={
        "CacheNotCold": "The file was still in the page cache, although `cacheState` is Cold. Look for other readers.",
        "CacheNotWarm": "The file was not in the page cache, although memory could hold it. Look for other load.",
    },
    facts={
        "CacheCannotHold": "The file is larger than the page cache of the server's node, so it cannot be warm.",
        "IOBound": "Most of the file came from the disk, and the node waited for it.",
    },
    unreachable=frozenset({"AttemptsExhausted"}),
)
"""The first sentence of a text is the meaning, the others say what to do."""

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
        measures.cells,
        retries=measures.retries,
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
    reasons=_REASONS,
    dashboard="tierbench.kinds.file_transfer.dashboard",
)
