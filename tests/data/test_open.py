"""Opening data by name or path, whatever its form."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy import io, sparse

from rmsh.core.errors import DataError
from rmsh.data.open import Opened, open_pairs
from rmsh.data.splits import Split

MATRICES = {"XAll": np.arange(8.0).reshape(4, 2), "YAll": np.eye(4), "LAll": np.eye(4)[:, :2]}


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """A file of four items, of which the last two have no labels."""
    np.savez(tmp_path / "four.npz", **MATRICES)
    return tmp_path / "four.npz"


def same(opened: Opened) -> bool:
    pairs = opened.pairs
    return all(
        np.array_equal(column, MATRICES[key]) for column, key in ((pairs.images, "XAll"), (pairs.labels, "LAll"))
    )


def test_every_format_gives_the_same_pairs(tmp_path: Path, saved: Path) -> None:
    io.savemat(tmp_path / "v5.mat", MATRICES)
    opened = [open_pairs(path) for path in (saved, tmp_path / "v5.mat")]
    assert all(map(same, opened))
    assert [one.name for one in opened] == ["four", "v5"]


def test_a_folder_of_single_arrays_is_opened_by_their_names(tmp_path: Path) -> None:
    folder = tmp_path / "my.data"
    folder.mkdir()
    for name, key in (("images", "XAll"), ("labels", "LAll")):
        np.save(folder / f"{name}.npy", MATRICES[key])
    sparse.save_npz(folder / "tags.npz", sparse.csr_array(MATRICES["YAll"]))
    opened = open_pairs(folder)
    assert same(opened)
    assert opened.name == "my.data"
    assert sparse.issparse(opened.pairs.texts)


def test_float32_arrays_stay_on_the_disk(tmp_path: Path) -> None:
    np.save(tmp_path / "images.npy", np.ones((4, 2), dtype=np.float32))
    images = open_pairs(tmp_path / "images.npy").pairs.images
    assert isinstance(images.base, np.memmap) or isinstance(images, np.memmap)


def test_guesses_and_items_without_labels_are_noted(saved: Path) -> None:
    notes = open_pairs(saved).notes
    assert "labels were taken from key 'LAll' (4 x 2) of four.npz" in notes
    assert notes[-1] == "2 of 4 items have no label; supervised methods skip them"


def test_strict_refuses_items_without_labels(saved: Path) -> None:
    with pytest.raises(DataError, match=r"four: 2 of 4 items have no label \(rows 2, 3\)"):
        open_pairs(saved, strict=True)


def test_strict_accepts_items_that_all_have_labels() -> None:
    assert open_pairs("generated:20", strict=True).pairs.labelled.all()


def test_generated_pairs_are_opened_by_number_and_noted() -> None:
    opened = open_pairs("generated:50")
    assert (len(opened.pairs), len(opened.split.query), len(opened.split.train)) == (50, 5, 45)
    assert opened.notes == ("50 pairs were generated; they are not real data",)
    assert len(open_pairs("generated").pairs) == 2000


@pytest.mark.parametrize("number", ["9", "-20", "many", "1e3"])
def test_a_wrong_number_of_generated_pairs_is_refused(number: str) -> None:
    with pytest.raises(DataError, match=f"'generated:{number}'.*'generated:N'"):
        open_pairs(f"generated:{number}")


def test_what_is_skipped_is_not_read(saved: Path) -> None:
    pairs = open_pairs(saved, skip=("images", "labels")).pairs
    assert pairs.images is None
    assert not pairs.has_image.any()
    assert (pairs.labels, pairs.class_names) == (None, ())
    assert pairs.has_text.all()


def test_coco66k_without_a_folder_says_how_to_name_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RMSH_COCO66K", raising=False)
    with pytest.raises(DataError, match=r"RMSH_COCO66K.*'coco66k:FOLDER'"):
        open_pairs("coco66k")


def test_a_wrong_folder_of_coco66k_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"has no pairs.tsv"):
        open_pairs(f"coco66k:{tmp_path}")


def test_coco66k_is_found_by_variable_by_name_and_by_its_files(
    coco66k_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RMSH_COCO66K", str(coco66k_root))
    for spec in ("coco66k", f"coco66k:{coco66k_root}", coco66k_root):
        opened = open_pairs(spec, skip=("images",))
        assert (opened.name, len(opened.pairs), len(opened.split.query)) == ("coco66k", 61_903, 4_956)


def test_the_real_mirflickr_files_are_opened_together_and_stay_sparse(mirflickr_root: Path) -> None:
    opened = open_pairs(mirflickr_root, strict=True)
    pairs = opened.pairs
    assert (len(pairs), pairs.labels.shape, pairs.texts.shape) == (20_015, (20_015, 24), (20_015, 1_386))
    assert isinstance(pairs.texts, sparse.csr_array)
    assert pairs.images is None
    assert opened.notes == (
        "texts were taken from key 'YAll' (20,015 x 1,386) of mirflickr25k-yall.mat",
        "labels were taken from key 'LAll' (20,015 x 24) of mirflickr25k-lall.mat",
    )


def test_a_split_of_other_items_cannot_be_opened_with_them() -> None:
    pairs = open_pairs("generated:20").pairs
    with pytest.raises(DataError, match="query has row 20, but there are 20 items"):
        Opened(pairs, Split("s", [0], [20], [0]), (), "generated")
