"""Registry: names are listed without importing, loaded when asked, extended by other packages."""

from __future__ import annotations

import math
from importlib.metadata import EntryPoint, EntryPoints
from typing import Any

import pytest

from rmsh.core import registry as registry_module
from rmsh.core.errors import ConfigError
from rmsh.core.registry import Registry

ROOTS = Registry("function", "rmsh.test", {"root": "math:sqrt", "absent": "no_such_module:thing"})


@pytest.fixture
def other_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another package that offers a function of its own, and one under a name of ours."""
    offered = EntryPoints([EntryPoint("power", "math:pow", "rmsh.test"), EntryPoint("root", "math:floor", "rmsh.test")])

    def entry_points(**wanted: Any) -> EntryPoints:
        return offered.select(**wanted)

    monkeypatch.setattr(registry_module, "entry_points", entry_points)


def test_names_are_sorted_and_import_nothing() -> None:
    assert list(ROOTS) == ROOTS.names() == ["absent", "root"]


def test_a_name_loads_its_object() -> None:
    assert ROOTS.load("root") is math.sqrt


@pytest.mark.usefixtures("other_package")
def test_other_packages_add_names() -> None:
    assert ROOTS.names() == ["absent", "power", "root"]
    assert ROOTS.load("power") is math.pow


@pytest.mark.usefixtures("other_package")
def test_our_names_cannot_be_taken_over() -> None:
    assert ROOTS.load("root") is math.sqrt


def test_a_misspelt_name_gets_a_suggestion() -> None:
    with pytest.raises(ConfigError, match=r"no function called 'rot'; did you mean 'root'\?"):
        ROOTS.load("rot")


def test_an_unknown_name_gets_the_list() -> None:
    with pytest.raises(ConfigError, match=r"no function called 'zzz'; known are absent, root\."):
        ROOTS.load("zzz")
