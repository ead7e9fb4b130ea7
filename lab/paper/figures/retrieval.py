"""Retrieval examples: a query, and the five nearest with each method; marks say how many labels a hit shares."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping, Sequence
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from lab.paper.figures import style
from lab.paper.names import title_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_found_pictures", "draw_found_texts", "grade"]

_LONGEST = 88  # signs of a text that fit a line
Example = Mapping[str, Any]  # one query and its hits, as examples.py writes it


def grade(shared: int) -> style.Mark:
    """The mark of a hit that shares so many labels.

    Example:
        >>> grade(0).words, grade(3).words
        ('shares no label', 'shares two labels or more')
    """
    return style.GRADES[min(shared, 2)]


def draw_found_pictures(found: Mapping[str, Example]) -> Figure:
    """A text asks: a row of pictures for each method, from what its method found."""
    query, most = _query_of(found), _most_hits(found)
    figure = style.new_figure(1.45 * most + 2.2, 1.42 * len(found) + 1.3)
    panels = figure.subplots(len(found), most, squeeze=False)
    for row, (method, example) in zip(panels, found.items(), strict=True):
        for axes in row:
            axes.set(xticks=[], yticks=[])
            axes.grid(visible=False)
            axes.spines[:].set_visible(False)
        for axes, hit in zip(row, example["hits"], strict=False):
            _draw_picture(axes, hit)
        row[0].set_ylabel(title_of(method), rotation=0, ha="right", va="center", labelpad=12, fontsize=12)
    figure.suptitle(fill(f"“{query['text']}”", 70) + f"\nlabels: {', '.join(query['labels'])}", fontsize=12)
    _draw_legend(figure)
    return figure


def _query_of(found: Mapping[str, Example]) -> dict[str, Any]:
    return dict(next(iter(found.values()))["query"])


def _most_hits(found: Mapping[str, Example]) -> int:
    return max(len(example["hits"]) for example in found.values())


def _draw_picture(axes: Axes, hit: Mapping[str, Any]) -> None:
    """A picture with a border of the colour of its mark, and its shape in a corner."""
    mark = grade(hit["shared"])
    pixels = _pixels(hit["picture"])
    axes.imshow(pixels)
    for spine in axes.spines.values():
        spine.set(visible=True, color=mark.colour, linewidth=4)
    height, width = pixels.shape[:2]
    axes.plot(0.1 * width, 0.1 * height, mark.shape, color=mark.colour, markeredgecolor="white", markersize=11)


def _pixels(picture: str) -> np.ndarray[Any, Any]:
    from PIL import Image

    with Image.open(io.BytesIO(base64.b64decode(picture))) as opened:
        return np.asarray(opened.convert("RGB"))


def draw_found_texts(found: Mapping[str, Example]) -> Figure:
    """A picture asks: a list of texts for each method."""
    query = _query_of(found)
    figure = style.new_figure(10.2, 1.28 * len(found) + 1.0)
    left, right = figure.subplots(1, 2, width_ratios=(0.22, 1))
    for axes in (left, right):
        axes.set_axis_off()
    left.imshow(_pixels(query["picture"]))
    left.set_anchor("N")
    left.set_title("the query", fontsize=12)
    left.text(0.5, -0.06, fill(", ".join(query["labels"]), 24), transform=left.transAxes, ha="center", va="top")
    right.set(xlim=(0, 1), ylim=(-_list_lines(found), 0.5))
    line = 0.0
    for method, example in found.items():
        _write_texts(right, method, example["hits"], line)
        line -= len(example["hits"]) + 0.8
    _draw_legend(figure)
    return figure


def _list_lines(found: Mapping[str, Example]) -> float:
    return sum(len(example["hits"]) + 0.8 for example in found.values())


def _write_texts(axes: Axes, method: str, hits: Sequence[Mapping[str, Any]], line: float) -> None:
    middle = line - (len(hits) - 1) / 2
    axes.text(0.0, middle, title_of(method), va="center", fontsize=12)
    for number, hit in enumerate(hits):
        mark = grade(hit["shared"])
        axes.plot(0.1, line - number, mark.shape, color=mark.colour, markersize=8, clip_on=False)
        text = hit["text"] if len(hit["text"]) <= _LONGEST else hit["text"][: _LONGEST - 3] + "..."
        axes.text(0.12, line - number, text, va="center", fontsize=9.5)


def _draw_legend(figure: Figure) -> None:
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], linestyle="", marker=m.shape, color=m.colour, markersize=9, label=m.words) for m in style.GRADES
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=3)
