"""What made a result: the code of a method, the commit, versions, memory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from rmsh.compare import provenance
from rmsh.compare.provenance import code_hash, commit, forget_peak_memory, machine, peak_memory_mb, versions
from rmsh.methods import METHODS, method_class

HELPER = (
    'def root(x):\n    """Docstring."""\n    return x ** EXPONENT\n\nEXPONENT = 0.5\n\ndef unused():\n    return 1\n'
)
METHOD = """
from rmsh.methods.tested_helper import root

class Config:
    power: float = Field(2.0, description="of what")

class Tested:
    summary = "a method"
    Config = Config
    def learn(self, x: int) -> float:
        if x < 0:
            raise ValueError("negative")
        return root(x)
"""


def _hash(folder: Path, monkeypatch: pytest.MonkeyPatch, modules: dict[str, str]) -> str | None:
    """The hash of a class Tested in modules that are written below rmsh.methods."""
    import rmsh.methods

    folder.mkdir(exist_ok=True)
    for name, text in modules.items():
        (folder / f"{name}.py").write_text(text)
    monkeypatch.setattr(rmsh.methods, "__path__", [str(folder)])
    provenance._source.cache_clear()
    cls = type("Tested", (), {"__module__": "rmsh.methods.tested"})
    return code_hash(cls)


@pytest.fixture(autouse=True)
def _fresh_cache() -> object:
    yield
    provenance._source.cache_clear()


@pytest.fixture
def before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str | None:
    return _hash(tmp_path / "before", monkeypatch, {"tested": METHOD, "tested_helper": HELPER})


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Docstring.", "Other words."),
        ("return 1", "return 2"),
        ("def root(x)", "# why\ndef root(x: float)"),
        ("of what", "of that"),
        ("a method", "the method"),
        ("negative", "must be positive"),
    ],
)
def test_words_annotations_and_unused_code_do_not_change_the_hash(
    before: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: str, new: str
) -> None:
    modules = {"tested": METHOD.replace(old, new), "tested_helper": HELPER.replace(old, new)}
    assert _hash(tmp_path / "after", monkeypatch, modules) == before


@pytest.mark.parametrize(
    ("old", "new"), [("0.5", "0.25"), ("x ** EXPONENT", "x + EXPONENT"), ("x < 0", "x < 1"), ("2.0", "3.0")]
)
def test_code_defaults_and_constants_change_the_hash(
    before: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: str, new: str
) -> None:
    modules = {"tested": METHOD.replace(old, new), "tested_helper": HELPER.replace(old, new)}
    assert _hash(tmp_path / "after", monkeypatch, modules) != before


def test_moving_a_definition_to_another_module_does_not_change_the_hash(
    before: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    modules = {"tested": METHOD.replace("tested_helper", "tested_moved"), "tested_moved": HELPER}
    assert _hash(tmp_path / "moved", monkeypatch, modules) == before
    merged = {"tested": HELPER + METHOD.replace("from rmsh.methods.tested_helper import root", "")}
    assert _hash(tmp_path / "merged", monkeypatch, merged) == before
    attribute = METHOD.replace("from rmsh.methods.tested_helper import root", "from rmsh.methods import tested_helper")
    through_module = {"tested": attribute.replace("root(x)", "tested_helper.root(x)"), "tested_helper": HELPER}
    changed = {**through_module, "tested_helper": HELPER.replace("0.5", "0.25")}
    first = _hash(tmp_path / "attribute", monkeypatch, through_module)
    assert first != _hash(tmp_path / "changed", monkeypatch, changed)


def test_every_method_has_a_different_hash() -> None:
    hashes = {code_hash(method_class(name)) for name in METHODS.names()}
    assert None not in hashes
    assert len(hashes) == len(METHODS.names())


def test_a_class_without_source_has_no_hash() -> None:
    assert code_hash(type("Typed", (), {"__module__": "__main__"})) is None
    assert code_hash(type("Typed", (), {"__module__": "nowhere.at_all"})) is None


def test_a_checkout_has_a_commit_and_an_installed_package_has_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit.cache_clear()
    found = commit()
    assert found is None or len(found.removesuffix("-dirty")) == 40
    monkeypatch.setattr(provenance, "_PACKAGE", tmp_path / "lib" / "site-packages" / "rmsh")
    (tmp_path / "lib" / ".git").mkdir(parents=True)
    commit.cache_clear()
    assert commit() is None
    commit.cache_clear()


def test_changed_code_makes_a_commit_dirty_and_a_changed_result_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, result = tmp_path / "src" / "rmsh" / "a.py", tmp_path / "lab" / "results" / "a.json"
    for path in (code, result):
        path.parent.mkdir(parents=True)
        path.write_text("1\n")
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", "-C", str(tmp_path)]
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "first"]):
        subprocess.run([*git, *command], check=True)
    monkeypatch.setattr(provenance, "_PACKAGE", code.parent)
    found = []
    for path in (result, code):
        path.write_text("2\n")
        commit.cache_clear()
        found.append(commit())
    commit.cache_clear()
    head = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True).stdout.strip()
    assert found == [head, f"{head}-dirty"]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux can reset the peak")
def test_the_peak_is_that_of_the_work_since_it_was_reset() -> None:
    np.ones(25_000_000).sum()  # 200 MB
    before = peak_memory_mb()
    forget_peak_memory()
    after = peak_memory_mb()
    assert before is not None
    assert after is not None
    assert before - after > 150


def test_versions_and_machine_are_named() -> None:
    assert {"rmsh", "python", "numpy"} <= versions().keys()
    assert machine()["cores"] >= 1


def test_code_in_the_package_of_a_method_outside_rmsh_is_part_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    found = []
    for name, helper in (("one", HELPER), ("two", HELPER.replace("0.5", "0.25")), ("three", HELPER + "# a comment\n")):
        folder = tmp_path / f"outside_{name}"
        folder.mkdir()
        (folder / "__init__.py").touch()
        (folder / "tested_helper.py").write_text(helper)
        (folder / "tested.py").write_text(METHOD.replace("rmsh.methods", f"outside_{name}"))
        found.append(code_hash(type("Tested", (), {"__module__": f"outside_{name}.tested"})))
    assert found[0] not in (None, found[1])
    assert found[0] == found[2]
