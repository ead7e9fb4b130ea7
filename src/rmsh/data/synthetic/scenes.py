"""Generated scenes: pictures of one to four icons with captions and labels, as many as wanted.

A person sees at once whether a hit is right, and relevance has grades: scenes may share things, or only their themes.
Scene number i depends on the seed and on i alone, so that a larger set begins with the smaller one.

What a generated scene shows: which things, where, in which colours, and what a person says of it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from rmsh.core.errors import DataError
from rmsh.core.files import read_json, write_json, write_text
from rmsh.core.progress import OnProgress, Progress, ignore
from rmsh.data.pairs import Pairs
from rmsh.data.synthetic.scene_drawing import HUES, LAYOUTS, Place, Style, draw, make_style
from rmsh.data.synthetic.scene_objects import CREDIT, LABELS, THINGS, Thing

if TYPE_CHECKING:
    from PIL.Image import Image

    from rmsh.core.types import LabelArray

_COUNTS = (0.25, 0.35, 0.25, 0.15)  # how often a scene has 1, 2, 3, 4 things
_RARER = 0.25  # by how much the log-odds fall from one thing of a theme to the next
_TOGETHER = 1.6  # by how much they rise for things of the first one's theme
_DARK = 0.25  # how often the ground is dark
_MOST_TURN = 15.0  # degrees
_ONE = ("{all}", "{all}", "just {all}", "{all} by itself", "a picture of {all}", "{all} on a {ground} background")
_MORE = (
    "{all}",
    "{all}",
    "{first} with {rest}",
    "{first} next to {rest}",
    "{first}, and also {rest}",
    "a picture of {all}",
    "{all} on a {ground} background",
)


@dataclass(frozen=True)
class Scene:
    """What a scene shows and how, before it is drawn.

    Args:
        number: its place in the set.
        things: what it shows, one to four different ones.
        caption: a sentence about it.
        style: its colours.
        places: where the things are.
        turns: by how many degrees they are turned.
        inks: which ink of the style each has.
    """

    number: int
    things: tuple[Thing, ...]
    caption: str
    style: Style
    places: tuple[Place, ...]
    turns: tuple[float, ...]
    inks: tuple[int, ...]

    @property
    def labels(self) -> tuple[str, ...]:
        """The things, then their themes."""
        return tuple(dict.fromkeys([*(thing.label for thing in self.things), *(thing.theme for thing in self.things)]))

    def draw(self, side: int = 256) -> Image:
        """The picture, RGB, ``side`` pixels wide and high.

        Raises:
            MissingExtraError: the package with the icons is not installed.
        """
        icons = [thing.icon for thing in self.things]
        inks = [self.style.inks[ink] for ink in self.inks]
        return draw(icons, self.places, turns=self.turns, inks=inks, style=self.style, side=side)


def plan_scene(number: int, *, seed: int = 0) -> Scene:
    """The scene of a number.

    Example:
        >>> scene = plan_scene(3)
        >>> scene.caption, scene.labels
        ('Some scissors with a mixer, a wrench and a hospital.',
         ('scissors', 'blender', 'wrench', 'hospital', 'tool', 'drink', 'building'))
    """
    rng = np.random.default_rng([seed, number])
    things = _choose_things(rng)
    style = make_style(int(rng.integers(len(HUES))), dark=bool(rng.random() < _DARK))
    turns = rng.uniform(-_MOST_TURN, _MOST_TURN, len(things))
    inks = rng.permutation(len(style.inks))[: len(things)]
    return Scene(
        number=number,
        things=things,
        caption=_caption(things, style.name, rng),
        style=style,
        places=_choose_places(len(things), rng),
        turns=tuple(turns.tolist()),
        inks=tuple(inks.tolist()),
    )


_LOG_ODDS = -_RARER * np.array([[thing.theme for thing in THINGS[:i]].count(t.theme) for i, t in enumerate(THINGS)])
_THEME = np.array([LABELS.index(thing.theme) for thing in THINGS])


def _choose_things(rng: np.random.Generator) -> tuple[Thing, ...]:
    """A first thing by frequency, then others that like to go with it: the largest of noisy log-odds."""
    count = rng.choice(len(_COUNTS), p=_COUNTS) + 1
    first = int(np.argmax(_LOG_ODDS + rng.gumbel(size=len(THINGS))))
    scores = _LOG_ODDS + _TOGETHER * (_THEME[first] == _THEME) + rng.gumbel(size=len(THINGS))
    scores[first] = np.inf
    return tuple(THINGS[i] for i in np.argsort(-scores)[:count])


def _choose_places(count: int, rng: np.random.Generator) -> tuple[Place, ...]:
    """A layout or its mirror image, its squares in any order."""
    layouts = LAYOUTS[count]
    cells = layouts[rng.integers(len(layouts))]
    across, down = rng.random(2) < 0.5
    mirrored = [(1 - x if across else x, 1 - y if down else y, side) for x, y, side in cells]
    return tuple(_inside(mirrored[i], rng) for i in rng.permutation(count))


def _inside(cell: Place, rng: np.random.Generator) -> Place:
    """A somewhat smaller square somewhere in a square."""
    x, y, side = cell
    smaller = side * rng.uniform(0.85, 1.0)
    slack = (side - smaller) / 2
    return x + slack * rng.uniform(-1, 1), y + slack * rng.uniform(-1, 1), smaller


def _caption(things: Sequence[Thing], ground: str, rng: np.random.Generator) -> str:
    names = [thing.phrases[rng.integers(len(thing.phrases))] for thing in things]
    rng.shuffle(names)
    forms = _ONE if len(names) == 1 else _MORE
    form = forms[rng.integers(len(forms))]
    sentence = form.format(all=_listed(names), first=names[0], rest=_listed(names[1:]), ground=ground)
    return f"{sentence[0].upper()}{sentence[1:]}."


def _listed(names: Sequence[str]) -> str:
    """Names as a person says them one after another.

    Example:
        >>> _listed(["a dog", "a cat", "the moon"])
        'a dog, a cat and the moon'
    """
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


_FORM = 1  # of the scenes: another number means other pictures or captions for the same seed
_QUALITY = 90  # of the JPEG files
_TOGETHER_scenes = 500  # scenes between two reports
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
        for first in range(0, len(scenes), _TOGETHER_scenes):
            part = scenes[first : first + _TOGETHER_scenes]
            list(pool.map(save, part))
            on_progress(Progress("draw scenes", first + len(part), len(scenes), "scene", time.perf_counter() - start))
    lines = [
        json.dumps({"file_name": _file_name(scene), "text": scene.caption, "labels": scene.labels}) for scene in scenes
    ]
    write_text(folder / "metadata.jsonl", "\n".join(lines) + "\n")
    write_text(folder / "CREDIT.txt", CREDIT + "\n")
