"""All figures of some results, drawn and written, each with a caption; a figure without its runs says "not run"."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from lab.paper.figures import style
from lab.paper.figures.architecture import draw_architecture
from lab.paper.figures.costs import draw_bytes, draw_time
from lab.paper.figures.curves import draw_precision_recall
from lab.paper.figures.delta import draw_delta, draw_distances
from lab.paper.figures.embedding import draw_embedding
from lab.paper.figures.example_codes import draw_example_codes
from lab.paper.figures.files import save
from lab.paper.figures.noise import draw_label_noise, draw_query_noise
from lab.paper.figures.retrieval import draw_found_pictures, draw_found_texts
from lab.paper.figures.weights import draw_weights
from lab.paper.outcomes import Outcome, datasets
from lab.paper.showcase.store import read_examples, read_planes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Drawn", "draw_figures"]


@dataclass(frozen=True)
class Drawn:
    """A figure of the report.

    Args:
        title: its heading.
        caption: what it shows.
        files: the vector and the picture; none where its runs are missing.
        dataset: of which data, None where it is of no data.
    """

    title: str
    caption: str
    files: tuple[Path, ...]
    dataset: str | None = None


@dataclass(frozen=True)
class _Plot:
    """A figure that is drawn from outcomes."""

    name: str
    draw: Callable[[Sequence[Outcome], str], Figure | None]
    title: str
    caption: str


_PLOTS = (
    _Plot(
        "precision-recall",
        draw_precision_recall,
        "Precision and recall",
        "Precision over recall of all methods, after each rank; an item is relevant that shares a label. Expected "
        "values over the order of equal distances, means over queries.",
    ),
    _Plot(
        "delta",
        draw_delta,
        "The robust parameter",
        "NDCG@500 of RMSH over delta; the lower and the upper bound in the paper's form are marked. The point without "
        "a fraction of K is the delta that follows from the bounds.",
    ),
    _Plot(
        "distances",
        draw_distances,
        "Distances given similarity",
        "How far the codes of a picture that asks and a text that is searched lie apart, for pairs that share no "
        "label, one, two, and three or more; a panel a delta, which is marked.",
    ),
    _Plot(
        "weights",
        draw_weights,
        "The weights of the loss",
        "NDCG@500 of RMSH over each of its weights, the others fixed.",
    ),
    _Plot(
        "bytes",
        draw_bytes,
        "Quality against size",
        "NDCG@500 over the bytes of a code. Lines across rank by real numbers, hundreds of bytes an item.",
    ),
    _Plot(
        "time",
        draw_time,
        "Quality against time",
        "NDCG@500 over the processor seconds of learning, on the machine that the results name.",
    ),
    _Plot(
        "label-noise",
        draw_label_noise,
        "Wrong labels",
        "NDCG@500 when a share of the training pairs has the labels of another pair.",
    ),
    _Plot(
        "query-noise",
        draw_query_noise,
        "Disturbed queries",
        "NDCG@500 when the features of what asks are disturbed by normal noise, in deviations of each feature.",
    ),
)


def draw_figures(outcomes: Sequence[Outcome], folder: Path, *, showcase: Path) -> list[Drawn]:
    """Draw everything, and return what the report shows.

    Args:
        outcomes: of all datasets.
        folder: where figures are written.
        showcase: where the files of showcase/store.py are.
    """
    with style.applied():
        drawn = list(_explanations(folder))
        for dataset in datasets(outcomes):
            drawn += [_draw(plot, outcomes, dataset, folder) for plot in _PLOTS]
            drawn += [*_draw_plane(showcase, dataset, folder), *_draw_examples(showcase, dataset, folder)]
    return drawn


def _explanations(folder: Path) -> Iterator[Drawn]:
    """The paper's first two figures, which need no results."""
    yield Drawn(
        "Robust codes, an example (the paper's Figure 1)",
        "Three kinds of items in a space of three bits. Without a minimum distance two false codes meet; with one they "
        "cannot.",
        tuple(save(draw_example_codes(), folder, "example-codes")),
    )
    yield Drawn(
        "RMSH (the paper's Figure 2)",
        "Frozen encoders, two hash networks, the pseudo-codes network, and the loss with delta from the labels.",
        tuple(save(draw_architecture(), folder, "architecture")),
    )


def _draw(plot: _Plot, outcomes: Sequence[Outcome], dataset: str, folder: Path) -> Drawn:
    figure = plot.draw(outcomes, dataset)
    files = () if figure is None else tuple(save(figure, folder, f"{plot.name}-{dataset}"))
    return Drawn(plot.title, plot.caption, files, dataset)


def _draw_plane(showcase: Path, dataset: str, folder: Path) -> Iterator[Drawn]:
    title = "Relaxed codes in a plane"
    planes = read_planes(showcase, dataset)
    for value in planes[:1]:
        caption = (
            f"t-SNE of the relaxed {value['run']['bits']}-bit outputs of RMSH for test items that have exactly one of "
            "six classes: pictures, texts, and both in the same plane."
        )
        yield Drawn(title, caption, tuple(save(draw_embedding(value), folder, f"plane-{dataset}")), dataset)
    if not planes:
        yield Drawn(title, "t-SNE of relaxed outputs.", (), dataset)


def _draw_examples(showcase: Path, dataset: str, folder: Path) -> Iterator[Drawn]:
    found = read_examples(showcase, dataset)
    for direction, title, draw in (
        ("t2i", "What a text finds", draw_found_pictures),
        ("i2t", "What a picture finds", draw_found_texts),
    ):
        caption = (
            "The five nearest with each method. Red crosses share no label with the query, blue squares one, green "
            "circles two or more. The query was drawn before any method was looked at; pictures at hand are searched."
        )
        files = save(draw(found[direction]), folder, f"{direction}-{dataset}") if direction in found else []
        yield Drawn(title, caption, tuple(files), dataset)
