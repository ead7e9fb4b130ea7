"""Ranking by everything an item has: image, caption, labels and words, with and without stored vectors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from rmsh.codes import Codes, to_int8
from rmsh.core.errors import CodesError, FormatError, InputError
from rmsh.core.types import MODALITIES, Modality, Store
from rmsh.data.pairs import Pairs
from rmsh.features.bag_of_words import BagOfWords
from rmsh.hash_function import HashFunction, JointLayer, Layer
from rmsh.index.filters import Id
from rmsh.library import Hit, Item, Library, queries
from rmsh.library.items import CandidateQuery, Candidates
from rmsh.library.maintenance import compact, describe
from rmsh.library.recode import Encode, recode
from rmsh.library.repair import repair
from rmsh.library.verify import verify
from rmsh.model import Model
from rmsh.pipeline import codes_of
from rmsh.search.query import Query, Words
from rmsh.search.searcher import Rank, Searcher

WORDS = ("cat", "dog", "red", "bus", "wave")


def _model(seed: int = 0, *, bias: float = 0.01) -> Model:
    """Images and texts have the same features, and the joint space is that of the features."""
    joint = JointLayer(np.eye(5, dtype=np.float32), np.full(5, bias, np.float32), np.array([0], np.float32))
    weight = np.random.default_rng(seed).standard_normal((5, 16)).astype(np.float32)
    function = HashFunction((joint, Layer(weight, np.zeros(16, np.float32), "none")))
    encoders = {"text": BagOfWords(WORDS).describe()}
    return Model({"image": function, "text": function}, "nest", {}, encoders=encoders)


TEXTS = {"1": "a red bus", "2": "a cat", "3": "red cat and a dog", "4": "the dog", "5": "a cat on a bus", "6": "wave"}
SHOWN = {"1": "red bus", "2": "cat", "3": "dog", "4": "dog", "5": "bus", "6": "cat"}  # what the images show


def _pairs() -> Pairs:
    words = BagOfWords(WORDS)
    images, texts = (words.encode(list(texts.values())).toarray() for texts in (SHOWN, TEXTS))
    return Pairs(ids=np.array(list(TEXTS)), images=images, texts=texts, source="test")


def _items() -> list[Item]:
    return [Item(name, text=text, labels=("animal",) if "cat" in text else ()) for name, text in TEXTS.items()]


def _fill(folder: Path, *, vectors: bool = True, bias: float = 0.01, store: Store = "codes+vectors") -> Path:
    model = _model(bias=bias)
    with Library.create(folder, model, store=store) as library:
        library.add(_items(), codes_of(model, _pairs(), vectors=vectors), model=model.fingerprint)
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return _fill(tmp_path / "library")


@pytest.fixture
def searcher(folder: Path) -> Iterator[Searcher]:
    with Searcher.open(folder) as opened:
        yield opened


def _ids(hits: list[Hit]) -> list[str]:
    return [hit.item.id for hit in hits]


def test_the_item_whose_image_and_caption_fit_comes_first_and_says_why(searcher: Searcher) -> None:
    first, *_ = searcher.search(searcher.text("red bus"), 3)
    assert first.item.id == "1"
    assert first.match is not None
    assert first.match.words == ("red", "bus")
    assert (first.match.image, first.match.caption) == (pytest.approx(1, abs=0.02), pytest.approx(1, abs=0.02))


def test_a_caption_finds_an_item_whose_image_shows_something_else(searcher: Searcher) -> None:
    assert _ids(searcher.search(searcher.text("wave"), 1)) == ["6"]


@pytest.mark.parametrize("text", ["cat", "red dog", "bus", "animal cat"])
@pytest.mark.parametrize("to", ["image", "text"])
def test_two_stages_with_all_items_as_candidates_equal_exhaustive_scoring(
    text: str, *, to: Modality, searcher: Searcher
) -> None:
    query = searcher.text(text)
    ranked = searcher.search(query, 6, to=to, candidates=6)
    assert sorted(_ids(ranked)) == sorted(TEXTS)
    alone = {hit.item.id: hit.match for name in TEXTS for hit in searcher.search(query, 1, to=to, where=Id(name))}
    assert [hit.match for hit in ranked] == [alone[hit.item.id] for hit in ranked]
    scores = [hit.match.score for hit in ranked if hit.match]
    assert scores == sorted(scores, reverse=True)


def test_few_candidates_are_followed_by_the_others_and_pages_do_not_overlap(searcher: Searcher) -> None:
    query = searcher.text("red bus")
    pages = [_ids(searcher.search(query, 2, skip=skip, candidates=1)) for skip in (0, 2, 4)]
    together = [name for page in pages for name in page]
    assert sorted(together) == sorted(TEXTS)
    assert together == _ids(searcher.search(query, 6, candidates=1))


@pytest.mark.parametrize("text", ["red bus", "cat + bus - red", "a a", "wave dog"])
def test_items_that_cannot_be_among_the_best_are_not_read(
    text: str, searcher: Searcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    everything = searcher.search(searcher.text(text), 6)
    monkeypatch.setattr("rmsh.search.searcher._READ_AT_ONCE", 1)
    read = list[int]()
    find = queries.intact_items
    monkeypatch.setattr(queries, "intact_items", lambda c, rows: (read.extend(rows), find(c, rows))[1])
    for k in range(1, 6):
        assert searcher.search(searcher.text(text), k) == everything[:k]
    assert len(read) < 5 * 6  # for "a a" too, although five of the six items have the same score


def test_labels_weigh_more_if_there_is_no_caption(tmp_path: Path) -> None:
    model, pairs = _model(), _pairs()
    codes = codes_of(model, pairs, vectors=True)
    named = {name: Item(name, labels=("bus",) if name == "2" else ()) for name in TEXTS}
    with Library.create(tmp_path / "labels", model) as library:
        library.add(named.values(), {"image": codes["image"]}, model=model.fingerprint)
    with Library.create(tmp_path / "captions", model) as library:
        captioned = [replace(item, text="x") for item in named.values()]
        library.add(captioned, codes, model=model.fingerprint)
    scores = []
    for folder in ("labels", "captions"):
        with Searcher.open(tmp_path / folder) as searcher:
            query = searcher.text("bus")
            without = searcher.search(replace(query, words=Words()), 6)
            bare = {hit.item.id: hit.match.score for hit in without if hit.match}
            found = {hit.item.id: hit.match.score for hit in searcher.search(query, 6) if hit.match}
            scores.append({name: round(found[name] - bare[name], 3) for name in found})
    assert scores == [{name: (weight if name == "2" else 0) for name in TEXTS} for weight in (3.0, 1.0)]


def test_a_model_states_how_similar_unrelated_images_are(tmp_path: Path) -> None:
    scores = []
    for mean in (None, 0.18):
        model = replace(_model(), facts={} if mean is None else {"unrelated": mean})
        codes = codes_of(model, _pairs(), vectors=True)
        with Library.create(tmp_path / str(mean), model) as library:
            library.add([Item(name) for name in TEXTS], {"image": codes["image"]}, model=model.fingerprint)
        with Searcher.open(tmp_path / str(mean)) as searcher:
            hits = searcher.search(searcher.text("bus"), 6)
            scores.append({hit.item.id: hit.match.score for hit in hits if hit.match})
    usual, stated = scores
    for name in TEXTS:  # by images alone: 1.8 times the difference from the mean, in deviations of 0.12
        assert stated[name] - usual[name] == pytest.approx(1.8 * (0.28 - 0.18) / 0.12, abs=2e-4)


def test_rank_codes_is_the_order_of_distances(searcher: Searcher) -> None:
    query = searcher.text("red bus")
    hits = searcher.search(query, 6, rank="codes")
    (nearest,) = searcher.store.search(query.codes, 6, to="image", model=query.model)
    assert hits == nearest
    assert all(hit.match is None for hit in hits)
    assert searcher.search(Query(query.codes, query.model), 6) == nearest


def test_an_item_is_compared_by_its_vectors(searcher: Searcher) -> None:
    assert _ids(searcher.search(searcher.item("4"), 1)) == ["3"]
    assert _ids(searcher.search(searcher.item("2", by="text"), 1)) == ["5"]


def test_a_query_that_nothing_answers_has_weak_hits_only(searcher: Searcher) -> None:
    strong, weak = (searcher.search(searcher.text(text), 6) for text in ("red bus", "submarine"))
    assert next(hit.match.weak for hit in strong if hit.match) is False
    assert all(hit.match.weak for hit in weak if hit.match)


def test_phrases_are_required_and_words_excluded(searcher: Searcher) -> None:
    assert _ids(searcher.search(searcher.text('"cat on a bus"'), 6)) == ["5"]
    assert _ids(searcher.search(searcher.text('"bus cat"'), 6)) == []
    assert sorted(_ids(searcher.search(searcher.text("cat -dog"), 6))) == ["1", "2", "5", "6"]
    assert sorted(_ids(searcher.search(searcher.text("dog -animal"), 6))) == ["1", "4", "6"]
    with pytest.raises(InputError, match="'-dog'"):
        searcher.text("-dog")


@pytest.mark.parametrize("rank", ["best", "codes"])
def test_a_phrase_is_found_behind_items_with_the_same_words_in_another_order(folder: Path, rank: Rank) -> None:
    model, item = _model(), Item("7", text="a bus on a cat")
    code = model.encode(BagOfWords(WORDS).encode([item.text or ""]), "text", ids=["7"])
    with Library.open(folder, writable=True) as library:
        library.add([item], {"text": code}, model=model.fingerprint)
    with Searcher.open(folder) as searcher:
        hits = searcher.search(searcher.text('"bus on a cat"'), 1, to="text", rank=rank, candidates=1)
    assert _ids(hits) == ["7"]


def test_hyphens_inside_words_and_single_quotes_have_no_meaning() -> None:
    assert Words.parse("t-shirt man's 5\" a+b") == Words(("t-shirt man's 5\" a+b",))


def test_a_lone_sign_outside_quotes_separates_parts_and_an_empty_part_is_none() -> None:
    assert Words.parse('cat + "a - b" - red\n- bus -') == Words(("cat", "a - b"), ("red", "bus"), ("a - b",))
    assert Words.parse("- red -dog") == Words((), ("red",), (), ("dog",))


def test_without_vectors_real_values_meet_bits(tmp_path: Path) -> None:
    with Searcher.open(_fill(tmp_path / "codes", vectors=False)) as searcher:
        assert searcher.store.codes(["1"], "image").vectors is None
        first, *_ = searcher.search(searcher.text("red bus"), 6)
        assert first.item.id == "1"
        assert first.match is not None
        assert first.match.image == pytest.approx(1)


@pytest.fixture
def codes_alone(tmp_path: Path) -> Path:
    """A library that stores codes alone, although it was given vectors."""
    return _fill(tmp_path / "codes alone", store="codes")


def test_both_kinds_of_library_have_the_same_candidates_and_one_has_no_vectors(folder: Path, codes_alone: Path) -> None:
    found: list[Candidates] = []
    for path in (folder, codes_alone):
        with Searcher.open(path) as searcher, Library.open(path) as library:
            query = searcher.text("red bus")
            wanted = CandidateQuery(query.codes, 2, "image", query.model, words=[["bus", "buses"]])
            library.candidates(wanted, found.append)
            assert _ids(searcher.search(query, 1)) == ["1"]
            assert describe(library).bytes_per_item == {"codes": 4.0, "vectors": 10.0 if path == folder else 0.0}
    assert found[0].rows.tolist() == found[1].rows.tolist() != []
    assert [each.vectors["image"].shape[1] for each in found] == [5, 0]


def _coder(model: Model) -> Encode:
    pairs = _pairs()

    def encode(items: Sequence[Item]) -> dict[Modality, Codes]:
        return codes_of(model, pairs, np.flatnonzero(np.isin(pairs.ids, [item.id for item in items])), vectors=True)

    return encode


@pytest.mark.parametrize("seed", [0, 1])
def test_recoding_stores_what_the_library_was_created_for(codes_alone: Path, folder: Path, seed: int) -> None:
    model = _model(seed)
    for path, vectors in ((folder, 6), (codes_alone, None)):
        with Library.open(path, writable=True) as library:
            recode(library, model, encode=_coder(model))
            assert library.generation().fingerprint == model.fingerprint
            assert describe(library).counts.get("image vectors") == vectors
        assert not verify(path).problems


def test_a_library_from_before_there_was_a_choice_stores_vectors(folder: Path) -> None:
    with Library.open(folder, writable=True) as library:
        with library.transaction() as connection:
            connection.execute("ALTER TABLE library DROP COLUMN store")
        library.remove(["1"])
        library.add(_items()[:1], _first_codes(), model=_model().fingerprint)
        assert (describe(library).store, describe(library).counts["image vectors"]) == ("codes+vectors", 6)


def _first_codes() -> dict[Modality, Codes]:
    return {m: codes.take(np.array([0])) for m, codes in codes_of(_model(), _pairs(), vectors=True).items()}


def test_an_unknown_kind_of_store_is_refused_and_a_damaged_one_noticed(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"'vectors'.*codes, codes\+vectors"):
        Library.create(tmp_path / "new", _model(), store="vectors")
    with Library.open(folder, writable=True) as library, library.transaction() as connection:
        connection.execute("UPDATE library SET store = 'modes'")
    with pytest.raises(FormatError, match="its description of the library"):
        Library.open(folder)


def test_vectors_are_removed_and_replaced_with_their_items(folder: Path) -> None:
    model, pairs = _model(), _pairs()
    with Library.open(folder, writable=True) as library:
        library.remove(["1"])
        codes = {m: c.take(np.array([1])) for m, c in codes_of(model, pairs, vectors=True).items()}
        library.add([Item("2", text="a cat")], codes, model=model.fingerprint, replace=True)
        assert describe(library).counts["image vectors"] == 5
        np.testing.assert_array_equal(library.codes(["2"], "text").vectors, codes["text"].vectors)


def test_a_batch_that_fails_leaves_no_vectors(folder: Path) -> None:
    model = _model()
    with Library.open(folder, writable=True) as library:
        with pytest.raises(InputError):
            library.add(_items(), codes_of(model, _pairs(), vectors=True), model=model.fingerprint)
        assert describe(library).counts["image vectors"] == 6


def _damage(folder: Path, name: str) -> None:
    with Library.open(folder, writable=True) as library, library.transaction() as connection:
        connection.execute(
            "UPDATE vectors SET image = zeroblob(5) WHERE row = (SELECT row FROM items WHERE id = ?)", (name,)
        )


def test_damaged_vectors_are_reported_ignored_deleted_and_made_again(folder: Path) -> None:
    _damage(folder, "1")
    assert any("'1'" in problem for problem in verify(folder).problems)
    with Searcher.open(folder) as searcher:
        assert _ids(searcher.search(searcher.text("red bus"), 1)) == ["1"]  # by its code
    assert len(repair(folder).restored) == 2
    assert not verify(folder).problems
    with Library.open(folder, writable=True) as library:
        assert library.codes(["1"], "image").vectors is None
        recode(library, _model(), encode=_coder(_model()))
        assert library.codes(["1"], "image").vectors is not None
        assert describe(library).counts["image vectors"] == 6


def test_recoding_replaces_vectors_and_compacting_drops_the_old_ones(folder: Path) -> None:
    new = _model(1)
    with Library.open(folder, writable=True) as library:
        recode(library, new, encode=_coder(new))
        compact(library)
        assert library.codes(["1"], "image").vectors is not None
        with library.reading() as connection:
            assert connection.execute("SELECT count(*) FROM vectors").fetchone() == (6,)
    assert not verify(folder).problems


def test_vectors_of_another_shape_are_refused() -> None:
    codes = codes_of(_model(), _pairs(), vectors=True)["image"]
    with pytest.raises(CodesError, match="float32"):
        type(codes)(codes.packed, codes.bits, codes.ids, np.zeros((6, 2), np.float32))


def test_one_byte_per_dimension_keeps_directions() -> None:
    vectors = np.random.default_rng(0).standard_normal((50, 256)).astype(np.float32)
    stored = to_int8(vectors).astype(np.float32)
    cosines = (vectors * stored).sum(axis=1) / np.linalg.norm(vectors, axis=1) / np.linalg.norm(stored, axis=1)
    assert cosines.min() > 0.9995


def test_stored_captions_enter_the_joint_space_at_the_scale_of_their_features(tmp_path: Path) -> None:
    """With a bias, the joint space depends on the length of the features: 1 for a caption of one known word."""
    folder, model, pairs = _fill(tmp_path / "library", bias=0.5), _model(bias=0.5), _pairs()
    with Searcher.open(folder) as searcher:
        hits = {hit.item.id: hit.match for hit in searcher.search(searcher.item("2", by="image"), 6)}
    images, texts = (model.embed(pairs.features(modality), modality) for modality in MODALITIES)
    for name, row in (("4", 3), ("6", 5)):
        match = hits[name]
        assert match is not None
        assert match.caption == pytest.approx(float(images[1] @ texts[row]), abs=0.01)


def test_items_that_were_read_before_and_lack_the_words_are_not_read_again(tmp_path: Path) -> None:
    model, words = _model(), BagOfWords(WORDS)
    texts = [WORDS[number % 5] for number in range(100)]
    pairs = Pairs(ids=np.arange(100), images=words.encode(texts).toarray(), source="test")
    items = [Item(str(number), text="wave" if number > 96 else "sea") for number in range(100)]
    with Library.create(tmp_path / "library", model) as library:
        library.add(items, codes_of(model, pairs, vectors=True), model=model.fingerprint)
    with Searcher.open(tmp_path / "library") as searcher:
        read, first = list[int](), searcher.search(searcher.text("wave"), 5)
        intact = queries.intact_items
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(queries, "intact_items", lambda found, rows: read.extend(rows) or intact(found, rows))
            assert searcher.search(searcher.text("wave"), 5) == first
    assert {hit.item.id for hit in first} >= {"99"}
    assert len(read) < 25  # of 100
