"""Encoders whose weights come in a package: what they are known by, and what a change of it does."""

from __future__ import annotations

import pytest

from rmsh.core.errors import FormatError
from rmsh.features.efficientnet import EfficientNet
from rmsh.features.minilm import MiniLM
from rmsh.features.packaged import PackagedEncoder

BOTH = [(EfficientNet, "843a097ce7c87daa"), (MiniLM, "8200fd5dc730ddb2")]


@pytest.mark.parametrize(("kind", "fingerprint"), BOTH)
def test_models_that_are_in_use_find_their_encoder_again(kind: type[PackagedEncoder], fingerprint: str) -> None:
    assert kind.prepare(["any"]).describe() == {"name": kind.name, "fingerprint": fingerprint}
    assert kind.restore({"name": kind.name, "fingerprint": fingerprint}).fingerprint == fingerprint


@pytest.mark.parametrize("kind", [kind for kind, _ in BOTH])
def test_another_preprocessing_is_another_encoder(kind: type[PackagedEncoder], monkeypatch: pytest.MonkeyPatch) -> None:
    described = kind().describe()
    monkeypatch.setattr(kind, "preprocessing", "another")
    with pytest.raises(FormatError, match=f"made by {kind.name} {described['fingerprint']}, at hand is "):
        kind.restore(described)
