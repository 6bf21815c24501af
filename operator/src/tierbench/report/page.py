"""Renders runs as one self-contained HTML page."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from re import escape as pattern
from re import sub
from typing import Any, Final

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
from tierbench.advice.posterior import LevelRange, LevelVerdict, expected_errors, level_ranges, level_verdicts
from tierbench.advice.selection import relabelled_run
from tierbench.advice.tables import (
    CLIENT,
    RunResults,
    Table,
    describe_rows,
    estimate,
    measured_quantities,
    smaller_is_better,
)
from tierbench.api.result import BenchmarkResult, ResultPhase
from tierbench.kinds.registry import BENCHMARKS, probe
from tierbench.report.figures import Figure, evidence_figures, retries_figure, slowness_figure
from tierbench.report.panels import Panel, panel_of
from tierbench.report.published import (
    PUBLISHED_HEADINGS,
    PublishedTable,
    matching_results,
    no_match_message,
    published_figures,
    published_rows,
    published_table,
)
from tierbench.report.run_figures import RunFigures
from tierbench.report.tables import (
    NETWORK_HEADINGS,
    NODE_FACTS,
    case_notes,
    cautions,
    effect_tables,
    network_rows,
    node_columns,
    trial_headings,
    trial_rows,
)
from tierbench.report.timeline import timelines
from tierbench.results.quantities import main_quantity
from tierbench.results.units import describe_level, humanize, join_words, show_level, show_with_deviation, title
from tierbench.stats.posterior import Relation

_OPEN_SECTIONS: Final = 3
_FULL_SECTIONS: Final = 24
_RELATIONS: Final = {
    Relation.EQUAL: "equal",
    Relation.AHEAD: "perhaps ahead",
    Relation.INCONCLUSIVE: "inconclusive",
}


def render(
    runs: Sequence[RunResults],
    specs: Mapping[tuple[str, str, str], Mapping[str, Any]],
    files: Sequence[str] = (),
    published: Sequence[BenchmarkResult] = (),
) -> str:
    """Returns the page of these runs.

    `specs` has the known specs of benchmarks by kind, namespace and name. `files` are the names of the files that the
    results were read from, if they do not come from a cluster. The page also shows `published` results of the same
    cases; no verdict uses them.
    """
    environment = Environment(
        loader=PackageLoader("tierbench.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    articles = [
        _article(run, number, specs.get((run.benchmark.kind, run.namespace, run.benchmark.name)), published)
        for number, run in enumerate(runs, start=1)
    ]
    return environment.get_template("report.html.j2").render(
        articles=articles,
        node_facts=NODE_FACTS,
        network_headings=NETWORK_HEADINGS,
        published_headings=PUBLISHED_HEADINGS,
        network_programs=probe().programs,
        files=files,
        version=version("tierbench"),
    )


def _article(
    run: RunResults,
    number: int,
    spec: Mapping[str, Any] | None,
    published: Sequence[BenchmarkResult],
) -> Mapping[str, Any]:
    """Returns what the template shows of one run."""
    relabelled = relabelled_run(run)
    quantity = next(iter(measured_quantities(run)), main_quantity(run.benchmark.kind, ()))
    verdicts = list(level_verdicts(relabelled.tables, quantity))
    named, wrong = expected_errors(verdict for of_table in verdicts for verdict in of_table)
    matching = matching_results(run, published)
    sections = [
        Section(
            relabelled,
            table,
            f"b{number}t{index}",
            quantity,
            of_table,
            open=index < _OPEN_SECTIONS,
            full=index < _FULL_SECTIONS,
            published_table=published_table(relabelled, table, matching),
        )
        for index, (table, of_table) in enumerate(zip(relabelled.tables, verdicts, strict=True))
    ]
    comparable = [section.published_table for section in sections if section.published_table is not None]
    is_unmatched = published and not comparable
    ranks = has_alternatives(run)
    return {
        "run": run,
        "number": number,
        "question": BENCHMARKS[run.benchmark.kind].KIND.description,
        "quantity_title": title(quantity),
        "ranks": ranks,
        "further_answers": kind_answers(run) if ranks else answer(run),
        "expected_errors": f"Of {named} levels with a named class, {wrong:.2g} are expected to name the wrong one.",
        "facts": _run_facts(run),
        "cautions": (*cautions(run), *([no_match_message(relabelled)] if is_unmatched else [])),
        "figures": RunFigures(run, f"b{number}", quantity),
        "sections": sections,
        "published": tuple(published_rows(comparable)),
        "effects": effect_tables(run),
        "timelines": timelines(run, f"b{number}tcp"),
        "case_notes": case_notes(run),
        "nodes": node_columns(run),
        "networks": network_rows(run),
        "trials": trial_rows(run),
        "factor_headings": [humanize(name) for name in run.factors if name not in run.fixed or name == run.row_factor],
        "trial_headings": trial_headings(run),
        "fixed": [
            (humanize(name), show_level(name, level)) for name, level in run.fixed.items() if name != run.row_factor
        ],
        "engines": _engines(run),
        "spec_text": yaml.safe_dump(dict(spec), sort_keys=False, allow_unicode=True).rstrip() if spec else "",
    }


def _engines(run: RunResults) -> Sequence[str]:
    """Returns the programs that made the load."""
    found = [result.status.engine for result in run.results if result.status.engine is not None]
    return sorted({f"{engine.name} {engine.version} ({engine.architecture})" for engine in found})


def _run_facts(run: RunResults) -> tuple[tuple[str, str], ...]:
    """Returns names and values that sum up a run."""
    counts = [result.status.counts for result in run.results]
    failed = sum(count.failed for count in counts)
    measured = sum(result.status.phase is ResultPhase.COMPLETE for result in run.results)
    valid = sum(result.status.valid is True for result in run.results)
    created = [time for result in run.results if (time := result.metadata.creation_timestamp)]
    trials = (trial.start_time for result in run.results for trial in result.recorded.trials)
    started = min(created or trials, default="")  # the clock of a client may be off
    return (
        ("Run", str(run.number)),
        ("Cases measured", f"{measured} of {len(run.results)}"),
        ("Trials", f"{sum(count.completed for count in counts)}{f' + {failed} failed' if failed else ''}"),
        ("Retries", str(sum(count.retries for count in counts))),
        ("Valid", f"{valid} of {len(run.results)}"),
        ("Clients on", join_words(run.clients)),
        ("Started", started[:16].replace("T", " ") + (" UTC" if started.endswith("Z") else "")),
    )


@dataclass(frozen=True)
class Section:
    """One table of a run, with its answer and its verdicts. If it is `full`, it also has figures."""

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
        """The levels that are held fixed."""
        held = self.table.held.items()
        return ", ".join(
            f"clients on {level}" if name == CLIENT else describe_level(name, level) for name, level in held
        )

    @property
    def axis(self) -> str:
        """The heading of the rows."""
        return humanize(self.table.factor) or "Case"

    @property
    def less(self) -> bool:
        """Whether a smaller value is better."""
        return smaller_is_better(self.quantity)

    @property
    def answer(self) -> Markup:
        """The sentence that says which class is ahead at which levels."""
        return _highlighted(describe_table(self.table, self.level_verdicts), self.table.columns)

    @property
    def retries(self) -> Markup:
        """The sentence that says where retries occurred."""
        return _highlighted(describe_retries(self.table), self.table.columns)

    @cached_property
    def strip(self) -> tuple[Mapping[str, Any], ...]:
        """The ranges of levels, as coloured blocks."""
        return tuple(self._block(found) for found in level_ranges(self.level_verdicts))

    def _block(self, found: LevelRange) -> Mapping[str, Any]:
        has_word = found.leaders and not found.has_winner and not found.only_one
        return {
            "place": describe_rows(self.table, [verdict.level for verdict in found.verdicts]),
            "leaders": join_words(found.leaders) or "no data",
            "style": "ahead" if found.has_winner else "alone" if found.only_one else "open",
            "word": _RELATIONS[found.relation] if has_word else "",
            "index": self.table.columns.index(found.leaders[0]) % 6 if found.has_winner else None,
            "levels": len(found.verdicts),
            "margins": [round(margin * 100) for margin in found.margins] if found.has_winner else [],
        }

    @property
    def rows(self) -> Iterable[Mapping[str, Any]]:
        """The rows of the table."""
        for verdict in self.level_verdicts:
            cells = []
            for column in self.table.columns:
                cell = self.table.cell(verdict.level, column)
                found = estimate(cell, self.quantity)
                mean = "" if found is None else show_with_deviation(self.quantity, found.mean, found.deviation)
                is_leader = column in verdict.leaders and not verdict.only_one
                mark = "" if not is_leader else "best" if len(verdict.leaders) == 1 else "open"
                cells.append({"mean": mean, "cell": cell, "mark": mark})
            yield {
                "level": show_level(self.table.factor, verdict.level) or "all",
                "cells": cells,
                "verdict": short_verdict(verdict, self.quantity),
            }

    @cached_property
    def figures(self) -> tuple[Figure, ...]:
        """How far each class is behind the best one, and retries."""
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
        """The published results of the same cases."""
        return published_figures(self.name, self.published_table)

    @property
    def published_names(self) -> str:
        """The benchmarks that the published results are of."""
        return "" if self.published_table is None else join_words(self.published_table.names)

    @cached_property
    def evidence(self) -> tuple[Figure, ...]:
        """What the agent on the server's node measured."""
        return evidence_figures(f"{self.name}-evidence", self._panel) if self.full else ()

    @property
    def _panel(self) -> Panel:
        return panel_of(self.table)


def _highlighted(sentence: str, classes: Sequence[str]) -> Markup:
    """Returns a sentence with the colours of classes, and with numbers that keep together with their units."""
    index = {name: number % 6 for number, name in enumerate(classes)}
    names = "|".join(pattern(name) for name in sorted(classes, key=len, reverse=True))
    if not names:
        return escape(sentence)
    marked = sub(
        rf"(?<![\w-])({names})(?![\w-])", lambda m: f'<b class="who s{index[m[1]]}">{m[1]}</b>', str(escape(sentence))
    )
    return Markup(sub(r"(\d) (?=[^\d\s])", "\\1\u00a0", marked))  # noqa: S704 (escaped above)
