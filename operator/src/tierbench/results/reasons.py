"""The reasons that results of every kind can have, for the reference.

The first sentence of a text is the meaning, the others say what to do.
"""

from typing import Final

from tierbench.kinds.registry import Reasons

REASONS: Final = Reasons(
    failures={
        "AddressRefused": "An external server has an address that the policy forbids. Use another server, or ask the "
        "administrator to change `policy.allowedNetworks`.",
        "AgentKeyUnknown": "Another program answers at the agent's address. Check who else has the address of the "
        "server's pod.",
        "AgentUnreachable": "The agent next to the server does not answer. Read the log of its container, and check "
        "network policies.",
        "BadRequest": "Client and agent are of different versions. Use images of one version.",
        "BarrierMismatch": "The clients of a trial were started with different arguments. Use images of one version.",
        "BarrierTimedOut": "A client's pod did not reach the start of a trial in time. See its events.",
        "ClientError": "The client failed for a reason that it does not know. The message has the error.",
        "Interrupted": "A node was not Ready while its client measured, or the client received a signal to terminate. "
        "Another client measures what is missing: see the events of the node and the pod.",
        "InvalidArguments": "Client and operator are of different versions. Use images of one version.",
        "LinkNotPossible": "The container `link` cannot carry the packets of a client's pod. The message says what is "
        "missing: a capability, a feature of the kernel, or a trace in the ConfigMap.",
        "LookupFailed": "A server's name cannot be resolved on the client's node. Check the name, and the DNS of the "
        "cluster.",
        "NoTrial": "No trial was run, or the agent was restarted during one. The events of the pods show why.",
        "TokenRefused": "The agent does not accept the client's token. Check that no one replaced the Secret of the "
        "benchmark.",
    },
    invalid={
        "ClientSaturated": "The client used 90% of the CPU that it could, so it may have been the limit. Use a faster "
        "client class, or a higher CPU limit.",
        "LinkDiffers": "The link of a client is not as the spec declares it: the rate differs by more than 5%, or the "
        "round trip by more than 1 ms and 5%. The network may be slower than the link, or the client's node too busy.",
        "LinkNotMeasured": "The client could not measure its link. Its engine may be unable to, or the agent next "
        "to the server did not answer.",
        "ServerNotObserved": "The agent next to the server sent no samples. Read the log of its container.",
        "SpreadTooWide": "The standard deviation is above 30% of the mean, and above 10 ms for times. Use more "
        "repetitions, or look for other load on the nodes.",
        "Throttled": "Heat slowed a computer, or a CPU quota held a process back for more than 1% of a trial. Cool "
        "the computer, or raise the limit.",
        "TrialsFailed": "Some trials failed, and the statistics do not contain them. See their reasons.",
        "TrialsMissing": "The case ended before all its trials were run. The message has the reason.",
    },
    facts={
        "FrequencyBelowMaximum": "Processors ran below 90% of their highest frequency, although their governor is "
        "`performance`. This is usual while all cores are busy.",
        "LinkMeasured": "What the client measured of its link before its first trial.",
        "NetworkBound": "The network was the limit: a trial reached 90 to 110% of the rate of the preflight.",
        "PublishedMean": "The numbers are published, and their trials are not known.",
        "Interrupted": "A node was not Ready during trials, and they were measured again. The record has them, and no "
        "statistic contains them.",
        "Resumed": "A client was lost, and a new one continued with the missing trials.",
    },
    unreachable=frozenset({"AgentUnreachable", "BarrierTimedOut", "ClientLost", "LookupFailed", "TimedOut"}),
)
