"""Errors: one tree, exit codes for the command line, and the command that installs a missing extra."""

from __future__ import annotations

import inspect
import json
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest

from rmsh.core import errors
from rmsh.core.errors import MissingExtraError, RmshError, TrainingError, install_command, require

PROJECT = Path(__file__).resolve().parents[2]


def test_every_error_is_in_the_tree_and_in_its_drawing() -> None:
    classes = [item for _, item in inspect.getmembers(errors, inspect.isclass) if item.__module__ == errors.__name__]
    assert all(issubclass(item, RmshError) for item in classes)
    assert all(item.__name__ in (errors.__doc__ or "") for item in classes)


def test_bad_input_exits_with_two_and_failed_training_with_one() -> None:
    assert (errors.DataError("").exit_code, TrainingError("").exit_code) == (2, 1)


def test_wrong_input_is_a_value_error_too() -> None:
    assert issubclass(errors.ConfigError, ValueError)


def test_a_missing_module_names_the_extra_that_installs_it() -> None:
    with pytest.raises(MissingExtraError, match=r"no_such_module.*pip install .*\[milvus\]"):
        require("no_such_module", "milvus")


@pytest.mark.parametrize(
    ("origin", "command"),
    [
        (None, 'pip install "rmsh[train]"'),
        ({"url": "https://host/rmsh.whl", "archive_info": {}}, 'pip install "rmsh[train] @ https://host/rmsh.whl"'),
        (
            {"url": "https://host/rmsh", "vcs_info": {"vcs": "git", "commit_id": "f00d"}},
            'pip install "rmsh[train] @ git+https://host/rmsh"',
        ),
        ({"url": "file:///home/a%20b/rmsh", "dir_info": {}}, 'pip install "/home/a b/rmsh[train]"'),
        ({"url": "file:///home/a%20b/rmsh", "dir_info": {"editable": True}}, 'pip install -e "/home/a b/rmsh[train]"'),
    ],
    ids=["from an index", "from a wheel", "from git", "from a folder", "editable"],
)
def test_the_install_command_fits_the_installation(
    monkeypatch: pytest.MonkeyPatch, origin: dict[str, Any] | None, command: str
) -> None:
    for installer, program in (("pip\n", "pip"), ("uv", "uv pip")):
        files = {"INSTALLER": installer, "direct_url.json": origin and json.dumps(origin)}
        monkeypatch.setattr(metadata, "distribution", lambda name, files=files: SimpleNamespace(read_text=files.get))
        assert install_command("train") == command.replace("pip", program, 1)


def test_the_install_command_of_a_checkout_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    def distribution(name: str) -> NoReturn:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "distribution", distribution)
    assert install_command("train") == f'pip install -e "{PROJECT}[train]"'
