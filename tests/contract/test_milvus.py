"""The index on a Milvus server: it answers as brute force does, but for which of equally distant items come last."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from rmsh.codes import Codes
from rmsh.core.errors import CodesError, FormatError, InputError, RmshError
from rmsh.index import create_index, open_index
from rmsh.index.brute import Brute
from rmsh.index.filters import Label
from rmsh.index.milvus import MilvusIndex
from rmsh.milvus.connection import Settings, connect

pytestmark = pytest.mark.milvus

NewAddress = Callable[[], str]


def _codes(seed: int, n: int, bits: int) -> Codes:
    """Codes around seven centres, with ties and duplicates."""
    rng = np.random.default_rng(seed)
    centres = np.where(np.random.default_rng(0).random((7, bits)) < 0.5, 1, -1)
    return Codes.from_values(centres[rng.integers(0, 7, n)] * np.where(rng.random((n, bits)) < 0.05, -1, 1))


def _corner() -> Codes:
    """Codes 000, 100, 110, 111, 000 by row."""
    return Codes.from_values([[-1, -1, -1], [1, -1, -1], [1, 1, -1], [1, 1, 1], [-1, -1, -1]])


@pytest.fixture(scope="module")
def corner(new_address: NewAddress) -> Iterator[MilvusIndex]:
    """The five codes of the corner, for tests that change nothing."""
    index = MilvusIndex(3, address=new_address())
    index.add(_corner())
    yield index
    index.close()


def _assert_same(index: Any, oracle: Brute, queries: Codes, k: int, radius: int, where: Any = None) -> None:
    """Equal distances; equal rows but for the farthest distance, whose items the server chooses; equal neighbours."""
    ours, theirs = (each.search(queries, k, where=where) for each in (index, oracle))
    np.testing.assert_array_equal(ours.distances, theirs.distances)
    certain = ours.distances < ours.distances[:, -1:]
    np.testing.assert_array_equal(ours.rows[certain], theirs.rows[certain])
    near, nearby = (each.within(queries, radius, where=where) for each in (index, oracle))
    for part in ("offsets", "rows", "distances"):
        np.testing.assert_array_equal(getattr(near, part), getattr(nearby, part))


@pytest.mark.parametrize(
    ("bits", "options"),
    [(63, {}), (512, {}), (20, {"lists": 4})],
    ids=str,
)
def test_every_answer_is_that_of_brute_force(bits: int, options: dict[str, Any], new_address: NewAddress) -> None:
    index, oracle = create_index(bits, "milvus", address=new_address(), **options), Brute(bits)
    rng = np.random.default_rng(bits)
    exact = options.get("probes") == options.get("lists")
    for seed, count in enumerate((300, 700)):
        codes, queries = _codes(seed, count, bits), _codes(seed + 9, 5, bits)
        np.testing.assert_array_equal(index.add(codes), oracle.add(codes))
        removed = rng.choice(oracle.search(queries, oracle.row_count).rows[0], 60, replace=False)
        for each in (index, oracle):
            each.remove(removed)
        for k in (1, 30, 2000) if exact else (2000,):
            _assert_same(index, oracle, queries, k, bits // 8)
            _assert_same(index, oracle, queries, k, bits, rng.random(oracle.row_count) < 0.3)
    assert (len(index), index.row_count, index.bits) == (len(oracle), oracle.row_count, bits)


@pytest.mark.parametrize("lists", [0, 16])
def test_codes_that_the_server_has_indexed_give_the_same_answers(
    lists: int, milvus_server: str, new_address: NewAddress, tmp_path: Path
) -> None:
    index, oracle = MilvusIndex(64, address=new_address(), lists=lists, probes=lists or None), Brute(64)
    for each in (index, oracle):
        each.add(_codes(1, 3000, 64))
    index.save(tmp_path)
    _wait_for_index(milvus_server, index.address.name)
    for each in (index, oracle):
        each.remove(np.arange(0, 3000, 7))
        each.add(_codes(2, 100, 64))
    _assert_same(index, oracle, _codes(3, 5, 64), 50, 9)
    _assert_same(index, oracle, _codes(3, 5, 64), 50, 9, np.arange(3100) % 3 == 0)


def _wait_for_index(server: str, name: str) -> None:
    """Until the index is built; then let the server load it in place of the codes as they came."""
    client = connect(server, Settings.read())
    while client.describe_index(name, "code")["pending_index_rows"]:
        pass
    client.release_collection(name)
    client.load_collection(name)


def test_a_hand_worked_search(corner: MilvusIndex) -> None:
    found = corner.search(Codes.from_values([[-1, -1, -1], [1, 1, 1]]), 4)
    assert found.rows.tolist() == [[0, 4, 1, 2], [3, 2, 1, 0]] or found.rows.tolist() == [[0, 4, 1, 2], [3, 2, 1, 4]]
    assert found.distances.tolist() == [[0, 0, 1, 2], [0, 1, 2, 3]]
    assert (found.rows.dtype, found.distances.dtype) == (np.int64, np.int32)


@pytest.mark.parametrize(("radius", "rows"), [(0, [0, 4]), (1, [0, 4, 1]), (3, [0, 4, 1, 2, 3]), (9, [0, 4, 1, 2, 3])])
def test_a_radius_includes_its_bound(corner: MilvusIndex, radius: int, rows: list[int]) -> None:
    assert corner.within(Codes.from_values([[-1, -1, -1]]), radius).of(0)[0].tolist() == rows


def test_k_larger_than_the_index_returns_what_there_is(corner: MilvusIndex) -> None:
    assert corner.search(_corner(), 100_000).rows.shape == (5, 5)
    assert corner.search(_corner(), 100, where=np.arange(5) < 2).rows.shape == (5, 2)


@pytest.mark.parametrize("queries", [0, 2])
def test_nothing_to_find_gives_results_of_the_right_shape(corner: MilvusIndex, queries: int) -> None:
    codes, nothing = _corner().take(np.arange(queries)), np.zeros(5, dtype=np.bool_)
    assert corner.search(codes, 4, where=nothing).distances.shape == (queries, 0)
    assert corner.within(codes, 3, where=nothing).rows.size == 0
    assert corner.search(codes.take(np.arange(0)), 4).rows.shape == (0, 4)


def test_more_neighbours_than_a_call_gives_are_all_found(new_address: NewAddress) -> None:
    index, oracle, codes = MilvusIndex(8, address=new_address()), Brute(8), _codes(1, 17_000, 8)
    for each in (index, oracle):
        each.add(codes)
        each.remove(np.arange(100))
    query = codes.take(np.arange(1))
    near, nearby = index.within(query, 8), oracle.within(query, 8)
    assert near.rows.size == 16_900
    np.testing.assert_array_equal(near.rows, nearby.rows)
    with pytest.raises(InputError, match="16,385 nearest were asked for; Milvus finds up to 16,384 a query"):
        index.search(query, 16_385)


def test_a_saved_index_is_opened_with_its_rows_and_their_numbering(new_address: NewAddress, tmp_path: Path) -> None:
    address = new_address()
    index = MilvusIndex(3, address=address)
    index.save(tmp_path)  # what is added afterwards is there too
    index.add(_corner())
    index.remove([1, 1])
    opened = open_index(tmp_path)
    assert (type(opened), len(opened), opened.row_count, opened.bits) == (MilvusIndex, 4, 5, 3)
    opened.remove([4])
    opened.save(tmp_path)
    assert open_index(tmp_path).add(_corner()).tolist() == [5, 6, 7, 8, 9]
    with pytest.raises(InputError, match=f"There is a collection at {address} already"):
        MilvusIndex(3, address=address)
    index.drop()
    for ask in (lambda: index.search(_corner(), 1), lambda: open_index(tmp_path)):
        with pytest.raises(RmshError, match="there is no such collection, or no longer"):
            ask()


def test_two_readers_search_at_once(corner: MilvusIndex, tmp_path: Path) -> None:
    corner.save(tmp_path)
    readers = [MilvusIndex.open(tmp_path) for _ in range(2)]

    def distances(reader: MilvusIndex) -> list[NDArray[np.int32]]:
        return [reader.search(_corner(), 3).distances for _ in range(20)]

    with ThreadPoolExecutor(2) as pool:
        together = [pool.submit(distances, reader) for reader in readers]
        expected = corner.search(_corner(), 3).distances
        for found in together:
            np.testing.assert_array_equal(found.result(), [expected] * 20)
    readers[0].close()
    assert len(readers[1]) == 5  # one that closes does not disturb the other


def test_questions_that_are_wrong_are_refused(corner: MilvusIndex) -> None:
    with pytest.raises(CodesError, match="Codes of 2 bits were given to an index of 3 bits"):
        corner.search(Codes.from_values([[1, 1]]), 1)
    with pytest.raises(InputError, match="0 neighbours"):
        corner.search(_corner(), 0)
    with pytest.raises(InputError, match="is no radius"):
        corner.within(_corner(), -1)
    where: Any = Label("dog")
    with pytest.raises(InputError, match="takes a boolean mask over its 5 rows"):
        corner.search(_corner(), 1, where=where)
    with pytest.raises(InputError, match="The row 5 is not in this index of 5 items"):
        corner.remove([0, 5])
    assert len(corner) == 5


def test_a_mask_of_too_many_rows_is_refused(corner: MilvusIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rmsh.index.milvus._MOST_NAMED", 1)
    assert corner.search(_corner(), 9, where=np.arange(5) > 0).rows.shape == (5, 4)
    with pytest.raises(InputError, match="admits 2 of 5 rows was given; Milvus is told up to 1 rows"):
        corner.search(_corner(), 1, where=np.arange(5) > 2)


def test_a_collection_of_another_program_is_refused(milvus_server: str, new_address: NewAddress) -> None:
    address = new_address()
    client = connect(milvus_server, Settings.read())
    client.create_collection(address.rpartition("/")[2], dimension=4)
    with pytest.raises(FormatError, match="is of another program"):
        MilvusIndex(3, address=address)
