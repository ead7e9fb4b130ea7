"""Reads one image safely, whatever its format: limits, rotation, colours; the result is plain 8-bit RGB.

What all encoders of pictures share: pictures are read and encoded side by side, and bad ones are named.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np
from PIL import Image

from rmsh.core.errors import DataError, ImageLimitError
from rmsh.core.progress import OnProgress, Progress, ignore
from rmsh.features.base import Unreadable, refuse
from rmsh.features.decoding import LimitExceededError, UnreadableError, processors, shared_decoder
from rmsh.features.pixels import FORMATS, TooLargeError, check_pixels, fitted, to_rgb

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rmsh.core.types import FloatArray, Modality

Picture: TypeAlias = "str | Path | bytes | Image.Image"  # a path, the content of a file, or an open image

MOST_BYTES = 256 << 20
MOST_PIXELS = 89_478_485  # where Pillow itself begins to warn; 256 MB as RGB


def read_picture(
    picture: Picture, size: tuple[int, int] | None = None, *, fit: int | None = None, most_pixels: int = MOST_PIXELS
) -> Image.Image:
    """Read an image as RGB, upright, as a person would see it.

    The first frame of an animation is taken, transparent parts become white, 16 bits become 8, and CMYK and palettes
    become RGB. A JPEG much larger than ``size`` is decoded at a fraction of its size, which is many times faster. Files
    are decoded in another process, which is stopped if it takes too long or too much memory.

    Args:
        picture: path, content of an image file, or open image.
        size: width and height to resize to; the image's own if None.
        fit: instead of ``size``, the side of a square to shrink the image into, keeping its proportions.
        most_pixels: an image with more is refused before it is decoded.

    Raises:
        ImageLimitError: the image is too large, or takes too much time or memory to decode.
        DataError: the file is missing, damaged, or not an image; the message names it.

    Example:
        >>> read_picture(Image.new("CMYK", (8, 6)), (4, 4))
        <PIL.Image.Image image mode=RGB size=4x4 ...>
    """
    return Image.fromarray(read_pixels(picture, size, fit=fit, most_pixels=most_pixels))


def read_pixels(
    picture: Picture, size: tuple[int, int] | None = None, *, fit: int | None = None, most_pixels: int = MOST_PIXELS
) -> NDArray[np.uint8]:
    """The same as an array, uint8 (height, width, 3)."""
    try:
        if isinstance(picture, Image.Image):
            return _open_pixels(picture, size, fit, most_pixels)
        return shared_decoder().decode(_checked_file(picture), size=size, fit=fit, most_pixels=most_pixels)
    except (LimitExceededError, TooLargeError) as error:
        raise _too_much(picture, error) from error
    except UnreadableError as error:
        raise _unreadable(picture, error) from error


def check_size(content: bytes, *, most_pixels: int) -> None:
    """Refuse the content of an image file if its header announces too many pixels; nothing is decoded.

    Raises:
        ImageLimitError: the image is too large.
        DataError: the header is damaged, or not that of an image.
    """
    try:
        shared_decoder().size(content, most_pixels=most_pixels)
    except LimitExceededError as error:
        raise _too_much(content, error) from error
    except UnreadableError as error:
        raise _unreadable(content, error) from error


def _open_pixels(
    picture: Image.Image, size: tuple[int, int] | None, fit: int | None, most_pixels: int
) -> NDArray[np.uint8]:
    """Pixels of an image that the caller has opened, and so trusts: it is loaded in this process."""
    check_pixels(picture, most_pixels)
    try:
        picture.load()
        rgb = to_rgb(picture, size)
        return np.array(rgb if fit is None else rgb.resize(fitted(rgb.size, fit), Image.Resampling.HAMMING))
    except Exception as error:  # damaged files make decoders raise anything
        raise UnreadableError(str(error).rstrip(".") or type(error).__name__) from error


def _checked_file(picture: str | Path | bytes) -> str | bytes:
    """What the decoder is given: not a pipe, which would block, and no more bytes than allowed."""
    if isinstance(picture, bytes):
        count = len(picture)
    elif not Path(picture).is_file():
        raise UnreadableError("there is no such file")
    else:
        count = Path(picture).stat().st_size
    if count > MOST_BYTES:
        raise LimitExceededError(f"it has {count >> 20} MB, and at most {MOST_BYTES >> 20} are allowed")
    return picture if isinstance(picture, bytes) else str(picture)


def _name(picture: Picture) -> str:
    return str(picture) if isinstance(picture, (str, Path)) else "The given file"


def _too_much(picture: Picture, error: Exception) -> ImageLimitError:
    return ImageLimitError(f"{_name(picture)} is refused as an image: {error}; give a smaller or simpler copy of it.")


def _unreadable(picture: Picture, error: Exception) -> DataError:
    formats = f"{', '.join(FORMATS[:-1])} or {FORMATS[-1]}"
    return DataError(f"{_name(picture)} cannot be read as an image: {error}; give a {formats} file.")


class PictureEncoder(ABC):
    """Turns pictures into features, a few at a time in each of several threads.

    Images are decoded in other processes and networks release the interpreter's lock, so that one image is read while
    another is computed, without a queue between them.
    """

    modality: ClassVar[Modality] = "image"
    batch: ClassVar[int] = 1  # pictures that pass the network together

    @property
    @abstractmethod
    def dim(self) -> int:
        """The number of features."""

    @abstractmethod
    def _read(self, picture: Picture) -> Any:
        """A picture as the network takes it; raises DataError where it cannot be read."""

    @abstractmethod
    def _embed(self, pictures: Sequence[Any]) -> FloatArray:
        """The network: features, float32 (n, dim)."""

    def encode(self, items: Sequence[Any], *, on_progress: OnProgress = ignore) -> FloatArray:
        """Features, float32 (n, dim), of pictures given as paths, bytes of files, or open pictures.

        Raises:
            DataError: some cannot be read; the message names the first ten.
        """
        features, unreadable = self.encode_readable(items, on_progress=on_progress)
        if unreadable:
            refuse(unreadable)
        return features

    def encode_readable(
        self, items: Sequence[Any], *, on_progress: OnProgress = ignore
    ) -> tuple[FloatArray, list[Unreadable]]:
        """Features, with zeros for pictures that cannot be read, and which those are."""
        start = time.perf_counter()
        features = np.zeros((len(items), self.dim), dtype=np.float32)
        unreadable: list[Unreadable] = []
        for first, part, reasons in self._parts(items):
            good = [row for row in range(first, first + len(reasons)) if reasons[row - first] is None]
            features[good] = part
            unreadable += [
                Unreadable(first + i, str(reason), isinstance(reason, ImageLimitError))
                for i, reason in enumerate(reasons)
                if reason is not None
            ]
            done = first + len(reasons)
            on_progress(Progress("encode pictures", done, len(items), "picture", time.perf_counter() - start))
        return features, unreadable

    def _parts(self, items: Sequence[Any]) -> Iterator[tuple[int, FloatArray, list[DataError | None]]]:
        """The first row, the features of those that could be read, and for each picture why not; in order."""
        starts = range(0, len(items), self.batch)
        if len(starts) == 1:  # a query starts no threads
            yield 0, *self._encode_part(items)
            return
        pool = ThreadPoolExecutor(processors(), thread_name_prefix="rmsh-pictures")
        try:
            parts = (items[first : first + self.batch] for first in starts)
            for first, (features, reasons) in zip(starts, pool.map(self._encode_part, parts), strict=True):
                yield first, features, reasons
        finally:
            pool.shutdown(cancel_futures=True)

    def _encode_part(self, items: Sequence[Any]) -> tuple[FloatArray, list[DataError | None]]:
        read: list[Any] = []
        reasons: list[DataError | None] = []
        for item in items:
            try:
                read.append(self._read(item))
                reasons.append(None)
            except DataError as error:
                reasons.append(error)
        return (self._embed(read) if read else np.empty((0, self.dim), np.float32)), reasons
