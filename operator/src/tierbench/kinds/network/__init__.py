"""NetworkBenchmark: iperf3 and ping between nodes, or to a server outside the cluster."""

from typing import Final

from tierbench.kinds.network import measures, metrics, report
from tierbench.kinds.network.spec import NetworkBenchmark
from tierbench.kinds.network.workload import PROBE, NetworkWorkload
from tierbench.kinds.registry import BenchmarkKind, FactorTraits, Image, Measures, Metrics, Reasons, Report

_REASONS: Final = Reasons(
    failures={
        "CongestionControlNotAllowed": "The kernel of client or server does not allow the algorithm. At both ends "
        "load its module, and add it to `net.ipv4.tcp_allowed_congestion_control`; or remove it from the spec.",
        "ConnectionLost": "The server ended during a trial, or the network broke. Read the server's log.",
        "ConnectionRefused": "No program listens at the server's address. Read the server's log.",
        "Iperf3Failed": "iperf3 failed for a reason that the client does not know. The message is iperf3's.",
        "PingFailed": "ping ended without its summary, or the load ended before all echo requests of `ping.underLoad` "
        "were sent. Check routes and names, or make the load longer, as the message says.",
        "PingNotPermitted": "The pod may not send echo requests. Allow the sysctl `net.ipv4.ping_group_range` (with "
        "`access: HostNetwork` set it on the node), or set `ping.count: 0`.",
        "ProgramMissing": "The image of the client has no iperf3 or ping. Use the chart's network image.",
        "ServerBusy": "The iperf3 server was busy with another client for half a minute. Check who else uses it.",
        "ServerNotStarted": "iperf3 did not listen within half a minute. The message says whether its port is taken.",
        "ServerUnreachable": "The server's address does not answer, or its name does not exist. Check routes and "
        "network policies.",
        "Stalled": "iperf3 did not end within a minute after its load. Check the network.",
        "UDPBlocked": "TCP reaches the server, and UDP does not. Check firewalls and network policies, or remove UDP.",
    },
    invalid={
        "NotSimultaneous": "Clients sent together for less than 95% of the time in some trial. Make the load longer.",
        "ServerSaturated": "iperf3 used 90% of the CPU that it could, so it may have been the limit.",
    },
    facts={
        "PacketsLost": "UDP packets were lost: the network carried less than was sent.",
        "PingLost": "Echo requests were not answered.",
        "PingLostUnderLoad": "Echo requests during the load were not answered: the path dropped them or their answers.",
        "UnevenShares": "One of several clients got more than its share. The message names it.",
    },
    unreachable=frozenset(
        {"ConnectionLost", "Iperf3Failed", "PingFailed", "ServerNotStarted", "ServerUnreachable", "Stalled"}
    ),
)
"""The first sentence of a text is the meaning, the others say what to do."""

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
    reasons=_REASONS,
    dashboard="tierbench.kinds.network.dashboard",
    probe=PROBE,
)
