"""The plane of relaxed codes: pictures, texts, and both, six classes by colour and shape."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from lab.paper.figures import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw_embedding"]

_CLASSES = (
    (style.BLUE, "o"),
    (style.VERMILION, "s"),
    (style.GREEN, "^"),
    (style.PURPLE, "D"),
    (style.ORANGE, "v"),
    (style.BLACK, "X"),
)
_PANELS = {"pictures": ("image",), "texts": ("text",), "pictures (filled) and texts (open)": ("image", "text")}


def draw_embedding(value: Mapping[str, Any]) -> Figure:
    """Three panels of the same plane, from what ``embed`` gave."""
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
