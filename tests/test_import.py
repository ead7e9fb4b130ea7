"""Importing rmsh: light, typed, and every public name is there."""

from __future__ import annotations

import subprocess
import sys
from importlib import resources

import pytest

import rmsh

HEAVY = {"torch", "numba", "scipy", "sklearn", "matplotlib", "pydantic", "pyarrow", "onnxruntime", "typer"}


def _loaded_by(statement: str) -> set[str]:
    """The top-level modules that a fresh Python has after a statement."""
    program = f"{statement}\nimport sys\nprint(*(name.partition('.')[0] for name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_importing_rmsh_loads_no_heavy_library() -> None:
    assert _loaded_by("import rmsh") & HEAVY == set()


def test_using_codes_loads_numpy_only() -> None:
    assert _loaded_by("from rmsh import Codes") & {"numpy", *HEAVY} == {"numpy"}


def test_the_command_line_loads_no_library_of_an_extra() -> None:
    loaded = _loaded_by("import rmsh.cli.main")
    assert "typer" in loaded
    assert loaded & {"torch", "matplotlib", "onnxruntime", "tokenizers"} == set()


@pytest.mark.parametrize("name", rmsh.__all__)
def test_every_exported_name_is_there(name: str) -> None:
    assert getattr(rmsh, name) is not None


def test_dir_lists_the_exported_names() -> None:
    assert dir(rmsh) == sorted(rmsh.__all__)


def test_a_name_that_does_not_exist_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Coeds'"):
        rmsh.Coeds  # noqa: B018


def test_type_checkers_find_our_types() -> None:
    assert resources.files("rmsh").joinpath("py.typed").is_file()


def test_python_dash_m_runs_the_command() -> None:
    done = subprocess.run([sys.executable, "-m", "rmsh", "--help"], capture_output=True, text=True, check=True)
    assert "doctor" in done.stdout
