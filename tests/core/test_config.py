"""Config: frozen, without unknown keys, and its errors are one sentence."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import Field, ValidationError, model_validator

from rmsh.core.config import Config
from rmsh.core.errors import ConfigError


class Recipe(Config):
    epochs: int = Field(default=10, ge=1)
    rate: float = 0.1
    first: int = 0
    last: int = 5

    @model_validator(mode="after")
    def _in_order(self) -> Recipe:
        if self.first > self.last:
            raise ValueError(f"first is {self.first} and last {self.last}; give first <= last.")
        return self


def test_options_that_are_not_given_have_their_defaults() -> None:
    assert Recipe.parse({"epochs": 3}) == Recipe(epochs=3, rate=0.1, first=0, last=5)


def test_a_configuration_cannot_be_changed() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        Recipe().epochs = 4  # type: ignore[misc]


@pytest.mark.parametrize(
    ("options", "pattern"),
    [
        ({"epoch": 3}, r"'epoch' .*'epochs'"),
        ({"zzz": 3}, r"'zzz' .*epochs, first, last, rate"),
        ({"epochs": 0}, r"'epochs' got 0; .*greater than or equal to 1"),
        ({"rate": float("nan")}, r"'rate' got nan; .*finite"),
        ({"first": 9}, r"^first is 9 and last 5; give first <= last\.$"),
    ],
    ids=["misspelt", "unknown", "out of range", "not finite", "rule over two"],
)
def test_a_wrong_option_is_one_sentence(options: dict[str, Any], pattern: str) -> None:
    with pytest.raises(ConfigError, match=pattern):
        Recipe.parse(options)
