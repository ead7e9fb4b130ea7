"""The results of a grid, grouped by the blocks that its tables and figures are made from.

The name of a block says what its runs are for: one of ``KINDS``, and, after a colon, anything else, such as
"table 1: presets". Blocks of the same kind are joined. Runs of other blocks are made and counted, but not shown.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any

from lab.carried_over import stale_reason
from lab.paper.published import COMPARED, method_title
from lab.paper.significance import Difference, Noise, compare, noise_of, seed_noise
from rmsh.compare.result import read_result, with_prefixes
from rmsh.core.errors import ConfigError
from rmsh.metrics.counterparts import RECALL_RANKS
from rmsh.metrics.evaluate import UNSEEN_RANKS

if TYPE_CHECKING:
    from pathlib import Path

    from lab.grid import Grid
    from rmsh.compare.run import Run

TABLE_1, UNSEEN, ABLATION, DELTA, WEIGHTS = "table 1", "unseen", "ablation", "delta", "weights"
LABEL_NOISE, IMAGE_NOISE, TEXT_NOISE = "label noise", "image noise", "text noise"
STUDIES = (ABLATION, DELTA, WEIGHTS)  # of RMSH, with its own options or with those of a preset
KINDS = (TABLE_1, UNSEEN, ABLATION, DELTA, WEIGHTS, LABEL_NOISE, IMAGE_NOISE, TEXT_NOISE)

DIRECTIONS = ("i2t", "t2i")
BOTH = "both"  # the mean of both directions
PRINTED, AS_PRINTED = "paper", " as printed"  # the preset with the constants that the paper prints, and its title
NDCG, MAP = "ndcg@500", "map@all"
UNSEEN_METRICS = {**{f"NDCG@{k}": f"ndcg@{k}" for k in UNSEEN_RANKS}, "mAP@all": MAP}
UNSEEN_RECALL = {f"recall@{k}": f"recall@{k}" for k in RECALL_RANKS}
ABLATIONS = ("RMSH-T", "RMSH-C", "RMSH-P")  # variants of the ablation block, named as in the paper
_USUAL_BITS = 64  # the code length at which the paper shows what it shows at one length only


@dataclass(frozen=True, eq=False)
class RunResult:
    """A run of the grid and the content of its result file.

    The status is "missing" if there is no file, and "earlier" if the current code would not give that result: verdicts
    on claims must not depend on it.
    """

    run: Run
    result: Mapping[str, Any]

    @property
    def done(self) -> bool:
        """Whether the run has scores."""
        return bool(self.result["status"] == "done")

    @property
    def failed(self) -> bool:
        """Whether the run ended with an error."""
        return bool(self.result["status"] == "failed")

    @property
    def missing(self) -> bool:
        """Whether there is no result of the current code."""
        return self.result["status"] in ("missing", "earlier")

    def score(self, direction: str, metric: str = NDCG) -> float:
        """The mean over queries."""
        if direction == BOTH:
            return fmean(self.score(each, metric) for each in DIRECTIONS)
        return float(self.result["scores"][direction][metric]["value"])

    def chance(self, direction: str, metric: str = NDCG) -> float:
        """The score of a random ranking."""
        return float(self.result["scores"][direction][metric]["chance"])

    def option(self, name: str) -> float:
        """The value of an option during training, including defaults; delta is the one that was used."""
        if name == "delta":
            return float(self.result["facts"]["delta"]["delta"])
        return float(self.result["config"][name])


def done(results: Iterable[RunResult]) -> list[RunResult]:
    """The results with scores."""
    return [result for result in results if result.done]


def first_seed(results: Sequence[RunResult]) -> list[RunResult]:
    """The results of the smallest seed, for costs: further seeds may be of other days and other loads."""
    return [result for result in results if result.run.seed == min(other.run.seed for other in results)]


def mean_score(results: Sequence[RunResult], direction: str, metric: str = NDCG) -> float:
    """The mean over seeds."""
    return fmean(result.score(direction, metric) for result in results)


def deviation(results: Sequence[RunResult], direction: str, metric: str = NDCG) -> float | None:
    """The sample standard deviation over seeds; None for one seed."""
    scores = [result.score(direction, metric) for result in results]
    return stdev(scores) if len(scores) > 1 else None


_DATABASES = {"unified": "both views", "labels": "labels"}  # by the option database_codes


@dataclass(frozen=True, order=True)
class Method:
    """A row of Table 1: a method, or a preset of it, or a method that codes the database as its original does."""

    name: str
    preset: str = ""
    database: str = ""  # what database items are coded from, if not from the modality that is searched

    @classmethod
    def of(cls, run: Mapping[str, Any]) -> Method:
        """The row of a run, in the form of a result file."""
        return cls(run["method"], run["preset"] or "", _DATABASES.get(run["options"].get("database_codes", ""), ""))

    @property
    def title(self) -> str:
        """The name shown to readers.

        Example:
            >>> Method("rmsh").title, Method("rmsh", "paper").title, Method("rmsh", "paper-literal").title
            ('RMSH', 'RMSH as printed', 'RMSH, preset paper-literal')
            >>> Method("cmfh", database="both views").title
            'CMFH (database from both views)'
        """
        title = method_title(self.name)
        if self.database:
            return f"{title} (database from {self.database})"
        if self.preset == PRINTED:
            return f"{title}{AS_PRINTED}"
        return f"{title}, preset {self.preset}" if self.preset else title


@dataclass(frozen=True, eq=False)
class Comparison:
    """The runs of Table 1 by method and code length, including failed and missing runs; ``rmsh`` is one of them."""

    runs: dict[Method, dict[int, list[RunResult]]]
    rmsh: Method = Method("rmsh")  # the one of the eight methods that claims are about

    def __iter__(self) -> Iterator[RunResult]:
        return (result for lengths in self.runs.values() for group in lengths.values() for result in group)

    @property
    def bits(self) -> list[int]:
        """All code lengths; reference methods, which have no codes, do not count."""
        return sorted({bits for lengths in self.runs.values() for bits in lengths if bits})

    @property
    def usual_bits(self) -> int:
        """The length of what is shown at one length only: 64 bits if run, else the length with the most results."""
        count = {bits: sum(len(done(lengths.get(bits, []))) for lengths in self.runs.values()) for bits in self.bits}
        return _USUAL_BITS if count.get(_USUAL_BITS) else max(count, key=count.__getitem__)

    @property
    def methods(self) -> list[Method]:
        """The paper's eight methods in its order, run or not, each with its presets; then others; then references."""
        eight = self.eight
        others = sorted(method for method in self.runs if method not in eight)
        compared = [each for method in eight for each in (method, *(o for o in others if o.name == method.name))]
        return compared + sorted(set(others) - set(compared), key=lambda method: (self.is_reference(method), method))

    @property
    def eight(self) -> list[Method]:
        """The methods of the paper, in its order."""
        return [self.rmsh if name == self.rmsh.name else Method(name) for name in COMPARED]

    def is_reference(self, method: Method) -> bool:
        """Whether a method ranks by real numbers and has no codes."""
        return set(self.runs.get(method, {})) == {0}

    def cell(self, method: Method, bits: int) -> list[RunResult]:
        """The runs of a method at a length, one per seed; a reference method is the same at all lengths."""
        lengths = self.runs.get(method, {})
        return lengths.get(bits) or lengths.get(0, [])

    def ranked(self, bits: int, direction: str, *, metric: str = NDCG) -> list[Method]:
        """Those of the paper's eight methods that have scores, best first."""
        scored = {method: done(self.cell(method, bits)) for method in self.eight}
        means = {method: mean_score(group, direction, metric) for method, group in scored.items() if group}
        return sorted(means, key=lambda method: -means[method])

    def compare(
        self, one: Method, other: Method, bits: int, direction: str, *, metric: str = NDCG, choices: int = 1
    ) -> Difference | None:
        """The difference of two methods at a length, chosen from so many pairs; None if one has no scores."""
        groups = done(self.cell(one, bits)), done(self.cell(other, bits))
        noise = self.noise(one, bits, direction, metric), self.noise(other, bits, direction, metric)
        return compare(*groups, direction, metric=metric, noise=noise, choices=choices) if all(groups) else None

    def noise(self, method: Method, bits: int, direction: str, metric: str) -> Noise:
        """The noise of a method at a length."""
        every = (done(g) for m, lengths in self.runs.items() if m.name == method.name for g in lengths.values())
        return noise_of(done(self.cell(method, bits)), every, direction, metric)


@dataclass(frozen=True, eq=False)
class Sweep:
    """Runs by the values of one parameter, in ascending order."""

    points: dict[float, list[RunResult]]

    @property
    def first(self) -> RunResult:
        """Any of the runs, for what they have in common."""
        return next(iter(self.points.values()))[0]

    def means(self, direction: str) -> list[float]:
        """The score at each value, over seeds."""
        return [mean_score(results, direction) for results in self.points.values()]

    def compare(
        self, some: Iterable[float], others: Iterable[float], direction: str, *, choices: int = 1
    ) -> Difference:
        """The difference between the runs at some values and at others, chosen by their scores from so many pairs."""
        one, other = ([result for value in values for result in self.points[value]] for values in (some, others))
        noise = seed_noise(self.points.values(), direction, NDCG)
        return compare(one, other, direction, metric=NDCG, noise=(noise, noise), choices=choices)


@dataclass(frozen=True, eq=False)
class Experiment:
    """The results on one data set, by the kind of their block; ``preset`` is that of the studies of RMSH."""

    dataset: str
    blocks: dict[str, list[RunResult]]
    preset: str = ""

    @property
    def as_printed(self) -> Experiment:
        """The same results, with the studies of RMSH as printed."""
        return replace(self, preset=PRINTED)

    @property
    def rmsh(self) -> Method:
        """RMSH as in the studies."""
        return Method("rmsh", self.preset)

    def of(self, kind: str) -> list[RunResult]:
        """The runs of the blocks of a kind; those of a study have the preset."""
        runs = self.blocks.get(kind, [])
        return [result for result in runs if (result.run.preset or "") == self.preset] if kind in STUDIES else runs

    @property
    def all(self) -> list[RunResult]:
        """Every run once."""
        return list({result.run.path: result for group in self.blocks.values() for result in group}.values())

    @cached_property
    def comparison(self) -> Comparison:
        """The runs of Table 1."""
        runs: dict[Method, dict[int, list[RunResult]]] = defaultdict(lambda: defaultdict(list))
        for result in self.of(TABLE_1):
            runs[Method.of(result.run.to_json())][result.run.bits].append(result)
        return Comparison({method: dict(sorted(lengths.items())) for method, lengths in runs.items()}, self.rmsh)

    def unseen(self) -> dict[str, list[RunResult]]:
        """The runs of the protocol unseen by method and length; code prefixes are lengths of their own."""
        groups: dict[str, list[RunResult]] = defaultdict(list)
        for found in self.of(UNSEEN):
            run = found.run
            name = run.tag if run.tag and run.tag != run.preset else Method.of(run.to_json()).title
            for part in with_prefixes(found.result) if found.done else [found.result]:
                bits = part["run"]["bits"] if found.done else run.bits
                length = f", {bits} bits" if bits else ""
                groups[name + length + (f" of {run.bits}" if bits < run.bits else "")].append(RunResult(run, part))
        return groups

    def ablation(self) -> dict[int, dict[str, list[RunResult]]]:
        """For each code length of the ablation the runs of each variant; the full RMSH may be that of Table 1."""
        lengths: dict[int, dict[str, list[RunResult]]] = defaultdict(lambda: defaultdict(list))
        for result in self.of(ABLATION):
            lengths[result.run.bits][result.run.tag or "RMSH"].append(result)
        for bits, variants in lengths.items():
            if "RMSH" not in variants:
                pairs = {result.run.train for group in variants.values() for result in group}
                variants["RMSH"] = [r for r in self.comparison.cell(self.rmsh, bits) if r.run.train in pairs]
        return dict(sorted(lengths.items()))

    def sweep(self, kind: str, option: str) -> Sweep | None:
        """The runs of a block by the values of an option that it sweeps; None with fewer than three values.

        Runs of the block that set no swept option are a point of every sweep, at their default.
        """
        points: dict[float, list[RunResult]] = defaultdict(list)
        for result in done(self.of(kind)):
            if result.run.tag.partition("=")[0] in (option, "", self.preset):
                points[result.option(option)].append(result)
        return Sweep(dict(sorted(points.items()))) if len(points) > 2 else None

    def noise_sweeps(self, kind: str) -> dict[str, Sweep]:
        """For each method its runs by the amount of noise, methods in the order of Table 1."""
        levels: dict[str, dict[float, list[RunResult]]] = defaultdict(lambda: defaultdict(list))
        for result in done(self.of(kind)):
            levels[result.run.method][getattr(result.run, kind.replace(" ", "_"))].append(result)
        order = [*COMPARED, *sorted(levels.keys() - set(COMPARED))]
        return {name: Sweep(dict(sorted(levels[name].items()))) for name in order if len(levels.get(name, {})) > 1}


def read_experiments(grid: Grid, folder: Path) -> list[Experiment]:
    """The results of a grid below a folder, one experiment per data set.

    Raises:
        ConfigError: no block of the grid has a name that a table or figure is made from.
        FormatError: a result file is damaged.
    """
    kinds = {block.name: block.name.partition(":")[0].strip() for block in grid.blocks}
    if not set(kinds.values()) & set(KINDS):
        raise ConfigError(
            f"The grid has the blocks {', '.join(map(repr, kinds))}, which no table or figure is made from; begin the "
            f"name of a block with one of {', '.join(map(repr, KINDS))}."
        )
    experiments = []
    for dataset in grid.datasets:
        blocks: dict[str, dict[Any, RunResult]] = defaultdict(dict)
        for run, kind in ((run, kind) for name, kind in kinds.items() for run in grid.block(name)):
            if run.dataset == dataset and run.path not in blocks[kind]:
                blocks[kind][run.path] = RunResult(run, _content(folder / run.path))
        experiments.append(Experiment(dataset, {kind: list(results.values()) for kind, results in blocks.items()}))
    return experiments


def _content(path: Path) -> Mapping[str, Any]:
    if not path.exists():
        return {"status": "missing"}
    result = read_result(path)
    reason = stale_reason(result)
    return {"status": "earlier", "reason": reason} if reason else result
