"""Generated scenes: pictures of one to four icons with captions and labels, as many as wanted.

A person sees at once whether a hit is right, and relevance has grades: scenes may share things, or only their themes.
Scene number i depends on the seed and on i alone, so that a larger set begins with the smaller one.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from rmsh.data.pairs import Pairs
from rmsh.data.scene_plan import Scene, plan_scene
from rmsh.data.scene_things import CREDIT, LABELS
from rmsh.errors import DataError
from rmsh.files import read_json, write_json, write_text
from rmsh.progress import OnProgress, Progress, ignore

if TYPE_CHECKING:
    from rmsh.types import LabelArray

__all__ = ["CREDIT", "LABELS", "Scene", "plan_scene", "scene_pairs", "write_scenes"]

_FORM = 1  # of the scenes: another number means other pictures or captions for the same seed
_QUALITY = 90  # of the JPEG files
_TOGETHER = 500  # scenes between two reports
_THREADS = 4


def scene_pairs(n: int, *, seed: int = 0, folder: Path | None = None) -> Pairs:
    """Captions and labels of n scenes, with the paths of their pictures where a folder holds them.

    Example:
        >>> pairs = scene_pairs(50)
        >>> len(pairs), pairs.images, pairs.labels.shape
        (50, None, (50, 72))
    """
    scenes = list(_planned(n, seed))
    names = [_file_name(scene) for scene in scenes]
    return Pairs(
        ids=np.array(names),
        images=None if folder is None else np.array([str(folder / name) for name in names]),
        texts=np.array([scene.caption for scene in scenes]),
        labels=_multi_hot(scenes),
        class_names=LABELS,
        source="generated scenes",
    )


def write_scenes(
    folder: Path | str, n: int, *, seed: int = 0, side: int = 256, on_progress: OnProgress = ignore
) -> Pairs:
    """Write n scenes as a folder of pictures with ``metadata.jsonl`` (file_name, text, labels) and a credit.

    A folder that holds just these scenes is left as it is.

    Args:
        folder: is made where it does not exist.
        n: how many.
        seed: the same seed gives the same scenes.
        side: of the pictures, in pixels.
        on_progress: is told how far it is.

    Returns:
        Pairs of the paths, captions and labels.

    Raises:
        DataError: the folder holds something else.
        MissingExtraError: the package with the icons is not installed.
    """
    folder, made = Path(folder), {"form": _FORM, "scenes": n, "seed": seed, "side": side, "credit": CREDIT}
    manifest = folder / "manifest.json"
    if not manifest.exists() or read_json(manifest) != made:
        if folder.exists() and any(folder.iterdir()):
            raise DataError(f"{folder} is not empty and holds other things than these scenes; give another folder.")
        _write(folder, list(_planned(n, seed)), side, on_progress)
        write_json(manifest, made)
    return scene_pairs(n, seed=seed, folder=folder)


def _planned(n: int, seed: int) -> Iterator[Scene]:
    if n < 1:
        raise DataError(f"{n} scenes were asked for; ask for at least one.")
    return (plan_scene(number, seed=seed) for number in range(n))


def _file_name(scene: Scene) -> str:
    return f"{scene.number // 1000:03}/{scene.number:06}.jpg"  # folders stay small


def _multi_hot(scenes: Sequence[Scene]) -> LabelArray:
    column = {label: number for number, label in enumerate(LABELS)}
    labels = np.zeros((len(scenes), len(LABELS)), dtype=np.uint8)
    for row, scene in enumerate(scenes):
        labels[row, [column[label] for label in scene.labels]] = 1
    return labels


def _write(folder: Path, scenes: Sequence[Scene], side: int, on_progress: OnProgress) -> None:
    start = time.perf_counter()
    for first in range(0, len(scenes), 1000):
        (folder / _file_name(scenes[first])).parent.mkdir(parents=True, exist_ok=True)

    def save(scene: Scene) -> None:
        scene.draw(side).save(folder / _file_name(scene), quality=_QUALITY)

    with ThreadPoolExecutor(_THREADS) as pool:
        for first in range(0, len(scenes), _TOGETHER):
            part = scenes[first : first + _TOGETHER]
            list(pool.map(save, part))
            on_progress(Progress("draw scenes", first + len(part), len(scenes), "scene", time.perf_counter() - start))
    lines = [
        json.dumps({"file_name": _file_name(scene), "text": scene.caption, "labels": scene.labels}) for scene in scenes
    ]
    write_text(folder / "metadata.jsonl", "\n".join(lines) + "\n")
    write_text(folder / "CREDIT.txt", CREDIT + "\n")
