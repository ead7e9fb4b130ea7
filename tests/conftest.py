"""Fixtures: a cache of their own, real data where it is there, and a small library whose hits anybody can foretell."""

from __future__ import annotations

import io
import os
import re
import struct
import uuid
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

# Tests are small: a second thread would cost more in waiting than it brings, above all on a busy machine.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np  # after the threads are limited
import pytest
from PIL import Image, features

from rmsh.codes import Codes
from rmsh.core.types import FloatArray, Modality
from rmsh.features import ENCODERS
from rmsh.features.bag_of_words import BagOfWords
from rmsh.features.images import ImageEncoder, ImageLike, read_image
from rmsh.hash_function import HashFunction, Layer
from rmsh.library import Item, Library
from rmsh.model import Model

PROJECT = Path(__file__).resolve().parent.parent
SHARED_DATA = PROJECT.parent / "shared" / "data"


def _folder(name: str) -> Path:
    folder = SHARED_DATA / name
    if not folder.is_dir():
        pytest.skip(f"the data set {name} is not at ../shared/data/{name} beside the project")
    return folder


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What tests encode is kept for one run and away from the user: pictures drawn anew are never found again."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RMSH_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session")
def coco66k_root() -> Path:
    """The folder of the 61,903 MS COCO pairs."""
    return _folder("coco66k")


@pytest.fixture(scope="session")
def mirflickr_root() -> Path:
    """The folder of the MIRFLICKR-25K label and tag matrices."""
    return _folder("mirflickr25k")


@pytest.fixture(scope="session")
def milvus_server() -> str:
    """The server that tests ask, as in http://127.0.0.1:19530."""
    server = os.environ.get("MILVUS_URI")
    if not server:
        pytest.skip("no Milvus server is named by MILVUS_URI; `make test-milvus` starts one")
    return server.rstrip("/")


@pytest.fixture(scope="session")
def new_address(milvus_server: str) -> Iterator[Callable[[], str]]:
    """Addresses of collections that are not there yet; what is made under them is dropped at the end."""
    from rmsh.milvus.connection import Settings, connect

    names: list[str] = []

    def make() -> str:
        names.append(f"rmsh_test_{uuid.uuid4().hex}")
        return f"{milvus_server}/{names[-1]}"

    yield make
    client = connect(milvus_server, Settings.read())
    for name in names:
        client.drop_alias(name)  # whether it is there or not
    for name in client.list_collections():
        if re.sub("_[0-9a-f]{16}$", "", name) in names:
            client.drop_collection(name)
    client.close()


@pytest.fixture(scope="session")
def hostile_images() -> dict[str, bytes]:
    """Small files that take a decoder very long, or very much memory."""
    return {
        "progressive": _progressive_jpeg(7000, scans=2000),
        "long": _long_png(50_000_000),
        "comment": b"P6\n#" + b"a" * (15 << 20) + b"\n8 8\n255\n" + bytes(192),
        "avif": _large_avif(4000),
    }


def _progressive_jpeg(side: int, *, scans: int) -> bytes:
    """A progressive JPEG that claims to be large, with scans that hold nothing but are passed over pixel by pixel."""
    file = io.BytesIO()
    Image.new("L", (8, 8), 90).save(file, "JPEG", progressive=True)
    content, position = file.getvalue(), 2
    header, scan = b"\xff\xd8", b""
    while position < len(content) - 2:
        marker, length = content[position + 1], int.from_bytes(content[position + 2 : position + 4], "big")
        segment = bytearray(content[position : position + 2 + length])
        position += len(segment)
        if marker == 0xC2:  # the frame: height and width
            segment[5:9] = side.to_bytes(2, "big") * 2
        if marker == 0xDA:
            scan = bytes(segment)
            position = content.index(b"\xff", position)
        else:
            header += bytes(segment)
    return header + scan * scans + b"\xff\xd9"


def _long_png(height: int) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", 1, height, 8, 0, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(bytes(2 * height), 1)) + chunk(b"IEND", b"")


def _large_avif(side: int) -> bytes:
    if not features.check("avif"):
        return b""
    file = io.BytesIO()
    Image.new("RGB", (side, side)).save(file, "AVIF", speed=10)
    return file.getvalue()


class MeanColour(ImageEncoder):
    """An encoder of pictures that needs no weights: how red, green and blue a picture is."""

    name: ClassVar[str] = "mean-colour"
    batch = 1 << 10
    dim = 3
    fingerprint = "0"

    @classmethod
    def prepare(cls, items: Sequence[str]) -> MeanColour:
        return cls()

    def describe(self) -> dict[str, Any]:
        return {"name": self.name}

    @classmethod
    def restore(cls, description: Mapping[str, Any]) -> MeanColour:
        return cls()

    def _read(self, image: ImageLike) -> FloatArray:
        return np.asarray(read_image(image), np.float32).mean(axis=(0, 1)) / 255

    def _embed(self, pictures: Sequence[FloatArray]) -> FloatArray:
        return np.array(pictures, dtype=np.float32)


COLOURS = {"black": "", "red": "red", "green": "green", "blue": "blue"} | {
    "yellow": "red and green",
    "magenta": "red and blue",
    "cyan": "green and blue",
    "white": "red, green and blue",
}
_LIGHTS = ("red", "green", "blue")


def colour_model(repeats: int = 4) -> Model:
    """A picture and the words for the lights it is made of have the same code: one bit a light, so many times over."""
    layer = Layer(np.tile(np.eye(3, dtype=np.float32), repeats), np.full(3 * repeats, -0.5, np.float32), "none")
    encoders = {"image": MeanColour().describe(), "text": BagOfWords(_LIGHTS).describe()}
    return Model({m: HashFunction((layer,)) for m in ("image", "text")}, "colours", {}, encoders=encoders)


@pytest.fixture(scope="session")
def _colour_encoder() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(ENCODERS._builtin, MeanColour.name, f"{__name__}:MeanColour")
        yield


@pytest.fixture
def new_colours(_colour_encoder: None, tmp_path: Path) -> Path:
    """The folder of a model for colours whose codes are longer than those of the library."""
    colour_model(repeats=5).save(tmp_path / "new colours")
    return tmp_path / "new colours"


@pytest.fixture
def colours(_colour_encoder: None, tmp_path: Path) -> Path:
    """A library of eight pictures, each of one colour, with the lights it is made of as text and as labels."""
    return make_colours(tmp_path / "colours", list(COLOURS))


@pytest.fixture(scope="session")
def many_colours(_colour_encoder: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with eight shades of each colour: enough for a second page."""
    names = [f"{name} {shade}" for name in COLOURS for shade in range(8)]
    return make_colours(tmp_path_factory.mktemp("many") / "colours", names)


def make_colours(folder: Path, names: Sequence[str]) -> Path:
    """A library of items whose names begin with a colour."""
    model, texts = colour_model(), [f"light that is {COLOURS[name.split()[0]] or 'off'}" for name in names]
    with Library.create(folder, model) as library:
        for name in names:
            _draw(name, folder / f"{name}.png")
        pictures = [str(folder / f"{name}.png") for name in names]
        codes: dict[Modality, Codes] = {
            "image": model.encode(MeanColour().encode(pictures), "image", ids=names),
            "text": model.encode(BagOfWords(_LIGHTS).encode(texts), "text", ids=names),
        }
        items = [
            Item(name, text=text, picture=f"{name}.png", labels=tuple(light for light in _LIGHTS if light in text))
            for name, text in zip(names, texts, strict=True)
        ]
        library.add(items, codes, model=model.fingerprint)
    return folder


def _draw(name: str, path: Path) -> None:
    colour, _, shade = name.partition(" ")
    picture = Image.new("RGB", (64, 48), "lime" if colour == "green" else colour)
    picture.paste("grey", (4, 4, 6 + int(shade or 0), 8))  # so that shades differ
    picture.save(path)
