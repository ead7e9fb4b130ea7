"""Registry: names are listed without importing, loaded on use, extended by other packages."""

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
    """Another package that adds a function, and one under a built-in name."""
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
def test_built_in_names_cannot_be_replaced() -> None:
    assert ROOTS.load("root") is math.sqrt


def test_a_name_can_be_added_to_the_process() -> None:
    roots = Registry("function", "rmsh.test", {"root": "math:sqrt"})
    roots.add("cube", "math:cbrt")
    assert (roots.names(), roots.added) == (["cube", "root"], {"cube": "math:cbrt"})
    assert roots.load("cube") is math.cbrt


def test_a_misspelt_name_gets_a_suggestion() -> None:
    with pytest.raises(ConfigError, match=r"'rot'.*'root'"):
        ROOTS.load("rot")


def test_an_unknown_name_gets_the_list() -> None:
    with pytest.raises(ConfigError, match=r"'zzz'.*absent, root"):
        ROOTS.load("zzz")
