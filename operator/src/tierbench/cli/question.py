"""The question of an advice, as arguments."""

import argparse
from typing import Final

from pydantic import ValidationError

from tierbench.advice.workload import items
from tierbench.api.placement_advice import (
    Dimension,
    Objective,
    ObjectiveType,
    Percentile,
    PlacementAdviceSpec,
    WorkloadProfile,
)
from tierbench.api.quantity import parse_size
from tierbench.cli.errors import UserError
from tierbench.cli.objects import Objects
from tierbench.results.units import joined

OBJECTIVES: Final = {
    "mean": Objective(type=ObjectiveType.MEAN_TIME),
    "p50": Objective(type=ObjectiveType.PERCENTILE, percentile=Percentile.P50),
    "p90": Objective(type=ObjectiveType.PERCENTILE, percentile=Percentile.P90),
    "p99": Objective(type=ObjectiveType.PERCENTILE, percentile=Percentile.P99),
    "throughput": Objective(type=ObjectiveType.THROUGHPUT),
    "retries": Objective(type=ObjectiveType.RETRIES),
}
_NAMES: Final = (
    "choose",
    "client",
    "benchmark",
    "size",
    "level",
    "by",
    "max_mean",
    "max_p99",
    "max_retries",
    "min_rate",
    "arch",
    "margin",
)


def choose_question(parser: argparse.ArgumentParser) -> None:
    """The arguments that make a question."""
    group = parser.add_argument_group("the question, where no PlacementAdvice is named")
    group.add_argument(
        "--choose",
        metavar="WHAT[,WHAT]",
        help=f"what to choose: one to three of {', '.join(Dimension)}; nodeClass if not said",
    )
    group.add_argument("--client", metavar="CLASS", help="the node class that will use the service")
    group.add_argument("--benchmark", action="append", metavar="NAME", help="only results of it; may be given again")
    group.add_argument(
        "--size", action="append", metavar="SIZE[=WEIGHT]", help="a file size of the workload; may be given again"
    )
    group.add_argument(
        "--level", action="append", metavar="FACTOR=LEVEL", help="a level of another factor, as in tls=TLSv1.3"
    )
    group.add_argument("--by", choices=OBJECTIVES, help="what to rank by; mean with --size or --level, else throughput")
    group.add_argument("--margin", metavar="PERCENT", help="the smallest difference worth having, as in 5%% (default)")
    group.add_argument("--max-mean", type=int, metavar="MS", help="infeasible with a longer mean time, milliseconds")
    group.add_argument("--max-p99", type=int, metavar="MS", help="infeasible with a longer 99th percentile")
    group.add_argument("--max-retries", type=int, metavar="N", help="infeasible with more retries; 0 for none")
    group.add_argument("--min-rate", metavar="SIZE", help="infeasible with fewer bytes a second, as in 10M")
    group.add_argument("--arch", action="append", metavar="ARCH", help="infeasible on others; may be given again")


def asks(options: argparse.Namespace) -> bool:
    """Whether there is a question in the arguments."""
    return any(getattr(options, name) is not None for name in _NAMES)


def question(options: argparse.Namespace, objects: Objects) -> PlacementAdviceSpec:
    """The spec that the arguments say.

    Raises:
        UserError: they do not make one.
    """
    constraints = {
        "maximumMeanMilliseconds": options.max_mean,
        "maximumP99Milliseconds": options.max_p99,
        "maximumRetries": options.max_retries,
        "minimumBytesPerSecond": options.min_rate,
        "architectures": options.arch,
    }
    body = {
        "clientClass": options.client or _only_client(objects),
        "benchmarks": {"names": options.benchmark or ()},
        "constraints": {name: value for name, value in constraints.items() if value is not None},
        "objective": None if options.by is None else OBJECTIVES[options.by],
    }
    if options.choose is not None:
        body["choose"] = options.choose.split(",")
    if options.margin is not None:
        body["smallestMargin"] = f"{options.margin.removesuffix('%')}%"
    if options.size or options.level:
        sizes = [_pair(text, "1") for text in options.size or ()]
        levels = dict(_pair(text, None) for text in options.level or ())
        body["workload"] = {"fileSizes": [{"size": size, "weight": weight} for size, weight in sizes], "levels": levels}
    try:
        spec = PlacementAdviceSpec.model_validate(body)
    except ValidationError as error:
        first = error.errors()[0]
        raise UserError(f"{'.'.join(map(str, first['loc']))}: {first['msg']}; see --help") from None
    check(spec)
    return spec


def check(spec: PlacementAdviceSpec) -> None:
    """Refuses what the API server would have refused, had it been asked.

    Raises:
        UserError: a size is none, a percentile is missing, or what is to be chosen is given.
    """
    workload = spec.workload or WorkloadProfile()
    if len(set(spec.choose)) < len(spec.choose):
        raise UserError(f"{','.join(spec.choose)} names something twice: write each once")
    given = set(spec.choose) & {name for item in items(workload) for name in item.levels}
    if given:
        raise UserError(f"{joined(sorted(given))} cannot both be chosen and be given: leave out one")
    sizes = [each.size for each in workload.file_sizes]
    sizes += [size for size in (workload.payload_size, spec.constraints.minimum_bytes_per_second) if size is not None]
    try:
        for size in sizes:
            parse_size(size)
    except ValueError as error:
        raise UserError(str(error)) from None
    objective = spec.objective
    if objective and (objective.type is ObjectiveType.PERCENTILE) != (objective.percentile is not None):
        raise UserError("a percentile goes with type Percentile: write {type: Percentile, percentile: P99}")


def _only_client(objects: Objects) -> str:
    clients = sorted({result.spec.client.node_class for result in objects.results})
    if not clients:
        raise UserError("there are no results yet: see `kubectl tierbench results`")
    if len(clients) > 1:
        raise UserError(f"there are clients on {', '.join(clients)}: say which is meant with --client")
    return clients[0]


def _pair(text: str, default: str | None) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or (default is None and not value) or (equals and not value):
        form = "FACTOR=LEVEL, as in tls=TLSv1.3" if default is None else "SIZE or SIZE=WEIGHT, as in 512Mi=3"
        raise UserError(f"{text!r} is not {form}")
    return name, value or default or ""
