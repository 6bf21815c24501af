"""The condition types, and the reasons of conditions, events and failed cases."""

from typing import Final

from tierbench.results import quantities

SCHEDULED: Final = "Scheduled"
QUEUED: Final = "Queued"
SERVER_READY: Final = "ServerReady"
SUSPENDED: Final = "Suspended"
COMPLETE: Final = "Complete"
FAILED: Final = "Failed"
RECURRING: Final = "Recurring"
PASSED: Final = "Passed"
REGRESSED: Final = "Regressed"
NETWORK_MEASURED: Final = "NetworkMeasured"
DEFINITIONS_DIFFER: Final = "DefinitionsDiffer"

# Nodes
NODES_CHOSEN: Final = "NodesChosen"
NODE_CLASS_NOT_FOUND: Final = "NodeClassNotFound"
NO_SUCH_NODE: Final = "NoSuchNode"
NO_READY_NODE: Final = "NoReadyNode"
TOO_FEW_NODES: Final = "TooFewNodes"
NO_SEPARATE_CLIENT_NODE: Final = "NoSeparateClientNode"
NO_SHARED_NODE: Final = "NoSharedNode"
NODE_NOT_READY: Final = "NodeNotReady"

# The administrator's policy
REFUSED_BY_POLICY: Final = "RefusedByPolicy"

# Images
IMAGE_NOT_LISTED: Final = "ImageNotListed"

# Leases of nodes
NODES_BUSY: Final = "NodesBusy"
NODES_HELD: Final = "NodesHeld"
OLDER_BENCHMARK_WAITS: Final = "OlderBenchmarkWaits"

# The administrator's limits
TOO_MANY_CASES: Final = "TooManyCases"
TOO_MANY_AT_ONCE: Final = "TooManyAtOnce"
TOO_MANY_BYTES: Final = "TooManyBytes"
HELD_TOO_LONG: Final = "HeldTooLong"
HISTORY_LIMITED: Final = "HistoryLimited"
STORAGE_FULL: Final = "StorageFull"

# Pods
UNSCHEDULABLE: Final = "Unschedulable"
IMAGE_PULL_FAILED: Final = "ImagePullFailed"
CONTAINER_REFUSED: Final = "ContainerRefused"
PREPARATION_FAILED: Final = "PreparationFailed"
CRASH_LOOP: Final = "CrashLoop"
OUT_OF_MEMORY: Final = "OutOfMemory"
POD_FAILED: Final = "PodFailed"
REFUSED: Final = "RefusedByApiServer"
FOREIGN_OBJECT: Final = "ForeignObject"
UNREADABLE: Final = "Unreadable"
INTERNAL: Final = "InternalError"
STARTING: Final = "Starting"
READY: Final = "Ready"
SERVER_NOT_READY: Final = "ServerNotReady"

# Strimzi
STRIMZI_NOT_FOUND: Final = "StrimziNotFound"
STRIMZI_TOO_OLD: Final = "StrimziTooOld"
STRIMZI_NOT_WATCHING: Final = "StrimziNotWatching"
STRIMZI_REFUSED: Final = "StrimziRefused"
NO_IMAGE_FOR_ARCHITECTURE: Final = "NoImageForArchitecture"

# Clients
CLIENT_LOST: Final = "ClientLost"
CLIENT_UNREADABLE: Final = "ClientUnreadable"
CLIENT_FAILED: Final = "ClientFailed"
TIMED_OUT: Final = quantities.TIMED_OUT
LOGS_UNREACHABLE: Final = "LogsUnreachable"
RESULT_REFUSED: Final = "ResultRefused"

# Versions
DEFINITIONS_OLDER: Final = "DefinitionsOlder"
DEFINITIONS_ALIKE: Final = "DefinitionsAlike"
STATUS_REFUSED: Final = "StatusRefused"
ANSWER_REFUSED: Final = "AnswerRefused"
TRACE_REFUSED: Final = "TraceRefused"

# Runs
RUNNING: Final = "Running"
RUN_STARTED: Final = "RunStarted"
CASE_MEASURED: Final = "CaseMeasured"
CASE_FAILED: Final = "CaseFailed"
REFINED: Final = "Refined"
ALL_CASES_MEASURED: Final = "AllCasesMeasured"
SOME_CASES_FAILED: Final = "SomeCasesFailed"
NO_CASE_MEASURED: Final = "NoCaseMeasured"
BY_REQUEST: Final = "ByRequest"
NOT_SUSPENDED: Final = "NotSuspended"

# The preflight
ALL_PAIRS_MEASURED: Final = "AllPairsMeasured"

# Schedules, constraints and comparison with earlier runs
NEXT_RUN_PLANNED: Final = "NextRunPlanned"
UNUSABLE_SCHEDULE: Final = "UnusableSchedule"
UNKNOWN_TIME_ZONE: Final = "UnknownTimeZone"
CONSTRAINTS_MET: Final = "ConstraintsMet"
CONSTRAINTS_BROKEN: Final = "ConstraintsBroken"
CONSTRAINTS_UNKNOWN: Final = "ConstraintsUnknown"
NO_EARLIER_RUN: Final = "NoEarlierRun"
BASELINE_NOT_FOUND: Final = "BaselineNotFound"
WORSE_THAN_BEFORE: Final = "WorseThanBefore"
NOT_WORSE: Final = "NotWorse"
NOT_COMPARABLE: Final = "NotComparable"

# Advices
BEST_CHANGED: Final = "BestChanged"
