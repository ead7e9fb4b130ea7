"""What tables of scores are made of: cells, records with everything in full, and the notes below."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from lab.paper.lineup import STUDIED
from lab.paper.outcomes import MAP, NDCG, Outcome, done, mean_score, seeds_apart
from lab.paper.published import difference_of_setting
from lab.paper.tables.table import Cell

if TYPE_CHECKING:
    from lab.paper.significance import Comparison
    from rmsh.compare.grid import Run

__all__ = ["NOT_RUN", "absence", "mark", "paper_cell", "record", "score_cell", "setting_words", "table_notes"]

NOT_RUN, FAILED = "not run", "failed"
_MARKS = {"seeds": "*", "queries": "†"}
_MARKS_NOTE = (
    "p < 0.05 in a two-sided paired t-test over seeds (*), or over queries where there is one common seed (†); a test "
    "over queries says nothing about the luck of a seed."
)


def absence(outcomes: Iterable[Outcome]) -> str:
    """Why there is no number: a run failed, or none was made."""
    return FAILED if any(outcome.failed for outcome in outcomes) else NOT_RUN


def score_cell(
    outcomes: Sequence[Outcome], direction: str, *, metric: str = NDCG, bold: bool = False, sign: str = ""
) -> Cell:
    """A score, mean and deviation over seeds; "not run" and "failed" in words.

    A cell with failed and finished runs shows the finished ones.
    """
    scored = done(outcomes)
    if not scored:
        return Cell(absence(outcomes))
    deviation = seeds_apart(scored, direction, metric)
    text = f"{mean_score(scored, direction, metric):.4f}" + ("" if deviation is None else f" ± {deviation:.4f}")
    return Cell(text, bold=bold, mark=sign)


def mark(found: Comparison | None) -> str:
    """The sign of a significant difference, by what was paired; nothing for any other."""
    return _MARKS[found.over] if found is not None and found.significant else ""


def paper_cell(score: float | None) -> Cell:
    """A number of the paper, an empty cell where it has none."""
    return Cell("" if score is None else f"{score:.4f}")


def record(
    outcomes: Sequence[Outcome], direction: str, *, name: str, bits: int, paper: float | None, test: Comparison | None
) -> dict[str, Any]:
    """A cell in full: scores, chance, the paper's number, the test, which rows were asked, the files of its runs."""
    scored = done(outcomes)
    plain: dict[str, Any] = {"direction": direction, "name": name, "bits": bits, "seeds": len(scored)}
    plain["failed"] = sum(outcome.failed for outcome in outcomes)
    if scored:
        first = scored[0]
        plain |= {
            "ndcg@500": round(mean_score(scored, direction), 6),
            "deviation": _rounded(seeds_apart(scored, direction)),
            "chance": first.chance(direction),
            "map@all": round(mean_score(scored, direction, MAP), 6),
            "training_pairs": first.result.get("training_pairs"),
            "split": first.result["split"]["sha256"][:16],
            "files": " ".join(str(outcome.run.path) for outcome in scored),
        }
        plain |= {"paper": paper, "minus_paper": None if paper is None else round(plain[NDCG] - paper, 6)}
    if test is not None:
        plain |= {"test_over": test.over, "test_pairs": test.pairs, "test_p": float(f"{test.p:.3g}")}
    return plain


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 6)


def table_notes(dataset: str, outcomes: Iterable[Outcome], sign: str) -> tuple[str, ...]:
    """What a reader of a table should know: seeds, tests, the definition of the score, the split, the paper."""
    notes = ["Mean and standard deviation over seeds where there are several.", f"{sign}: {_MARKS_NOTE}"]
    outcomes = list(outcomes)
    scored = done(outcomes)
    if awaited := sum(not (outcome.done or outcome.failed) for outcome in outcomes):
        notes.append(f"{awaited:,} runs of this table are still to be made; a cell shows the seeds that it has.")
    if scored:
        first = scored[0].result
        name, digest = first["split"]["name"], first["split"]["sha256"][:16]
        pairs = sorted({outcome.result.get("training_pairs", 0) for outcome in scored})
        notes.append(first.get("definitions", {}).get("ndcg", NDCG) + ".")
        notes.append(f"Split {name}, sha256 {digest}; learned from {_listed(pairs)} pairs.")
    return (*notes, *filter(None, [difference_of_setting(dataset)]))


def _listed(numbers: Sequence[int]) -> str:
    return " or ".join(f"{number:,}" for number in numbers)


def setting_words(run: Run) -> str:
    """On what and how a run learned, where a reader should know.

    Example:
        >>> from rmsh.compare.grid import Run
        >>> setting_words(Run("coco66k", "rmsh", train=20_000, options={"epochs": 12, "triplet": False}))
        '20,000 training pairs, epochs 12'
    """
    pairs = "all training pairs" if run.train is None else f"{run.train:,} training pairs"
    options = [f"{name} {value}" for name, value in run.options.items() if name not in STUDIED]
    return ", ".join([pairs, *([f"preset {run.preset}"] if run.preset else []), *options])
