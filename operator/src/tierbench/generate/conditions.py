"""The reference of conditions, reasons and events, as Markdown."""

import ast
import inspect
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Final

from tierbench.advice import reasons as of_advices
from tierbench.domain import reasons as of_benchmarks
from tierbench.generate.reference import table
from tierbench.generate.schemas import NOTICE
from tierbench.kinds.registry import BENCHMARKS, Reasons, kind_of
from tierbench.results.reasons import REASONS

_SENTENCE_END: Final = re.compile(r"(?<=[.?]) ")
_SECTION: Final = re.compile(r"^# (.+)$")
_INTRODUCTION: Final = """\
A condition is the state of a benchmark, a node class or an advice. A reason says why, as one word that scripts can
compare. The message next to it names the object, and says what to do.

- `kubectl describe` shows conditions and events.
- `kubectl get results` shows the reason of a failed or invalid case under VALID.

[Troubleshoot](../how-to/troubleshoot.md) begins with symptoms.

After you removed the cause of a failure, start another run with `kubectl tierbench rerun NAME`."""


@dataclass(frozen=True)
class Section:
    """A section of the reference: where its entries appear, and their meanings by name."""

    title: str
    meanings: Mapping[str, str]
    where: str = ""

    def __str__(self) -> str:
        """Returns the section as Markdown. The first sentence of a text is its meaning, the others say what to do."""
        rows = [(f"`{name}`", *_split(text)) for name, text in self.meanings.items()]
        columns = 3 if any(action for _, _, action in rows) else 2
        rendered = table(self.header[:columns], [row[:columns] for row in rows])
        return "\n\n".join(filter(None, (f"## {self.title}", self.where and f"Seen in: {self.where}.", rendered)))

    @property
    def header(self) -> tuple[str, ...]:
        """The heads of the columns. Conditions are seen in one place, so their sections name none."""
        return ("Reason", "Meaning", "What to do") if self.where else ("Condition", "True means", "More")


def conditions_reference() -> str:
    """Returns the reference of conditions, reasons and events."""
    notice = f"<!-- {NOTICE.format(source='domain/reasons.py and the other reasons.py')} -->"
    return "\n\n".join([notice, "# Conditions, reasons and events", _INTRODUCTION, *map(str, sections())]) + "\n"


def sections() -> Iterator[Section]:
    """Yields all conditions and reasons, in the order of the reference."""
    yield from documented_names(of_benchmarks)
    yield from _sections_of("any benchmark", REASONS)
    for kind in BENCHMARKS:
        yield from _sections_of(kind, kind_of(kind).reasons)
    yield Section("Conditions of advices", of_advices.CONDITIONS)
    yield Section("Answers of advices", of_advices.VERDICTS, "conditions of an advice, `status.ranking`")
    yield Section("Caveats of advices", of_advices.CAVEATS, "`status.caveats` of an advice")
    yield Section("Next measurements of advices", of_advices.NEXT, "`status.recommendations` of an advice")


def _sections_of(kind: str, reasons: Reasons) -> Iterator[Section]:
    parts = (
        ("Failed cases", reasons.failures, "`status.reason` of a result"),
        ("Invalid results", reasons.invalid, "`status.invalid` of a result"),
        ("Facts", reasons.facts, "`status.facts` of a result, which stays valid"),
    )
    for title, meanings, where in parts:
        if meanings:
            yield Section(f"{title} of {kind}", dict(sorted(meanings.items())), where)


def documented_names(module: ModuleType) -> Iterator[Section]:
    """Yields the sections of a module of constants. A comment begins a section, and a text follows each constant.

    Raises:
        ValueError: a constant has no text, or is in no section.
    """
    source = inspect.getsource(module)
    texts = dict(_texts(ast.parse(source)))
    title, meanings = "", dict[str, str]()
    for number, line in enumerate(source.splitlines(), start=1):
        if heading := _SECTION.match(line):
            if meanings:
                yield _section(title, meanings)
            title, meanings = heading[1], {}
        elif number in texts:
            constant, text = texts[number]
            if not text or not title:
                raise ValueError(f"{module.__name__}.{constant} needs a section and a text below it: what it means")
            meanings[getattr(module, constant)] = text
    yield _section(title, meanings)


def _section(heading: str, meanings: Mapping[str, str]) -> Section:
    title, _, where = heading.partition(": ")
    return Section(title, meanings, where)


def _texts(tree: ast.Module) -> Iterator[tuple[int, tuple[str, str]]]:
    """Yields for each constant its line, its name, and the text below it."""
    for statement, following in zip(tree.body, [*tree.body[1:], None], strict=True):
        match statement, following:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                yield statement.lineno, (name, " ".join(text.split()))
            case ast.AnnAssign(target=ast.Name(id=name)), _:
                yield statement.lineno, (name, "")


def _split(text: str) -> tuple[str, str]:
    meaning, *action = _SENTENCE_END.split(text, maxsplit=1)
    return meaning, "".join(action)
