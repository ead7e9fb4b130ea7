"""The builder's road in one call: a folder of pictures in, a library to search out.

Stages: read, features, bounds, train, scores, library, report. What they leave is kept in a folder beside the library
(its name and ``.build``), so that a build which was stopped goes on, and one that is done is left alone. The library
gets its name in one rename when everything else is there.

A tenth of the items is kept aside while learning (none, where they are few), so that the scores are those of the model
that serves, on items it never saw. The library holds all items.

What a builder may decide; everything has a default that suits a folder of pictures on a laptop.

What a build will take, said before it begins: items, minutes, disk space.

The stages of a build between the items and the report, each skipped where it was done for the same inputs.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from pydantic import Field

from rmsh.builder.items import PICTURES, add_items, own_pictures
from rmsh.builder.report import (
    LEAST_ITEMS,
    about_delta,
    complete,
    example_searches,
    hold_out,
    render_report,
    score,
    split_by,
)
from rmsh.builder.source import Source, encode_source, read_source
from rmsh.builder.stages import Stages, digest
from rmsh.codes import MAX_BITS
from rmsh.coding.bounds import choose_delta
from rmsh.core.config import Config
from rmsh.core.errors import FormatError, InputError, RmshError
from rmsh.core.files import flush_folder, read_json, write_json, write_text
from rmsh.core.locks import try_lock
from rmsh.core.progress import OnProgress, ignore
from rmsh.core.types import MODALITIES
from rmsh.data.readers.folder import CREDIT
from rmsh.data.records import count_skipped, write_skipped
from rmsh.features import extract
from rmsh.library import Library
from rmsh.library.database import explained
from rmsh.library.folder import MANIFEST
from rmsh.methods import create
from rmsh.model import load

if TYPE_CHECKING:
    from rmsh.builder.source import Source
    from rmsh.core.progress import OnProgress
    from rmsh.core.types import IdArray, Modality
    from rmsh.data.pairs import Pairs
    from rmsh.data.splits import Split
    from rmsh.features.base import Encoder
    from rmsh.model import Model


class BuildConfig(Config):
    """Options of :func:`rmsh.builder.build`."""

    method: str = Field("glint", description="what learns, see `rmsh methods`")
    bits: int = Field(64, ge=1, le=MAX_BITS, description="length of a code")
    seed: int = Field(0, ge=0, description="everything random follows from it")
    labels_from: str | None = Field(None, description='"data", "text", or a file of classes; None: data, else text')
    image_encoder: str = Field("efficientnet-lite0", description="turns pictures into features")
    text_encoder: str = Field("minilm", description="turns texts into features")
    strict: bool = Field(False, description="stop over what would be left out")
    options: Mapping[str, Any] = Field(default_factory=dict, description="further options of the method")


# Measured on two cores of a laptop's kind; what is done in one second, but for the last.
_PICTURES, _TEXTS = 80.0, 500.0
_TRAINING_ITEMS, _LEAST_TRAINING = 500.0, 30.0  # items that are learned from, in all epochs; and seconds at least
_CORES = 2

# Bytes: features of a picture and of a text as 32-bit numbers, a row of the library; and a model with its checkpoint.
_OF_PICTURE, _OF_TEXT, _OF_ITEM, _OF_MODEL = 4 * 1280, 4 * 384, 2_000, 60 << 20


@dataclass(frozen=True)
class Estimate:
    """What a build takes, roughly.

    Args:
        items: how many.
        pictures: of them with a picture.
        texts: of them with a text.
        seconds: of this machine.
        bytes: on disk, beside the pictures.
    """

    items: int
    pictures: int
    texts: int
    seconds: float
    bytes: int

    def __str__(self) -> str:
        minutes = max(1, round(self.seconds / 60))
        return (
            f"{self.items:,} items, {self.pictures:,} with a picture and {self.texts:,} with a text: about {minutes} "
            f"min and {max(1, self.bytes >> 20):,} MB of disk space the first time"
        )

    def check_space(self, folder: Path) -> None:
        """Refuse where the disk of a folder has not that much left.

        Raises:
            RmshError: it has less.
        """
        free = shutil.disk_usage(folder).free
        if free < self.bytes:
            raise RmshError(
                f"{folder} has {free >> 20:,} MB left and about {self.bytes >> 20:,} MB are needed; make space, or "
                "give a folder on another disk."
            )


def estimate(pairs: Pairs, *, own_pictures: int = 0) -> Estimate:
    """What a build of some items takes.

    Args:
        pairs: the items.
        own_pictures: bytes of the pictures that the library keeps itself.

    Example:
        >>> from rmsh.data.synthetic.generated import generate_pairs
        >>> found = estimate(generate_pairs(1000))
        >>> found.pictures, found.bytes > 1000 * 4 * 1280
        (1000, True)
    """
    items, pictures, texts = len(pairs), int(pairs.has_image.sum()), int(pairs.has_text.sum())
    faster = max(1, os.cpu_count() or 1) / _CORES
    seconds = (pictures / _PICTURES + texts / _TEXTS + max(_LEAST_TRAINING, items / _TRAINING_ITEMS)) / faster
    size = pictures * _OF_PICTURE + texts * _OF_TEXT + items * _OF_ITEM + _OF_MODEL + own_pictures
    return Estimate(items, pictures, texts, seconds, size)


class Road:
    """One build under way; options that the method does not know are refused before anything takes long.

    Args:
        source: raw items; after :meth:`go` those that are in the library, with features.
        config: options.
        stages: where what is done is written down.
        tell: is told sentences for the user.
        on_progress: is told how far it is.
    """

    def __init__(
        self,
        source: Source,
        config: BuildConfig,
        stages: Stages,
        *,
        tell: Callable[[str], None],
        on_progress: OnProgress,
    ) -> None:
        self.source, self.config, self.stages = source, config, stages
        self.work = stages.folder
        self._tell, self._on_progress = tell, on_progress
        self._key = source.key()
        self._method = create(config.method, **{**config.options, "bits": config.bits, "seed": config.seed})

    def go(self) -> dict[str, Any]:
        """Do every stage that is not done, and return what the report says."""
        held_out = hold_out(self.source.pairs, seed=self.config.seed)
        encoders = self._features(held_out)
        split = split_by(self.source.pairs, held_out)
        delta = self._bounds(split)
        model = self._train(split, encoders)
        scores = self.stages.run(
            "scores",
            digest(self._key, model.fingerprint),
            lambda: score(model, self.source.pairs, split, on_progress=self._on_progress),
        )
        self._library(model)
        return self._report(model, split, delta=delta, scores=scores)

    def _features(self, held_out: IdArray) -> dict[Modality, Encoder]:
        """Put features in the place of pictures and texts; text encoders may look at the items to learn from only."""
        pairs = self.source.pairs
        seen = np.flatnonzero(~np.isin(pairs.ids, held_out))
        names: dict[Modality, str] = {"image": self.config.image_encoder, "text": self.config.text_encoder}
        encoders = {
            modality: extract.prepare(names[modality], pairs, modality=modality, rows=seen) for modality in MODALITIES
        }
        self._key = digest(self._key, [encoder.fingerprint for encoder in encoders.values()])
        before, start = len(self.source.origin.skipped), time.perf_counter()
        self.source = encode_source(
            self.source,
            encoders,
            cache=self.work / "features",
            strict=self.config.strict,
            on_progress=self._on_progress,
        )
        self.stages.seconds["features"] = round(time.perf_counter() - start, 3)
        for sentence in count_skipped(self.source.origin.skipped[before:]):
            self._tell(sentence)
        return encoders

    def _bounds(self, split: Split) -> dict[str, Any]:
        """Choose delta from the labels to learn from, and say why; the user's own delta wins.

        A method that asks for none finds its own distances: then it is what the bounds would allow.
        """
        options = self._method.config
        rows = split.train[self._method.learns_from(self.source.pairs)[split.train]]
        labels = np.asarray(self.source.pairs.labels)[rows]

        def work() -> dict[str, Any]:
            asked, given = {"asked": hasattr(options, "delta")}, getattr(options, "delta", None)
            if given is not None:
                return asked | {"delta": given, "reason": "it was given."}
            confidence = getattr(options, "confidence", 0.9)
            return asked | choose_delta(labels, options.bits, confidence=confidence).to_json()

        chosen = self.stages.run("bounds", digest(self._key, options.model_dump(mode="json")), work)
        self._tell(about_delta(chosen, options.bits))
        return chosen

    def _train(self, split: Split, encoders: dict[Modality, Encoder]) -> Model:
        key = digest(self._key, self._method.config.model_dump(mode="json"))
        folder, checkpoint = self.work / "model", self.work / f"checkpoint-{key}.safetensors"

        def work() -> dict[str, Any]:
            for other in set(self.work.glob("checkpoint-*")) - {checkpoint}:
                other.unlink()
            self._method.fit(self.source.pairs.take(split.train), checkpoint=checkpoint, on_progress=self._on_progress)
            model = self._method.model.with_encoders({m: encoder.describe() for m, encoder in encoders.items()})
            shutil.rmtree(folder, ignore_errors=True)
            model.save(folder)
            checkpoint.unlink(missing_ok=True)
            return {"fingerprint": model.fingerprint, "items": int(model.facts["items"])}

        learned = self.stages.run("train", key, work, there=(folder / "config.json").is_file())
        self._tell(f"learned from {learned['items']:,} items; {len(split.query):,} were kept aside")
        return load(folder)

    def _library(self, model: Model) -> None:
        """Make the library under the name it has until it is finished."""
        folder, origin = self.work / "library", self.source.origin

        def work() -> dict[str, Any]:
            shutil.rmtree(folder, ignore_errors=True)
            with Library.create(folder, model, source=None if origin.unpacked else origin.folder) as library:
                if origin.unpacked:
                    own_pictures(origin.folder, [r.picture for r in origin.records if r.picture], into=folder)
                add_items(
                    library,
                    model,
                    self.source,
                    rows=np.arange(len(self.source.pairs)),
                    inside=f"{PICTURES}/" if origin.unpacked else "",
                    on_progress=self._on_progress,
                )
                library.write_snapshot()
            return {"items": len(self.source.pairs)}

        self.stages.run("library", digest(self._key, model.fingerprint), work, there=folder.is_dir())

    def _report(self, model: Model, split: Split, *, delta: dict[str, Any], scores: dict[str, Any]) -> dict[str, Any]:
        pairs, skipped = self.source.pairs, self.source.origin.skipped
        askers = split.query if split.query.size else np.flatnonzero(complete(pairs))
        with Library.open(self.work / "library") as library:
            searches = example_searches(library, pairs.ids[askers], seed=self.config.seed)
        return {
            "name": self.source.name,
            "credit": self.source.credit,
            "bits": model.bits,
            "model": model.fingerprint,
            "delta": delta,
            "counts": {
                "items": len(pairs),
                "pictures": int(pairs.has_image.sum()),
                "texts": int(pairs.has_text.sum()),
                "labelled": int(pairs.labelled.sum()),
                "classes": len(pairs.class_names),
                "learned_from": int(model.facts["items"]),
                "held_out": int(split.query.size),
            },
            "options": self.config.model_dump(mode="json"),
            "classes": None if self.source.classes is None else {n: [*w] for n, w in self.source.classes.items()},
            "scores": scores,
            "no_scores": "" if scores else _no_scores(split),
            "searches": searches,
            "skipped": {"count": len(skipped), "examples": count_skipped(skipped)},
            "seconds": dict(self.stages.seconds),
        }

    def page(self, report: dict[str, Any]) -> str:
        """The report as a page."""
        origin = self.source.origin
        root = self.work / "library" if origin.unpacked else origin.folder
        return render_report(report, picture=lambda name: Path(root / name))


def _no_scores(split: Split) -> str:
    if split.query.size:
        return "No item that was kept aside shares a label with any other, so that nothing can be scored."
    return (
        f"Fewer than {LEAST_ITEMS} items have a picture, a text and a label: all were learned from, none is left to "
        "score with."
    )


REPORT, PAGE, SKIPPED = "report.json", "report.html", "skipped.csv"

Tell: TypeAlias = Callable[[str], None]  # a sentence for the user


def _to_nobody(sentence: str) -> None:
    """Tell nobody."""


@dataclass(frozen=True)
class Built:
    """What a build leaves.

    Args:
        library: its folder.
        report: what ``report.json`` in it holds.
        is_new: False where it had been built before, and nothing was done.
    """

    library: Path
    report: dict[str, Any]
    is_new: bool


def work_folder(out: Path) -> Path:
    """Where the stages of a build keep what they made.

    Example:
        >>> work_folder(Path("photos")).name
        'photos.build'
    """
    return out.with_name(f"{out.name}.build")


def build(
    data: str | Path,
    out: Path | str,
    *,
    config: BuildConfig | None = None,
    overwrite: bool = False,
    tell: Tell = _to_nobody,
    on_progress: OnProgress = ignore,
) -> Built:
    """Build a library from somebody's pictures and texts; given again after it was stopped, it goes on.

    Args:
        data: a folder of pictures, its metadata file, or tar shards; see :func:`rmsh.open_pairs`.
        out: the folder of the library.
        config: options.
        overwrite: replace a library of other data or options.
        tell: is told sentences for the user: what was found, what it will take, which delta was chosen and why.
        on_progress: is told how far it is.

    Raises:
        InputError: there is something else in ``out``.
        DataError: nothing can be learned from the data; the message says why.
    """
    folder, chosen = Path(os.path.abspath(out)), config or BuildConfig.parse({})
    work = work_folder(folder)
    source = read_source(data, chosen, work=work)
    for note in source.notes:
        tell(note)
    key = digest(chosen.model_dump(mode="json", exclude={"strict"}), source.key())
    done = read_report(folder)
    if done is not None and done["key"] == key:
        tell(f"{out} was built from the same items with the same options; nothing is left to do")
        return Built(folder, done, is_new=False)
    _check_place(folder, overwrite=overwrite)
    with explained(work), _alone(work):
        expected = estimate(source.pairs, own_pictures=_picture_bytes(source))
        expected.check_space(work)
        tell(f"{expected}; the library goes to {out}, what is kept to go on from to {work.name} beside it")
        stages = Stages(work, on_skip=lambda name: tell(f"{name}: done before"))
        road = Road(source, chosen, stages, tell=tell, on_progress=on_progress)
        report = road.go() | {"key": key}
        _finish(work / "library", report, road)
        _publish(work / "library", folder, replaced=work / "replaced")
    return Built(folder, report, is_new=True)


@contextmanager
def _alone(work: Path) -> Iterator[None]:
    """Keep others from building in the same folder while the block runs."""
    with try_lock(work / "build.claim") as mine:
        if not mine:
            raise RmshError(f"Another process is building in {work}; wait until it ends, or stop it.")
        yield


def read_report(folder: Path) -> dict[str, Any] | None:
    """The report of a library; None where no build made it, or it is not finished."""
    try:
        report = read_json(folder / REPORT)
        return report if (folder / MANIFEST).is_file() and "key" in report else None
    except (OSError, FormatError, TypeError):
        return None


def _check_place(folder: Path, *, overwrite: bool) -> None:
    """Refuse a place where something is that would be lost."""
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return
    if not (folder / MANIFEST).is_file():
        raise InputError(f"{folder} is there already and is no library; give a new folder.")
    if not overwrite:
        raise InputError(
            f"{folder} is a library of other items or options; give another folder, `rmsh add` new items to it, or "
            "replace it with --overwrite."
        )


def _picture_bytes(source: Source) -> int:
    """How large the pictures are that the library will keep itself."""
    if not source.origin.unpacked:
        return 0
    pictures = (record.picture for record in source.origin.records)
    return sum((source.origin.folder / name).stat().st_size for name in pictures if name is not None)


def _finish(library: Path, report: dict[str, Any], road: Road) -> None:
    """Write what a person reads into the folder of the library."""
    if report["credit"]:
        write_text(library / CREDIT, report["credit"] + "\n")
    write_skipped(library / SKIPPED, road.source.origin.skipped)
    write_text(library / PAGE, road.page(report))
    write_json(library / REPORT, report)


def _publish(finished: Path, folder: Path, *, replaced: Path) -> None:
    """Give the library its name; one that is replaced is there until the new one is."""
    shutil.rmtree(replaced, ignore_errors=True)
    if folder.exists():
        os.rename(folder, replaced)
    os.rename(finished, folder)
    flush_folder(folder.parent)
    shutil.rmtree(replaced, ignore_errors=True)
