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

from tierbench.advice.answer import (
    answer,
    describe_retries,
    describe_table,
    has_alternatives,
    kind_answers,
    short_verdict,
)
from tierbench.advice.estimate import estimate, measured_quantities, smaller_is_better
from tierbench.advice.leaders import LevelRange, LevelVerdict, expected_errors, level_ranges, level_verdicts
from tierbench.advice.selection import relabelled_run
from tierbench.advice.tables import CLIENT, RunResults, Table, describe_rows
from tierbench.api.result import BenchmarkResult
from tierbench.kinds.registry import BENCHMARKS, probe
from tierbench.report.figures import Figure, evidence_figures, retries_figure, slowness_figure
from tierbench.report.notes import CaseNote, case_notes, cautions
from tierbench.report.panels import Panel, panel_of
from tierbench.report.published import (
    PublishedTable,
    matching_results,
    no_match_message,
    published_figures,
    published_table,
)
from tierbench.report.run_figures import RunFigures
from tierbench.report.tables import (
    NETWORK_HEADINGS,
    NODE_FACTS,
    EffectTable,
    NetworkRow,
    NodeColumn,
    TrialRow,
    effect_tables,
    network_rows,
    node_columns,
    trial_headings,
    trial_rows,
)
from tierbench.report.timeline import Timeline, Traces, timelines
from tierbench.results.quantities import main_quantity
from tierbench.results.units import describe_level, humanize, join_words, show_level, show_with_deviation, title
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
    level_verdicts: tuple[LevelVerdict, ...]
    open: bool
    full: bool
    published_table: PublishedTable | None

    @property
    def heading(self) -> str:
        """What is held fixed in it."""
        held = self.table.held.items()
        return ", ".join(
            f"clients on {level}" if name == CLIENT else describe_level(name, level) for name, level in held
        )

    @property
    def axis(self) -> str:
        """What the rows are."""
        return humanize(self.table.factor) or "Case"

    @property
    def less(self) -> bool:
        """Whether to be ahead means to need less."""
        return smaller_is_better(self.quantity)

    @property
    def answer(self) -> Markup:
        """Who is ahead where, class names marked."""
        return highlighted(describe_table(self.table, self.level_verdicts), self.table.columns)

    @property
    def retries(self) -> Markup:
        """Where retries happened, class names marked."""
        return highlighted(describe_retries(self.table), self.table.columns)

    @cached_property
    def strip(self) -> tuple[Mapping[str, Any], ...]:
        """The stretches of the levels, as coloured blocks."""
        return tuple(self._block(stretch) for stretch in level_ranges(self.level_verdicts))

    def _block(self, stretch: LevelRange) -> Mapping[str, Any]:
        return {
            "place": describe_rows(self.table, [standing.level for standing in stretch.verdicts]),
            "who": join_words(stretch.leaders) or "not known",
            "style": "ahead" if stretch.has_winner else "alone" if stretch.only_one else "open",
            "word": "" if stretch.has_winner or stretch.only_one or not stretch.leaders else _WORDS[stretch.outcome],
            "index": self.table.columns.index(stretch.leaders[0]) % 6 if stretch.has_winner else None,
            "levels": len(stretch.verdicts),
            "margins": [round(margin * 100) for margin in stretch.margins] if stretch.has_winner else [],
        }

    @property
    def rows(self) -> Iterable[Mapping[str, Any]]:
        """The rows of the main table."""
        for standing in self.level_verdicts:
            cells = []
            for column in self.table.columns:
                cell = self.table.cell(standing.level, column)
                found = estimate(cell, self.quantity)
                mean = "" if found is None else show_with_deviation(self.quantity, found.mean, found.deviation)
                best = column in standing.leaders and not standing.only_one
                mark = "" if not best else "best" if len(standing.leaders) == 1 else "open"
                cells.append({"mean": mean, "cell": cell, "mark": mark})
            yield {
                "level": show_level(self.table.factor, standing.level) or "all",
                "cells": cells,
                "verdict": short_verdict(standing, self.quantity),
            }

    @cached_property
    def figures(self) -> tuple[Figure, ...]:
        """How far behind the best each is, and retries."""
        if not self.full:
            return ()
        found = [
            slowness_figure(f"{self.name}-slowness", self._panel, self.quantity, self.level_verdicts)
            if len(self.run.classes) > 1
            else None,
            retries_figure(f"{self.name}-retries", self._panel),
        ]
        return tuple(figure for figure in found if figure is not None)

    @cached_property
    def published(self) -> tuple[Figure, ...]:
        """What is published of these cases, beside what was measured."""
        return published_figures(self.name, self.published_table)

    @property
    def published_names(self) -> str:
        """The benchmarks that these numbers are of."""
        return "" if self.published_table is None else join_words(self.published_table.names)

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
        return next(iter(measured_quantities(self.run)), main_quantity(self.run.benchmark.kind, ()))

    @property
    def quantity_title(self) -> str:
        """Its name."""
        return title(self.quantity)

    @cached_property
    def _compared(self) -> RunResults:
        return relabelled_run(self.run)

    @cached_property
    def _standings(self) -> list[tuple[LevelVerdict, ...]]:
        return level_verdicts(self._compared.tables, self.quantity)

    @property
    def doubt(self) -> str:
        """How many of the levels are expected to name the wrong class."""
        levels, wrong = expected_errors(standing for found in self._standings for standing in found)
        return f"Of {levels} levels at which a class is named, {wrong:.2g} are expected to name the wrong one."

    @cached_property
    def pictures(self) -> RunFigures:
        """The plots of the whole run."""
        return RunFigures(self.run, f"b{self.number}", self.quantity)

    @cached_property
    def sections(self) -> tuple[Section, ...]:
        """A section a table."""
        published = matching_results(self.run, self.published)
        return tuple(
            Section(
                self._compared,
                table,
                f"b{self.number}t{index}",
                self.quantity,
                found,
                open=index < _OPEN_SECTIONS,
                full=index < _FULL_SECTIONS,
                published_table=published_table(self._compared, table, published),
            )
            for index, (table, found) in enumerate(zip(self._compared.tables, self._standings, strict=True))
        )

    @cached_property
    def costs(self) -> tuple[EffectTable, ...]:
        """What each factor costs."""
        return effect_tables(self.run, f"b{self.number}costs")

    @property
    def ranks(self) -> bool:
        """Whether there is more than one to be ahead."""
        return has_alternatives(self.run)

    @property
    def also(self) -> tuple[str, ...]:
        """What the answer is beside, or without, who is ahead."""
        return kind_answers(self.run) if self.ranks else answer(self.run)

    @property
    def facts(self) -> tuple[tuple[str, str], ...]:
        """The run in a few figures."""
        return run_facts(self.run)

    @property
    def cautions(self) -> tuple[str, ...]:
        """What to keep in mind."""
        alone = self.published and not any(section.published_table for section in self.sections)
        return (*cautions(self.run), no_match_message(self._compared)) if alone else cautions(self.run)

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
            humanize(name) for name in self.run.factors if name not in self.run.fixed or name == self.run.row_factor
        )

    @property
    def fixed(self) -> tuple[tuple[str, str], ...]:
        """The factors that do not vary."""
        fixed = self.run.fixed.items()
        return tuple((humanize(name), show_level(name, level)) for name, level in fixed if name != self.run.row_factor)

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
        ("Clients on", join_words(run.clients)),
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
