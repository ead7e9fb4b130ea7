"""Read images safely as 8-bit RGB, make thumbnails, and the base class of image encoders."""

from __future__ import annotations

import io
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from rmsh.core.errors import DataError, ImageLimitError
from rmsh.core.progress import OnProgress, counter, ignore
from rmsh.core.types import FloatArray, Modality
from rmsh.features.base import Unreadable, refuse
from rmsh.features.decoding import processors, shared_decoder
from rmsh.features.decoding_worker import FORMATS, check_pixels, fitted, to_rgb

if TYPE_CHECKING:
    from rmsh.features.photo import Photo

ImageLike: TypeAlias = "str | Path | bytes | Image.Image"  # a path, the content of a file, or an open image

MOST_BYTES = 256 << 20
MOST_PIXELS = 89_478_485  # where Pillow itself begins to warn; 256 MB as RGB


def read_image(
    image: ImageLike, size: tuple[int, int] | None = None, *, fit: int | None = None, most_pixels: int = MOST_PIXELS
) -> Image.Image:
    """Read an image as upright RGB.

    The first frame of an animation is taken, transparent parts become white, 16 bits become 8, and CMYK and palettes
    become RGB. A JPEG much larger than ``size`` is decoded at a fraction of its size, which is many times faster. Files
    are decoded in another process, which is stopped if it takes too long or too much memory.

    Args:
        image: path, content of an image file, or open image.
        size: width and height to resize to; the image's own if None.
        fit: instead of ``size``, the side of a square to shrink the image into, keeping its proportions.
        most_pixels: an image with more is refused before it is decoded.

    Raises:
        ImageLimitError: the image is too large, or takes too much time or memory to decode.
        DataError: the file is missing, damaged, or not an image; the message names it.
    """
    return Image.fromarray(read_pixels(image, size, fit=fit, most_pixels=most_pixels))


def read_pixels(
    image: ImageLike, size: tuple[int, int] | None = None, *, fit: int | None = None, most_pixels: int = MOST_PIXELS
) -> NDArray[np.uint8]:
    """The same as an array, uint8 (height, width, 3)."""
    with _named_errors(image):
        if isinstance(image, Image.Image):
            return _open_pixels(image, size, fit, most_pixels)
        # Pipes, which would block, and files with too many bytes are refused here.
        if not isinstance(image, bytes) and not Path(image).is_file():
            raise DataError("there is no such file")
        count = len(image) if isinstance(image, bytes) else Path(image).stat().st_size
        if count > MOST_BYTES:
            raise ImageLimitError(f"it has {count >> 20} MB, and at most {MOST_BYTES >> 20} are allowed")
        source = image if isinstance(image, bytes) else str(image)
        return shared_decoder().decode(source, size=size, fit=fit, most_pixels=most_pixels)


def thumbnail(image: ImageLike, side: int, *, most_pixels: int = MOST_PIXELS) -> bytes:
    """A JPEG within a square of ``side``, made from the pixels, without metadata; raises as :func:`read_image`."""
    file = io.BytesIO()
    read_image(image, fit=side, most_pixels=most_pixels).save(file, "JPEG", quality=84, optimize=True)
    return file.getvalue()


def read_size(content: bytes, *, most_pixels: int) -> tuple[int, int]:
    """Width and height from the header of an image file, which is not decoded; raises as :func:`read_image` does."""
    with _named_errors(content):
        return shared_decoder().size(content, most_pixels=most_pixels)


def read_photo(image: str | Path | bytes) -> Photo:
    """When, where and with which camera an image was taken, and its look; raises as :func:`read_image` does."""
    with _named_errors(image):
        return shared_decoder().photo(str(image) if isinstance(image, Path) else image, most_pixels=MOST_PIXELS)


def _open_pixels(
    image: Image.Image, size: tuple[int, int] | None, fit: int | None, most_pixels: int
) -> NDArray[np.uint8]:
    """Pixels of an image that the caller has opened, and so trusts: it is loaded in this process."""
    check_pixels(image, most_pixels)
    try:
        image.load()
        rgb = to_rgb(image, size)
        return np.array(rgb if fit is None else rgb.resize(fitted(rgb.size, fit), Image.Resampling.HAMMING))
    except Exception as error:  # damaged files make decoders raise anything
        raise DataError(str(error).rstrip(".") or type(error).__name__) from error


@contextmanager
def _named_errors(image: ImageLike) -> Iterator[None]:
    """Add the name of the image, and what to do, to errors."""
    name = str(image) if isinstance(image, (str, Path)) else "The given file"
    try:
        yield
    except ImageLimitError as error:
        refused = f"{name} is refused as an image: {error}; give a smaller or simpler copy of it."
        raise ImageLimitError(refused) from error
    except DataError as error:
        formats = f"{', '.join(FORMATS[:-1])} or {FORMATS[-1]}"
        raise DataError(f"{name} cannot be read as an image: {error}; give a {formats} file.") from error


class ImageEncoder(ABC):
    """Encodes images in small batches in several threads.

    Images are decoded in other processes and networks release the interpreter's lock, so one image is read while
    another is encoded, without a queue between them.
    """

    modality: ClassVar[Modality] = "image"
    batch: ClassVar[int] = 1  # images that pass through the network together

    @cached_property
    def dim(self) -> int:
        """Number of features; measured on a grey image, unless a class states it."""
        return int(self._embed([self._read(Image.new("RGB", (64, 64), "grey"))]).shape[1])

    @abstractmethod
    def _read(self, image: ImageLike) -> Any:
        """An image as the network expects it; raises DataError if it cannot be read."""

    @abstractmethod
    def _embed(self, images: Sequence[Any]) -> FloatArray:
        """The network: features, float32 (n, dim)."""

    def encode(self, items: Sequence[Any], *, on_progress: OnProgress = ignore) -> FloatArray:
        """Features, float32 (n, dim), of images; DataError if some cannot be read, with the first ten of them."""
        features, unreadable = self.encode_readable(items, on_progress=on_progress)
        if unreadable:
            refuse(unreadable)
        return features

    def encode_readable(
        self, items: Sequence[Any], *, on_progress: OnProgress = ignore
    ) -> tuple[FloatArray, list[Unreadable]]:
        """Features with zeros for images that cannot be read, and the list of these."""
        report = counter(on_progress, "encode images", len(items), "image")
        features = np.zeros((len(items), self.dim), dtype=np.float32)
        unreadable: list[Unreadable] = []

        def encode_batch(rows: range) -> list[Unreadable]:
            read, errors = {}, []
            for row in rows:
                try:
                    read[row] = self._read(items[row])
                except DataError as error:
                    errors.append(Unreadable(row, str(error), isinstance(error, ImageLimitError)))
            if read:
                features[list(read)] = self._embed(list(read.values()))
            return errors

        batches = [range(len(items))[first : first + self.batch] for first in range(0, len(items), self.batch)]
        pool = ThreadPoolExecutor(processors(), thread_name_prefix="rmsh-images")  # starts no thread before it is used
        encode_all = pool.map if len(batches) > 1 else map
        try:
            for rows, errors in zip(batches, encode_all(encode_batch, batches), strict=True):
                unreadable += errors
                report(rows.stop)
        finally:
            pool.shutdown(cancel_futures=True)
        return features, unreadable
