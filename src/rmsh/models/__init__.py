"""The model that comes with rmsh: words find everyday photographs without any training. Its card is in ``coco``."""

from __future__ import annotations

from pathlib import Path

from rmsh.model import Model, load


def wheel_model() -> Model:
    """The model trained on MS COCO; its encoders are efficientnet-lite0 and minilm."""
    return load(Path(__file__).parent / "coco")
