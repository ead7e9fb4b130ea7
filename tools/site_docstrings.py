"""How docstrings are read for the site: an example is code, and a role such as :class: is only its name."""

from __future__ import annotations

import re
from typing import Any

import griffe


class PlainDocstrings(griffe.Extension):
    """Rewrite docstrings into what the Google style of griffe understands."""

    def on_object(self, *, obj: Any, **_: Any) -> None:
        """Called for every module, class, function and attribute that has been read."""
        if obj.docstring is not None:
            text = re.sub(r"(?m)^Example:$", "Examples:", obj.docstring.value)
            obj.docstring.value = re.sub(r":\w+:`~?([^`]+)`", r"`\1`", text)
