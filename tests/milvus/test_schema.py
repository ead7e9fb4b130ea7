"""The description of a collection: what rmsh writes there, it reads; all else is refused."""

from __future__ import annotations

import json

import pytest

from rmsh.core.errors import FormatError
from rmsh.milvus.table import about_text, read_about


def test_what_is_written_is_read() -> None:
    assert read_about(about_text({"bits": 64, "model": 'a "b"'}), "photos")["model"] == 'a "b"'


@pytest.mark.parametrize("description", ["", "photos of my cat", "[]", "{}", '{"format": "rmsh index"}'])
def test_a_collection_of_another_program_is_refused(description: str) -> None:
    with pytest.raises(FormatError, match="photos is not of the format 'rmsh collection'; it is of another program"):
        read_about(description, "photos")


@pytest.mark.parametrize("version", [2, "1", None])
def test_a_collection_of_a_newer_rmsh_is_refused(version: object) -> None:
    written = json.dumps({"format": "rmsh collection", "version": version})
    with pytest.raises(FormatError, match="this rmsh reads up to version 1; update rmsh"):
        read_about(written, "photos")
