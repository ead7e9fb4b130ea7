"""The figures that are drawn from the files of examples.py: retrieval examples and the t-SNE plane."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping, Sequence
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from lab.paper import figure_style as style
from lab.paper.published import method_title

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_LONGEST = 88  # characters of a text that fit on a line
Example = Mapping[str, Any]  # a query and its hits
_CLASSES = (
    (style.BLUE, "o"),
    (style.VERMILION, "s"),
    (style.GREEN, "^"),
    (style.PURPLE, "D"),
    (style.ORANGE, "v"),
    (style.BLACK, "X"),
)
_PANELS = {"images": ("image",), "texts": ("text",), "images (filled) and texts (open)": ("image", "text")}


def grade(shared: int) -> style.Mark:
    """The mark of a hit by the number of labels it shares with the query.

    Example:
        >>> grade(0).words, grade(3).words
        ('shares no label', 'shares two labels or more')
    """
    return style.GRADES[min(shared, 2)]


def draw_found_images(found: Mapping[str, Example]) -> Figure:
    """The query is a text: one row of images per method."""
    query, most = _query_of(found), max(len(example["hits"]) for example in found.values())
    figure = style.new_figure(1.45 * most + 2.2, 1.42 * len(found) + 1.3)
    panels = figure.subplots(len(found), most, squeeze=False)
    for row, (method, example) in zip(panels, found.items(), strict=True):
        for axes in row:
            axes.set(xticks=[], yticks=[])
            axes.grid(visible=False)
            axes.spines[:].set_visible(False)
        for axes, hit in zip(row, example["hits"], strict=False):
            _draw_image(axes, hit)
        row[0].set_ylabel(method_title(method), rotation=0, ha="right", va="center", labelpad=12, fontsize=12)
    figure.suptitle(fill(f"“{query['text']}”", 70) + f"\nlabels: {', '.join(query['labels'])}", fontsize=12)
    _draw_legend(figure)
    return figure


def _query_of(found: Mapping[str, Example]) -> dict[str, Any]:
    return dict(next(iter(found.values()))["query"])


def _draw_image(axes: Axes, hit: Mapping[str, Any]) -> None:
    """An image with a border in the colour of its mark, and the shape in a corner."""
    mark = grade(hit["shared"])
    pixels = _pixels(hit["image"])
    axes.imshow(pixels)
    for spine in axes.spines.values():
        spine.set(visible=True, color=mark.colour, linewidth=4)
    height, width = pixels.shape[:2]
    axes.plot(0.1 * width, 0.1 * height, mark.shape, color=mark.colour, markeredgecolor="white", markersize=11)


def _pixels(image: str) -> np.ndarray[Any, Any]:
    from PIL import Image

    with Image.open(io.BytesIO(base64.b64decode(image))) as opened:
        return np.asarray(opened.convert("RGB"))


def draw_found_texts(found: Mapping[str, Example]) -> Figure:
    """The query is an image: a list of texts per method."""
    query = _query_of(found)
    figure = style.new_figure(10.2, 1.28 * len(found) + 1.0)
    left, right = figure.subplots(1, 2, width_ratios=(0.22, 1))
    for axes in (left, right):
        axes.set_axis_off()
    left.imshow(_pixels(query["image"]))
    left.set_anchor("N")
    left.set_title("the query", fontsize=12)
    left.text(0.5, -0.06, fill(", ".join(query["labels"]), 24), transform=left.transAxes, ha="center", va="top")
    line = 0.0
    for method, example in found.items():
        _write_texts(right, method, example["hits"], line)
        line -= len(example["hits"]) + 0.8
    right.set(xlim=(0, 1), ylim=(line, 0.5))
    _draw_legend(figure)
    return figure


def _write_texts(axes: Axes, method: str, hits: Sequence[Mapping[str, Any]], line: float) -> None:
    middle = line - (len(hits) - 1) / 2
    axes.text(0.0, middle, method_title(method), va="center", fontsize=12)
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


def draw_tsne(value: Mapping[str, Any]) -> Figure:
    """Three panels of the same plane: images, texts, and both; six classes by colour and shape."""
    figure = style.new_figure(13.2, 4.9)
    for axes, (title, modalities) in zip(figure.subplots(1, 3, sharex=True, sharey=True), _PANELS.items(), strict=True):
        for modality in modalities:
            _draw_points(axes, value, modality)
        axes.set(title=title, xticks=[], yticks=[])
        axes.grid(visible=False)
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=6, markerscale=1.4)
    return figure


def _draw_points(axes: Any, value: Mapping[str, Any], modality: str) -> None:
    points = np.asarray(value["points"][modality], dtype=np.float64).reshape(-1, 3)
    for number, (name, (colour, marker)) in enumerate(zip(value["classes"], _CLASSES, strict=False)):
        x, y, _ = points[points[:, 2] == number].T
        face = colour if modality == "image" else "none"
        axes.scatter(x, y, s=22, marker=marker, facecolor=face, edgecolor=colour, linewidth=0.9, alpha=0.8, label=name)
