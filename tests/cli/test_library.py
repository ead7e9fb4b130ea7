"""`rmsh library`: what each verb prints, as text and as JSON, and what it ends with."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from rmsh.cli.main import GROUPS, run
from rmsh.codes import Codes
from rmsh.hash_function import HashFunction, Layer
from rmsh.library import Item, Library
from rmsh.model import Model

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A library of two items."""
    layer = Layer(np.eye(8, dtype=np.float32), np.zeros(8, np.float32), "none")
    model = Model({"text": HashFunction((layer,))}, "test", {})
    codes = Codes(np.array([[1], [2]], np.uint8), 8, ["a", "b"])
    items = [Item("a", text="[bold]one[/bold]", labels=("x",)), Item("b", picture="gone.jpg")]
    with Library.create(tmp_path / "library", model) as library:
        library.add(items, {"text": codes}, model=model.fingerprint)
    return tmp_path / "library"


def _json(capsys: Capture, *words: str | Path, code: int = 0) -> dict[str, object]:
    assert run(["library", *map(str, words), "--json", "--quiet"]) == code
    out, err = capsys.readouterr()
    assert err == ""
    return dict(json.loads(out))


@pytest.mark.parametrize("verb", GROUPS["library"])
def test_every_verb_explains_itself_and_has_json_and_quiet(verb: str, capsys: Capture) -> None:
    assert run(["library", verb, "--help"]) == 0
    shown = capsys.readouterr().out
    assert [word for word in (f"rmsh library {verb}", "Example:", "--json", "--quiet") if word not in shown] == []


def test_info_counts(folder: Path, capsys: Capture) -> None:
    found = _json(capsys, "info", folder)
    assert (found["bits"], found["generation"], found["format"]) == (8, 1, 3)
    assert found["counts"] == {
        "items": 2,
        "labels": 1,
        "image codes": 0,
        "text codes": 2,
        "codes kept of older models": 0,
        "codes ready of the next model": 0,
    }
    assert found["snapshot"] == "none; codes are read from the database"


def test_info_is_readable(folder: Path, capsys: Capture) -> None:
    assert run(["library", "info", str(folder)]) == 0
    shown = capsys.readouterr().out
    assert [word for word in ("8 bits", "items", "items.sqlite", "the library itself") if word not in shown] == []


def test_a_whole_library_verifies(folder: Path, capsys: Capture) -> None:
    assert _json(capsys, "verify", folder)["whole"] is True
    assert run(["library", "verify", str(folder)]) == 0
    assert "is intact; checked: database, full-text index, log of changes, items, codes" in capsys.readouterr().out


def test_a_damaged_library_ends_with_exit_code_1(folder: Path, capsys: Capture) -> None:
    (folder / "codes.snapshot").write_bytes(b"nonsense")
    assert run(["library", "verify", str(folder), "--quiet"]) == 1
    assert "codes.snapshot is damaged" in capsys.readouterr().out
    found = _json(capsys, "verify", folder, code=1)
    assert found["whole"] is False
    assert found["problems"]


def test_compacting_writes_the_snapshot_and_prints_sizes(folder: Path, capsys: Capture) -> None:
    found = _json(capsys, "compact", folder)
    assert found["bytes"] == sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    assert _json(capsys, "info", folder)["snapshot"] == "up to date"


def test_the_snapshot_is_described_in_every_state(folder: Path, capsys: Capture) -> None:
    run(["library", "compact", str(folder), "--quiet"])
    with Library.open(folder, writable=True) as library:
        library.remove(["a"])
    capsys.readouterr()
    assert _json(capsys, "info", folder)["snapshot"] == "1 changes behind"
    (folder / "codes.snapshot").write_bytes(b"nonsense")
    assert _json(capsys, "info", folder)["snapshot"] == "damaged; codes are read from the database"


def test_a_snapshot_of_another_library_is_reported(folder: Path, tmp_path: Path, capsys: Capture) -> None:
    run(["library", "backup", str(folder), "--out", str(tmp_path / "copy"), "--quiet"])
    with Library.open(tmp_path / "copy", writable=True) as library:
        library.remove(["a"])
        library.write_snapshot()
    (tmp_path / "copy" / "codes.snapshot").rename(folder / "codes.snapshot")
    capsys.readouterr()
    assert _json(capsys, "info", folder)["snapshot"] == "of another state; codes are read from the database"


def test_a_backup_is_a_library_and_missing_images_are_counted(folder: Path, tmp_path: Path, capsys: Capture) -> None:
    copy = tmp_path / "copy"
    assert run(["library", "backup", str(folder), "--out", str(copy)]) == 0
    assert "1 image files are missing" in capsys.readouterr().err
    assert _json(capsys, "verify", copy)["whole"] is True


def test_restore_restores_a_backup_and_repair_finds_no_damage(folder: Path, tmp_path: Path, capsys: Capture) -> None:
    assert run(["library", "backup", str(folder), "--out", str(tmp_path / "copy"), "--quiet"]) == 0
    capsys.readouterr()
    (folder / "items.sqlite").unlink()
    done = _json(capsys, "restore", tmp_path / "copy", "--to", folder, "--keep-replaced")
    assert done["items"] == 2
    assert Path(str(done["replaced"])).is_dir()
    assert _json(capsys, "verify", folder)["whole"] is True
    assert _json(capsys, "repair", folder) == {"restored": [], "lost": []}


def test_repair_lists_what_cannot_be_restored_and_ends_with_exit_code_1(folder: Path, capsys: Capture) -> None:
    with Library.open(folder, writable=True) as library, library.transaction() as connection:
        connection.execute("UPDATE codes SET text = x'07' WHERE row = 1")
    done = _json(capsys, "repair", folder, code=1)
    assert done["restored"] == []
    assert "'a' (row 1)" in str(done["lost"])


def test_upgrading_a_current_library_changes_nothing(folder: Path, capsys: Capture) -> None:
    assert _json(capsys, "upgrade", folder) == {"format_before": 3, "format": 3}


def test_export_writes_parquet(folder: Path, tmp_path: Path, capsys: Capture) -> None:
    out = tmp_path / "items.parquet"
    assert _json(capsys, "export", folder, "--out", out) == {"export": str(out), "count": 2}
    assert pq.read_table(out)["text"].to_pylist() == ["[bold]one[/bold]", None]


@pytest.mark.parametrize("verb", GROUPS["library"])
def test_a_folder_without_a_library_is_one_sentence(verb: str, tmp_path: Path, capsys: Capture) -> None:
    options = ["--out", str(tmp_path / "x" / "y.parquet")] if verb in ("backup", "export", "load") else []
    options += ["--to", "http://127.0.0.1:1/photos"] if verb == "push" else []
    options += ["--to", str(tmp_path / "new")] if verb == "restore" else []
    options += [str(tmp_path)] if verb == "relocate" else []
    assert run(["library", verb, str(tmp_path), *options, "--quiet"]) == 2
    out, err = capsys.readouterr()
    expected = "run `rmsh encode` to its end" if verb == "load" else "give the folder of a library"
    assert (out, expected in err) == ("", True)


def test_push_refuses_a_secret_in_an_address_without_repeating_it(folder: Path, capsys: Capture) -> None:
    assert run(["library", "push", str(folder), "--to", "http://me:hunter2@host:1/a"]) == 2
    out, err = capsys.readouterr()
    assert err.startswith("rmsh: The address of the collection")
    assert "hunter2" not in out + err


def test_push_to_an_unreachable_server_is_one_sentence(folder: Path, capsys: Capture) -> None:
    assert run(["library", "push", str(folder), "--to", "http://127.0.0.1:1/photos"]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert "http://127.0.0.1:1: " in err
