"""The process that decodes images under limits: requests arrive on its standard input, answers leave on its output.

It ends when its input ends, that is, with the process that started it. Its processor time per image and its memory are
limited here, where the system can do so; :mod:`rmsh.features.decoding` limits the elapsed time from outside.

A request is REQUEST, then as many bytes as its ``length``: a path, or the content of an image file. An answer is
ANSWER, then the RGB bytes of an image of that width and height, or a text, whose length in bytes stands in place of the
width: a reason, or facts as JSON. Nothing is unpickled on either side.
"""

from __future__ import annotations

import io
import json
import os
import signal
import struct
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from PIL import Image, UnidentifiedImageError

from rmsh.core.errors import ImageLimitError
from rmsh.core.files import open_regular
from rmsh.features.pixels import decode, image_size, photo_facts, strips

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


def _opened(content: bytes, is_path: bool) -> IO[bytes]:
    return open_regular(Path(os.fsdecode(content))) if is_path else io.BytesIO(content)


def _answer(head: bytes, requests: IO[bytes], answers: IO[bytes], seconds: float) -> bool:
    """Answer one request; False if this process should be replaced."""
    kind, is_path, width, height, fit, most_pixels, length = REQUEST.unpack(head)
    content, text, exhausted = requests.read(length), "", False
    image: Image.Image | None = None
    try:
        with _processor_time(seconds), _opened(content, is_path) as file:
            if kind == PIXELS:
                size = (width, height) if width else None
                image = decode(file, size=size, fit=fit or None, most_pixels=most_pixels)
                width, height = image.size
            elif kind == MEASURED:
                width, height = image_size(file, most_pixels=most_pixels)
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
