"""`kubectl tierbench rerun`, `suspend`, `resume` and `delete-run`: start, stop and delete runs."""

import argparse
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from tierbench.api.benchmark import Benchmark
from tierbench.api.model import GROUP
from tierbench.api.result import BenchmarkResult
from tierbench.cli.cluster import Cluster
from tierbench.cli.command import ExitCode, UserError, run_number, run_with_cluster
from tierbench.cli.objects import parse_reference
from tierbench.cli.output import objects_as
from tierbench.cli.watch import add_timeout, watch
from tierbench.results.units import join_words


def add_rerun(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `rerun`."""
    parser.set_defaults(run=rerun)
    _add_name(parser)
    _add_watch(parser)


def add_suspend(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `suspend`."""
    parser.set_defaults(run=suspend)
    _add_name(parser)


def add_resume(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `resume`."""
    parser.set_defaults(run=resume)
    _add_name(parser)
    _add_watch(parser)


def add_delete_run(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `delete-run`."""
    parser.set_defaults(run=delete_run)
    _add_name(parser)
    parser.add_argument("number", nargs="+", type=run_number, metavar="RUN", help="the number of a run")
    parser.add_argument("-y", "--yes", action="store_true", help="delete without a question")
    parser.add_argument(
        "--dry-run", choices=("none", "client"), default="none", help="with client, only print what would be deleted"
    )


def _add_name(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="[KIND/]NAME", help="the benchmark")


def _add_watch(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-w",
        "--watch",
        action="store_true",
        help="show the progress until the run ends, with the exit codes of `watch`",
    )
    add_timeout(parser)


def rerun(options: argparse.Namespace) -> ExitCode:
    """Requests a new run, and watches it if asked to.

    Raises:
        UserError: there is no such benchmark, it is suspended, or you may not change it.
    """
    benchmark = _find(options)
    name, status = benchmark.metadata.name, benchmark.status
    if benchmark.spec.run_policy.suspend:
        raise UserError(f"{name} is suspended: resume it with `kubectl tierbench resume {_reference(benchmark)}`")
    _set_policy(options, benchmark, rerun=datetime.now(UTC).isoformat(timespec="milliseconds"))
    number = 1 if status.run is None else status.run.number + 1
    after = "" if status.run is None or status.run.completion_time else f" when run {status.run.number} has ended"
    see = "" if options.watch else f": see `kubectl tierbench watch {_reference(benchmark)}`"
    print(f"Run {number} of {name} starts{after}{see}", flush=True)
    return watch(options) if options.watch else ExitCode.ANSWER


def suspend(options: argparse.Namespace) -> ExitCode:
    """Suspends a benchmark. The operator deletes its pods and keeps its trials.

    Raises:
        UserError: there is no such benchmark, or you may not change it.
    """
    return _set_suspend(options, True, "suspended")


def resume(options: argparse.Namespace) -> ExitCode:
    """Resumes a benchmark. A run that was suspended continues with its next trial.

    Raises:
        UserError: there is no such benchmark, or you may not change it.
    """
    resumed = _set_suspend(options, False, "resumed")
    return watch(options) if options.watch else resumed


def _set_suspend(options: argparse.Namespace, value: bool, done: str) -> ExitCode:
    benchmark = _find(options)
    changes = benchmark.spec.run_policy.suspend is not value
    if changes:
        _set_policy(options, benchmark, suspend=value)
    print(f"{_resource(benchmark)} {done}{'' if changes else ' (no change)'}", flush=True)
    return ExitCode.ANSWER


def delete_run(options: argparse.Namespace) -> ExitCode:
    """Deletes the results of runs, after it has named them, and the user has agreed.

    Raises:
        UserError: there is no such benchmark or run, a run has not ended, or you may not delete results.
    """
    benchmark = _find(options)
    numbers = list(dict.fromkeys(options.number))
    results = run_with_cluster(options, lambda cluster: _results(cluster, benchmark, numbers))
    if options.dry_run == "client":
        for line in objects_as("name", results).splitlines():
            print(f"{line} deleted (dry run)")
        return ExitCode.ANSWER
    print(_what_is_deleted(benchmark, numbers, results))
    if not (options.yes or _agrees()):
        print("deletion is cancelled")
        return ExitCode.NO
    run_with_cluster(options, lambda cluster: cluster.delete_results(results))
    return ExitCode.ANSWER


async def _results(cluster: Cluster, benchmark: Benchmark, numbers: Sequence[int]) -> Sequence[BenchmarkResult]:
    """Returns the results of the runs."""
    run, name = benchmark.status.run, benchmark.metadata.name
    if run is not None and run.number in numbers and run.completion_time is None:
        raise UserError(
            f"run {run.number} of {name} has not ended: wait for it, or delete the benchmark with its results with "
            f"`kubectl delete {_reference(benchmark)}`"
        )
    every = await cluster.results_of(benchmark)
    known = sorted({result.spec.run for result in every})
    missing = [str(number) for number in numbers if number not in known]
    if missing:
        raise UserError(
            f"{name} has no results of run {join_words(missing)}; it has these runs: "
            + (", ".join(map(str, known)) or "none")
        )
    return [result for result in every if result.spec.run in numbers]


def _what_is_deleted(benchmark: Benchmark, numbers: Sequence[int], results: Sequence[BenchmarkResult]) -> str:
    runs, name = join_words([str(number) for number in numbers]), benchmark.metadata.name
    trials = sum(result.status.counts.completed + result.status.counts.failed for result in results)
    notes = [
        f"You are about to delete {len(results)} results with {trials} trials of run {runs} of {_resource(benchmark)} "
        f"in namespace {benchmark.metadata.namespace or 'default'}. They cannot be restored; to keep a run, use "
        f"`kubectl tierbench export {name} --run {numbers[0]} -o json --output-file FILE` first."
    ]
    if benchmark.spec.run_policy.baseline_run in numbers:
        notes.append(f"Run {benchmark.spec.run_policy.baseline_run} is the baselineRun, which later runs compare with.")
    if benchmark.status.run is not None and benchmark.status.run.number in numbers:
        notes.append(f"Run {benchmark.status.run.number} is the newest run, on which answers depend.")
    return "\n".join(notes)


def _agrees() -> bool:
    try:
        return input("Do you want to continue? (y/N): ").strip().lower() in {"y", "yes"}
    except EOFError:
        return False


def _find(options: argparse.Namespace) -> Benchmark:
    reference = parse_reference(options.name)
    return run_with_cluster(options, lambda cluster: cluster.find(reference))


def _set_policy(options: argparse.Namespace, benchmark: Benchmark, **fields: Any) -> None:
    run_with_cluster(options, lambda cluster: cluster.patch(benchmark, {"spec": {"runPolicy": fields}}))


def _reference(benchmark: Benchmark) -> str:
    return f"{benchmark.KIND.singular}/{benchmark.metadata.name}"


def _resource(benchmark: Benchmark) -> str:
    """Returns the name as kubectl prints it."""
    return f"{benchmark.KIND.singular}.{GROUP}/{benchmark.metadata.name}"
