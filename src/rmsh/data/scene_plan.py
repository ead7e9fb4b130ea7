"""What a generated scene shows: which things, where, in which colours, and what a person says of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rmsh.data.scene_drawing import HUES, LAYOUTS, Place, Style, draw, make_style
from rmsh.data.scene_things import LABELS, THINGS, Thing

if TYPE_CHECKING:
    from PIL.Image import Image

__all__ = ["Scene", "plan_scene"]

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
