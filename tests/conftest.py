"""Fixtures: a separate cache, real data if present, and a small library whose hits are predictable."""

from __future__ import annotations

import faulthandler
import os
import re
import shutil
import socket
import sys
import threading
import uuid
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

# Tests are small: a second thread would cost more in waiting than it brings, above all on a busy machine.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np  # after the threads are limited
import pytest
from PIL import ExifTags, Image

from lab.speed.hostile import large_avif, long_comment, long_png, progressive_jpeg
from rmsh.builder.source import read_files
from rmsh.core.types import FloatArray
from rmsh.data.pairs import Pairs
from rmsh.data.records import Origin
from rmsh.features import ENCODERS
from rmsh.features.bag_of_words import BagOfWords
from rmsh.features.images import ImageEncoder, ImageLike, read_image
from rmsh.hash_function import HashFunction, JointLayer, Layer
from rmsh.library import Item, Library
from rmsh.library.photos import insert_photos
from rmsh.library.queries import rows_of_ids
from rmsh.model import Model
from rmsh.pipeline import codes_of

if TYPE_CHECKING:
    import uvicorn

PROJECT = Path(__file__).resolve().parent.parent
_NEEDS_TORCH = re.compile(r"No module named '(torch|efficientnet_lite_pytorch)'|torch(, which)? is not installed")
SHARED_DATA = PROJECT.parent / "shared" / "data"
collect_ignore = ["hub/vision.py"]  # needs torchvision, and has no tests


def pytest_unconfigure() -> None:
    """If the process does not end after the last test, print the stacks of what hangs, and end it."""
    faulthandler.dump_traceback_later(120, exit=True, file=sys.__stderr__)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Skip modules that import torch where it is not installed (`make test-versions`)."""
    report = yield
    return _skipped_without_torch(report, collector.path)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Skip tests that train where torch is not installed."""
    report = yield
    return _skipped_without_torch(report, item.path)


def _skipped_without_torch(report: Any, path: Path) -> Any:
    said = f"{report.longreprtext}{report.capstdout}{report.capstderr}"
    if report.outcome == "failed" and find_spec("torch") is None and _NEEDS_TORCH.search(said):
        report.outcome, report.longrepr = "skipped", (str(path), 0, "needs torch, which is not installed")
    return report


def _folder(name: str) -> Path:
    folder = SHARED_DATA / name
    if not folder.is_dir():
        pytest.skip(f"the data set {name} is not at ../shared/data/{name} next to the project")
    return folder


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Features are cached for one test run, away from the user's cache."""
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
def nuswide_root() -> Path:
    """The folder of the labels of all NUS-WIDE images."""
    return _folder("nuswide")


@pytest.fixture(scope="session")
def milvus_server() -> str:
    """The server that tests use, such as http://127.0.0.1:19530."""
    server = os.environ.get("MILVUS_URI")
    if not server:
        pytest.skip("no Milvus server is named by MILVUS_URI; `make test-milvus` starts one")
    return server.rstrip("/")


@pytest.fixture(scope="session")
def new_address(milvus_server: str) -> Iterator[Callable[[], str]]:
    """Addresses of new collections, which are dropped at the end."""
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
    """Small files that take a decoder a long time, or a lot of memory."""
    return {
        "progressive": progressive_jpeg(7000, scans=4000),
        "long": long_png(50_000_000),
        "comment": long_comment(15 << 20),
        "avif": large_avif(4000),
    }


@contextmanager
def _server_thread(config: uvicorn.Config, listener: socket.socket) -> Iterator[None]:
    import uvicorn

    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.should_exit = True
        thread.join(60)
        if thread.is_alive():
            faulthandler.dump_traceback()
            pytest.fail("the server did not end within 60 seconds; the stacks of all threads are above")


@pytest.fixture(scope="session")
def server_thread() -> Callable[[uvicorn.Config, socket.socket], AbstractContextManager[None]]:
    """A context in which a server listens in a separate thread, which has ended afterwards."""
    return _server_thread


class MeanColour(ImageEncoder):
    """An image encoder without weights: how red, green and blue an image is."""

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

    def _embed(self, images: Sequence[FloatArray]) -> FloatArray:
        return np.array(images, dtype=np.float32)


COLOURS = {"black": "", "red": "red", "green": "green", "blue": "blue"} | {
    "yellow": "red and green",
    "magenta": "red and blue",
    "cyan": "green and blue",
    "white": "red, green and blue",
}
_LIGHTS = ("red", "green", "blue")


def colour_model(repeats: int = 4, *, joint: bool = False) -> Model:
    """A model that gives an image and the names of its primary colours the same code: one bit per colour, repeated.

    With a joint space, its three dimensions are the primary colours.
    """
    layer = Layer(np.tile(np.eye(3, dtype=np.float32), repeats), np.full(3 * repeats, -0.5, np.float32), "none")
    space = JointLayer(np.eye(3, dtype=np.float32), np.zeros(3, np.float32), np.zeros(1, np.float32))
    function = HashFunction((space, layer) if joint else (layer,))
    encoders = {"image": MeanColour().describe(), "text": BagOfWords(_LIGHTS).describe()}
    return Model({"image": function, "text": function}, "colours", {}, encoders=encoders)


@pytest.fixture(scope="session")
def _colour_encoder() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(ENCODERS._builtin, MeanColour.name, f"{__name__}:MeanColour")
        yield


@pytest.fixture
def new_colours(_colour_encoder: None, tmp_path: Path) -> Path:
    """The folder of a colour model whose codes are longer than those of the library."""
    colour_model(repeats=5).save(tmp_path / "new colours")
    return tmp_path / "new colours"


@pytest.fixture
def colours(_colour_encoder: None, tmp_path: Path) -> Path:
    """A library of eight images of one colour each, with the names of its primary colours as text and labels."""
    return make_colours(tmp_path / "colours", list(COLOURS))


@pytest.fixture
def joint_colours(_colour_encoder: None, tmp_path: Path) -> Path:
    """The same with a joint space and vectors, in which queries can be composed."""
    return make_colours(tmp_path / "joint colours", list(COLOURS), joint=True)


@pytest.fixture(scope="session")
def many_colours(_colour_encoder: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with eight shades of each colour: enough for a second page."""
    names = [f"{name} {shade}" for name in COLOURS for shade in range(8)]
    return make_colours(tmp_path_factory.mktemp("many") / "colours", names)


@pytest.fixture(scope="session")
def photographs(_colour_encoder: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with patterns, whose files have dates, cameras, keywords and ratings, and some of which are duplicates.

    Copies are red 6 and 7, green 6 and 7; blue 7 is a smaller blue 6; cyan 6 and 7 were taken within a second.
    """
    names = [f"{name} {shade}" for name in COLOURS for shade in range(8)]
    folder = make_colours(tmp_path_factory.mktemp("photographs") / "colours", names, draw=_photograph)
    files = read_files(Origin(folder, (), ()), [f"{name}.png" for name in names], known={})
    with Library.open(folder, writable=True) as library, library.transaction() as connection:
        rows = rows_of_ids(connection, names)
        insert_photos(connection, {rows[name]: files[f"{name}.png"] for name in names})
    return folder


def _photograph(name: str, path: Path) -> None:
    colour, shade = name.partition(" ")[0], int(name[-1])
    before, number = path.with_stem(f"{colour} {shade - 1}"), list(COLOURS).index(colour)
    if shade == 7 and colour in ("red", "green"):
        shutil.copy(before, path)
    elif name == "blue 7":
        Image.open(before).resize((32, 24)).save(path)
    else:
        bright = np.array([light in COLOURS[colour] for light in _LIGHTS])
        pattern = np.random.default_rng([number, shade, 1]).integers(0, 90, (6, 8, 3))
        image = Image.fromarray(np.where(bright, 255 - pattern, pattern).astype(np.uint8)).resize((64, 48))
        exif, second = Image.Exif(), int(name == "cyan 7")
        exif[ExifTags.Base.Model] = ("Fuji X", "FUJI X", "Canon")[number % 3]
        exif.get_ifd(ExifTags.IFD.Exif)[ExifTags.Base.DateTimeOriginal] = (
            f"{2015 + shade - second}:{number + 1:02}:01 12:00:{second:02}"
        )
        exif[0x9C9E] = ";".join(["a <b>", "Beach" if number else "beach"][shade % 2 :]).encode("utf-16-le")
        if 1 <= shade <= 5:
            exif[0x4746] = shade
        image.save(path, exif=exif)


def make_colours(
    folder: Path, names: Sequence[str], *, joint: bool = False, draw: Callable[[str, Path], None] | None = None
) -> Path:
    """A library of items whose names begin with a colour."""
    model, texts = colour_model(joint=joint), [f"light that is {COLOURS[name.split()[0]] or 'off'}" for name in names]
    with Library.create(folder, model) as library:
        for name in names:
            (draw or _draw)(name, folder / f"{name}.png")
        images = [str(folder / f"{name}.png") for name in names]
        features = (MeanColour().encode(images), BagOfWords(_LIGHTS).encode(texts))
        pairs = Pairs(ids=np.array(names), images=features[0], texts=features[1], source="colours")
        items = [
            Item(name, text=text, picture=f"{name}.png", labels=tuple(light for light in _LIGHTS if light in text))
            for name, text in zip(names, texts, strict=True)
        ]
        library.add(items, codes_of(model, pairs, vectors=joint), model=model.fingerprint)
    return folder


def _draw(name: str, path: Path) -> None:
    colour, _, shade = name.partition(" ")
    image = Image.new("RGB", (64, 48), "lime" if colour == "green" else colour)
    image.paste("grey", (4, 4, 6 + int(shade or 0), 8))  # so that shades differ
    image.save(path)
