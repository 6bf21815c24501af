"""The program: trial after trial, and the seal."""

import signal
import sys
from typing import Final, Protocol

from .arguments import parse, seal_file
from .contract import FailureError, Json, Printer, write_termination
from .options import Options
from .payload import content
from .readiness import await_broker
from .text import TextReport
from .trial import run_trial

_EXIT_FAILURE: Final = 1
_EXIT_INTERRUPTED: Final = 128 + signal.SIGTERM


class Report(Protocol):
    """Is told of every trial."""

    def started(self, trial: int, warmup: bool) -> None:
        """It begins."""

    def ended(self, trial: Json) -> None:
        """What it was."""


def main() -> int:
    """Runs the command line; the exit code."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.default_int_handler)
    arguments = sys.argv[1:]
    printer = Printer(sys.stdout.buffer)
    failure, code = _run(arguments, printer)
    try:
        write_termination(seal_file(arguments), printer.seal(failure))
    except OSError as error:
        failure, code = (
            FailureError("ClientError", f"the termination message cannot be written: {error}"),
            _EXIT_FAILURE,
        )
    if code == _EXIT_FAILURE:
        print(f"tierbench-paho: {failure}", file=sys.stderr)
    return code


def _run(arguments: list[str], printer: Printer) -> tuple[FailureError | None, int]:
    try:
        options, output = parse(arguments)
        run(options, printer if output == "json" else TextReport(sys.stdout))
    except KeyboardInterrupt:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        return FailureError("Interrupted", "the client was told to end"), _EXIT_INTERRUPTED
    except FailureError as failure:
        return failure, _EXIT_FAILURE
    except Exception as error:
        return FailureError("ClientError", f"{type(error).__name__}: {error}"), _EXIT_FAILURE
    return None, 0


def run(options: Options, report: Report) -> None:
    """Warm-up trials, and then those that are asked for.

    Raises:
        FailureError: what ends the series early.
    """
    plain = content(options.message.content, options.message.size, options.message.seed)
    options = await_broker(options, plain)
    for number in range(1, options.warmup + 1):
        _observe(options, report, number, True, plain)
    for number in range(options.first_trial, options.last_trial + 1):
        _observe(options, report, number, False, plain)


def _observe(options: Options, report: Report, number: int, warmup: bool, plain: bytes) -> None:
    agent = options.agent if options.barrier.part == 0 else None
    observed = agent is not None and agent.begin()
    report.started(number, warmup)
    trial = run_trial(options, f"w{number}" if warmup else str(number), plain)
    sample = agent.end() if agent is not None and observed else None
    report.ended({"trial": number, "warmup": warmup, **trial, **({} if sample is None else {"server": sample})})


if __name__ == "__main__":
    sys.exit(main())
