"""What a builder may decide; everything has a default that suits a folder of pictures on a laptop."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from rmsh.codes import MAX_BITS
from rmsh.config import Config

__all__ = ["BuildConfig"]


class BuildConfig(Config):
    """Options of :func:`rmsh.builder.build`."""

    method: str = Field("glint", description="what learns, see `rmsh methods`")
    bits: int = Field(64, ge=1, le=MAX_BITS, description="length of a code")
    seed: int = Field(0, ge=0, description="everything random follows from it")
    labels_from: str | None = Field(None, description='"data", "text", or a file of classes; None: data, else text')
    image_encoder: str = Field("efficientnet-lite0", description="turns pictures into features")
    text_encoder: str = Field("minilm", description="turns texts into features")
    strict: bool = Field(False, description="stop over what would be left out")
    options: Mapping[str, Any] = Field(default_factory=dict, description="further options of the method")
