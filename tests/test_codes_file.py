"""The codes file: what is written is read, old samples stay readable, damage and newer versions are refused."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmsh.codes import Codes
from rmsh.codes_file import VERSION, CodesFile, is_codes_file
from rmsh.core.errors import CodesError, DataError, FormatError, InputError

SAMPLE = Path(__file__).parent / "samples" / "codes_v1.npz"
IDS = [f"é{row}" for row in range(12)]
IMAGE, TEXT = (Codes.from_values(np.random.default_rng(seed).standard_normal((12, 10))).packed for seed in (0, 1))
LABELS = np.eye(3, dtype=np.uint8)[np.arange(12) % 3]
SPLIT = ["query"] * 3 + ["database"] * 8 + [""]
FULL: dict[str, Any] = {
    "ids": IDS,
    "bits": 10,
    "image": IMAGE,
    "text": TEXT,
    "labels": LABELS,
    "classes": ("a", "b", "c"),
    "split": SPLIT,
    "trained": np.arange(12) > 5,
    "model": "f00d",
}


def rewritten(path: Path, **changes: Any) -> Path:
    """A file of ours with some arrays replaced, or removed where None."""
    CodesFile(**FULL).save(path)
    with np.load(path) as file:
        arrays = {**dict(file.items()), **changes}
    np.savez(path, **{name: value for name, value in arrays.items() if value is not None})
    return path


def test_what_is_written_is_read(tmp_path: Path) -> None:
    has_text = np.arange(12) != 4
    CodesFile(**FULL, has_text=has_text).save(tmp_path / "codes.npz")
    read = CodesFile.load(tmp_path / "codes.npz")
    assert (read.ids.tolist(), read.bits, read.classes, read.model) == (IDS, 10, ("a", "b", "c"), "f00d")
    assert read.split is not None
    assert read.split.tolist() == SPLIT
    for name in ("image", "text", "labels", "trained"):
        assert (getattr(read, name) == FULL[name]).all()
    assert read.has_image.all()
    assert (read.has_text == has_text).all()


def test_a_file_may_contain_one_modality_only(tmp_path: Path) -> None:
    CodesFile(ids=IDS, bits=10, text=TEXT).save(tmp_path / "codes.npz")
    read = CodesFile.load(tmp_path / "codes.npz")
    assert (read.image, read.labels, read.split, read.classes, read.model) == (None, None, None, (), "")
    assert not read.has_image.any()
    assert len(read) == 12


def test_a_file_is_written_atomically(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("numpy.savez", lambda *_args, **_arrays: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        CodesFile(**FULL).save(tmp_path / "codes.npz")
    assert list(tmp_path.iterdir()) == []


def test_the_first_version_stays_readable() -> None:
    read = CodesFile.load(SAMPLE)
    assert (read.ids.tolist(), read.bits, read.classes, read.model) == (["a", "b", "c"], 9, ("cat", "dog"), "f00d")
    assert read.image is not None
    assert read.image.tolist() == [[5, 1], [255, 0], [0, 1]]
    assert read.labels is not None
    assert read.labels.tolist() == [[1, 0], [0, 1], [1, 1]]
    assert read.has_text.tolist() == [True, True, False]
    assert list(read.part("query")["text"].codes.ids) == ["a"]
    assert read.trained is None


def test_the_second_version_stays_readable() -> None:
    read = CodesFile.load(SAMPLE.with_name("codes_v2.npz"))
    assert read.trained is not None
    assert (read.ids.tolist(), read.trained.tolist()) == (["a", "b"], [False, True])


def test_queries_that_the_model_was_trained_on_are_counted() -> None:
    assert CodesFile(**FULL).leak() == ()
    assert CodesFile(**{**FULL, "trained": None}).leak() == ()
    (warning,) = CodesFile(**{**FULL, "trained": np.arange(12) > 0}).leak()
    assert "trained on 2 of the 3 queries" in warning


def test_items_without_a_modality_are_left_out_of_its_codes() -> None:
    coded = CodesFile(**FULL, has_image=np.arange(12) != 0, has_text=np.arange(12) != 5)
    assert {m: len(side) for m, side in coded.part("query").items()} == {"image": 2, "text": 3}
    assert {m: len(side) for m, side in coded.part("database").items()} == {"image": 8, "text": 7}
    assert (coded.part("query")["image"].labels == LABELS[1:3]).all()


@pytest.mark.parametrize(
    ("changes", "error", "sentence"),
    [
        ({"image": None, "text": None}, CodesError, "neither image nor text codes"),
        ({"bits": 20}, CodesError, "20 bits need uint8"),
        ({"ids": IDS[:5]}, CodesError, "5 IDs .*12 codes"),
        ({"labels": LABELS[:5]}, DataError, "for 12 items"),
        ({"classes": ("a",)}, DataError, "1 class names .*3"),
        ({"split": SPLIT[:5]}, DataError, "5 roles for 12 items"),
        ({"split": ["train"] * 12}, DataError, "the roles train"),
        ({"has_text": np.ones(3, dtype=np.bool_)}, DataError, "has_text"),
        ({"trained": np.ones(3, dtype=np.bool_)}, DataError, "trained"),
    ],
)
def test_mismatched_arrays_are_refused(changes: dict, error: type[Exception], sentence: str) -> None:
    with pytest.raises(error, match=sentence):
        CodesFile(**{**FULL, **changes})


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [({"labels": None, "classes": ()}, "no labels"), ({"split": None}, "no split"), ({"split": [""] * 12}, "no query")],
)
def test_a_part_needs_labels_a_split_and_items(changes: dict, sentence: str) -> None:
    with pytest.raises(DataError, match=sentence):
        CodesFile(**{**FULL, **changes}).part("query")


def test_a_newer_version_is_refused(tmp_path: Path) -> None:
    path = rewritten(tmp_path / "codes.npz", version=VERSION + 1, shape_of_things=np.zeros(3))
    with pytest.raises(FormatError, match=r"version 3 .*up to version 2"):
        CodesFile.load(path)


@pytest.mark.parametrize("changes", [{"bits": 12_000}, {"ids": None}, {"labels": np.zeros((12, 9), dtype=np.uint8)}])
def test_arrays_that_do_not_fit_are_damage(tmp_path: Path, changes: dict) -> None:
    with pytest.raises(FormatError, match=r"codes\.npz is damaged"):
        CodesFile.load(rewritten(tmp_path / "codes.npz", **changes))


def test_a_version_that_is_not_a_number_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="version 'one'"):
        CodesFile.load(rewritten(tmp_path / "codes.npz", version=np.str_("one")))


@pytest.mark.parametrize("content", [b"", b"no zip", None])
def test_a_damaged_file_is_refused(tmp_path: Path, content: bytes | None) -> None:
    path = rewritten(tmp_path / "codes.npz")
    path.write_bytes(path.read_bytes()[:-200] if content is None else content)
    with pytest.raises(FormatError, match="cannot be read as a codes file"):
        CodesFile.load(path)


def test_a_flipped_byte_is_noticed(tmp_path: Path) -> None:
    path = rewritten(tmp_path / "codes.npz")
    raw = bytearray(path.read_bytes())
    raw[raw.index(IMAGE.tobytes())] ^= 1
    path.write_bytes(raw)
    with pytest.raises(FormatError, match="cannot be read as a codes file"):
        CodesFile.load(path)


@given(st.integers(0, 2**16), st.integers(0, 255))
def test_no_changed_byte_raises_anything_else(tmp_path_factory: pytest.TempPathFactory, place: int, value: int) -> None:
    raw = bytearray(SAMPLE.read_bytes())
    raw[place % len(raw)] = value
    path = tmp_path_factory.mktemp("damaged") / "codes.npz"
    path.write_bytes(raw)
    with contextlib.suppress(FormatError):
        assert CodesFile.load(path).bits == 9


def test_a_file_of_another_program_and_a_missing_file_are_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", codes=IMAGE)
    with pytest.raises(FormatError, match=r"a\.npz .*`rmsh audit`"):
        CodesFile.load(tmp_path / "a.npz")
    with pytest.raises(InputError, match="is not a file"):
        CodesFile.load(tmp_path)
    np.save(tmp_path / "a.npy", IMAGE)
    with pytest.raises(FormatError, match=r"a\.npy is not of the format .rmsh-codes."):
        CodesFile.load(tmp_path / "a.npy")


def test_codes_files_are_told_from_other_files(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", codes=IMAGE)
    CodesFile(**FULL).save(tmp_path / "codes.npz")
    assert [is_codes_file(path) for path in (SAMPLE, tmp_path / "codes.npz")] == [True, True]
    assert [is_codes_file(path) for path in (tmp_path / "a.npz", tmp_path / "none", tmp_path)] == [False] * 3
