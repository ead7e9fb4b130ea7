"""Features: frozen encoders that turn images and texts into vectors, and where their weights come from."""

from __future__ import annotations

from rmsh.core.registry import Registry

__all__ = ["ENCODERS"]

# "NAME" stands for the name of a model of that library, such as timm:resnet152, or for a file. If an encoder of texts
# belongs to an encoder of images, it has its name with "-text".
ENCODERS = Registry(
    "encoder",
    "rmsh.encoders",
    {
        "efficientnet-lite0": "rmsh.features.efficientnet:EfficientNet",
        "minilm": "rmsh.features.minilm:MiniLM",
        "bag-of-words": "rmsh.features.bag_of_words:BagOfWords",
        "timm:NAME": "rmsh.features.adapters:Timm",
        "open_clip:NAME": "rmsh.features.adapters:OpenClip",
        "open_clip-text:NAME": "rmsh.features.adapters:OpenClipText",
        "sentence-transformers:NAME": "rmsh.features.adapters:SentenceTransformers",
        "transformers:NAME": "rmsh.features.adapters:Transformers",
        "transformers-text:NAME": "rmsh.features.adapters:TransformersText",
        "onnx:NAME": "rmsh.features.onnx_pair:OnnxImages",
        "onnx-text:NAME": "rmsh.features.onnx_pair:OnnxTexts",
    },
)
