"""Generated scenes: images of one to four icons with captions and labels, in any number.

Correct results are obvious, and relevance has grades: scenes may share objects, or only their themes. Scene number i
depends only on the seed and on i, so a larger set begins with the smaller one.

scene_objects.csv lists the objects: theme, icon, and names separated by "|", the first of which is the label; a name
that begins with neither "some" nor "the" gets an article. The icons are those of Font Awesome Free 6.6.0 by Fonticons,
Inc. (https://fontawesome.com), licensed CC BY 4.0; the names are selected from its search terms.
"""

from __future__ import annotations

import csv
import json
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from lab.scene_drawing import HUES, LAYOUTS, Place, Style, draw_ground, draw_icon, make_style
from rmsh.core.errors import DataError
from rmsh.core.files import read_json, write_json, write_text
from rmsh.core.progress import OnProgress, Progress, ignore
from rmsh.data.labels import multi_hot
from rmsh.data.pairs import Pairs

if TYPE_CHECKING:
    from PIL.Image import Image

CREDIT = "Icons: Font Awesome Free 6.6.0 by Fonticons, Inc., https://fontawesome.com, CC BY 4.0."

_COUNTS = (0.25, 0.35, 0.25, 0.15)  # probability of 1, 2, 3, 4 objects
_RARER = 0.25  # decrease of the log-odds from one object of a theme to the next
_TOGETHER = 1.6  # increase of the log-odds for objects of the first one's theme
_DARK = 0.25  # probability of a dark background
_MOST_TURN = 15.0  # degrees
_FORM = 1  # version of the scenes; it changes if the same seed gives other images or captions
_QUALITY = 90  # of the JPEG files
_REPORT_EVERY = 500  # scenes
_THREADS = 4
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
class SceneObject:
    """An object of scenes: its icon, its label, its theme, and its names in captions, each with an article."""

    icon: str
    label: str
    theme: str
    phrases: tuple[str, ...]


def _read_objects() -> tuple[SceneObject, ...]:
    objects = []
    with Path(__file__).with_name("scene_objects.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            names = row["names"].split("|")
            label = names[0].removeprefix("some ").removeprefix("the ")
            phrases = (
                name if name.startswith(("some ", "the ")) else f"{'an' if name[0] in 'aeiou' else 'a'} {name}"
                for name in names
            )
            objects.append(SceneObject(row["icon"], label, row["theme"], tuple(phrases)))
    return tuple(objects)


OBJECTS = _read_objects()
THEMES = tuple(dict.fromkeys(thing.theme for thing in OBJECTS))
LABELS = (*(thing.label for thing in OBJECTS), *THEMES)  # 60 objects, then their 12 themes


@dataclass(frozen=True)
class Scene:
    """The content of a scene before it is drawn."""

    number: int  # in the set
    things: tuple[SceneObject, ...]  # one to four different objects
    caption: str  # a sentence that describes it
    style: Style
    places: tuple[Place, ...]  # the position of each object
    turns: tuple[float, ...]  # the rotation of each object in degrees
    inks: tuple[int, ...]  # the index of each object's ink in the style

    @property
    def file_name(self) -> str:
        """The path of the image in the folder of a set; each folder stays small."""
        return f"{self.number // 1000:03}/{self.number:06}.jpg"

    @property
    def labels(self) -> tuple[str, ...]:
        """The objects, then their themes."""
        return tuple(dict.fromkeys([*(thing.label for thing in self.things), *(thing.theme for thing in self.things)]))

    def draw(self, side: int = 256) -> Image:
        """The image, RGB, ``side`` pixels wide and high."""
        image = draw_ground(self.style, side).copy()
        for thing, (x, y, size), turn, ink in zip(self.things, self.places, self.turns, self.inks, strict=True):
            mask = draw_icon(thing.icon, turn, size * side)
            corner = round(x * side - mask.width / 2), round(y * side - mask.height / 2)
            image.paste(self.style.inks[ink], corner, mask)
        return image


def plan_scene(number: int, *, seed: int = 0) -> Scene:
    """The scene with a number.

    Example:
        >>> scene = plan_scene(3)
        >>> scene.caption, scene.labels
        ('Some scissors with a mixer, a wrench and a hospital.',
         ('scissors', 'blender', 'wrench', 'hospital', 'tool', 'drink', 'building'))
    """
    rng = np.random.default_rng([seed, number])
    things = _draw_objects(rng)
    style = make_style(int(rng.integers(len(HUES))), dark=bool(rng.random() < _DARK))
    turns = rng.uniform(-_MOST_TURN, _MOST_TURN, len(things))
    inks = rng.permutation(len(style.inks))[: len(things)]
    return Scene(
        number=number,
        things=things,
        caption=_caption(things, style.name, rng),
        style=style,
        places=_draw_places(len(things), rng),
        turns=tuple(turns.tolist()),
        inks=tuple(inks.tolist()),
    )


_LOG_ODDS = -_RARER * np.array([[thing.theme for thing in OBJECTS[:i]].count(t.theme) for i, t in enumerate(OBJECTS)])
_THEME = np.array([LABELS.index(thing.theme) for thing in OBJECTS])


def _draw_objects(rng: np.random.Generator) -> tuple[SceneObject, ...]:
    """A first object by frequency, then others, preferably of its theme: the largest of noisy log-odds."""
    count = rng.choice(len(_COUNTS), p=_COUNTS) + 1
    first = int(np.argmax(_LOG_ODDS + rng.gumbel(size=len(OBJECTS))))
    scores = _LOG_ODDS + _TOGETHER * (_THEME[first] == _THEME) + rng.gumbel(size=len(OBJECTS))
    scores[first] = np.inf
    return tuple(OBJECTS[i] for i in np.argsort(-scores)[:count])


def _draw_places(count: int, rng: np.random.Generator) -> tuple[Place, ...]:
    """A layout or its mirror image, with its squares in random order, slightly smaller and moved."""
    layouts = LAYOUTS[count]
    cells = layouts[rng.integers(len(layouts))]
    across, down = rng.random(2) < 0.5
    places = []
    for i in rng.permutation(count):
        x, y, side = cells[i]
        smaller = side * rng.uniform(0.85, 1.0)
        slack = (side - smaller) / 2
        right, lower = slack * rng.uniform(-1, 1), slack * rng.uniform(-1, 1)
        places.append(((1 - x if across else x) + right, (1 - y if down else y) + lower, smaller))
    return tuple(places)


def _caption(things: Sequence[SceneObject], ground: str, rng: np.random.Generator) -> str:
    names = [thing.phrases[rng.integers(len(thing.phrases))] for thing in things]
    rng.shuffle(names)
    forms = _ONE if len(names) == 1 else _MORE
    form = forms[rng.integers(len(forms))]
    sentence = form.format(all=_listed(names), first=names[0], rest=_listed(names[1:]), ground=ground)
    return f"{sentence[0].upper()}{sentence[1:]}."


def _listed(names: Sequence[str]) -> str:
    """Names as an enumeration."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def scene_pairs(n: int, *, seed: int = 0, folder: Path | None = None) -> Pairs:
    """Captions and labels of n scenes, with the paths of their images if a folder is given."""
    if n < 1:
        raise DataError(f"Got {n} scenes; at least one is needed.")
    scenes = [plan_scene(number, seed=seed) for number in range(n)]
    return Pairs(
        ids=np.array([scene.file_name for scene in scenes]),
        images=None if folder is None else np.array([str(folder / scene.file_name) for scene in scenes]),
        texts=np.array([scene.caption for scene in scenes]),
        labels=multi_hot([scene.labels for scene in scenes], LABELS),
        class_names=LABELS,
        source="generated scenes",
    )


def write_scenes(
    folder: Path | str, n: int, *, seed: int = 0, side: int = 256, on_progress: OnProgress = ignore
) -> Pairs:
    """Write n scenes as a folder of images with ``metadata.jsonl`` (file_name, text, labels) and CREDIT.txt.

    A folder that already contains exactly these scenes is left unchanged. Images are ``side`` pixels wide
    and high; ``on_progress`` is called with a Progress.
    """
    folder, made = Path(folder), {"form": _FORM, "scenes": n, "seed": seed, "side": side, "credit": CREDIT}
    pairs = scene_pairs(n, seed=seed, folder=folder)
    manifest = folder / "manifest.json"
    if manifest.exists() and read_json(manifest) == made:
        return pairs
    if folder.exists() and any(folder.iterdir()):
        raise DataError(f"{folder} is not empty and does not contain these scenes; give another folder.")
    start = time.perf_counter()

    def save(number: int) -> str:
        scene = plan_scene(number, seed=seed)
        (folder / scene.file_name).parent.mkdir(parents=True, exist_ok=True)
        scene.draw(side).save(folder / scene.file_name, quality=_QUALITY)
        return json.dumps({"file_name": scene.file_name, "text": scene.caption, "labels": scene.labels}) + "\n"

    lines: list[str] = []
    with ThreadPoolExecutor(_THREADS) as pool:
        for first in range(0, n, _REPORT_EVERY):
            lines += pool.map(save, range(first, min(first + _REPORT_EVERY, n)))
            on_progress(Progress("draw scenes", len(lines), n, "scene", time.perf_counter() - start))
    write_text(folder / "metadata.jsonl", "".join(lines))
    write_text(folder / "CREDIT.txt", CREDIT + "\n")
    write_json(manifest, made)
    return pairs
