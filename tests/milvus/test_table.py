"""Collections of codes: their description, and on a server the results of brute force except for ties at the end."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from rmsh.codes import Codes
from rmsh.core.errors import FormatError, InputError, RmshError
from rmsh.core.types import MODALITIES
from rmsh.index.brute import Brute
from rmsh.library import Item
from rmsh.milvus.collection import entity_of, key_of, row_of
from rmsh.milvus.connection import Address, Settings, connect
from rmsh.milvus.table import Found, Table, read_description

NewAddress = Callable[[], str]


def test_a_description_is_read() -> None:
    written = json.dumps({"format": "rmsh collection", "version": 1, "bits": 64, "model": 'a "b"'})
    assert read_description(written, "photos")["model"] == 'a "b"'


@pytest.mark.parametrize("description", ["", "photos of my cat", "[]", "{}", '{"format": "rmsh index"}'])
def test_a_description_by_another_program_is_refused(description: str) -> None:
    with pytest.raises(FormatError, match=r"photos .*'rmsh collection'"):
        read_description(description, "photos")


@pytest.mark.parametrize("version", [2, "1", None])
def test_a_description_by_a_newer_rmsh_is_refused(version: object) -> None:
    written = json.dumps({"format": "rmsh collection", "version": version})
    with pytest.raises(FormatError, match="version 1; update rmsh"):
        read_description(written, "photos")


def test_an_approximate_collection_is_refused() -> None:
    written = json.dumps({"format": "rmsh collection", "version": 1, "bits": 64, "lists": 16})
    with pytest.raises(FormatError, match=r"photos has 16 lists.* drop it .*`rmsh library push`"):
        read_description(written, "photos")


def _codes(seed: int, n: int, bits: int) -> Codes:
    """Codes around seven centres, with ties and duplicates."""
    rng = np.random.default_rng(seed)
    centres = np.where(np.random.default_rng(0).random((7, bits)) < 0.5, 1, -1)
    return Codes.from_values(centres[rng.integers(0, 7, n)] * np.where(rng.random((n, bits)) < 0.05, -1, 1))


def _corner() -> Codes:
    """Codes 000, 100, 110, 111, 000 by row."""
    return Codes.from_values([[-1, -1, -1], [1, -1, -1], [1, 1, -1], [1, 1, 1], [-1, -1, -1]])


def _create(new_address: NewAddress, bits: int, **options: Any) -> Table:
    table = Table.create(Address.parse(new_address()), bits, **options)
    table.prepare()
    return table


def _add(table: Table, oracle: Brute, codes: Codes) -> None:
    """Add each code as the image and as the text of an item."""
    pairs = list(zip(oracle.add(codes).tolist(), codes.packed, strict=True))
    for start in range(0, len(pairs), 5000):
        for modality in MODALITIES:
            entities = [
                entity_of(row, Item(str(row)), modality=modality, code=bytes(code), model="m", both=True)
                for row, code in pairs[start : start + 5000]
            ]
            table.upsert(entities, partition=modality)


def _remove(table: Table, oracle: Brute, rows: Any) -> None:
    oracle.remove(rows)
    table.delete([key_of(int(row), modality) for row in rows for modality in MODALITIES])


def _pairs(found: list[list[Found]]) -> list[list[tuple[int, int]]]:
    """Distances and rows."""
    return [[(hit.distance, row_of(hit.key)) for hit in hits] for hits in found]


def _assert_same(table: Table, oracle: Brute, queries: Codes, k: int) -> None:
    """Equal distances; equal rows except at the largest distance, where the server chooses."""
    expected = oracle.search(queries, k)
    for modality in MODALITIES:
        found = _pairs(table.nearest(queries.packed, k, partition=modality))
        assert [[distance for distance, _ in hits] for hits in found] == expected.distances.tolist()
        for q, hits in enumerate(found):
            nearer = expected.distances[q] < expected.distances[q, -1]
            assert [row for _, row in hits[: nearer.sum()]] == expected.rows[q, nearer].tolist()


@pytest.fixture(scope="module")
def corner(new_address: NewAddress) -> Iterator[Table]:
    """The five codes of the corner, for tests that change nothing."""
    table = _create(new_address, 3)
    _add(table, Brute(3), _corner())
    yield table
    table.close()


@pytest.mark.milvus
@pytest.mark.parametrize("bits", [20, 63, 512])
def test_every_result_equals_that_of_brute_force(bits: int, new_address: NewAddress) -> None:
    table, oracle, rng = _create(new_address, bits), Brute(bits), np.random.default_rng(bits)
    for seed, count in enumerate((300, 700)):
        _add(table, oracle, _codes(seed, count, bits))
        queries = _codes(seed + 9, 5, bits)
        _remove(table, oracle, rng.choice(oracle.search(queries, oracle.row_count).rows[0], 60, replace=False))
        for k in (1, 30, 2000):
            _assert_same(table, oracle, queries, k)
    assert (table.count(partition="image"), table.bits) == (len(oracle), bits)


@pytest.mark.milvus
def test_codes_indexed_by_the_server_give_the_same_results(new_address: NewAddress) -> None:
    table, oracle = Table(_create(new_address, 64).address), Brute(64)
    _add(table, oracle, _codes(1, 3000, 64))
    table.flush()
    _wait_for_index(table.address)
    _remove(table, oracle, np.arange(0, 3000, 7))
    _add(table, oracle, _codes(2, 100, 64))
    _assert_same(table, oracle, _codes(3, 5, 64), 50)


def _wait_for_index(address: Address) -> None:
    """Wait until the index is built, and make the server load it instead of the plain codes."""
    client = connect(address.server, Settings.read())
    while client.describe_index(address.name, "code")["pending_index_rows"]:
        pass
    client.release_collection(address.name)
    client.load_collection(address.name)


@pytest.mark.milvus
def test_k_larger_than_the_collection_returns_all_entities(corner: Table) -> None:
    assert [len(hits) for hits in corner.nearest(_corner().packed, 100_000, partition="text")] == [5] * 5
    two = corner.nearest(_corner().packed, 100, partition="text", where="key < 4")
    assert [len(hits) for hits in two] == [2] * 5


@pytest.mark.milvus
def test_nothing_to_find_is_no_error(corner: Table) -> None:
    packed = _corner().packed
    assert corner.nearest(packed[:2], 4, partition="image", where="key < 0") == [[], []]
    assert corner.nearest(packed[:0], 4, partition="image") == []


@pytest.mark.milvus
def test_more_neighbours_than_a_call_returns_are_refused(new_address: NewAddress) -> None:
    table, codes = _create(new_address, 8), _codes(1, 17_000, 8)
    _add(table, Brute(8), codes)
    assert len(table.nearest(codes.packed[:1], 16_384, partition="image")[0]) == 16_384
    with pytest.raises(InputError, match=r"k = 16,385; .* 16,384"):
        table.nearest(codes.packed[:1], 16_385, partition="image")


@pytest.mark.milvus
def test_closing_one_table_does_not_disturb_another(corner: Table) -> None:
    Table(corner.address).close()
    assert corner.count(partition="image") == 5


@pytest.mark.milvus
def test_a_dropped_collection_is_reported(new_address: NewAddress) -> None:
    table = _create(new_address, 3)
    table.drop()
    for call in (lambda: table.count(), lambda: Table(table.address)):
        with pytest.raises(RmshError, match="no such collection"):
            call()


@pytest.mark.milvus
def test_a_collection_by_another_program_is_refused(milvus_server: str, new_address: NewAddress) -> None:
    address = Address.parse(new_address())
    connect(milvus_server, Settings.read()).create_collection(address.name, dimension=4)
    with pytest.raises(FormatError, match=f"{address}.*'rmsh collection'"):
        Table.find(address)
