"""The program: trial after trial, and the seal."""

import signal
import sys
from typing import Final

from .arguments import parse, seal_file
from .contract import FailureError, Printer, write_termination
from .series import run
from .text import TextReport

_EXIT_FAILURE: Final = 1
_EXIT_INTERRUPTED: Final = 128 + signal.SIGTERM


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
        series, output = parse(arguments)
        run(series, printer if output == "json" else TextReport(sys.stdout))
    except KeyboardInterrupt:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        return FailureError("Interrupted", "the client received a signal to terminate"), _EXIT_INTERRUPTED
    except FailureError as failure:
        return failure, _EXIT_FAILURE
    except Exception as error:
        return FailureError("ClientError", f"{type(error).__name__}: {error}"), _EXIT_FAILURE
    return None, 0


if __name__ == "__main__":
    sys.exit(main())
