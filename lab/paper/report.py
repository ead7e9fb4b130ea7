"""From result files to everything a reader sees: tables, figures and report.html in one folder."""

from __future__ import annotations

import base64
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

from lab.paper import figure_style as style
from lab.paper import figures
from lab.paper.claims import check_claims, summarise
from lab.paper.example_figures import draw_found_images, draw_found_texts, draw_tsne
from lab.paper.examples import read_examples, read_tsne
from lab.paper.published import method_title
from lab.paper.results import (
    DELTA,
    IMAGE_NOISE,
    LABEL_NOISE,
    STUDIES,
    TEXT_NOISE,
    WEIGHTS,
    Experiment,
    RunResult,
    done,
    read_experiments,
)
from lab.paper.table import HTML, Table, to_html, write_table
from lab.paper.tables import make_tables
from rmsh.core.errors import DataError
from rmsh.core.files import write_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from lab.grid import Grid

_DRAWINGS = Path(__file__).resolve().parents[2] / "docs" / "figures"
_LARGEST_SVG = 400_000  # bytes; the PNG of a larger figure is smaller


@dataclass(frozen=True)
class Drawn:
    """A figure of the report: heading, caption and file (None if its runs are missing)."""

    title: str
    caption: str
    file: Path | None = None

    @property
    def source(self) -> str:
        """The file as a data URL."""
        if self.file is None:
            return ""
        kind = {".svg": "svg+xml", ".png": "png"}[self.file.suffix]
        return f"data:image/{kind};base64,{base64.b64encode(self.file.read_bytes()).decode()}"


_PLOTS: dict[str, tuple[Callable[[Experiment], Figure | None], str, str]] = {
    "precision-recall": (
        figures.draw_precision_recall,
        "Precision and recall",
        "Precision over recall at each rank; an item is relevant if it shares a label with the query. Expected values "
        "over the order of equal distances, means over queries.",
    ),
    "delta": (
        figures.draw_delta,
        "The robust parameter",
        "NDCG@500 over delta, with the lower and upper bound in the paper's form. The point whose tick has no label is "
        "the delta computed from the bounds.",
    ),
    "distances": (
        figures.draw_distances,
        "Distances given similarity",
        "Hamming distances between query images and database texts, by the number of shared labels. One panel per "
        "delta, which the dashed line marks.",
    ),
    "weights": (
        figures.draw_weights,
        "The weights of the loss",
        "NDCG@500 over one weight of the loss, the others fixed. The dotted line marks the weight used in Table 1.",
    ),
    "bytes": (
        figures.draw_bytes,
        "Quality against size",
        "NDCG@500 by bytes per item. Horizontal lines: rankings by real-valued vectors, hundreds of bytes per item.",
    ),
    "time": (
        figures.draw_time,
        "Quality against time",
        "NDCG@500 by CPU seconds of training (first seed), on the machine named in the result files. Half-filled: "
        "RMSH as printed.",
    ),
    "label-noise": (
        figures.draw_label_noise,
        "Wrong labels",
        "NDCG@500 when a share of the training pairs has the labels of another pair.",
    ),
    "query-noise": (
        figures.draw_query_noise,
        "Noisy queries",
        "NDCG@500 when normal noise is added to the features of the query, in standard deviations of each feature.",
    ),
}
_STUDY_OF = {"delta": DELTA, "distances": DELTA, "weights": WEIGHTS}  # the blocks that figures of RMSH are drawn from
_OPTIONAL = {"label-noise": [LABEL_NOISE], "query-noise": [IMAGE_NOISE, TEXT_NOISE]}  # the blocks they are drawn from
_EXPLANATIONS = (
    Drawn(
        "Robust codes, an example (the paper's Figure 1)",
        "Three kinds of items with codes of three bits. Without a minimum distance two codes with one wrong bit "
        "coincide; with one they cannot.",
        _DRAWINGS / "example-codes.png",
    ),
    Drawn(
        "RMSH (the paper's Figure 2)",
        "Frozen encoders, two hash networks, the pseudo-codes network, and the loss with delta from the labels.",
        _DRAWINGS / "architecture.png",
    ),
)


def write_report(grid: Grid, folder: Path, *, runs: Path, extras: Path, title: str) -> dict[str, Any]:
    """Write ``tables/``, ``figures/`` and ``report.html`` from the result files of a grid.

    Args:
        grid: its blocks say which runs belong to which table or figure.
        folder: where everything is written.
        runs: the folder of the result files.
        extras: the folder of ``remarks.md`` (optional) and of the files of examples.py.
        title: of the report.

    Returns:
        The files, and the number of finished and failed runs.

    Raises:
        ConfigError: no block of the grid has a name that a table or figure is made from.
        DataError: no run of the grid has a result.
        FormatError: a result file is damaged.
    """
    experiments = read_experiments(grid, runs)
    results = [result for experiment in experiments for result in experiment.all]
    if all(result.missing for result in results):
        raise DataError(f"{runs} has no result of the {len(results)} runs of the grid; run it without --only-report.")
    tables = {experiment.dataset: make_tables(experiment) for experiment in experiments}
    table_files = [path for each in tables.values() for table in each for path in write_table(table, folder / "tables")]
    with style.applied():
        drawn = {experiment.dataset: draw_figures(experiment, folder / "figures", extras) for experiment in experiments}
    remarks = extras / "remarks.md"
    text = remarks.read_text(encoding="utf-8") if remarks.is_file() else ""
    sections = [_section(e, tables[e.dataset], drawn[e.dataset]) for e in experiments]
    page = HTML.get_template("report.html").render(
        title=title,
        **_status(results),
        remarks=_paragraphs(text),
        sections=sections,
        explanations=_EXPLANATIONS,
        failures=[result for result in results if result.failed],
    )
    write_text(folder / "report.html", page)
    return {
        "report": str(folder / "report.html"),
        "done": len(done(results)),
        "failed": sum(result.failed for result in results),
        "tables": [str(path) for path in table_files],
        "figures": sorted(str(path) for path in (folder / "figures").glob("*")),
    }


def _section(experiment: Experiment, tables: Sequence[Table], drawn: Sequence[Drawn]) -> dict[str, Any]:
    claims = [claim for each in _shown(experiment) for claim in check_claims(each)]
    return {
        "dataset": experiment.dataset,
        "summary": summarise(experiment, claims),
        "claims": claims,
        "tables": [to_html(table) for table in tables],
        "figures": drawn,
    }


def _shown(experiment: Experiment) -> list[Experiment]:
    """The experiment, and the same as printed if there are such runs."""
    printed = experiment.as_printed
    begun = any(map(printed.of, STUDIES)) or printed.rmsh in printed.comparison.runs
    return [experiment, printed] if begun else [experiment]


def _status(results: Sequence[RunResult]) -> dict[str, Any]:
    """How many runs are done, failed, missing and out of date, and the versions they were made with."""
    finished, missing = done(results), [result for result in results if result.missing]
    total, absent = (Counter(result.run.method for result in some) for some in (results, missing))
    versions = {f"{name} {value}" for result in finished for name, value in result.result.get("versions", {}).items()}
    return {
        "counts": {
            "runs": len(results),
            "done": len(finished),
            "failed": sum(result.failed for result in results),
            "missing": len(missing),
        },
        "missing": ", ".join(f"{method_title(name)} {count} of {total[name]}" for name, count in absent.items()),
        "stale": Counter(result.result["reason"] for result in missing if "reason" in result.result),
        "versions": ", ".join(sorted(versions)),
    }


def _paragraphs(text: str) -> list[Markup]:
    """Paragraphs, with **bold** words.

    Example:
        >>> _paragraphs("**First**: a < b.")
        [Markup('<b>First</b>: a &lt; b.')]
    """
    paragraphs = [str(escape(paragraph.strip())) for paragraph in text.split("\n\n") if paragraph.strip()]
    return [Markup(re.sub(r"\*\*(.+?)\*\*", r"<b>\1</b>", paragraph)) for paragraph in paragraphs]  # noqa: S704


def draw_figures(experiment: Experiment, folder: Path, extras: Path) -> list[Drawn]:
    """Draw and save every figure of an experiment; one without its runs has no file.

    Figures of noise that the grid does not ask for, and those of extras that were not made, are left out.
    """
    drawn = []
    for name, (draw, title, caption) in _PLOTS.items():
        if name in _OPTIONAL and not any(map(experiment.of, _OPTIONAL[name])):
            continue
        for each in _shown(experiment) if name in _STUDY_OF else [experiment]:
            file = f"{name}-{'printed-' if each.preset else ''}{experiment.dataset}"
            words = f"{caption} {_setting(each, _STUDY_OF[name])}" if name in _STUDY_OF else caption
            heading = f"{title}, as printed" if each.preset else title
            drawn.append(_saved(draw(each), folder, file, heading, words.strip()))
    plane = read_tsne(extras, experiment)
    if plane is not None:
        caption = (
            f"t-SNE of the relaxed {plane['run']['bits']}-bit codes of RMSH as in Table 1, for queries that have "
            "exactly one of six classes; images and texts are embedded together."
        )
        name = f"tsne-{experiment.dataset}"
        drawn.append(_saved(draw_tsne(plane), folder, name, "Relaxed codes in a plane", caption))
    return [*drawn, *_draw_examples(read_examples(extras, experiment), folder, experiment.dataset)]


def _setting(experiment: Experiment, kind: str) -> str:
    """The options, training pairs and epochs of a study of RMSH in a sentence; empty if no run is done."""
    results = done(experiment.of(kind))
    if not results:
        return ""
    pairs, epochs = results[0].result["training_pairs"], results[0].run.options.get("epochs")
    options = experiment.rmsh.title if experiment.preset else "RMSH with the options of Table 1"
    return f"{options}, {pairs:,} training pairs" + (f", {epochs} epochs." if epochs else ".")


def _draw_examples(found: Mapping[str, Any], folder: Path, dataset: str) -> list[Drawn]:
    caption = (
        "The five nearest items with each method, among those with an image. Red crosses share no label with the "
        "query, blue squares one, green circles two or more. The query was drawn at random, the same for all methods."
    )
    kinds = {"t2i": ("Images found by a text", draw_found_images), "i2t": ("Texts found by an image", draw_found_texts)}
    return [
        _saved(draw(found[direction]), folder, f"{direction}-{dataset}", title, caption)
        for direction, (title, draw) in kinds.items()
        if direction in found
    ]


def _saved(figure: Figure | None, folder: Path, name: str, title: str, caption: str) -> Drawn:
    if figure is None:
        return Drawn(title, caption)
    svg, png = style.save(figure, folder, name)
    return Drawn(title, caption, svg if svg.stat().st_size <= _LARGEST_SVG else png)
