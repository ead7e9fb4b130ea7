"""Image encoding speed: ours and the published torch model, on the same photographs, in turns.

Both start from JPEG files. The torch side decodes with Pillow and is measured with several batch sizes.
"""

from __future__ import annotations

import tarfile
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from efficientnet_lite_pytorch import EfficientNet as Reference
from PIL import Image

from lab.data import coco66k_root, write_measurement
from rmsh.features.efficientnet import EfficientNet
from rmsh.features.weights import locate

if TYPE_CHECKING:
    from collections.abc import Callable

    from rmsh.core.types import FloatArray

ROUNDS = 5
IMAGES = 128  # per round
BATCHES = (1, 4, 8, 16, 32)
PAUSE = 0.5  # seconds, until the threads of the previous encoder stop spinning


def main() -> None:
    """Measure, write the result and print the table."""
    with tempfile.TemporaryDirectory() as folder:
        paths = _unpack(Path(folder), ROUNDS * IMAGES)
        result = measure(paths)
    write_measurement("speed/images", result)
    print("          |   images/s | ours is faster by")
    print(f"ours      | {result['ours']:10.0f} |")
    for batch, rate in result["torch"].items():
        print(f"torch, {batch:>2} | {rate:10.0f} | {result['ours'] / rate:.1f}")
    print(f"largest difference of a feature: {result['difference']:.1e}")


def _unpack(folder: Path, count: int) -> list[str]:
    with tarfile.open(Path(coco66k_root()) / "images.tar") as tar:
        members = tar.getmembers()[:count]
        tar.extractall(folder, members, filter="data")
    return [str(folder / member.name) for member in members]


def measure(paths: list[str]) -> dict[str, Any]:
    """Images per second, medians over rounds in which all encode the same images in turns."""
    ours, network = EfficientNet(), _reference()
    encoders: dict[str, Callable[[list[str]], FloatArray]] = {"ours": ours.encode}
    encoders |= {str(batch): lambda part, size=batch: _plain(network, part, size) for batch in BATCHES}  # type: ignore[misc]
    seconds: dict[str, list[float]] = {name: [] for name in encoders}
    difference = 0.0
    for encode in encoders.values():  # the first call builds networks and starts threads
        encode(paths[:2])
    for first in range(0, len(paths), IMAGES):
        found = {}
        for name, encode in encoders.items():
            time.sleep(PAUSE)
            start = time.perf_counter()
            found[name] = encode(paths[first : first + IMAGES])
            seconds[name].append(time.perf_counter() - start)
        difference = max(difference, float(np.abs(found["ours"] - found[str(BATCHES[0])]).max()))
    rates = {name: IMAGES / median(times) for name, times in seconds.items()}
    mine = rates.pop("ours")
    return {
        "threads": torch.get_num_threads(),
        "pictures": len(paths),
        "ours": mine,
        "torch": rates,
        "difference": difference,
    }


def _reference() -> Any:
    network = Reference.from_name("efficientnet-lite0").eval()
    network.load_state_dict(torch.load(locate("efficientnet-lite0"), weights_only=True))
    return network


def _plain(network: Any, paths: list[str], batch: int) -> FloatArray:
    parts = []
    for first in range(0, len(paths), batch):
        pixels = np.stack([_pixels(path) for path in paths[first : first + batch]])
        inputs = torch.from_numpy((pixels - 127) / 128).permute(0, 3, 1, 2)
        with torch.inference_mode():
            parts.append(network.extract_features(inputs).mean((2, 3)).numpy())
    return np.concatenate(parts)


def _pixels(path: str) -> FloatArray:
    with Image.open(path) as image:
        squeezed = image.convert("RGB").resize((224, 224), Image.Resampling.HAMMING)
        return np.asarray(squeezed, dtype=np.float32)
