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


def test_every_format_gives_the_same_pairs(tmp_path: Path, saved: Path, write_matlab73):
    io.savemat(tmp_path / "v5.mat", MATRICES)
    paths = [saved, tmp_path / "v5.mat", write_matlab73(tmp_path / "v73.mat", **MATRICES)]
    opened = [open_pairs(path) for path in paths]
    assert all(map(same, opened))
    assert [one.name for one in opened] == ["four", "v5", "v73"]


def test_a_folder_of_single_arrays_is_opened_by_their_names(tmp_path: Path):
    folder = tmp_path / "my.data"
    folder.mkdir()
    for name, key in (("images", "XAll"), ("labels", "LAll")):
        np.save(folder / f"{name}.npy", MATRICES[key])
    sparse.save_npz(folder / "tags.npz", sparse.csr_array(MATRICES["YAll"]))
    opened = open_pairs(folder)
    assert same(opened)
    assert opened.name == "my.data"
    assert sparse.issparse(opened.pairs.texts)


def test_float32_arrays_stay_on_the_disk(tmp_path: Path):
    np.save(tmp_path / "images.npy", np.ones((4, 2), dtype=np.float32))
    images = open_pairs(tmp_path / "images.npy").pairs.images
    assert isinstance(images.base, np.memmap) or isinstance(images, np.memmap)


def test_guesses_and_items_without_labels_are_noted(saved: Path):
    notes = open_pairs(saved).notes
    assert "labels were taken from key 'LAll' (4 x 2) of four.npz" in notes
    assert notes[-1] == "2 of 4 items have no label; supervised methods skip them"


def test_strict_refuses_items_without_labels(saved: Path):
    with pytest.raises(DataError, match=r"four: 2 of 4 items have no label \(rows 2, 3\)"):
        open_pairs(saved, strict=True)


def test_strict_accepts_items_that_all_have_labels():
    assert open_pairs("generated:20", strict=True).pairs.labelled.all()


def test_keys_say_what_is_what(tmp_path: Path):
    np.savez(tmp_path / "a.npz", one=np.ones((2, 3)), two=np.eye(2))
    pairs = open_pairs(tmp_path / "a.npz", keys={"texts": "one", "labels": "two"}).pairs
    assert pairs.texts.shape == (2, 3)
    assert pairs.images is None


def test_a_file_by_modality_takes_the_place_of_what_was_opened(tmp_path: Path, saved: Path):
    np.savez(tmp_path / "other.npz", resnet=np.full((4, 5), 7.0), vgg=np.ones((4, 6)))
    opened = open_pairs(saved, images=f"{tmp_path / 'other.npz'}:resnet")
    assert opened.pairs.images.tolist() == [[7.0] * 5] * 4
    assert "images were taken from key 'resnet' (4 x 5) of other.npz" in opened.notes
    assert not any("XAll" in note for note in opened.notes)


def test_files_by_modality_are_enough(tmp_path: Path):
    for name in ("a", "b"):
        np.save(tmp_path / f"{name}.npy", np.eye(3))
    opened = open_pairs(texts=tmp_path / "a.npy", labels=tmp_path / "b.npy")
    assert (opened.name, opened.split, len(opened.pairs)) == ("a", None, 3)


def test_a_file_of_other_items_is_refused(tmp_path: Path, saved: Path):
    np.save(tmp_path / "few.npy", np.ones((3, 2)))
    with pytest.raises(DataError, match=r"few.npy: .* 3 rows, .* 4 items; .* order.$"):
        open_pairs(saved, images=tmp_path / "few.npy")


def test_a_transposed_file_is_recognised(tmp_path: Path, saved: Path):
    np.save(tmp_path / "turned.npy", np.ones((3, 4)))
    with pytest.raises(DataError, match=r"transposed .*turned.npy"):
        open_pairs(saved, images=tmp_path / "turned.npy")


def test_nothing_at_all_is_refused():
    with pytest.raises(DataError, match="'coco66k' or 'generated'"):
        open_pairs()


def test_generated_pairs_are_opened_by_number_and_say_what_they_are():
    opened = open_pairs("generated:50")
    assert (len(opened.pairs), len(opened.split.query), len(opened.split.train)) == (50, 5, 45)
    assert opened.notes == ("50 pairs were generated; they are not real data",)
    assert len(open_pairs("generated").pairs) == 2000


@pytest.mark.parametrize("number", ["9", "-20", "many", "1e3"])
def test_a_wrong_number_of_generated_pairs_is_refused(number):
    with pytest.raises(DataError, match=f"'generated:{number}'.*'generated:N'"):
        open_pairs(f"generated:{number}")


def test_what_is_skipped_is_absent():
    pairs = open_pairs("generated:20", skip=("images", "labels", "ids")).pairs
    assert pairs.images is None
    assert not pairs.has_image.any()
    assert (pairs.labels, pairs.class_names) == (None, ())
    assert pairs.has_text.all()


def test_an_unknown_role_cannot_be_skipped():
    with pytest.raises(DataError, match=r"'image' .* images, texts, labels"):
        open_pairs("generated:20", skip=("image",))


@pytest.mark.parametrize("spec", [None, "generated:20", "coco66k:nowhere"])
def test_keys_without_a_file_of_matrices_are_refused(spec):
    with pytest.raises(DataError, match=r"\(images\) without a matrix file"):
        open_pairs(spec, keys={"images": "XAll"})


def test_features_of_generated_texts_are_replaced_together_with_their_mask(tmp_path: Path):
    np.save(tmp_path / "minilm.npy", np.ones((20, 3)))
    pairs = open_pairs("generated:20", texts=tmp_path / "minilm.npy").pairs
    assert pairs.texts.shape == (20, 3)
    assert pairs.has_text.all()


def test_labels_from_a_file_bring_their_own_class_names(tmp_path: Path):
    np.save(tmp_path / "l.npy", np.ones((20, 3)))
    assert open_pairs("generated:20", labels=tmp_path / "l.npy").pairs.class_names == ("class 0", "class 1", "class 2")


def test_coco66k_without_a_folder_says_how_to_name_one(monkeypatch):
    monkeypatch.delenv("RMSH_COCO66K", raising=False)
    with pytest.raises(DataError, match=r"RMSH_COCO66K.*'coco66k:FOLDER'"):
        open_pairs("coco66k")


def test_a_wrong_folder_of_coco66k_is_refused(tmp_path: Path):
    with pytest.raises(DataError, match=r"has no pairs.tsv"):
        open_pairs(f"coco66k:{tmp_path}")


def test_coco66k_is_found_by_variable_by_name_and_by_its_files(coco66k_root: Path, monkeypatch):
    monkeypatch.setenv("RMSH_COCO66K", str(coco66k_root))
    for spec in ("coco66k", f"coco66k:{coco66k_root}", coco66k_root):
        opened = open_pairs(spec, skip=("images",))
        assert (opened.name, len(opened.pairs), len(opened.split.query)) == ("coco66k", 61_903, 4_956)


def test_the_real_mirflickr_files_are_opened_together_and_stay_sparse(mirflickr_root: Path):
    opened = open_pairs(mirflickr_root, strict=True)
    pairs = opened.pairs
    assert (len(pairs), pairs.labels.shape, pairs.texts.shape) == (20_015, (20_015, 24), (20_015, 1_386))
    assert isinstance(pairs.texts, sparse.csr_array)
    assert pairs.images is None
    assert opened.notes == (
        "texts were taken from key 'YAll' (20,015 x 1,386) of mirflickr25k-yall.mat",
        "labels were taken from key 'LAll' (20,015 x 24) of mirflickr25k-lall.mat",
    )


def test_a_split_of_other_items_cannot_be_opened_with_them():
    pairs = open_pairs("generated:20").pairs
    with pytest.raises(DataError, match="query has row 20, but there are 20 items"):
        Opened(pairs, Split("s", [0], [20], [0]), (), "generated")
