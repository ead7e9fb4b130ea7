"""Generated scenes: repeatable, true to their captions, and none of their things over another."""

from __future__ import annotations

import itertools
import json
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from lab import scene_drawing
from lab.scene_drawing import HUES, LAYOUTS, Place, make_style
from lab.scenes import CREDIT, LABELS, OBJECTS, plan_scene, scene_pairs, write_scenes
from rmsh.core.errors import DataError, MissingExtraError
from rmsh.core.progress import Progress


def test_a_larger_set_begins_with_the_smaller_one_and_seeds_differ() -> None:
    small, large, other = scene_pairs(20), scene_pairs(40), scene_pairs(20, seed=1)
    assert small.texts.tolist() == large.texts[:20].tolist()
    np.testing.assert_array_equal(small.labels, large.labels[:20])
    assert small.texts.tolist() != other.texts.tolist()


def test_labels_differ_and_each_thing_brings_its_theme() -> None:
    assert len(set(LABELS)) == len(LABELS) == 72
    for scene in map(plan_scene, range(100)):
        assert set(scene.labels) == {thing.label for thing in scene.things} | {thing.theme for thing in scene.things}


def test_relevance_has_grades_and_things_of_a_theme_go_together() -> None:
    pairs = scene_pairs(2000)
    labels = np.asarray(pairs.labels, dtype=np.int64)
    assert set(np.unique(labels[:, :60].sum(axis=1))) == {1, 2, 3, 4}
    assert labels.mean(axis=0).min() > 0.01
    assert set(np.unique(labels[:200] @ labels[200:].T)) >= {0, 1, 2, 3, 4}
    dog, cat, car = (LABELS.index(name) for name in ("dog", "cat", "car"))
    with_dog = labels[labels[:, dog] == 1]
    assert with_dog[:, cat].mean() > 1.5 * labels[:, cat].mean()
    assert with_dog[:, car].mean() < 1.5 * labels[:, car].mean()


def test_a_caption_names_each_thing_and_captions_vary() -> None:
    for scene in map(plan_scene, range(200)):
        assert scene.caption[0].isupper()
        assert scene.caption.endswith(".")
        for thing in scene.things:
            assert any(phrase.lower() in scene.caption.lower() for phrase in thing.phrases)
    assert len({plan_scene(number).caption for number in range(500)}) > 400


def test_the_words_are_search_terms_of_the_icons() -> None:
    folder = Path(str(distribution("fontawesomefree").locate_file("fontawesomefree/static/fontawesomefree/metadata")))
    icons = json.loads((folder / "icons.json").read_text())
    for thing in OBJECTS:
        icon = icons[thing.icon]
        terms = " ".join([thing.icon, icon["label"], *icon["search"]["terms"]]).lower()
        for phrase in thing.phrases:
            words = [word for word in phrase.split() if word not in ("a", "an", "the", "some", "of", "pair", "beer")]
            assert all(word in terms for word in words), (thing.icon, phrase)


def _overlap(one: Place, other: Place) -> bool:
    apart = max(abs(one[0] - other[0]), abs(one[1] - other[1]))
    return apart < (one[2] + other[2]) / 2 - 1e-9


def test_no_layout_overlaps_or_leaves_the_picture() -> None:
    for count, ways in LAYOUTS.items():
        for cells in ways:
            assert len(cells) == count
            assert not any(_overlap(a, b) for a, b in itertools.combinations(cells, 2))
            assert all(side / 2 <= min(x, y) and max(x, y) <= 1 - side / 2 for x, y, side in cells)


def test_things_stay_in_their_squares_and_apart() -> None:
    for scene in map(plan_scene, range(100)):
        assert not any(_overlap(a, b) for a, b in itertools.combinations(scene.places, 2))
    scene = plan_scene(3)
    pixels = np.asarray(scene.draw(128), dtype=int)
    ground = np.asarray(scene_drawing.draw_ground(scene.style, 128), dtype=int)
    changed = np.abs(pixels - ground).sum(axis=2) > 0
    allowed = np.zeros_like(changed)
    for x, y, side in scene.places:
        box = [round(128 * edge) for edge in (y - side / 2, y + side / 2, x - side / 2, x + side / 2)]
        inside = changed[box[0] : box[1], box[2] : box[3]]
        assert 0.05 < inside.mean() < 0.95
        allowed[max(box[0] - 1, 0) : box[1] + 1, max(box[2] - 1, 0) : box[3] + 1] = True
    assert not (changed & ~allowed).any()


def test_edges_are_smooth() -> None:
    mask = np.asarray(scene_drawing.draw_icon("chair", 10.0, 60.0))
    partly = ((mask > 16) & (mask < 240)).mean()
    assert 0.03 < partly < 0.4
    assert mask[0].max() < 255  # no edge is cut off


@pytest.mark.parametrize("dark", [False, True])
def test_every_ink_stands_out_from_its_ground(dark: bool) -> None:
    for hue in range(len(HUES)):
        style = make_style(hue, dark=dark)
        grounds = [_luminance(colour) for colour in style.ground]
        for ink in map(_luminance, style.inks):
            ratios = [(max(ink, ground) + 0.05) / (min(ink, ground) + 0.05) for ground in grounds]
            assert min(ratios) > 3  # what WCAG asks of graphics


def _luminance(colour: tuple[int, int, int]) -> float:
    parts = np.array(colour) / 255
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def test_a_folder_of_scenes_is_written_once_and_found_again(tmp_path: Path) -> None:
    reports: list[Progress] = []
    pairs = write_scenes(tmp_path / "scenes", 12, side=64, on_progress=reports.append)
    lines = [json.loads(line) for line in (tmp_path / "scenes" / "metadata.jsonl").read_text().splitlines()]
    assert [line["text"] for line in lines] == np.asarray(pairs.texts).tolist()
    assert lines[3]["labels"] == list(plan_scene(3).labels)
    assert [str(tmp_path / "scenes" / line["file_name"]) for line in lines] == np.asarray(pairs.images).tolist()
    assert (tmp_path / "scenes" / "CREDIT.txt").read_text() == CREDIT + "\n"
    assert reports[-1].done == reports[-1].total == 12
    with Image.open(str(pairs.images[11])) as picture:
        assert picture.size == (64, 64)
    again = write_scenes(tmp_path / "scenes", 12, side=64, on_progress=lambda _: pytest.fail("drawn again"))
    assert again.ids.tolist() == pairs.ids.tolist()


def test_the_same_picture_is_drawn_each_time() -> None:
    np.testing.assert_array_equal(np.asarray(plan_scene(5).draw(64)), np.asarray(plan_scene(5).draw(64)))


def test_a_folder_with_other_things_and_no_scenes_are_refused(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(DataError, match="is not empty"):
        write_scenes(tmp_path, 3)
    with pytest.raises(DataError, match="0 scenes"):
        scene_pairs(0)


def test_missing_icons_name_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(name: str) -> None:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(scene_drawing, "distribution", gone)
    with pytest.raises(MissingExtraError, match=r"pip install .*\[scenes\]"):
        scene_drawing.icon_files.__wrapped__()
