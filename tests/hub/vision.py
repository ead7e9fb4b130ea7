"""Import torchvision next to a torch without CUDA.

PyPI has torchvision for Linux only as a CUDA build. Without CUDA, its operators are not loaded, and its import fails,
because it looks two of them up by name. With these names declared it can be imported; the transformations of images,
which timm, open_clip and transformers use, need no operator. PyTorch's own index has a build that needs none of this.
"""

from __future__ import annotations

import torch

DECLARED = None
try:
    import torchvision
except RuntimeError:
    DECLARED = torch.library.Library("torchvision", "DEF")  # which lasts as long as this module
    for name in ("nms", "qnms"):
        DECLARED.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    import torchvision  # noqa: F401
