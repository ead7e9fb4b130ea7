"""Adapters without their libraries; tests/hub runs them over the real ones."""

from __future__ import annotations

import sys

import pytest

from rmsh.core.errors import ConfigError, MissingExtraError
from rmsh.features.extract import check_encoder, restore

LIBRARIES = ("timm", "open_clip", "open_clip-text", "sentence-transformers", "transformers", "transformers-text")


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_missing_library_names_the_extra(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in LIBRARIES:
        monkeypatch.setitem(sys.modules, name.replace("-", "_"), None)
    with pytest.raises(MissingExtraError, match=r"pip install .*\[hub\]"):
        restore({"name": f"{library}:model"})


def test_an_encoder_of_both_sides_has_one_name() -> None:
    for library in ("open_clip", "transformers"):
        kinds = [check_encoder(f"{library}:model", modality)[0] for modality in ("image", "text")]
        assert [kind.modality for kind in kinds] == ["image", "text"]
        assert [kind.library for kind in kinds] == [library, f"{library}-text"]
    with pytest.raises(ConfigError, match="timm:x encodes images and cannot encode texts"):
        check_encoder("timm:x", "text")
