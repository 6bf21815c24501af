"""What is chosen among: results told apart by their alternative, where they were by their server's class. Pure.

All that compares classes then compares alternatives: the label of one stands in the place of the node class. What was
chosen is no level any more; of what was not, the server's class becomes one, so that it is held equal like the others.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

from tierbench.advice.matrix import RunResults
from tierbench.advice.words import NAMED_BY_VALUE, joined
from tierbench.api.placement_advice import Dimension
from tierbench.api.result import BenchmarkResult
from tierbench.results.conditions import circumstances
from tierbench.results.levels import level_in_words, number_of_level

CLIENT_CLASS: Final = "clientClass"
ACCESS_NETWORK: Final = "accessNetwork"
Settings = Mapping[str, str]
"""Levels of what is chosen, by name."""


@dataclass(frozen=True)
class Choice:
    """`dimensions` are chosen among; `results` are all that are meant, and factors that are `named` stay levels.

    A factor that only some alternatives have, as Kafka's codec, can be held equal for none: with several levels it is
    chosen, too, and with one it goes without saying.
    """

    dimensions: tuple[str, ...]
    results: Sequence[BenchmarkResult]
    named: frozenset[str] = frozenset()

    @property
    def of_classes(self) -> bool:
        """Whether the node class is among what is chosen."""
        return Dimension.NODE_CLASS in self.dimensions

    @property
    def noun(self) -> str:
        """What an alternative is called."""
        return "class" if self.dimensions == (Dimension.NODE_CLASS,) else "choice"

    @cached_property
    def alternatives(self) -> Mapping[str, Settings]:
        """Every alternative, by its label."""
        every = {tuple(settings.items()): settings for settings in map(self.settings, self.results)}
        return {label(settings): settings for settings in every.values() if settings}

    def told_apart(self, results: Sequence[BenchmarkResult]) -> tuple[BenchmarkResult, ...]:
        """The results, each as one of its alternative; those that have nothing of what is chosen are left out."""
        if self.noun == "class":
            return tuple(results)
        return tuple(self._as_one_of(result, settings) for result in results if (settings := self.settings(result)))

    def _as_one_of(self, result: BenchmarkResult, settings: Settings) -> BenchmarkResult:
        spec, gone = result.spec, self.gone
        held = {} if self.of_classes else {Dimension.NODE_CLASS.value: spec.server.node_class}
        update = {
            "server": spec.server.model_copy(update={"node_class": label(settings)}),
            "levels": held | {name: level for name, level in spec.levels.items() if name not in gone},
            "conditions": {name: level for name, level in spec.conditions.items() if name not in gone},
        }
        return result.model_copy(update={"spec": spec.model_copy(update=update)})

    @cached_property
    def gone(self) -> frozenset[str]:
        """The factors that are no level any more: what is chosen, and what goes without saying with it."""
        return frozenset({*self.dimensions, *self._own})

    def settings(self, result: BenchmarkResult) -> Settings:
        """Which alternative a result is one of; nothing if it has nothing of what is chosen."""
        levels = situation(result)
        chosen = {name: levels[name] for name in self.dimensions if name in levels}
        own = {name: levels[name] for name, known in self._own.items() if len(known) > 1 and name in levels}
        return chosen | own if chosen else {}

    @cached_property
    def _own(self) -> Mapping[str, frozenset[str]]:
        """The factors that some alternatives have and others have not, and their levels."""
        if self.noun == "class":
            return {}
        having: dict[tuple[str | None, ...], set[str]] = {}
        found: dict[str, set[str]] = {}
        for result in self.results:
            levels = situation(result)
            names = having.setdefault(tuple(map(levels.get, self.dimensions)), set())
            for name, level in result.spec.levels.items():
                names.add(name)
                found.setdefault(name, set()).add(level)
        shared = set.intersection(*having.values()) if having else set()
        return {name: frozenset(found[name]) for name in found.keys() - shared - self.named - {*self.dimensions}}


def situation(result: BenchmarkResult) -> dict[str, str]:
    """All that results may differ in, by name: classes, the access network of the client, levels and conditions."""
    spec = result.spec
    return {
        Dimension.NODE_CLASS.value: spec.server.node_class,
        CLIENT_CLASS: spec.client.node_class,
        ACCESS_NETWORK: spec.client.access_network,
        **circumstances(result),
    }


def label(settings: Settings) -> str:
    """An alternative in words: cloud; mosquitto on cloud with delivery AtMostOnce and TLSv1.3."""
    who = " on ".join(settings[name] for name in NAMED_BY_VALUE if name in settings)
    others = [level_in_words(name, level) for name, level in settings.items() if name not in NAMED_BY_VALUE]
    return " with ".join(filter(None, (who, joined(others))))


def compared(run: RunResults) -> RunResults:
    """The run as what it compares."""
    choice = choice_of(run)
    return run if choice.of_classes else replace(run, results=choice.told_apart(run.results))


def choice_of(run: RunResults) -> Choice:
    """What a run compares, as a choice."""
    return Choice((compared_factor(run),), run.results)


def compared_factor(run: RunResults) -> str:
    """What its answer compares: classes, or with one server class the first setting of words that varies. UDP is as
    fast as it is told to be, so TCP is no alternative to it.
    """
    varying = (
        name for name in Dimension if name is not Dimension.PROTOCOL and _is_varied_setting(run.factors.get(name, ()))
    )
    return Dimension.NODE_CLASS if len(run.classes) != 1 else next(varying, Dimension.NODE_CLASS)


def _is_varied_setting(levels: Sequence[str]) -> bool:
    return len(levels) > 1 and any(number_of_level(level) is None for level in levels)
