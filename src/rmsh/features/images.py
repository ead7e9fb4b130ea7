"""Reads one picture safely, whatever kind it is: limits, rotation, colours; the result is plain 8-bit RGB.

What all encoders of pictures share: pictures are read and encoded side by side, and bad ones are named.
"""

from __future__ import annotations

import io
import os
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

from rmsh.core.errors import DataError
from rmsh.core.progress import OnProgress, Progress, ignore
from rmsh.features.base import Unreadable, refuse

if TYPE_CHECKING:
    from rmsh.core.types import FloatArray, Modality

Picture: TypeAlias = "str | Path | bytes | Image.Image"  # a path, the content of a file, or a picture that is open

# Formats that Pillow decodes itself; of others, such as EPS, some start a program.
FORMATS = ("JPEG", "PNG", "GIF", "WEBP", "BMP", "TIFF", "PPM", "AVIF")
MOST_BYTES = 256 << 20
MOST_PIXELS = 89_478_485  # where Pillow itself begins to warn; 256 MB as RGB


def read_picture(
    picture: Picture, size: tuple[int, int] | None = None, *, most_pixels: int = MOST_PIXELS
) -> Image.Image:
    """Read a picture as RGB, upright, as a person would see it.

    Of an animation the first frame is taken, transparent parts become white, 16 bits become 8, and CMYK and palettes
    become RGB. A JPEG much larger than ``size`` is decoded at a fraction of its size, which is many times faster.

    Args:
        picture: a path, the bytes of a file, or an open picture.
        size: width and height to squeeze it to; its own where None.
        most_pixels: a picture of more is refused before it is decoded.

    Raises:
        DataError: it is missing, too large, damaged, or no picture; the message names the file.

    Example:
        >>> read_picture(Image.new("CMYK", (8, 6)), (4, 4))
        <PIL.Image.Image image mode=RGB size=4x4 ...>
    """
    try:
        if isinstance(picture, Image.Image):
            _check_pixels(picture, most_pixels)
            return _plain(picture, size)
        with Image.open(_checked_file(picture), formats=_formats()) as opened:
            _check_pixels(opened, most_pixels)
            if size is not None:
                # Twice the wanted size is left to the resizing, so that fine patterns are averaged, not skipped.
                opened.draft("RGB", (2 * size[0], 2 * size[1]))
            return _plain(opened, size)
    except Exception as error:  # damaged files make decoders raise anything
        raise DataError(_sentence(picture, error)) from error


class _RefusedError(Exception):
    """A reason of our own."""


def _checked_file(picture: str | Path | bytes) -> Any:
    """What Pillow opens; nothing that could block or grow without end, such as a pipe."""
    if isinstance(picture, bytes):
        count, opened = len(picture), io.BytesIO(picture)
    elif not Path(picture).is_file():
        raise _RefusedError("there is no such file")
    else:
        count, opened = Path(picture).stat().st_size, picture  # type: ignore[assignment]
    if count > MOST_BYTES:
        raise _RefusedError(f"it has {count >> 20} MB, allowed are {MOST_BYTES >> 20}")
    return opened


@cache
def _formats() -> tuple[str, ...]:
    Image.init()
    return tuple(name for name in FORMATS if name in Image.OPEN)


def _check_pixels(picture: Image.Image, most: int) -> None:
    width, height = picture.size
    if width * height > most:
        raise _RefusedError(f"it has {width} x {height} pixels, allowed are {most:,} in all")


def _plain(picture: Image.Image, size: tuple[int, int] | None) -> Image.Image:
    picture.load()
    colours = _as_rgb(_upright(picture))
    # Shrinks as well as bicubic in two thirds of the time.
    return colours if size is None else colours.resize(size, Image.Resampling.HAMMING)


def _upright(picture: Image.Image) -> Image.Image:
    """Turn the picture as its EXIF data says; damaged EXIF data is no reason to refuse a picture."""
    try:
        return ImageOps.exif_transpose(picture)
    except Exception:
        return picture


def _as_rgb(picture: Image.Image) -> Image.Image:
    if picture.mode.startswith(("I", "F")):
        return Image.fromarray(_eight_bits(picture)).convert("RGB")
    if not picture.has_transparency_data:
        return picture.convert("RGB")
    visible = picture.convert("RGBA")
    return Image.alpha_composite(Image.new("RGBA", visible.size, "white"), visible).convert("RGB")


def _eight_bits(picture: Image.Image) -> Any:
    """16-bit grey divided by 257; of numbers without a known white, such as floats, the range that occurs."""
    values: FloatArray = np.nan_to_num(np.asarray(picture, dtype=np.float32))
    low, high = (0.0, 65535.0) if picture.mode.startswith("I;16") else (float(values.min()), float(values.max()))
    return np.round((values - low) * (255 / max(high - low, 1e-12))).astype(np.uint8)


def _sentence(picture: Picture, error: Exception) -> str:
    name = str(picture) if isinstance(picture, (str, Path)) else "What was given"
    # Pillow's own sentence for an unknown format shows a Python object.
    unknown = isinstance(error, UnidentifiedImageError)
    reason = "it is none of the known formats" if unknown else str(error).rstrip(".") or type(error).__name__
    return f"{name} cannot be read as a picture: {reason}; give a {', '.join(FORMATS[:-1])} or {FORMATS[-1]} file."


class PictureEncoder(ABC):
    """Turns pictures into features, a few at a time in each of several threads.

    Decoders and networks release the interpreter's lock, so that one thread reads while another computes; no queue
    stands between.
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
            unreadable += [Unreadable(first + i, reason) for i, reason in enumerate(reasons) if reason is not None]
            done = first + len(reasons)
            on_progress(Progress("encode pictures", done, len(items), "picture", time.perf_counter() - start))
        return features, unreadable

    def _parts(self, items: Sequence[Any]) -> Iterator[tuple[int, FloatArray, list[str | None]]]:
        """The first row, the features of those that could be read, and for each picture why not; in order."""
        starts = range(0, len(items), self.batch)
        if len(starts) == 1:  # a query starts no threads
            yield 0, *self._encode_part(items)
            return
        pool = ThreadPoolExecutor(_processors(), thread_name_prefix="rmsh-pictures")
        try:
            parts = (items[first : first + self.batch] for first in starts)
            for first, (features, reasons) in zip(starts, pool.map(self._encode_part, parts), strict=True):
                yield first, features, reasons
        finally:
            pool.shutdown(cancel_futures=True)

    def _encode_part(self, items: Sequence[Any]) -> tuple[FloatArray, list[str | None]]:
        read: list[Any] = []
        reasons: list[str | None] = []
        for item in items:
            try:
                read.append(self._read(item))
                reasons.append(None)
            except DataError as error:
                reasons.append(str(error))
        return (self._embed(read) if read else np.empty((0, self.dim), np.float32)), reasons


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
