"""The condition types, and the reasons of conditions, events, failed cases, results and advices.

The reference of conditions and reasons is generated from this module: a comment begins a section and says where its
reasons appear. The text below a name, or next to it in a table, has the meaning as its first sentence, and then what
to do.
"""

from collections.abc import Mapping
from typing import Final

from tierbench.kinds.registry import Reasons
from tierbench.results import quantities

# Conditions of benchmarks
SCHEDULED: Final = "Scheduled"
"""The nodes of the run are chosen. While it is False, the benchmark waits for nodes, then its cases fail."""
QUEUED: Final = "Queued"
"""The benchmark waits for nodes or for a limit. The message names what it waits for."""
SERVER_READY: Final = "ServerReady"
"""A server of the run is ready. While it is False, the message names the pod and what it waits for."""
SUSPENDED: Final = "Suspended"
"""`spec.runPolicy.suspend` stops the benchmark. It continues when you set the field to false."""
COMPLETE: Final = "Complete"
"""The last run has ended, and at least one case was measured."""
FAILED: Final = "Failed"
"""The last run measured no case, or could not begin. Remove the cause, then run `kubectl tierbench rerun NAME`."""
SCHEDULE_VALID: Final = "ScheduleValid"
"""The schedule starts the next run. While it is False, correct `spec.runPolicy.schedule` or `timeZone`."""
PASSED: Final = "Passed"
"""Every case of the last run met `spec.runPolicy.constraints`. Only benchmarks with constraints have it."""
REGRESSED: Final = "Regressed"
"""The last run is shown to be worse than earlier runs. The message names the cases."""
NETWORK_MEASURED: Final = "NetworkMeasured"
"""The preflight has measured the network between the nodes. Only benchmarks with a preflight have it."""
LOGS_REACHABLE: Final = "LogsReachable"
"""The API server can read the logs of clients. A benchmark or node class has the condition once a log could not be
read."""
CLOCK_SKEWED: Final = "ClockSkewed"
"""The clock of a node is off by minutes. A benchmark or node class has the condition once a clock was off."""
RECONCILING: Final = "Reconciling"
"""A run waits or measures. The message says what for. The benchmark has this condition only while it is True."""
STALLED: Final = "Stalled"
"""The last run has failed. The message says why. The benchmark has this condition only while it is True."""
DEFINITIONS_DIFFER: Final = "DefinitionsDiffer"
"""The CustomResourceDefinitions are older than the operator, so runs wait. Upgrade them."""

# Conditions of node classes
CLASS_READY: Final = "Ready"
"""At least one node of the class is Ready and not cordoned, or a member of an external class is there. The message has
their number."""

# Nodes: conditions Scheduled, Ready and ClockSkewed, failed cases, events
NODES_READY: Final = "NodesReady"
"""Benchmarks can use nodes of the class."""
NODES_CHOSEN: Final = "NodesChosen"
"""The run has nodes for its servers and clients."""
NODE_CLASS_NOT_FOUND: Final = "NodeClassNotFound"
"""The spec names a node class that does not exist. Create it, or name one of `kubectl get nodeclasses.tierbench.io`."""
NO_SUCH_NODE: Final = "NoSuchNode"
"""No node has the labels of the node class. Label a node, or change the selector of the class."""
NO_READY_NODE: Final = "NoReadyNode"
"""The nodes of the class are not Ready, or are cordoned. `kubectl get nodes` shows their state."""
TOO_FEW_NODES: Final = "TooFewNodes"
"""The class has fewer nodes than the servers or the clients need. Add nodes, or ask for fewer."""
NO_SEPARATE_CLIENT_NODE: Final = "NoSeparateClientNode"
"""The client class has no node except the server's. Add a node to the class, or set `colocation: Allowed`."""
NO_SHARED_NODE: Final = "NoSharedNode"
"""With `colocation: Required`, the client class must contain the server's node. Change the class or `colocation`."""
CLOCK_OFF: Final = "ClockOff"
"""The clock of the node that the message names is off. Set it by NTP or chrony."""
CLOCKS_AGREE: Final = "ClocksAgree"
"""No clock of a node of the class is known to be off."""
NODE_NOT_READY: Final = "NodeNotReady"
"""A node stopped being Ready during the run. `kubectl describe node` shows why. Then start another run."""

# External classes: conditions Scheduled, Ready and NetworkMeasured, failed cases, events
MEMBERS_READY: Final = "MembersReady"
"""Members of the external class wait for work, or measure."""
NO_COLLECTOR: Final = "NoCollector"
"""The operator has no collector, by which members reach it. Set the chart values `collector.enabled` and
`collector.address`."""
NO_MEMBER: Final = "NoMember"
"""No machine has joined the external class. Run `kubectl tierbench join CLASS`, and on the machine the command that it
prints."""
MEMBERS_SILENT: Final = "MembersSilent"
"""No member of the external class has asked for work lately. Start `tierbench-client join` on one of them again."""
NOT_FROM_OUTSIDE: Final = "NotFromOutside"
"""Clients outside the cluster cannot measure what the benchmark asks for. The message names the field to change."""
NO_MEMBER_CAME: Final = "NoMemberCame"
"""No member of the external class took the work of a client within `timeouts.nodeNotReadySeconds`. Start
`tierbench-client join` on one of them, then run `kubectl tierbench rerun NAME`."""
WORK_REFUSED: Final = "WorkRefused"
"""The operator did not take the plan that a stand-in offers. Use images and an operator of one release."""

# Policy: condition Scheduled, failed cases, events
REFUSED_BY_POLICY: Final = "RefusedByPolicy"
"""The administrator's policy forbids what the spec asks for. Change the field that the message names, or ask the
administrator to change `policy`."""
IMAGE_NOT_LISTED: Final = "ImageNotListed"
"""The spec names an image that the chart does not list. Name one that the message lists, or have it added."""

# Queue: condition Queued
NODES_BUSY: Final = "NodesBusy"
"""Another benchmark measures on the nodes. Wait: `kubectl -n tierbench-leases get leases` lists the nodes in use."""
NODES_HELD: Final = "NodesHeld"
"""The benchmark has reserved its nodes."""
WAITS_FOR_TURN: Final = "WaitsForTurn"
"""Another benchmark is ahead in the queue for the same nodes. Wait: the message says why it is ahead."""

# Limits: conditions Queued and Failed, failed cases, events
TOO_MANY_CASES: Final = "TooManyCases"
"""The spec has more cases than `limits.cases`. Use fewer levels, or split the benchmark."""
TOO_MANY_TRIALS: Final = "TooManyTrials"
"""Cases times repetitions are more than `limits.trials`. Use fewer repetitions or levels, or split the benchmark."""
TOO_MANY_BENCHMARKS: Final = "TooManyBenchmarks"
"""As many benchmarks of the namespace hold nodes as `limits.benchmarksAtOnce` allows. Wait, or have it raised."""
TOO_MANY_BYTES: Final = "TooManyBytes"
"""The results of the benchmark take `limits.resultBytes`. Lower `runPolicy.historyLimit`."""
LEASE_LIMIT_EXCEEDED: Final = "LeaseLimitExceeded"
"""The run has held its nodes for `limits.leaseSeconds`. Make it shorter, or have the limit raised."""
HISTORY_LIMITED: Final = "HistoryLimited"
"""`runPolicy.historyLimit` is above `limits.history`, so older runs are deleted. Lower it, or have the limit raised."""
LABELS_LEFT_OUT: Final = "LabelsLeftOut"
"""The benchmark has more than 16 labels of its own, and its results get the first 16 by name. Remove other labels."""
STORAGE_FULL: Final = "StorageFull"
"""All results together take `limits.storedBytes`. Delete old runs: the message names the largest, and the command."""

# Pods and images: condition ServerReady, failed cases
UNSCHEDULABLE: Final = "Unschedulable"
"""The scheduler found no place for a pod on its node. The message is the scheduler's: CPU, memory, taints or
volumes."""
IMAGE_PULL_FAILED: Final = "ImagePullFailed"
"""The node cannot pull an image. Provide the image that the message names for the node's architecture."""
CONTAINER_REFUSED: Final = "ContainerRefused"
"""The kubelet cannot create a container. The message is the kubelet's: a Secret, a mount or a user id."""
PREPARATION_FAILED: Final = "PreparationFailed"
"""The files could not be written on the node. `kubectl logs POD --container prepare` shows why."""
CRASH_LOOP: Final = "CrashLoop"
"""A server ends repeatedly. The message ends with what it wrote last; `kubectl logs POD --previous` shows more."""
OUT_OF_MEMORY: Final = "OutOfMemory"
"""A container exceeded its memory. Raise `resources.limits.memory`, or leave the class out."""
POD_FAILED: Final = "PodFailed"
"""A pod was evicted, or its node failed. The message is the kubelet's."""
REFUSED: Final = "RefusedByApiServer"
"""A quota, a Pod Security label or an admission policy refuses an object. The message is the API server's. For a
quota, set `resources`."""
STARTING: Final = "Starting"
"""The server's pod starts. Wait until `timeouts.serverReadySeconds` are over."""
READY: Final = "Ready"
"""The server is ready."""
SERVER_NOT_READY: Final = "ServerNotReady"
"""The server did not become ready in time. Read `kubectl logs POD`. On a slow node raise
`timeouts.serverReadySeconds`."""

# Strimzi: condition ServerReady, failed cases
STRIMZI_NOT_FOUND: Final = "StrimziNotFound"
"""The cluster does not know `kafka.strimzi.io`. Install Strimzi."""
STRIMZI_TOO_OLD: Final = "StrimziTooOld"
"""Strimzi has no KafkaNodePool in v1 or v1beta2. Upgrade it to 0.48 or newer."""
STRIMZI_NOT_WATCHING: Final = "StrimziNotWatching"
"""Strimzi gave its objects no status in time. Let it watch the namespace, and check that it runs."""
STRIMZI_REFUSED: Final = "StrimziRefused"
"""Strimzi reports an error. Fix what the message names."""
NO_IMAGE_FOR_ARCHITECTURE: Final = "NoImageForArchitecture"
"""Strimzi has no image for the node's architecture. Leave the class out."""

# Clients: conditions Failed and LogsReachable, failed cases, events
CLIENT_LOST: Final = "ClientLost"
"""A client's pod was deleted or evicted, or its node failed. Another pod continues. If that fails too, see its
events."""
CLIENT_UNREADABLE: Final = "ClientUnreadable"
"""Client and operator are of different versions, or the client's log is too large. Use images of one version. After a
log that is too large, another client measures what is missing."""
CLIENT_FAILED: Final = "ClientFailed"
"""A client ended before its last trial. Another pod continues. If that fails too, read its log."""
INTERRUPTED: Final = "Interrupted"
"""A node of a client or server was not Ready while the client measured, or the client received a signal to terminate.
Another client measures the missing trials as soon as the nodes are Ready."""
TIMED_OUT: Final = quantities.TIMED_OUT
"""A trial or a client took longer than `timeouts` allows. If the node is only slow, raise `timeouts.trialSeconds`."""
LOGS_UNREACHABLE: Final = "LogsUnreachable"
"""The API server cannot read the log of a client's pod. The message names the node and the likely cause. If
`kubectl logs POD` fails too, open port 10250 from the API server to the node."""
LOGS_READ: Final = "LogsRead"
"""The log of the last client was read to its end."""
RESULT_REFUSED: Final = "ResultRefused"
"""The API server rejects the results of the run. Remove the policy or webhook that the message names, then run
`kubectl tierbench rerun NAME`."""

# Versions: condition DefinitionsDiffer, events
DEFINITIONS_OLDER: Final = "DefinitionsOlder"
"""The CustomResourceDefinitions are older than the operator. Upgrade them: `kubectl apply --server-side
--force-conflicts -f crds`."""
DEFINITIONS_ALIKE: Final = "DefinitionsAlike"
"""The CustomResourceDefinitions match the operator."""
UNREADABLE: Final = "Unreadable"
"""Another version of tierbench has written the object, so it is left alone. Run that version, or delete the object."""
STATUS_REFUSED: Final = "StatusRefused"
"""The API server rejects the status of the benchmark. Remove the policy or webhook that the message names."""
ANSWER_REFUSED: Final = "AnswerRefused"
"""The API server rejects the answer of the advice. Remove the policy or webhook that the message names."""

# Runs: conditions Complete, Failed, Suspended and Reconciling, events
RUNNING: Final = "Running"
"""The run is in progress."""
SUPERSEDED: Final = "Superseded"
"""The spec changed before the run had ended. What it measured is kept, and another run measures the new spec."""
RUN_STARTED: Final = "RunStarted"
"""A run has begun. The message names its nodes."""
CASE_MEASURED: Final = "CaseMeasured"
"""A case was measured. The message has its mean."""
CASE_FAILED: Final = "CaseFailed"
"""A case failed. The message has the reason, which is in another section of this page."""
REFINED: Final = "Refined"
"""The run added levels around a crossover."""
ALL_CASES_MEASURED: Final = "AllCasesMeasured"
"""Every case of the run was measured."""
SOME_CASES_FAILED: Final = "SomeCasesFailed"
"""Some cases of the run failed. `kubectl get results` shows their reasons."""
NO_CASE_MEASURED: Final = "NoCaseMeasured"
"""Every case of the run failed. `kubectl get results` shows the reasons."""
BY_REQUEST: Final = "ByRequest"
"""`spec.runPolicy.suspend` is true. `kubectl tierbench resume NAME` sets it to false."""
NOT_SUSPENDED: Final = "NotSuspended"
"""`spec.runPolicy.suspend` is false."""
ALL_PAIRS_MEASURED: Final = "AllPairsMeasured"
"""The preflight has measured the network between all pairs of nodes."""

# Schedules, constraints, comparisons: conditions ScheduleValid, Passed and Regressed, events
NEXT_RUN_PLANNED: Final = "NextRunPlanned"
"""The message has the time of the next run."""
UNUSABLE_SCHEDULE: Final = "UnusableSchedule"
"""`spec.runPolicy.schedule` is no valid cron schedule, or names no date. Correct it as the message says."""
UNKNOWN_TIME_ZONE: Final = "UnknownTimeZone"
"""`spec.runPolicy.timeZone` is not known. Use a name of the tz database, such as `Europe/Berlin`."""
CONSTRAINTS_MET: Final = "ConstraintsMet"
"""Every case meets the constraints."""
CONSTRAINTS_BROKEN: Final = "ConstraintsBroken"
"""At least one case does not meet a constraint. The message names the first ones."""
CONSTRAINTS_UNKNOWN: Final = "ConstraintsUnknown"
"""For at least one case it is not known whether it meets a constraint. The message says what is missing."""
NO_EARLIER_RUN: Final = "NoEarlierRun"
"""There is no earlier run to compare with."""
BASELINE_NOT_FOUND: Final = "BaselineNotFound"
"""`spec.runPolicy.baselineRun` names a run whose results do not exist. Name another one."""
WORSE_THAN_BEFORE: Final = "WorseThanBefore"
"""At least one case is shown to be worse than before."""
NOT_WORSE: Final = "NotWorse"
"""No case is shown to be worse than before."""
NOT_COMPARABLE: Final = "NotComparable"
"""The earlier run measured other cases, nodes or settings. The message says what differs."""

# Other: events
BEST_CHANGED: Final = "BestChanged"
"""An advice has another best alternative than before, or none."""
FOREIGN_OBJECT: Final = "ForeignObject"
"""An object has the name or the labels of one that the benchmark needs, and belongs to something else. Delete or
rename the object that the message names."""
INTERNAL: Final = "InternalError"
"""A fault of tierbench, which tries again. Report it with the operator's log."""

OF_ANY_RESULT: Final = Reasons(
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
"""The reasons that results of every kind can have. The first sentence of a text is the meaning."""

ADVICE_CONDITIONS: Final[Mapping[str, str]] = {
    "BestFound": "One alternative is shown to be best. While it is False, the reason says why there is none.",
    "OrderChanges": "Another alternative takes the lead within the measured range. The message names the levels.",
}

ADVICE_VERDICTS: Final[Mapping[str, str]] = {
    "ArchitectureExcluded": "The class has nodes of an architecture that the constraints exclude.",
    "CasesFailed": "All results of the alternative failed. Fix the reasons that the message names, and run again.",
    "ContradictingRuns": "Two runs contradict each other. Find what changed between them, then run again. Two runs "
    "that agree decide.",
    "CouldGoEitherWay": "The measurements do not show which alternative is ahead. If the expected loss is small, use "
    "the leader. Otherwise measure what `status.recommendations` names.",
    "Crossovers": "The order changes between the levels that the message names.",
    "DifferentKinds": "The question names benchmarks of several kinds. Name benchmarks of one kind.",
    "DifferentVersions": "Different versions of the client measured the results. Run the older benchmarks again.",
    "EqualWithinMargin": "The difference is shown to be smaller than the smallest margin. Use any of them.",
    "MeanTooLong": "The mean time is above its maximum.",
    "NoneFeasible": "No alternative meets the constraints. Relax one, or measure another class.",
    "NoneInRange": "No change of the order is shown in the measured range.",
    "NoResults": "No result matches the question. Check the client class and the names, or measure first.",
    "NothingToChoose": "No result has the factor that `spec.choose` names. Name one that the message lists.",
    "NotMeasured": "The alternative has no results at some levels of the workload. Measure the levels that the "
    "message names.",
    "NotValid": "No result of the alternative is valid. Fix the reasons that the message names, and run again.",
    "OneChoiceOnly": "Only one alternative has results. Measure another one.",
    "OneClassOnly": "Only one class has results. Measure another one.",
    "OnlyFeasible": "It is the only alternative that meets the constraints.",
    "P99TooLong": "The 99th percentile is above its maximum, or it is not known whether it is.",
    "PerhapsWithinMargin": "The leader is ahead, perhaps by less than the smallest margin. Use it, or measure more.",
    "ShownBetter": "It is shown to be better than every other alternative.",
    "ShownWorse": "It is shown to be worse than another alternative.",
    "ThroughputTooLow": "The throughput is below its minimum.",
    "TooFewTrials": "There are too few good trials for a confidence interval. Run more repetitions.",
    "TooManyAdvices": "The namespace has more advices than `limits.advices`. Delete others, or have it raised.",
    "TooManyAlternatives": "More than 64 combinations of settings would be ranked. Choose fewer factors at once.",
    "TooManyRetries": "Trials have more retries than the maximum.",
}

ADVICE_CAVEATS: Final[Mapping[str, str]] = {
    "CutShort": "Trials failed or were cut off, perhaps the slowest ones. Raise `timeouts.trialSeconds`.",
    "LevelsLeftOut": "Some alternatives have no results at some levels, which are left out. Measure these levels.",
    "LimitUnsure": "An alternative is near a limit of the constraints. More trials may change the answer.",
    "MediansDisagree": "The means and the medians disagree on the order. Look at the slowest trials.",
    "NetworkBound": "The network was the limit in some trials. Another network would change the answer.",
    "NodesDiffer": "Two nodes of a class differ more than the classes do. Find the cause, or make two classes.",
    "NotValid": "Some results may be distorted. The message names their reasons.",
    "NoWorkload": "Without a workload, every measured level has the same weight. Set `spec.workload`.",
    "OneClientNode": "All results were measured from one client node. Measure from another node of the class.",
    "OneNode": "One node represents a class. Measure more nodes: set `servers.nodesPerClass`.",
}

ADVICE_NEXT: Final[Mapping[str, str]] = {
    "MoreLevels": "The order changes between two levels that are far apart. Measure levels between them.",
    "MoreNodes": "Differences between nodes are the main reason why the answer is inconclusive. Measure more nodes.",
    "MoreTrials": "Noise of trials is the main reason why the answer is inconclusive. Run more repetitions.",
}
