"""The progress of a benchmark as a picture in the terminal."""

from rich import box
from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from tierbench.api.result import ResultPhase
from tierbench.cli.progress import Progress, time_left

_STYLES = {"Running": "bold cyan", "Complete": "bold green", "Failed": "bold red"}
_BAR = 48


def picture(progress: Progress, age_seconds: float, rows: int) -> RenderableType:
    """The progress. `age_seconds` is the age of the estimate of the time left; `rows` results find room."""
    parts: list[RenderableType] = [_heading(progress), _bar(progress, age_seconds), *_now(progress)]
    parts += [Text(remark, style="yellow") for remark in progress.remarks]
    if progress.trouble:
        parts.append(Text(f"No news: {progress.trouble}; trying again", style="red"))
    if progress.ended and rows > 0:
        parts += [Text(), _results(progress, rows)]
    return Group(*parts)


def _heading(progress: Progress) -> Text:
    benchmark, phase = progress.benchmark, progress.benchmark.status.phase.value
    text = Text(benchmark.metadata.name, style="bold")
    text.append(f"  {benchmark.KIND.kind}", style="dim")
    text.append(f"  run {progress.run}  " if progress.run else "  ", style="dim")
    return text.append(phase, style=_STYLES.get(phase, "bold yellow"))


def _bar(progress: Progress, age_seconds: float) -> Table:
    status = progress.benchmark.status
    words = f"{status.cases.ended}/{status.cases.total} cases" if status.cases.total else "no case yet"
    if status.remaining_seconds is not None:
        words += f", {time_left(status.remaining_seconds - age_seconds)} left"
    if status.cases.failed:
        words += f", {status.cases.failed} failed"
    line = Table.grid(padding=(0, 2))
    line.add_row(ProgressBar(total=status.cases.total or 1, completed=_completed(progress), width=_BAR), words)
    return line


def _completed(progress: Progress) -> float:
    status = progress.benchmark.status
    within = status.current.trials / status.current.of if status.current is not None and status.current.of else 0
    return min(status.cases.ended + within, status.cases.total)


def _now(progress: Progress) -> list[Text]:
    current = progress.benchmark.status.current
    if current is None:
        return []
    trial = min(current.trials + 1, current.of)
    return [Text("now  ", style="dim").append(f"{current.name}, trial {trial} of {current.of}", style="default")]


def _results(progress: Progress, rows: int) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("Case", "Server", "Mean", "Throughput", "Retries", "Valid"):
        table.add_column(name, justify="right" if name in {"Mean", "Throughput", "Retries"} else "left")
    for result in progress.ended[-rows:]:
        shown, status = result.status.display, result.status
        style = "red" if status.phase is ResultPhase.FAILED else "yellow" if status.valid is False else ""
        retries = Text(str(status.counts.retries), style="red" if status.counts.retries else "")
        server = result.spec.server.node_class
        table.add_row(shown.case, server, shown.mean, shown.throughput, retries, Text(shown.valid, style=style))
    return table
