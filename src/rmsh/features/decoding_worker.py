"""The process that decodes images under limits: requests arrive on its standard input, answers leave on its output.

It ends when its input ends, that is, with the process that started it. Its processor time per image and its memory are
limited here, where the system can do so; :mod:`rmsh.features.decoding` limits the elapsed time from outside.

A request is REQUEST, then as many bytes as its ``length``: a path, or the content of an image file. An answer is
ANSWER, then the RGB bytes of an image of that width and height, or a text, whose length in bytes stands in place of the
width: a reason, or facts as JSON. Nothing is unpickled on either side.

The functions that turn one image file into upright 8-bit RGB are here, too; they import little more than Pillow and
numpy.
"""

from __future__ import annotations

import io
import json
import os
import signal
import struct
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import IO, Any

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

from rmsh.core.errors import ImageLimitError, MissingExtraError, install_command
from rmsh.core.files import open_regular
from rmsh.core.types import FloatArray
from rmsh.features.photo import describe

REQUEST = struct.Struct("<BBIIIQQ")  # wanted kind, path or content, width, height, fit, most pixels, length
ANSWER = struct.Struct("<BBII")  # kind, whether this process ends now, width or length of the text, height
READY, PIXELS, MEASURED, DESCRIBED, REFUSED, UNREADABLE = range(6)
_MOST_KEPT = 192 << 20  # bytes; a process that still holds more after an image is replaced
_LONGEST_REASON = 1000  # characters


def main() -> None:
    """Answer requests until the input ends; the arguments are seconds of processor time and bytes of memory."""
    seconds, memory = float(sys.argv[1]), int(sys.argv[2])
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    with open(os.devnull, "r+b") as nothing:  # a decoder that prints must not disturb the answers
        os.dup2(nothing.fileno(), 0)
        os.dup2(nothing.fileno(), 1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent decides what ends
    if hasattr(os, "nice"):
        os.nice(5)  # an image that is hard to decode must not slow down the process that waits for it
    warnings.simplefilter("ignore")
    Image.MAX_IMAGE_PIXELS = None  # our own limit is checked instead
    Image.init()
    with suppress(ImportError):  # before Pillow 11.3
        from PIL import AvifImagePlugin

        AvifImagePlugin.DEFAULT_MAX_THREADS = 1
    _limit_memory(memory)
    answers.write(ANSWER.pack(READY, False, 0, 0))
    answers.flush()
    with suppress(BrokenPipeError):  # the parent has ended
        while len(head := requests.read(REQUEST.size)) == REQUEST.size:
            if not _answer(head, requests, answers, seconds):
                break


def _limit_memory(count: int) -> None:
    """Limit the growth of this process in bytes; without effect on systems that cannot (Windows, macOS)."""
    with suppress(ImportError, OSError, ValueError):
        import resource

        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
        most = pages * resource.getpagesize() + count
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


@contextmanager
def _processor_time(seconds: float) -> Iterator[None]:
    """Let the system end this process by SIGPROF when the block has used so much processor time."""
    if not hasattr(signal, "ITIMER_PROF"):
        yield
        return
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def _answer(head: bytes, requests: IO[bytes], answers: IO[bytes], seconds: float) -> bool:
    """Answer one request; False if this process should be replaced."""
    kind, is_path, width, height, fit, most_pixels, length = REQUEST.unpack(head)
    content, text, exhausted = requests.read(length), "", False
    image: Image.Image | None = None
    try:
        opened: IO[bytes] = open_regular(Path(os.fsdecode(content))) if is_path else io.BytesIO(content)
        with _processor_time(seconds), opened as file:
            if kind == PIXELS:
                size = (width, height) if width else None
                image = decode(file, size=size, fit=fit or None, most_pixels=most_pixels)
                width, height = image.size
            elif kind == MEASURED:
                with _open(file, most_pixels) as header:
                    width, height = header.size
            else:
                text = json.dumps(photo_facts(file, most_pixels=most_pixels))
    except MemoryError:
        kind, exhausted = REFUSED, True
    except ImageLimitError as error:
        kind, text = REFUSED, str(error)[:_LONGEST_REASON]
    except UnidentifiedImageError:  # Pillow's own sentence shows a Python object
        kind, text = UNREADABLE, "its format is not recognized"
    except Exception as error:  # damaged files make decoders raise anything
        exhausted = "out of memory" in str(error).lower()
        kind = REFUSED if exhausted else UNREADABLE
        text = "" if exhausted else str(error).rstrip(".")[:_LONGEST_REASON] or type(error).__name__
    # Known before the pixels are sent: what is kept beyond the image itself.
    last = exhausted or _holds_too_much()
    if kind in (PIXELS, MEASURED):
        answers.write(ANSWER.pack(kind, last, width, height))
    else:
        encoded = text.encode(errors="replace")
        answers.write(ANSWER.pack(kind, last, len(encoded), 0) + encoded)
    if image is not None:
        for strip in strips(image):
            answers.write(strip.tobytes())
    answers.flush()
    return not last


def _holds_too_much() -> bool:
    try:
        resident = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
        return resident * os.sysconf("SC_PAGE_SIZE") > _MOST_KEPT
    except OSError:
        return False


# Formats that Pillow decodes itself; some of the others, such as EPS, start a program.
FORMATS = ("JPEG", "PNG", "GIF", "WEBP", "BMP", "TIFF", "PPM", "AVIF", "HEIF")
MOST_SIDE = 65_535  # pixels; the most a JPEG can have. Resizing a longer line takes gigabytes.
_HEIF = {b"ftyp" + brand for brand in (b"heic", b"heix", b"hevc", b"mif1", b"msf1")}  # bytes 4 to 11 of a file
_STRIP = 1 << 20  # pixels that are converted at a time, so that a large image is never held in several copies
_LOOK_SIDE = 128  # pixels; enough for the look of an image, and decoded fast
_ORIENTATION = 0x0112
_SWAPS_SIDES = {5, 6, 7, 8}  # EXIF orientations that exchange width and height


def decode(
    file: IO[bytes], *, size: tuple[int, int] | None = None, fit: int | None = None, most_pixels: int
) -> Image.Image:
    """The first frame of a file as upright RGB, see :func:`rmsh.features.images.read_image`; raises as Pillow does."""
    with _open(file, most_pixels) as opened:
        if fit is not None:
            size = fitted(_upright_size(opened), fit)
        if size is not None:
            # Decode a JPEG at a fraction of its size, but at least at twice the wanted size: resizing then averages
            # fine patterns, which skipping pixels would distort.
            opened.draft("RGB", (2 * size[0], 2 * size[1]))
        opened.load()
        return to_rgb(opened, size)


def photo_facts(file: IO[bytes], *, most_pixels: int) -> dict[str, Any]:
    """The metadata of an image file, as plain values (:mod:`rmsh.features.photo`)."""
    with _open(file, most_pixels) as opened:
        size = _upright_size(opened)
        opened.draft("RGB", (_LOOK_SIDE, _LOOK_SIDE))
        opened.load()
        return describe(opened, size, look=to_rgb(opened, (_LOOK_SIDE, _LOOK_SIDE)))


def _open(file: IO[bytes], most_pixels: int) -> Image.Image:
    """An image of which only the header was read; ImageLimitError if it has too many pixels."""
    try:
        image = Image.open(file, formats=_formats())
    except UnidentifiedImageError:
        file.seek(4)
        if file.read(8) in _HEIF and "HEIF" not in _formats():
            raise MissingExtraError(f"HEIC images need another package; run: {install_command('photos')}") from None
        raise
    check_pixels(image, most_pixels)
    return image


@cache
def _formats() -> tuple[str, ...]:
    Image.init()
    with suppress(ImportError):
        import pi_heif

        pi_heif.register_heif_opener()
    return tuple(name for name in FORMATS if name in Image.OPEN)


def check_pixels(image: Image.Image, most: int) -> None:
    """Raise ImageLimitError if an image has too many pixels, or is too long for its width."""
    width, height = image.size
    if min(width, height) < 1:
        raise ValueError(f"it has {width} x {height} pixels")
    if width * height > most:
        raise ImageLimitError(f"it has {width} x {height} pixels, and at most {most:,} in all are allowed")
    if max(width, height) > MOST_SIDE:
        raise ImageLimitError(f"it has {width} x {height} pixels, and at most {MOST_SIDE:,} per side are allowed")


def fitted(size: tuple[int, int], side: int) -> tuple[int, int]:
    """Width and height shrunk in proportion to fit a square of ``side``; smaller sizes stay as they are.

    Example:
        >>> fitted((4000, 3000), 320), fitted((100, 50), 320), fitted((9000, 1), 320)
        ((320, 240), (100, 50), (320, 1))
    """
    scale = min(1.0, side / max(size))
    return max(round(size[0] * scale), 1), max(round(size[1] * scale), 1)


def _upright_size(image: Image.Image) -> tuple[int, int]:
    width, height = image.size
    return (height, width) if _orientation(image) in _SWAPS_SIDES else (width, height)


def _orientation(image: Image.Image) -> int:
    """EXIF orientation, 1 to 8; damaged EXIF data counts as 1."""
    try:
        value = image.getexif().get(_ORIENTATION, 1)
        return value if value in range(1, 9) else 1
    except Exception:
        return 1


def to_rgb(image: Image.Image, size: tuple[int, int] | None = None) -> Image.Image:
    """An open image as upright RGB, resized if a size is given; without changes, the image itself."""
    if _orientation(image) != 1:  # exif_transpose would copy an upright one
        with suppress(Exception):  # the rest of the EXIF data may be damaged
            image = ImageOps.exif_transpose(image)
    colours = _as_rgb(image)
    # Hamming shrinks as well as bicubic in two thirds of the time.
    return colours if size is None else colours.resize(size, Image.Resampling.HAMMING)


def _as_rgb(image: Image.Image) -> Image.Image:
    if image.mode.startswith(("I", "F")):
        low, high = _range(image)
        scale = 255 / max(high - low, 1e-12)

        def to_grey(strip: Image.Image) -> Image.Image:
            return Image.fromarray(np.round((_values(strip) - low) * scale).astype(np.uint8)).convert("RGB")

        return _by_strips(image, to_grey)
    if image.has_transparency_data:
        return _by_strips(image, _on_white)
    return image if image.mode == "RGB" else image.convert("RGB")


def _on_white(image: Image.Image) -> Image.Image:
    visible = image.convert("RGBA")
    return Image.alpha_composite(Image.new("RGBA", visible.size, "white"), visible).convert("RGB")


def _range(image: Image.Image) -> tuple[float, float]:
    """The values that become black and white: known for 16-bit grey, otherwise the extremes that occur."""
    if image.mode.startswith("I;16"):
        return 0.0, 65535.0
    found = [(float(values.min()), float(values.max())) for values in map(_values, strips(image))]
    return min(low for low, _ in found), max(high for _, high in found)


def _values(image: Image.Image) -> FloatArray:
    values: FloatArray = np.nan_to_num(np.asarray(image, dtype=np.float32))
    return values


def _by_strips(image: Image.Image, convert: Callable[[Image.Image], Image.Image]) -> Image.Image:
    """Convert to RGB with a function that treats each pixel alone, a strip at a time to bound memory."""
    whole, top = Image.new("RGB", image.size), 0
    for strip in strips(image):
        whole.paste(convert(strip), (0, top))
        top += strip.height
    return whole


def strips(image: Image.Image) -> Iterator[Image.Image]:
    """An image cut into strips of about a million pixels, from top to bottom."""
    width, height = image.size
    rows = max(1, _STRIP // max(width, 1))
    if rows >= height:
        yield image
        return
    for top in range(0, height, rows):
        yield image.crop((0, top, width, min(top + rows, height)))
