"""Which runs a table sets beside each other: the same data, the same training pairs, nothing studied on the side."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lab.paper.names import COMPARED, title_of
from lab.paper.outcomes import Outcome, done, mean_score, rest

if TYPE_CHECKING:
    from rmsh.compare.grid import Run

__all__ = ["ABLATIONS", "Entry", "Lineup", "ablation_of", "is_plain", "line_up", "line_up_ablation"]

# The paper's name of a variant -> the part of RMSH that is switched off.
ABLATIONS = {"RMSH-T": "triplet", "RMSH-C": "classification", "RMSH-P": "pseudo_codes"}
_PAPERS_BITS = 64
STUDIED = ("delta", "lambda1", "lambda2", "lambda3", "lambda4", *ABLATIONS.values())


@dataclass(frozen=True, order=True)
class Entry:
    """A row of a table: a method, or a preset of it."""

    method: str
    preset: str = ""

    @property
    def title(self) -> str:
        """As a reader sees it.

        Example:
            >>> Entry("rmsh").title, Entry("rmsh", "paper").title
            ('RMSH', 'RMSH, preset paper')
        """
        name = title_of(self.method)
        return f"{name}, preset {self.preset}" if self.preset else name


@dataclass(frozen=True, eq=False)
class Lineup:
    """Runs of one data set by entry and code length, failed and awaited ones too.

    Args:
        dataset: the name of the data.
        runs: entry -> bits -> runs that differ in their seeds.
    """

    dataset: str
    runs: dict[Entry, dict[int, list[Outcome]]]

    @property
    def bits(self) -> list[int]:
        """All lengths of codes that occur; reference lines, which have no codes, do not count."""
        return sorted({bits for lengths in self.runs.values() for bits in lengths if bits})

    @property
    def usual_bits(self) -> int:
        """For what is shown at one length only: the paper's 64 bits, or the length with the most finished runs."""
        count = {bits: sum(len(done(lengths.get(bits, []))) for lengths in self.runs.values()) for bits in self.bits}
        return _PAPERS_BITS if count.get(_PAPERS_BITS) else max(count, key=count.__getitem__)

    def is_reference(self, entry: Entry) -> bool:
        """Whether a row ranks by real numbers and has no codes."""
        return set(self.runs.get(entry, {})) == {0}

    def cell(self, entry: Entry, bits: int) -> list[Outcome]:
        """The runs of a cell of the table, none where it was not run; a reference line is the same at all lengths."""
        lengths = self.runs.get(entry, {})
        return lengths.get(bits) or lengths.get(0, [])

    def ranked(self, bits: int, direction: str, *, metric: str) -> list[Entry]:
        """The methods of the paper's comparison that have scores, the best first."""
        scored = {Entry(name): done(self.cell(Entry(name), bits)) for name in COMPARED}
        means = {entry: mean_score(group, direction, metric) for entry, group in scored.items() if group}
        return sorted(means, key=lambda entry: -means[entry])


def is_plain(run: Run) -> bool:
    """Whether a run shows a method as it is: no noise, no validation, no part switched off."""
    return not (run.validation or run.label_noise or run.image_noise or run.text_noise) and not _off(run)


def _off(run: Run) -> list[str]:
    return [name for name, option in ABLATIONS.items() if run.options.get(option) is False]


def line_up(outcomes: Iterable[Outcome], dataset: str) -> Lineup:
    """The comparison of methods: runs on the training pairs and texts that most methods share."""
    plain = [o for o in outcomes if o.run.dataset == dataset and is_plain(o.run)]
    shared = _most_shared(plain)
    runs: dict[Entry, dict[int, list[Outcome]]] = {}
    for entry, group in _by_entry(o for o in plain if (o.run.text, o.run.train) == shared).items():
        runs[entry] = _by_bits(_largest(group))
    return Lineup(dataset, runs)


def _most_shared(outcomes: Sequence[Outcome]) -> tuple[str, int | None]:
    """The text encoder and the number of training pairs that most methods have; all pairs where it is a draw."""
    methods: dict[tuple[str, int | None], set[str]] = defaultdict(set)
    for outcome in outcomes:
        methods[outcome.run.text, outcome.run.train].add(outcome.run.method)
    return max(methods, key=lambda key: (len(methods[key]), key[1] is None, key[1] or 0), default=("minilm", None))


def _by_entry(outcomes: Iterable[Outcome]) -> dict[Entry, list[Outcome]]:
    entries: dict[Entry, list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        entries[Entry(outcome.run.method, outcome.run.preset or "")].append(outcome)
    return entries


def _largest(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Of runs with several sets of options those with the set that most have; the smaller set where it is a draw.

    Runs of a sweep have a set each, and few lengths and seeds.
    """
    count = Counter(rest(o.run, "bits") for o in outcomes)
    chosen = max(outcomes, key=lambda o: (count[rest(o.run, "bits")], -len(o.run.options)))
    return [o for o in outcomes if rest(o.run, "bits") == rest(chosen.run, "bits")]


def _by_bits(outcomes: Iterable[Outcome]) -> dict[int, list[Outcome]]:
    lengths: dict[int, list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        lengths[outcome.run.bits].append(outcome)
    return dict(sorted(lengths.items()))


def ablation_of(run: Run) -> str | None:
    """The paper's name of the variant a run is, "RMSH" for the whole of it, None where two parts are off.

    Example:
        >>> from rmsh.compare.grid import Run
        >>> ablation_of(Run("d", "rmsh", options={"triplet": False})), ablation_of(Run("d", "rmsh"))
        ('RMSH-T', 'RMSH')
    """
    off = _off(run)
    return None if len(off) > 1 else (off or ["RMSH"])[0]


def line_up_ablation(outcomes: Iterable[Outcome], dataset: str) -> dict[int, dict[str, list[Outcome]]]:
    """For each length its variants and their runs: those with the parameters under which most variants were run."""
    groups: dict[tuple[int, str], dict[str, list[Outcome]]] = defaultdict(lambda: defaultdict(list))
    for outcome in outcomes:
        run = outcome.run
        variant = ablation_of(run) if run.dataset == dataset and run.method == "rmsh" else None
        if variant is not None and (is_plain(run) or variant != "RMSH"):
            groups[run.bits, rest(run, *ABLATIONS.values())][variant].append(outcome)
    chosen: dict[int, dict[str, list[Outcome]]] = {}
    for (bits, _), variants in sorted(groups.items(), key=lambda g: (len(g[1]), sum(map(len, g[1].values())))):
        if len(variants) > 1:
            chosen[bits] = dict(variants)
    return dict(sorted(chosen.items()))
