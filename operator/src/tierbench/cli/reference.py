"""The reference of the command line, as Markdown."""

from tierbench.cli.command import add_cluster_arguments
from tierbench.cli.main import COMMANDS, PROGRAM, Parser, add_arguments, show_examples
from tierbench.generate.reference import table
from tierbench.generate.schemas import NOTICE

_HEADER = ("Argument", "Description")


def command_line_reference() -> str:
    """Returns a section for each command: its arguments and examples."""
    parser = Parser(add_help=False)
    add_cluster_arguments(parser)
    shared = _rows(parser)
    parts = [
        f"<!-- {NOTICE.format(source='cli')} -->",
        f"# {PROGRAM}",
        "Flags have the same meanings as in kubectl. Unless a command says otherwise, the exit code is 0 for success "
        "and 2 for an error. Every command has these arguments, and `--help`:",
        table(_HEADER, shared),
    ]
    for name, command in COMMANDS.items():
        parser = Parser(add_help=False)
        add_arguments(name, parser)
        rows = [row for row in _rows(parser) if row not in shared]
        parts += [f"## {name}", command.help, table(_HEADER, rows), f"```sh\n{show_examples(command)}\n```"]
    return "\n\n".join(parts) + "\n"


def _rows(parser: Parser) -> list[tuple[str, str]]:
    """Returns the arguments of a parser with their descriptions."""
    rows = []
    for action in parser._actions:  # argparse has no public way to read them
        names = ", ".join(f"`{name}`" for name in action.option_strings)
        value = "" if action.nargs == 0 else str(action.metavar or "|".join(map(str, action.choices or ())))
        rows.append((f"{names} {value}".strip() if names else f"`{value}`", (action.help or "").replace("%%", "%")))
    return rows
