"""Prints tables and styled text."""

from collections.abc import Iterable
from typing import Final

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from tierbench.cli.output import escape, standard_output

_WIDTH_OF_FILES: Final = 200


class _EscapingConsole(Console):
    """A console that escapes control characters of the text, but not those of its own styles."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(escape(segment.text), segment.style)

    def on_broken_pipe(self) -> None:
        """Leaves a closed pipe to the command line. A console ends the process with 1, which means NO."""
        raise  # noqa: PLE0704 (rich calls this while it handles the BrokenPipeError)


def show(*parts: RenderableType, soft_wrap: bool = False) -> None:
    """Prints the parts to standard output, each on lines of its own. Styles appear only in a terminal."""
    console = _EscapingConsole(file=standard_output(), markup=False, emoji=False, highlight=False)
    if not console.is_terminal:
        console.width = _WIDTH_OF_FILES
    for part in parts:
        console.print(part, soft_wrap=soft_wrap)
