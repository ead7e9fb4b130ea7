"""Base class of configurations: frozen pydantic models whose errors are one clear sentence."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from rmsh.core.errors import ConfigError


class Config(BaseModel):
    """An immutable configuration that rejects unknown keys and checks its values on construction."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True, allow_inf_nan=False)

    @classmethod
    def parse(cls, options: Mapping[str, Any]) -> Self:
        """Build a configuration from plain values; the first invalid one raises ConfigError."""
        try:
            return cls(**options)
        except ValidationError as error:
            raise ConfigError(_explain(cls, error)) from error


def _explain(cls: type[Config], error: ValidationError) -> str:
    """Turn pydantic's report into: the value received, what is allowed, what to do."""
    problem = error.errors()[0]
    name = ".".join(str(part) for part in problem["loc"])
    if problem["type"] == "extra_forbidden":
        near = difflib.get_close_matches(name, cls.model_fields, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"known options are {', '.join(sorted(cls.model_fields))}."
        return f"The option {name!r} is unknown; {hint}"
    reason = (problem["msg"][:1].lower() + problem["msg"][1:]).removeprefix("value error, ")
    if not name:  # the message of a rule over several options is already complete
        return reason
    return f"The option {name!r} got {problem['input']!r}; {reason}."
