"""An index on disk: replaced as a whole, read by every kind, and refused where it is damaged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rmsh.codes import Codes
from rmsh.core.errors import ConfigError, FormatError
from rmsh.index import create_index, open_index
from rmsh.index.brute import Brute
from rmsh.index.mih import MultiIndex
from rmsh.index.scan import Scan


def _saved(folder: Path, kind: str = "scan") -> Codes:
    codes = Codes.from_values(np.random.default_rng(0).standard_normal((40, 70)))
    index = create_index(70, kind)
    index.add(codes)
    index.remove([3])
    index.save(folder)
    return codes


def _change(folder: Path, **facts: Any) -> None:
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps({**manifest, **facts}))


@pytest.mark.parametrize("kind", ["brute", "scan", "mih", "auto"])
def test_every_index_opens_what_another_saved(kind: str, tmp_path: Path) -> None:
    codes = _saved(tmp_path, kind)
    found = [index.open(tmp_path).search(codes, 5).rows for index in (Brute, Scan, MultiIndex)]
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


def test_saving_again_leaves_one_generation_of_files(tmp_path: Path) -> None:
    _saved(tmp_path)
    codes = _saved(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["alive-2.npy", "codes-2.npy", "manifest.json"]
    assert open_index(tmp_path).search(codes, 1).rows[4, 0] == 4


def test_saving_that_does_not_finish_leaves_the_index_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    codes = _saved(tmp_path)

    def fail(*_: Any) -> None:
        raise OSError("no space left")

    monkeypatch.setattr("rmsh.index.folder.write_json", fail)
    with pytest.raises(OSError, match="no space left"):
        Scan(70).save(tmp_path)
    assert open_index(tmp_path).search(codes, 1).rows[0, 0] == 0


def test_a_folder_without_a_manifest_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"has no manifest\.json: it is no index, or one whose saving did not finish"):
        open_index(tmp_path)


@pytest.mark.parametrize("ask", [open_index, Scan.open, Scan(70).save])
def test_a_manifest_of_something_else_is_refused_and_not_replaced(ask: Any, tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text('{"format": "photos"}')
    with pytest.raises(FormatError, match="is not of the format 'rmsh index'; give the folder that an index"):
        ask(tmp_path)


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"version": 2}, "has version 2 of 'rmsh index', this rmsh reads up to version 1; update"),
        ({"version": "1"}, "has version '1'"),
        ({"files": {"codes": "../codes-1.npy"}}, "does not name the files of an index"),
        ({"files": ["codes-1.npy"]}, "does not name the files of an index"),
        ({"files": {"alive": "alive-1.npy"}}, r"is damaged \('codes'\)"),
        ({"rows": 41}, r"holds uint64 \(40, 2\), and 41 codes were saved"),
        ({"rows": None}, "is damaged"),
        ({"items": 40}, "39 items were found, 40 were saved"),
        ({"bits": 64}, "is damaged .A base of uint64"),
        ({"bits": 1000}, "give a whole number from 1 to 512"),
    ],
)
def test_a_manifest_that_does_not_fit_is_refused(facts: dict[str, Any], message: str, tmp_path: Path) -> None:
    _saved(tmp_path)
    _change(tmp_path, **facts)
    with pytest.raises(FormatError, match=message):
        open_index(tmp_path)


def test_a_kind_that_is_not_installed_is_refused(tmp_path: Path) -> None:
    _saved(tmp_path)
    _change(tmp_path, kind="milvas")
    with pytest.raises(ConfigError, match="There is no index called 'milvas'"):
        open_index(tmp_path)


@pytest.mark.parametrize("name", ["codes-1.npy", "alive-1.npy"])
@pytest.mark.parametrize("left", [0, 10, 130])
def test_a_file_that_is_cut_off_is_refused(name: str, left: int, tmp_path: Path) -> None:
    _saved(tmp_path)
    (tmp_path / name).write_bytes((tmp_path / name).read_bytes()[:left])
    with pytest.raises(FormatError, match=r"is damaged \(.*\); build it anew"):
        open_index(tmp_path)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    _saved(tmp_path)
    (tmp_path / "codes-1.npy").unlink()
    with pytest.raises(FormatError, match="is damaged"):
        open_index(tmp_path)


def test_tables_that_lead_beyond_the_codes_are_refused(tmp_path: Path) -> None:
    _saved(tmp_path, "mih")
    rows = np.load(tmp_path / "rows-1.npy")
    for wrong in (rows + 1, rows - 1, rows.astype(np.int64), rows[:, :-1], rows[0]):
        np.save(tmp_path / "rows-1.npy", wrong)
        with pytest.raises(FormatError, match="its tables do not hold together"):
            open_index(tmp_path)


def test_tables_whose_buckets_are_out_of_order_are_refused(tmp_path: Path) -> None:
    _saved(tmp_path, "mih")
    begins = np.load(tmp_path / "begins-1.npy")
    for wrong in (begins[::-1].copy(), begins[:-1], begins + 1):
        np.save(tmp_path / "begins-1.npy", wrong)
        with pytest.raises(FormatError, match="its tables do not hold together"):
            open_index(tmp_path)


def test_tables_of_more_rows_than_there_are_are_refused(tmp_path: Path) -> None:
    _saved(tmp_path, "mih")
    files = json.loads((tmp_path / "manifest.json").read_text())["files"]
    Scan(70).save(tmp_path / "empty")
    (tmp_path / "codes-1.npy").write_bytes((tmp_path / "empty" / "codes-1.npy").read_bytes())
    _change(tmp_path, rows=0, items=0, files={name: files[name] for name in files if name != "alive"})
    with pytest.raises(FormatError, match="its tables are of more rows than it has"):
        open_index(tmp_path)
