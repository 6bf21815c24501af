"""The conditions and reasons of advices, for the reference.

The first sentence of a text is the meaning, the others say what to do.
"""

from collections.abc import Mapping
from typing import Final

CONDITIONS: Final[Mapping[str, str]] = {
    "BestFound": "One alternative is shown to be best. While it is False, the reason says why there is none.",
    "OrderChanges": "Another alternative takes the lead within the measured range. The message names the levels.",
}

VERDICTS: Final[Mapping[str, str]] = {
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

CAVEATS: Final[Mapping[str, str]] = {
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

NEXT: Final[Mapping[str, str]] = {
    "MoreLevels": "The order changes between two levels that are far apart. Measure levels between them.",
    "MoreNodes": "Differences between nodes are the main reason why the answer is inconclusive. Measure more nodes.",
    "MoreTrials": "Noise of trials is the main reason why the answer is inconclusive. Run more repetitions.",
}
