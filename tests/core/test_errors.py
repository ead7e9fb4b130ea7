"""Errors: one tree, exit codes for the command line, and the extra that brings what is missing."""

from __future__ import annotations

import inspect

import pytest

from rmsh.core import errors
from rmsh.core.errors import MissingExtraError, RmshError, TrainingError, require


def test_every_error_is_in_the_tree_and_in_its_drawing() -> None:
    classes = [item for _, item in inspect.getmembers(errors, inspect.isclass) if item.__module__ == errors.__name__]
    assert all(issubclass(item, RmshError) for item in classes)
    assert all(item.__name__ in (errors.__doc__ or "") for item in classes)
    assert {item.__name__ for item in classes} | {"require"} == set(errors.__all__)


def test_bad_input_exits_with_two_and_failed_learning_with_one() -> None:
    assert (errors.DataError("").exit_code, TrainingError("").exit_code) == (2, 1)


def test_wrong_input_is_a_value_error_too() -> None:
    assert issubclass(errors.ConfigError, ValueError)


def test_a_missing_module_names_the_extra_that_brings_it() -> None:
    with pytest.raises(MissingExtraError, match=r'no_such_module is not installed.*pip install "rmsh\[hdf5\]"'):
        require("no_such_module", "hdf5")
