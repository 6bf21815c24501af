"""`kubectl tierbench advise`: recommends a node class or settings."""

import argparse
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import yaml
from pydantic import ValidationError
from rich import box
from rich.console import RenderableType
from rich.table import Table as Grid
from rich.text import Text

from tierbench.advice.advise import ORDER_CHANGES, advise
from tierbench.advice.requirements import WorkloadItem, workload_items
from tierbench.advice.selection import select
from tierbench.api.advice_answer import EffectVerdict, FactorEffect, PlacementAdviceStatus, RankedAlternative, Verdict
from tierbench.api.model import Metadata
from tierbench.api.placement_advice import (
    Dimension,
    Objective,
    ObjectiveType,
    Percentile,
    PlacementAdvice,
    PlacementAdviceSpec,
)
from tierbench.api.result import BenchmarkResult
from tierbench.cli import console
from tierbench.cli.command import ExitCode, UserError, add_output_argument, add_source_arguments, run_with_cluster
from tierbench.cli.objects import Objects, namespace_of_files, read_files
from tierbench.cli.output import objects_as, write_output
from tierbench.kinds.registry import kind_of, kinds
from tierbench.results.units import DASH, percent, show, show_interval, title

_MAX_FACTORS: Final = 3
OBJECTIVES: Final = {
    "mean": Objective(type=ObjectiveType.MEAN_TIME),
    "p50": Objective(type=ObjectiveType.PERCENTILE, percentile=Percentile.P50),
    "p90": Objective(type=ObjectiveType.PERCENTILE, percentile=Percentile.P90),
    "p99": Objective(type=ObjectiveType.PERCENTILE, percentile=Percentile.P99),
    "throughput": Objective(type=ObjectiveType.THROUGHPUT),
    "retries": Objective(type=ObjectiveType.RETRIES),
}
_QUESTION: Final = (
    "choose",
    "client_class",
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
_STYLES: Final = {
    Verdict.BEST: "bold green",
    Verdict.WORSE: "dim",
    Verdict.INFEASIBLE: "red",
    Verdict.NO_DATA: "yellow",
}


def add_advise(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `advise`."""
    parser.set_defaults(run=run)
    parser.add_argument("name", nargs="?", metavar="NAME", help="a PlacementAdvice in the cluster or in the files")
    add_source_arguments(parser)
    add_output_argument(parser, "table", "wide", "json", "yaml", "name", *_configurations())
    group = parser.add_argument_group("the question, if you do not name a PlacementAdvice")
    group.add_argument(
        "--choose",
        metavar="WHAT[,WHAT]",
        help=f"what to choose: one to three of {', '.join(Dimension)} (default: nodeClass)",
    )
    group.add_argument("--client-class", metavar="CLASS", help="the node class that will use the service")
    group.add_argument(
        "--benchmark", action="append", metavar="NAME", help="use only results of this benchmark (repeatable)"
    )
    group.add_argument(
        "--size", action="append", metavar="SIZE[=WEIGHT]", help="a file size of the workload (repeatable)"
    )
    group.add_argument(
        "--level",
        action="append",
        metavar="FACTOR=LEVEL",
        help="a level of another factor (repeatable)",
    )
    group.add_argument(
        "--by", choices=OBJECTIVES, help="what to rank by (default: mean with --size or --level, else throughput)"
    )
    group.add_argument("--margin", metavar="PERCENT", help="the smallest difference that matters (default: 5%%)")
    group.add_argument("--max-mean", type=int, metavar="MS", help="exclude alternatives with a longer mean time")
    group.add_argument("--max-p99", type=int, metavar="MS", help="exclude alternatives with a longer 99th percentile")
    group.add_argument("--max-retries", type=int, metavar="N", help="exclude alternatives with more retries")
    group.add_argument("--min-rate", metavar="SIZE", help="exclude alternatives with fewer bytes per second, as in 10M")
    group.add_argument("--arch", action="append", metavar="ARCH", help="exclude other architectures (repeatable)")


def run(options: argparse.Namespace) -> ExitCode:
    """Answers the questions, and prints the answers.

    Raises:
        UserError: there is no such PlacementAdvice, or there are no results.
    """
    objects, questions = _questions(options)
    now = datetime.now(UTC)
    answered = [
        advice.model_copy(update={"status": advise(advice.spec, _in_namespace(objects, advice), now, objects.classes)})
        for advice in questions
    ]
    if options.output in {"table", "wide"}:
        _print(answered, wide=options.output == "wide")
    elif options.output in _configurations():
        if len(answered) > 1:
            names = ", ".join(advice.metadata.name for advice in answered)
            raise UserError(f"there are several PlacementAdvices: name one of {names}")
        (advice,) = answered
        write_output(_configuration(options.output, advice, [*_in_namespace(objects, advice)]), Path("-"))
    else:
        write_output(objects_as(options.output, answered, as_list=False), Path("-"))
    statuses = [advice.status for advice in answered]
    if not any(status.ranking for status in statuses):
        return ExitCode.UNUSABLE
    return ExitCode.ANSWER if all(status.best for status in statuses) else ExitCode.NO


def _configurations() -> Sequence[str]:
    return [name for kind in kinds() for name in kind.configurations]


def _configuration(output: str, advice: PlacementAdvice, results: Sequence[BenchmarkResult]) -> str:
    """Returns the settings of the best choice in the format of another program.

    Raises:
        UserError: there is no best choice, or the format is not for this kind of benchmark.
    """
    status, spec = advice.status, advice.spec
    if not status.best:
        raise UserError(f"{advice.metadata.name} has no best choice, so there are no settings: {status.answer}")
    levels = {**workload_items(spec.workload)[0].levels, **status.settings}
    item = WorkloadItem(levels, 1)
    there = [each for each in select(spec, results).results if item.matches(each)]
    write = kind_of(there[0].spec.benchmark.kind).configurations.get(output)
    if write is None:
        raise UserError(f"format {output} is for brokers, and {advice.metadata.name} is of no broker: use -o yaml")
    return write(advice.metadata.name, levels, there)


def _questions(options: argparse.Namespace) -> tuple[Objects, Sequence[PlacementAdvice]]:
    """Returns the objects, and the questions to answer from them."""
    has_question = any(getattr(options, name) is not None for name in _QUESTION)
    if options.name is not None and has_question:
        raise UserError(f"{options.name} already has a question: omit its name, or the options of a question")
    if options.source:
        objects, namespace = read_files(options.source), namespace_of_files(options)
        named = [each for each in objects.advices if options.name in {None, each.metadata.name}]
    else:
        objects, namespace = run_with_cluster(
            options,
            lambda cluster: cluster.read_to_advise(options.name, options.selector, everywhere=options.all_namespaces),
        )
        named = list(objects.advices)
    if options.name is not None and not named:
        raise UserError(f"there is no PlacementAdvice {options.name}: see `kubectl get advice`, or omit the name")
    if named and not has_question:
        return objects, named
    metadata = Metadata(name="question", namespace=namespace)
    return objects, [PlacementAdvice(metadata=metadata, spec=_spec(options, objects))]


def _spec(options: argparse.Namespace, objects: Objects) -> PlacementAdviceSpec:
    """Returns the question of the arguments as the spec of a PlacementAdvice."""
    constraints = {
        "maxMeanMilliseconds": options.max_mean,
        "maxP99Milliseconds": options.max_p99,
        "maxRetries": options.max_retries,
        "minBytesPerSecond": options.min_rate,
        "architectures": options.arch,
    }
    body = {
        "clientClassName": options.client_class or _only_client(objects),
        "benchmarks": {"names": options.benchmark or ()},
        "constraints": {name: value for name, value in constraints.items() if value is not None},
        "objective": None if options.by is None else OBJECTIVES[options.by],
    }
    if options.choose is not None:
        body["choose"] = list(dict.fromkeys(options.choose.split(",")))
    if options.margin is not None:
        body["minMarginPercent"] = options.margin.removesuffix("%")
    if options.size or options.level:
        sizes = [_pair(text, "1") for text in options.size or ()]
        levels = dict(_pair(text, None) for text in options.level or ())
        body["workload"] = {"fileSizes": [{"size": size, "weight": weight} for size, weight in sizes], "levels": levels}
    try:
        return PlacementAdviceSpec.model_validate(body)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "the question"
        raise UserError(f"{place}: {first['msg']}; see --help") from None


def _only_client(objects: Objects) -> str:
    clients = sorted({result.spec.client.node_class for result in objects.results})
    if not clients:
        raise UserError("there are no results yet: see `kubectl tierbench results`")
    if len(clients) > 1:
        raise UserError(f"there are clients on {', '.join(clients)}: select one with --client-class")
    return clients[0]


def _pair(text: str, default: str | None) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or (default is None and not value) or (equals and not value):
        form = "FACTOR=LEVEL, as in tls=TLSv1.3" if default is None else "SIZE or SIZE=WEIGHT, as in 512Mi=3"
        raise UserError(f"{text!r} is not {form}")
    return name, value or default or ""


def _in_namespace(objects: Objects, advice: PlacementAdvice) -> Iterator[BenchmarkResult]:
    namespace = advice.metadata.namespace
    return (result for result in objects.results if namespace in {None, result.metadata.namespace})


def _print(answered: Sequence[PlacementAdvice], *, wide: bool) -> None:
    for advice in answered:
        for part in _show(advice, wide):
            console.show(part, soft_wrap=isinstance(part, Text))


def _show(advice: PlacementAdvice, wide: bool) -> Iterator[RenderableType]:
    status = advice.status
    yield Text(status.answer, style="bold")
    if status.ranking:
        yield _grid(status)
    order = next(item for item in status.conditions if item.type == ORDER_CHANGES)
    yield Text(f"Crossovers: {order.message}")
    yield from _other_factors(status, None if wide else _MAX_FACTORS)
    if status.best:
        yield Text(f"Confidence: {status.confidence}")
    yield from (Text(f"Keep in mind: {note.message}") for note in status.caveats)
    yield from (Text(f"Measure next: {note.message}") for note in status.recommendations)
    if status.settings:
        yield Text(f"\nSettings of the best choice:\n{yaml.safe_dump(status.settings, sort_keys=False).rstrip()}")
    if status.node_affinity is not None:
        affinity = {"affinity": {"nodeAffinity": status.node_affinity.to_json()}}
        yield Text(f"\nAffinity that places a pod there:\n{yaml.safe_dump(affinity, sort_keys=False).rstrip()}")


def _other_factors(status: PlacementAdviceStatus, most: int | None) -> Iterator[Text]:
    """Returns one sentence per factor, at most this number: its knee if it has one, else its largest shown effect."""
    with_knee = {knee.factor for knee in status.knees}
    shown = [each for each in status.effects if each.factor not in with_knee and _is_shown(each)]
    largest = reversed({each.factor: each.statement for each in reversed(shown)}.values())
    sentences = [*largest, *(knee.statement for knee in status.knees)][:most]
    if sentences:
        more = len(status.effects) + len(status.knees) - len(sentences)
        yield Text(f"Other factors: {' '.join(sentences)}{f' ({more} more with -o yaml)' if more else ''}")


def _is_shown(effect: FactorEffect) -> bool:
    return any(at.verdict not in {EffectVerdict.EQUAL, EffectVerdict.INCONCLUSIVE} for at in effect.at)


def _grid(status: PlacementAdviceStatus) -> Grid:
    grid = Grid(box=box.SIMPLE_HEAD, pad_edge=False)
    grid.add_column("Choice")
    grid.add_column("Verdict")
    grid.add_column(f"{title(status.quantity)} (95%)", justify="right")
    for name in ("Margin", "Nodes", "Trials", "Retries"):
        grid.add_column(name, justify="right")
    grid.add_column("Why")
    for item in status.ranking:
        margin = item.margin_parts_per_million
        grid.add_row(
            item.name,
            Text(item.verdict, style=_STYLES.get(item.verdict, "")),
            _value(status.quantity, item),
            DASH if margin is None else percent(margin / 1e6),
            *(str(number) for number in (item.nodes, item.trials, item.retries)),
            item.message,
        )
    return grid


def _value(quantity: str, item: RankedAlternative) -> str:
    if item.value is None or item.confidence_low is None or item.confidence_high is None:
        return show(quantity, item.value)
    return show_interval(quantity, item.value, item.confidence_low, item.confidence_high)
