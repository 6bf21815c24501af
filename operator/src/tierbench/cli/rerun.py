"""`kubectl tierbench rerun`: measure everything once more, as a numbered run of its own."""

import argparse
from datetime import UTC, datetime

from tierbench.cli.arguments import Subparsers, command
from tierbench.cli.ask import ask
from tierbench.cli.errors import ExitCode, UserError
from tierbench.cli.objects import parse_reference


def register(commands: Subparsers) -> None:
    """Adds the command."""
    text = "Start a new run of a benchmark; one that is under way ends first. Exit code 0: asked for, 2: not possible."
    parser = command(commands, "rerun", run, text)
    parser.add_argument("name", metavar="[KIND/]NAME", help="the benchmark")


def run(options: argparse.Namespace) -> ExitCode:
    """Asks for a run.

    Raises:
        UserError: there is no such benchmark, it is suspended, or it may not be changed.
    """
    benchmark = ask(options, lambda cluster: cluster.find(parse_reference(options.name)))
    name, kind, status = benchmark.metadata.name, benchmark.KIND, benchmark.status
    if benchmark.spec.run_policy.suspend:
        patch = '{"spec":{"runPolicy":{"suspend":false}}}'
        raise UserError(f"{name} is suspended: first `kubectl patch {kind.singular} {name} --type=merge -p '{patch}'`")
    change = {"spec": {"runPolicy": {"rerun": datetime.now(UTC).isoformat(timespec="milliseconds")}}}
    ask(options, lambda cluster: cluster.patch(benchmark, change))
    number = 1 if status.run is None else status.run.number + 1
    after = "" if status.run is None or status.run.completion_time else f" when run {status.run.number} has ended"
    print(f"Run {number} of {name} starts{after}: see `kubectl tierbench watch {kind.singular}/{name}`")
    return ExitCode.ANSWER
