"""The measurement of photo folders, in small: nothing is lost, and every skip is explained."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.photos import idle_sync, looks, mixed


@pytest.mark.slow
def test_mixed_files_are_all_items_or_explained(coco66k_root: Path, tmp_path: Path) -> None:
    pytest.importorskip("pi_heif")
    found = mixed(tmp_path, 200)
    assert found["neither items nor explained"] == 0
    assert found["codes changed by a move"] == 0
    assert {name: found["first sync"][name] for name in found["planned"]} == found["planned"]
    assert found["second sync"]["removed"] == found["planned"]["missing"]
    assert found["nothing left to do"]
    assert found["wrong files"] == {"missing": 0, "changed": 0, "unreadable": 0}


def test_all_pairs_within_the_radius_are_found(tmp_path: Path) -> None:
    found = looks(tmp_path, 50_000)
    assert (found["planted"], found["recall"]) == (20_000, 1.0)


def test_a_sync_of_an_unchanged_library_does_nothing(tmp_path: Path) -> None:
    assert idle_sync(tmp_path, 1500)["files"] == 1500
