"""The report: results in, one self-contained HTML page out."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from re import escape as pattern
from re import sub
from typing import Any

import yaml
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from tierbench.advice.answer import answer, own_answers, ranks, retries, said_of, verdict
from tierbench.advice.estimate import estimate, quantities, smaller_is_better
from tierbench.advice.leaders import Standing, Stretch, expected_wrong, standings, stretches
from tierbench.advice.selection import compared
from tierbench.advice.tables import CLIENT, RunResults, Table, where
from tierbench.api.result import BenchmarkResult
from tierbench.kinds.registry import BENCHMARKS, probe
from tierbench.report.figures import Figure, evidence_figures, retries_figure, slowness_figure
from tierbench.report.notes import CaseNote, case_notes, cautions
from tierbench.report.panels import Panel, panel_of
from tierbench.report.published import Beside, beside, beside_figures, nothing_beside, of_kind
from tierbench.report.run_figures import Pictures
from tierbench.report.tables import (
    NETWORK_HEADINGS,
    NODE_FACTS,
    CostTable,
    NetworkRow,
    NodeColumn,
    TrialRow,
    cost_tables,
    network_rows,
    node_columns,
    trial_headings,
    trial_rows,
)
from tierbench.report.timeline import Timeline, Traces, timelines
from tierbench.results.levels import level_in_words, show_level
from tierbench.results.quantities import main_quantity
from tierbench.results.units import joined, show_with_deviation, title, words
from tierbench.stats.posterior import Relation

_OPEN_SECTIONS = 3
_FULL_SECTIONS = 24
_WORDS = {Relation.EQUAL: "equal", Relation.AHEAD: "perhaps ahead", Relation.UNKNOWN: "not known"}


@dataclass(frozen=True)
class Section:
    """One table of a run: its answer, its numbers and, if it is `full`, the plots that explain them."""

    run: RunResults
    table: Table
    name: str
    quantity: str
    standings: tuple[Standing, ...]
    open: bool
    full: bool
    beside: Beside | None

    @property
    def heading(self) -> str:
        """What is held fixed in it."""
        held = self.table.held.items()
        return ", ".join(
            f"clients on {level}" if name == CLIENT else level_in_words(name, level) for name, level in held
        )

    @property
    def axis(self) -> str:
        """What the rows are."""
        return words(self.table.factor) or "Case"

    @property
    def less(self) -> bool:
        """Whether to be ahead means to need less."""
        return smaller_is_better(self.quantity)

    @property
    def answer(self) -> Markup:
        """Who is ahead where, class names marked."""
        return highlighted(said_of(self.table, self.standings), self.table.columns)

    @property
    def retries(self) -> Markup:
        """Where retries happened, class names marked."""
        return highlighted(retries(self.table), self.table.columns)

    @cached_property
    def strip(self) -> tuple[Mapping[str, Any], ...]:
        """The stretches of the levels, as coloured blocks."""
        return tuple(self._block(stretch) for stretch in stretches(self.standings))

    def _block(self, stretch: Stretch) -> Mapping[str, Any]:
        return {
            "place": where(self.table, [standing.level for standing in stretch.standings]),
            "who": joined(stretch.leaders) or "not known",
            "style": "ahead" if stretch.sole else "alone" if stretch.alone else "open",
            "word": "" if stretch.sole or stretch.alone or not stretch.leaders else _WORDS[stretch.outcome],
            "index": self.table.columns.index(stretch.leaders[0]) % 6 if stretch.sole else None,
            "levels": len(stretch.standings),
            "margins": [round(margin * 100) for margin in stretch.margins] if stretch.sole else [],
        }

    @property
    def rows(self) -> Iterable[Mapping[str, Any]]:
        """The rows of the main table."""
        for standing in self.standings:
            cells = []
            for column in self.table.columns:
                cell = self.table.cell(standing.level, column)
                found = estimate(cell, self.quantity)
                mean = "" if found is None else show_with_deviation(self.quantity, found.mean, found.deviation)
                best = column in standing.leaders and not standing.alone
                mark = "" if not best else "best" if len(standing.leaders) == 1 else "open"
                cells.append({"mean": mean, "cell": cell, "mark": mark})
            yield {
                "level": show_level(self.table.factor, standing.level) or "all",
                "cells": cells,
                "verdict": verdict(standing, self.quantity),
            }

    @cached_property
    def figures(self) -> tuple[Figure, ...]:
        """How far behind the best each is, and retries."""
        if not self.full:
            return ()
        found = [
            slowness_figure(f"{self.name}-slowness", self._panel, self.quantity, self.standings)
            if len(self.run.classes) > 1
            else None,
            retries_figure(f"{self.name}-retries", self._panel),
        ]
        return tuple(figure for figure in found if figure is not None)

    @cached_property
    def published(self) -> tuple[Figure, ...]:
        """What is published of these cases, beside what was measured."""
        return beside_figures(self.name, self.beside)

    @property
    def published_names(self) -> str:
        """The benchmarks that these numbers are of."""
        return "" if self.beside is None else joined(self.beside.names)

    @cached_property
    def evidence(self) -> tuple[Figure, ...]:
        """What the agent beside the server saw."""
        return evidence_figures(f"{self.name}-evidence", self._panel) if self.full else ()

    @property
    def _panel(self) -> Panel:
        return panel_of(self.table)


@dataclass(frozen=True)
class Article:
    """One run of one benchmark, as the page shows it. `spec` is the benchmark's, if it is at hand; `published` is what
    stands beside it."""

    run: RunResults
    number: int
    spec: Mapping[str, Any] | None
    traces: Traces
    published: Sequence[BenchmarkResult]

    @property
    def question(self) -> str:
        """What the kind of benchmark measures."""
        return BENCHMARKS[self.run.benchmark.kind].KIND.description

    @cached_property
    def quantity(self) -> str:
        """The quantity that classes, or what is compared instead, are compared by."""
        return next(iter(quantities(self.run)), main_quantity(self.run.benchmark.kind, ()))

    @property
    def quantity_title(self) -> str:
        """Its name."""
        return title(self.quantity)

    @cached_property
    def _compared(self) -> RunResults:
        return compared(self.run)

    @cached_property
    def _standings(self) -> list[tuple[Standing, ...]]:
        return standings(self._compared.tables, self.quantity)

    @property
    def doubt(self) -> str:
        """How many of the levels are expected to name the wrong class."""
        levels, wrong = expected_wrong(standing for found in self._standings for standing in found)
        return f"Of {levels} levels at which a class is named, {wrong:.2g} are expected to name the wrong one."

    @cached_property
    def pictures(self) -> Pictures:
        """The plots of the whole run."""
        return Pictures(self.run, f"b{self.number}", self.quantity)

    @cached_property
    def sections(self) -> tuple[Section, ...]:
        """A section a table."""
        published = of_kind(self.run, self.published)
        return tuple(
            Section(
                self._compared,
                table,
                f"b{self.number}t{index}",
                self.quantity,
                found,
                open=index < _OPEN_SECTIONS,
                full=index < _FULL_SECTIONS,
                beside=beside(self._compared, table, published),
            )
            for index, (table, found) in enumerate(zip(self._compared.tables, self._standings, strict=True))
        )

    @cached_property
    def costs(self) -> tuple[CostTable, ...]:
        """What each factor costs."""
        return cost_tables(self.run, f"b{self.number}costs")

    @property
    def ranks(self) -> bool:
        """Whether there is more than one to be ahead."""
        return ranks(self.run)

    @property
    def also(self) -> tuple[str, ...]:
        """What the answer is beside, or without, who is ahead."""
        return own_answers(self.run) if self.ranks else answer(self.run)

    @property
    def facts(self) -> tuple[tuple[str, str], ...]:
        """The run in a few figures."""
        return run_facts(self.run)

    @property
    def cautions(self) -> tuple[str, ...]:
        """What to keep in mind."""
        alone = self.published and not any(section.beside for section in self.sections)
        return (*cautions(self.run), nothing_beside(self._compared)) if alone else cautions(self.run)

    @property
    def case_notes(self) -> tuple[CaseNote, ...]:
        """What is known of single cases."""
        return case_notes(self.run)

    @cached_property
    def timelines(self) -> tuple[Timeline, ...]:
        """TCP over time, where it was traced."""
        return timelines(self.run, self.traces, f"b{self.number}tcp")

    @property
    def nodes(self) -> tuple[NodeColumn, ...]:
        """The nodes that took part."""
        return node_columns(self.run)

    @property
    def networks(self) -> tuple[NetworkRow, ...]:
        """The network that they were measured on."""
        return network_rows(self.run)

    @property
    def trials(self) -> tuple[TrialRow, ...]:
        """Every trial."""
        return trial_rows(self.run)

    @property
    def trial_headings(self) -> tuple[str, ...]:
        """What the cells of each trial are."""
        return trial_headings(self.run)

    @property
    def factor_headings(self) -> tuple[str, ...]:
        """The factors that vary, in words."""
        return tuple(
            words(name) for name in self.run.factors if name not in self.run.fixed or name == self.run.row_factor
        )

    @property
    def fixed(self) -> tuple[tuple[str, str], ...]:
        """The factors that do not vary."""
        fixed = self.run.fixed.items()
        return tuple((words(name), show_level(name, level)) for name, level in fixed if name != self.run.row_factor)

    @property
    def spec_text(self) -> str:
        """The benchmark's spec as YAML, empty if it is not at hand."""
        return yaml.safe_dump(dict(self.spec), sort_keys=False, allow_unicode=True).rstrip() if self.spec else ""

    @property
    def engines(self) -> tuple[str, ...]:
        """The programs that made the load."""
        found = [result.status.engine for result in self.run.results if result.status.engine is not None]
        return tuple(sorted({f"{engine.name} {engine.version} ({engine.architecture})" for engine in found}))


def run_facts(run: RunResults) -> tuple[tuple[str, str], ...]:
    """The run in a few figures."""
    counts = [result.status.counts for result in run.results]
    failed = sum(count.failed for count in counts)
    cases = f"{sum(result.status.phase == 'Measured' for result in run.results)} of {len(run.results)}"
    begun = min((trial.start_time for result in run.results for trial in result.status.trials), default="")
    trials = f"{sum(count.completed for count in counts)}{f' + {failed} failed' if failed else ''}"
    return (
        ("Run", str(run.number)),
        ("Cases measured", cases),
        ("Trials", trials),
        ("Retries", str(sum(count.retries for count in counts))),
        ("Valid", f"{sum(result.status.valid is True for result in run.results)} of {len(run.results)}"),
        ("Clients on", joined(run.clients)),
        ("Begun", begun[:16].replace("T", " ") + (" UTC" if begun.endswith("Z") else "")),
    )


def highlighted(sentence: str, classes: Sequence[str]) -> Markup:
    """The sentence, each class name in the class's colour, numbers kept together with their units."""
    index = {name: number % 6 for number, name in enumerate(classes)}
    names = "|".join(pattern(name) for name in sorted(classes, key=len, reverse=True))
    if not names:
        return escape(sentence)
    marked = sub(
        rf"(?<![\w-])({names})(?![\w-])", lambda m: f'<b class="who s{index[m[1]]}">{m[1]}</b>', str(escape(sentence))
    )
    return Markup(sub(r"(\d) (?=[^\d\s])", "\\1\u00a0", marked))  # noqa: S704 (escaped above)


def render(
    runs: Sequence[RunResults],
    specs: Mapping[tuple[str, str, str], Mapping[str, Any]],
    traces: Traces | None = None,
    files: Sequence[str] = (),
    published: Sequence[BenchmarkResult] = (),
) -> str:
    """The page of these runs. `specs` holds benchmarks' specs by kind, namespace and name, as far as they are known;
    `files` are what they were read from, none for a cluster; `published` stands beside them, in no verdict."""
    environment = Environment(
        loader=PackageLoader("tierbench.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    articles = [
        Article(
            run, number, specs.get((run.benchmark.kind, run.namespace, run.benchmark.name)), traces or {}, published
        )
        for number, run in enumerate(runs, start=1)
    ]
    return environment.get_template("report.html.j2").render(
        articles=articles,
        node_facts=NODE_FACTS,
        network_headings=NETWORK_HEADINGS,
        network_programs=probe().programs,
        files=files,
        version=version("tierbench"),
    )
