"""Successive halving: which options of a method are tried, on how many pairs, and which are the best.

Many configurations are tried on few pairs, the best of them on more. Then single options of the best configuration are
varied, first those at the edge of what was tried. If one is still at the edge then, a few further trials continue the
grid until its best value is inside.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self, TypeAlias
from zlib import crc32

import numpy as np
from pydantic import Field, model_validator

from rmsh.compare.run import Run, method_of
from rmsh.core.config import Config
from rmsh.core.errors import ConfigError
from rmsh.methods import method_class

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

Options: TypeAlias = dict[str, Any]
Outcome: TypeAlias = dict[str, Any]  # "score" and what else was measured, or "error"; always "cpu_seconds"


class Search(Config):
    """What is searched for one method."""

    preset: str | None = Field(None, description="the options that the search starts from; none: the defaults")
    cheaper: Options = Field({}, description="options of the trials alone, which make them cheaper")
    grid: dict[str, list[Any]] = Field({}, description="values of the method's own options, in ascending order")
    extend: bool = Field(True, description="further trials while an option is at the edge, see Trials.extensions")
    passed_over: int = Field(0, ge=0, description="best configurations with constant bits in a run on all pairs")


class Trials(Config):
    """The content of a trials file."""

    dataset: str = Field(description="name of the data set")
    bits: int = Field(64, ge=1, description="code length")
    text: str = Field("minilm", description="text encoder")
    rounds: dict[int, int] = Field(description="number of configurations by number of training pairs")
    variations: int = Field(ge=0, description="trials after the last round, in which single options are varied")
    extensions: int = Field(0, ge=0, description="trials after these, only while an option of the best is at an edge")
    cpu_minutes: float = Field(30, gt=0, description="maximum of a run on all pairs; limits the epochs")
    menu: dict[str, list[Any]] = Field(description="values of the options that methods share, for those that have them")
    methods: dict[str, Search] = Field(description="the methods, in the order in which they are tuned")

    @model_validator(mode="after")
    def _rounds_narrow(self) -> Self:
        pairs, counts = [*self.rounds], [*self.rounds.values()]
        if not pairs or pairs != sorted(pairs) or counts != sorted(counts, reverse=True):
            raise ValueError(
                f"The rounds are {self.rounds}; give each more pairs and fewer configurations than before."
            )
        return self

    @property
    def most_pairs(self) -> int:
        """The training pairs of the last round, and of all variations."""
        return [*self.rounds][-1]

    def run(self, method: str, options: Mapping[str, Any], pairs: int, **parameters: Any) -> Run:
        """A trial as a run."""
        options = {**options, **self.methods[method].cheaper}
        shared: Options = {"text": self.text, "train": pairs, "validation": True, "options": options}
        return Run(self.dataset, method, self.bits, **shared, **parameters)


def key_of(pairs: int, options: Mapping[str, Any]) -> tuple[int, str]:
    """Identifies a trial of a method."""
    return pairs, json.dumps(options, sort_keys=True)


@dataclass
class Halving:
    """The search for the options of one method.

    Args:
        trials: the trials file.
        method: one of its methods.
        all_pairs: training pairs of the final runs.
        done: the outcomes of the trials so far.
    """

    trials: Trials
    method: str
    all_pairs: int
    done: dict[tuple[int, str], Outcome] = field(default_factory=dict)

    @property
    def grid(self) -> dict[str, list[Any]]:
        """The values of each option: the method's own, and those of the menu that it has."""
        own, fields = self.trials.methods[self.method].grid, method_class(self.method).Config.model_fields
        return own | {name: values for name, values in self.trials.menu.items() if name in fields and name not in own}

    @property
    def start(self) -> Options:
        """The first configuration: the preset, or the defaults, of all options of the grid."""
        cls, preset = method_class(self.method), self.trials.methods[self.method].preset
        config = cls(preset=preset).config.model_dump(mode="json")
        start = {**{name: config[name] for name in self.grid}, **cls.presets.get(preset or "", {})}
        if "epochs" in start and start["epochs"] is None:  # it would depend on the number of pairs
            start["epochs"] = getattr(cls, "default_epochs", None)
        return start

    def candidates(self, count: int) -> list[Options]:
        """The start and points of the grid, in which the values of an option are about equally frequent.

        What is drawn for an option depends on its name alone, so that all methods try the same values of the menu
        together. A grid with fewer points gives fewer candidates.
        """
        found = {key_of(0, self.start): self.start}
        for turn in range(8 if self.grid else 0):
            drawn = {
                name: np.random.default_rng([crc32(name.encode()), turn]).permutation(count) * len(values) // count
                for name, values in self.grid.items()
            }
            for n in range(count):
                options = self.start | {name: values[drawn[name][n]] for name, values in self.grid.items()}
                found.setdefault(key_of(0, options), options)
        return [*found.values()][:count]

    def plan(self) -> Iterator[tuple[int, Options]]:
        """The trials in their order; ``done`` must have the outcome of each before the next is requested.

        The order follows from the outcomes of the trials before, so that an interrupted search repeats it.
        """
        left, pairs = self.candidates(max(self.trials.rounds.values())), 0
        tried = [*left]
        for pairs, count in self.trials.rounds.items():
            left = left[:count]
            yield from ((pairs, options) for options in left)
            left = self._ranked(left, pairs)
        extensions = self.trials.extensions if self.trials.methods[self.method].extend else 0
        for number in range(self.trials.variations + extensions):
            vary = self.variations if number < self.trials.variations else self.beyond
            new = next((options for options in vary(left[0], tried) if options not in left), None)
            if new is None:
                return
            yield pairs, new
            left, tried = self._ranked([*left, new], pairs), [*tried, new]

    def _ranked(self, configurations: list[Options], pairs: int) -> list[Options]:
        """By score, best first; failed ones last."""
        return sorted(configurations, key=lambda options: -self.done[key_of(pairs, options)].get("score", -1.0))

    def best(self) -> Options | None:
        """The best configuration of those tried on most pairs that is not passed over; None if there is none."""
        pairs, first = self.trials.most_pairs, self.trials.methods[self.method].passed_over
        tried = [json.loads(text) for size, text in self.done if size == pairs and "score" in self.done[size, text]]
        return self._ranked(tried, pairs)[first] if len(tried) > first else None

    def variations(self, best: Options, tried: Sequence[Options]) -> list[Options]:
        """Configurations that differ from the best in one option: first with new values beyond those tried."""
        near = [options for options, is_new in self._steps(best, tried) if options is not None and not is_new]
        others = [best | {name: v} for name, values in self.grid.items() for v in values if not _is_number(v)]
        return self.beyond(best, tried) + near + others

    def beyond(self, best: Options, tried: Sequence[Options]) -> list[Options]:
        """Configurations in which an option at the edge of what was tried has a new value beyond it."""
        return [options for options, is_new in self._steps(best, tried) if options is not None and is_new]

    def edges(self, best: Options) -> list[str]:
        """The options whose value is the smallest or largest that was tried, though others are possible."""
        new = self.beyond(best, [json.loads(text) for _, text in self.done])
        return [name for name in self.grid if any(options[name] != best[name] for options in new)]

    def _steps(self, best: Options, tried: Sequence[Options]) -> list[tuple[Options | None, bool]]:
        numeric = [name for name in self.grid if _is_number(best[name])]
        return [self._step(best, name, sign, tried) for name in numeric for sign in (-1, 1)]

    def _step(self, best: Options, name: str, sign: int, tried: Sequence[Options]) -> tuple[Options | None, bool]:
        """The configuration with the next smaller (-1) or larger (1) value of an option, and whether the value is new.

        A new value continues the series of values by the ratio of the last two, or, if the method does not allow that
        one, halves the distance to the bound of the option. None if there is no such value, or if the epochs would take
        too long.
        """
        known = [*self.grid[name], *(options.get(name) for options in tried)]
        values = sorted({value for value in known if _is_number(value)}, reverse=sign < 0)
        beyond = [value for value in values if (value - best[name]) * sign > 0]
        if beyond:
            new = [beyond[0]]
        else:
            bound = bound_of(method_class(self.method).Config.model_fields[name], sign)
            new = [continue_series(values), None if bound is None else halve(best[name], bound)]
        for value in new:
            if value is None or (name == "epochs" and self.seconds(best) * value / best[name] > self._limit):
                continue
            try:
                method_of(self.trials.run(self.method, best | {name: value}, self.trials.most_pairs))
            except ConfigError:
                continue
            return best | {name: value}, not beyond
        return None, not beyond

    @property
    def _limit(self) -> float:
        return 60 * self.trials.cpu_minutes

    def seconds(self, options: Options) -> float:
        """The CPU seconds that a configuration would take on all pairs."""
        pairs = self.trials.most_pairs
        return float(self.done[key_of(pairs, options)]["cpu_seconds"] * self.all_pairs / pairs)

    def final(self, options: Options) -> Options:
        """The options of runs on all pairs: with fewer epochs where they would take too long."""
        seconds, epochs = self.seconds(options), options.get("epochs")
        if epochs is None or seconds <= self._limit:
            return options
        return options | {"epochs": max(1, int(epochs * self._limit / seconds))}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def bound_of(field: FieldInfo, sign: int) -> float | None:
    """The smallest (-1) or largest (1) value that a number may have, itself allowed or not; None without a bound."""
    names = ("ge", "gt") if sign < 0 else ("le", "lt")
    found = [getattr(limit, name) for limit in field.metadata for name in names if hasattr(limit, name)]
    return found[0] if found else None


def halve(value: Any, bound: float) -> float | None:
    """A number halfway between a value and a bound; None for a value at the bound, and for whole numbers.

    Example:
        >>> halve(0.9, 1.0), halve(1.0, 1.0), halve(20, 1)
        (0.95, None, None)
    """
    if isinstance(value, int) or value == bound:
        return None
    return float(f"{(value + bound) / 2:.4g}")


def continue_series(values: list[Any]) -> Any:
    """The number that continues a series by the ratio of its last two; None if there is none.

    Example:
        >>> continue_series([1, 10, 100]), continue_series([0.5, 0.25]), continue_series([0.2, 0.0])
        (1000, 0.125, None)
    """
    if len(values) < 2 or min(values[-2:]) <= 0:
        return None
    new = values[-1] ** 2 / values[-2]
    if isinstance(values[-1], int):
        return round(new) if round(new) not in (0, values[-1]) else None
    return float(f"{new:.4g}")
