"""`kubectl tierbench advise`: where or with which settings to run, from which level on another is ahead, how surely."""

import argparse
import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Final

import yaml
from rich import box
from rich.console import Console, RenderableType
from rich.table import Table as Grid
from rich.text import Text

from tierbench.advice.advise import ORDER_CHANGES, advise
from tierbench.api.advice_answer import EffectVerdict, FactorEffect, PlacementAdviceStatus, Ranked, Verdict
from tierbench.api.model import API_VERSION, Metadata
from tierbench.api.placement_advice import PlacementAdvice
from tierbench.api.result import BenchmarkResult
from tierbench.cli.arguments import Subparsers, choose_files, command
from tierbench.cli.ask import ask
from tierbench.cli.errors import ExitCode, UserError
from tierbench.cli.files import read_files
from tierbench.cli.objects import Objects
from tierbench.cli.question import asks, check, choose_question, question
from tierbench.results.units import DASH, percent, show, show_interval, title

_WIDE: Final = 200
_FEW: Final = 3
_STYLES: Final = {
    Verdict.BEST: "bold green",
    Verdict.WORSE: "dim",
    Verdict.INFEASIBLE: "red",
    Verdict.NO_DATA: "yellow",
}


def register(commands: Subparsers) -> None:
    """Adds the command."""
    text = (
        "Say on which class of node, or with which settings, a service should run. "
        "Exit code 0: one is best, 1: none is shown to be, 2: there is nothing to say."
    )
    parser = command(commands, "advise", run, text)
    parser.add_argument("name", nargs="?", metavar="NAME", help="a PlacementAdvice, in the cluster or in the files")
    choose_files(parser)
    choose_question(parser)
    parser.add_argument("-o", "--output", choices=("text", "json", "yaml"), default="text", help="text, json or yaml")


def run(options: argparse.Namespace) -> ExitCode:
    """Prints the answers.

    Raises:
        UserError: there is no such advice, or nothing to answer from.
    """
    objects, asked = _asked(options)
    now = datetime.now(UTC)
    answered = [
        advice.model_copy(update={"status": advise(advice.spec, _in_namespace(objects, advice), now, objects.classes)})
        for advice in asked
    ]
    if options.output == "text":
        _print(answered)
    else:
        bodies = [{"apiVersion": API_VERSION, "kind": PlacementAdvice.KIND.kind, **each.to_json()} for each in answered]
        body = bodies[0] if len(bodies) == 1 else {"apiVersion": "v1", "kind": "List", "items": bodies}
        as_yaml = options.output == "yaml"
        text = (
            yaml.safe_dump(body, sort_keys=False, allow_unicode=True) if as_yaml else json.dumps(body, indent=2) + "\n"
        )
        print(text, end="")
    statuses = [advice.status for advice in answered]
    if not any(status.ranking for status in statuses):
        return ExitCode.UNUSABLE
    return ExitCode.ANSWER if all(status.best for status in statuses) else ExitCode.NO


def _asked(options: argparse.Namespace) -> tuple[Objects, Sequence[PlacementAdvice]]:
    """The objects, and the questions to answer from them."""
    if options.name is not None and asks(options):
        raise UserError(f"{options.name} is a question of its own: leave out its name, or --client and the like")
    if options.source:
        objects, namespace = read_files(options.source), options.namespace
        named = [each for each in objects.advices if options.name in {None, each.metadata.name}]
    else:
        objects, namespace = ask(options, lambda cluster: cluster.read_to_advise(options.name))
        named = list(objects.advices)
    if options.name is not None and not named:
        raise UserError(f"there is no PlacementAdvice {options.name}: see `kubectl get advice`, or leave its name out")
    if named and not asks(options):
        for each in named:
            check(each.spec)
        return objects, named
    metadata = Metadata(name="question", namespace=namespace)
    return objects, [PlacementAdvice(metadata=metadata, spec=question(options, objects))]


def _in_namespace(objects: Objects, advice: PlacementAdvice) -> Iterator[BenchmarkResult]:
    namespace = advice.metadata.namespace
    return (result for result in objects.results if namespace in {None, result.metadata.namespace})


def _print(answered: Sequence[PlacementAdvice]) -> None:
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = _WIDE
    for advice in answered:
        for part in _show(advice):
            console.print(part, soft_wrap=isinstance(part, Text))


def _show(advice: PlacementAdvice) -> Iterator[RenderableType]:
    status = advice.status
    yield Text(status.answer, style="bold")
    if status.ranking:
        yield _grid(status)
    order = next(item for item in status.conditions if item.type == ORDER_CHANGES)
    yield Text(f"Crossovers: {order.message}")
    yield from _other_factors(status)
    if status.best:
        yield Text(f"Confidence: {status.confidence}")
    yield from (Text(f"Keep in mind: {note.message}") for note in status.caveats)
    yield from (Text(f"Measure next: {note.message}") for note in status.next)
    if status.settings:
        yield Text(f"\nTo set there:\n{yaml.safe_dump(status.settings, sort_keys=False).rstrip()}")
    if status.node_affinity is not None:
        affinity = {"affinity": {"nodeAffinity": status.node_affinity.to_json()}}
        yield Text(f"\nTo place a pod there:\n{yaml.safe_dump(affinity, sort_keys=False).rstrip()}")


def _other_factors(status: PlacementAdviceStatus) -> Iterator[Text]:
    """One sentence a factor: its knee if it has one, else its largest effect that is shown."""
    with_knee = {knee.factor for knee in status.knees}
    shown = [each for each in status.effects if each.factor not in with_knee and _is_shown(each)]
    largest = reversed({each.factor: each.statement for each in reversed(shown)}.values())
    said = [*largest, *(knee.statement for knee in status.knees)][:_FEW]
    if said:
        more = len(status.effects) + len(status.knees) - len(said)
        yield Text(f"Other factors: {' '.join(said)}{f' ({more} more with -o yaml)' if more else ''}")


def _is_shown(effect: FactorEffect) -> bool:
    return any(at.verdict not in {EffectVerdict.EQUAL, EffectVerdict.NOT_KNOWN} for at in effect.at)


def _grid(status: PlacementAdviceStatus) -> Grid:
    grid = Grid(box=box.SIMPLE_HEAD, pad_edge=False)
    grid.add_column("Choice")
    grid.add_column("Verdict")
    grid.add_column(f"{title(status.quantity)} (95 %)", justify="right")
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


def _value(quantity: str, item: Ranked) -> str:
    if item.value is None or item.confidence_low is None or item.confidence_high is None:
        return show(quantity, item.value)
    return show_interval(quantity, item.value, item.confidence_low, item.confidence_high)
