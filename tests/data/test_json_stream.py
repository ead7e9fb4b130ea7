"""Streamed JSON: the same members as the whole file has, however it is cut into pieces."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rmsh.core.errors import DataError
from rmsh.data.benchmarks import mscoco as json_stream
from rmsh.data.benchmarks.mscoco import stream_members

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def expected(value: dict[str, Any]) -> list[tuple[str, Any]]:
    return [(k, e) for k, v in value.items() for e in (v if isinstance(v, list) else [v])]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(value=st.dictionaries(st.text(), VALUES, max_size=4), chunk=st.integers(1, 9), indent=st.sampled_from([None, 2]))
def test_any_object_in_any_pieces_gives_its_members(tmp_path: Path, value, chunk, indent):
    (tmp_path / "a.json").write_text(json.dumps(value, indent=indent), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_stream, "CHUNK", chunk)
        assert list(stream_members(tmp_path / "a.json")) == expected(value)


def test_windows_line_ends_and_a_byte_order_mark_do_no_harm(tmp_path: Path):
    (tmp_path / "a.json").write_bytes(b'\xef\xbb\xbf{\r\n "a": [1,\r\n 2]\r\n}\r\n')
    assert list(stream_members(tmp_path / "a.json")) == [("a", 1), ("a", 2)]


@pytest.mark.parametrize("text", ["", "[1]", '{"a": [1', '{"a": [1 2]}', '{"a" 1}', '{"a": [{"b": "c'])
def test_what_is_not_whole_is_refused_with_its_place(tmp_path: Path, text):
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(DataError, match=r"a.json is not readable as JSON near character \d+ .*get it anew"):
        list(stream_members(tmp_path / "a.json"))


def test_bytes_that_are_no_text_are_refused(tmp_path: Path):
    (tmp_path / "a.json").write_bytes(b'{"a": "\xff"}')
    with pytest.raises(DataError, match="not readable as JSON"):
        list(stream_members(tmp_path / "a.json"))
