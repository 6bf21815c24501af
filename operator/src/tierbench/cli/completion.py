"""Completion for bash, zsh and fish: `kubectl_complete-tierbench`, which kubectl's own completion runs.

It prints one completion per line, with a description after a tab, and last a directive of cobra's completion protocol.
"""

import argparse
import asyncio
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Final

from tierbench.cli.command import UserError, add_cluster_arguments
from tierbench.cli.main import COMMANDS, PROGRAM, Parser, add_arguments

_FILES: Final = ":0"
_NO_FILES: Final = ":4"
_BENCHMARK: Final = "[KIND/]NAME"
_SECONDS: Final = 3.0


def main() -> None:
    """Prints the completions of the last argument, after the arguments before it."""
    *before, current = sys.argv[1:] or [""]
    print(*complete(before, current), sep="\n")


def complete(before: Sequence[str], current: str) -> Iterator[str]:
    """Yields the completions of a word, and the directive."""
    name = next((word for word in before if word in COMMANDS), None)
    if name is None:
        found = {command: COMMANDS[command].help for command in COMMANDS} | {"--version": "", "--help": ""}
        yield from _matching(found, current)
        yield _NO_FILES
        return
    parser = Parser(prog=f"{PROGRAM} {name}", allow_abbrev=False)
    add_arguments(name, parser)
    actions = parser._actions  # argparse has no public way to read them
    option = next((each for each in actions if before[-1] in each.option_strings and each.nargs != 0), None)
    if option is not None:
        yield from _matching(dict.fromkeys(map(str, option.choices or ()), ""), current)
        yield _FILES if option.metavar == "FILE" else _NO_FILES
    elif current.startswith("-"):
        found = {option: each.help or "" for each in actions for option in each.option_strings}
        yield from _matching(found, current)
        yield _NO_FILES
    else:
        if any(each.metavar == _BENCHMARK for each in actions):
            yield from _matching(dict.fromkeys(_benchmarks(before), ""), current)
        yield _NO_FILES


def _matching(found: dict[str, str], current: str) -> Iterator[str]:
    for word, text in found.items():
        if word.startswith(current):
            yield f"{word}\t{text.partition('. ')[0].rstrip('.')}" if text else word


def _benchmarks(before: Sequence[str]) -> list[str]:
    """Returns the names of the benchmarks in the namespace; none if the API server does not answer at once."""
    from tierbench.cli.cluster import connect  # noqa: PLC0415 (slow to load)

    parser = argparse.ArgumentParser(add_help=False, exit_on_error=False)
    add_cluster_arguments(parser)
    options, _ = parser.parse_known_args(before)

    async def names() -> list[str]:
        async with asyncio.timeout(_SECONDS), connect(options.kubeconfig, options.context, options.namespace) as found:
            return await found.benchmark_names()

    with suppress(UserError, TimeoutError, argparse.ArgumentError):
        return asyncio.run(names())
    return []
