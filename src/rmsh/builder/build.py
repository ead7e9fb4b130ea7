"""Build a searchable library from a folder of images in one call.

The stages are: read, encode, hold out, choose delta, train (unless the bundled model is used), score, write items,
report. They keep their results in the folder ``NAME.build`` next to the library: an interrupted build is resumed, and a
finished one is not repeated. The library is renamed to its final name when everything else is finished.

A tenth of the items is held out from training (none if there are few), so that the scores are those of the stored
model on items it was not trained on. The library contains all items.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from rmsh.builder import scores
from rmsh.builder.add import write_items
from rmsh.builder.report import describe_delta, example_searches, render_report
from rmsh.builder.source import LEAST_ITEMS, BuildConfig, Source, encode_source, read_source
from rmsh.builder.stages import Stages, digest
from rmsh.coding.bounds import choose_delta
from rmsh.core.errors import ConfigError, InputError, RmshError
from rmsh.core.files import check_space, flush_folder, make_folder, write_json, write_text
from rmsh.core.locks import try_lock
from rmsh.core.progress import OnProgress, ignore
from rmsh.core.types import Modality
from rmsh.data.readers.folder import CREDIT, read_credit
from rmsh.data.records import count_skipped, write_skipped
from rmsh.features.extract import check_encoder
from rmsh.library import Library
from rmsh.library.database import translate_errors
from rmsh.library.folder import MANIFEST, REPORT, read_report, set_folder
from rmsh.library.maintenance import bytes_per_item
from rmsh.methods import create
from rmsh.model import Model, load
from rmsh.models import wheel_model
from rmsh.pipeline import DEFAULT_ENCODERS, prepare_encoders, restore_encoders

if TYPE_CHECKING:
    from rmsh.data.pairs import Pairs
    from rmsh.data.splits import Split
    from rmsh.features.base import Encoder
    from rmsh.features.executors import Executor
    from rmsh.methods.base import Method

PAGE, SKIPPED = "report.html", "skipped.csv"
WHEEL = (
    "nothing is trained: the bundled model is used. It learned from 61,903 everyday photographs with English "
    "captions (MS COCO) and does not know proper names, written words or drawings"
)

# With this recall@10 of held-out items, the bundled model is used and no other is trained, unless there are many
# pairs. `make lab ARGS="few-pairs"`: 2,500 pairs of photographs train a worse model, 100 of drawings a better one.
KNOWN, MANY_PAIRS = 0.5, 20_000

_USUAL = {"store": "codes+vectors", "place": True}

Tell: TypeAlias = Callable[[str], None]  # called with a sentence for the user
_Encoders: TypeAlias = "Mapping[Modality, Encoder]"


@dataclass(frozen=True)
class Built:
    """The result of a build."""

    library: Path  # its folder
    report: dict[str, Any]  # content of its report.json
    is_new: bool  # False if the library was up to date and nothing was done


def work_folder(out: Path) -> Path:
    """The folder in which the stages of a build keep their results."""
    return out.with_name(f"{out.name}.build")


def _check_options(config: BuildConfig) -> None:
    """Refuse unknown and contradictory options before anything takes long."""
    if config.default_model:
        return
    if config.learn_from == "nothing":
        own = f"its own method, bits and encoders ({', '.join(DEFAULT_ENCODERS.values())})"
        raise ConfigError(f"--learn-from nothing uses the bundled model, which has {own}; leave these options out.")
    _method(config)
    check_encoder(config.image_encoder, "image")
    check_encoder(config.text_encoder, "text")


def build(
    data: str | Path,
    out: Path | str,
    *,
    config: BuildConfig | None = None,
    overwrite: bool = False,
    executor: Executor | None = None,
    tell: Tell = lambda _: None,
    on_progress: OnProgress = ignore,
) -> Built:
    """Build a library from images and texts; a build that was interrupted is resumed.

    Args:
        data: a folder of images, its metadata file, or tar shards; see :func:`rmsh.open_pairs`.
        out: the folder of the library.
        config: options.
        overwrite: replace a library of other data or options.
        executor: where images and texts are encoded; in this process if None.
        tell: called with sentences for the user: what was found, the expected time, the chosen delta and its reason.
        on_progress: called with a Progress.

    Raises:
        InputError: ``out`` exists and is not a library of the same data and options.
        DataError: nothing can be learned from the data; the message gives the reason.
    """
    folder, config = Path(os.path.abspath(out)), config or BuildConfig.parse({})
    work = work_folder(folder)
    _check_options(config)
    source = read_source(data, config, work=work, on_progress=on_progress)
    for note in source.notes:
        tell(note)
    items_key, finished = source.key(), read_report(folder)
    # Usual values are left out, which keeps older keys valid.
    unnamed = {"strict"} | {name for name, usual in _USUAL.items() if getattr(config, name) == usual}
    key = digest(config.model_dump(mode="json", exclude=unnamed), items_key)
    if finished is not None and finished["key"] == key:
        tell(f"{out} is up to date: it was built from the same items with the same options")
        return Built(folder, finished, is_new=False)
    _check_output(folder, overwrite=overwrite)
    with translate_errors(work):
        make_folder(work, mode=0o700)
    with translate_errors(work), try_lock(work / "build.claim") as locked:
        if not locked:
            raise RmshError(f"Another process is building in {work}; wait until it ends, or stop it.")
        seconds, size = estimate(source)
        check_space(work, size)
        minutes, images, texts = max(1, round(seconds / 60)), source.pairs.has_image.sum(), source.pairs.has_text.sum()
        tell(
            f"{len(source.pairs):,} items with {images:,} images and {texts:,} texts: about {minutes} min and "
            f"{size >> 20:,} MB of disk space on the first run; the library is written to {out}, intermediate results "
            f"to {work.name} next to it"
        )
        stages = Stages(work, on_skip=lambda name: tell(f"{name}: already done"))
        report = _Build(source, config, stages, executor, tell, on_progress).run(items_key)
        report |= {"key": key, "metadata": Path(data).name if Path(data).is_file() else None}
        write_json(work / "library" / REPORT, report)
        if not source.origin.unpacked:
            with Library.open(work / "library", writable=True) as library, library.transaction() as connection:
                set_folder(connection, folder, "", source.origin.folder)  # the way from its final place
        _publish(work / "library", folder, replaced=work / "replaced")
    return Built(folder, report, is_new=True)


@dataclass
class _Build:
    """The stages after reading; one that is finished for the same inputs is skipped."""

    source: Source
    config: BuildConfig
    stages: Stages
    executor: Executor | None
    tell: Tell
    on_progress: OnProgress

    def run(self, items_key: str) -> dict[str, Any]:
        """Encode, train unless the bundled model is used, score and write the library; returns the report."""
        source, config = self.source, self.config
        method = None if source.learn_from == "nothing" else _method(config)

        # Encoders that learn a vocabulary do not see held-out items.
        held_out = scores.hold_out(source.pairs, seed=config.seed, everything=method is None)
        if method is None:
            encoders = restore_encoders(wheel_model(), source.pairs)
        else:
            names: dict[Modality, str] = {"image": config.image_encoder, "text": config.text_encoder}
            encoders = prepare_encoders(source.pairs, names, rows=np.flatnonzero(~np.isin(source.pairs.ids, held_out)))
        key = digest(items_key, [encoder.fingerprint for encoder in encoders.values()])
        self._encode(encoders)

        # The bundled model learned from none of the items, so all are scored.
        pairs, split = self.source.pairs, scores.split_by(self.source.pairs, held_out)
        model, delta = (wheel_model(), {}) if method is None else self._learn(method, split, encoders, key)
        if model.fingerprint == wheel_model().fingerprint:
            self.source = replace(self.source, learn_from="nothing")
            split = scores.split_by(pairs, scores.hold_out(pairs, seed=config.seed, everything=True))
            self.tell(WHEEL)

        model_key = digest(key, model.fingerprint)
        store_key = digest(model_key, config.store)
        facts = {"delta": delta, **self._score(model, split, model_key, store_key)}
        self._write_library(model, store_key)
        return self._write_report(model, split, facts | {"seconds": dict(self.stages.seconds)})

    def _encode(self, encoders: _Encoders) -> None:
        start, skipped_before, strict = time.perf_counter(), len(self.source.origin.skipped), self.config.strict
        cache = self.stages.folder / "features"
        told: dict[str, Any] = {"executor": self.executor, "on_progress": self.on_progress}
        self.source = encode_source(self.source, encoders, cache=cache, strict=strict, **told)
        self.stages.seconds["features"] = round(time.perf_counter() - start, 3)
        for sentence in count_skipped(self.source.origin.skipped[skipped_before:]):
            self.tell(sentence)

    def _learn(self, method: Method, split: Split, encoders: _Encoders, key: str) -> tuple[Model, dict[str, Any]]:
        """The trained model, or the bundled one if it finds more held-out items; and the choice of delta."""
        pairs, delta, learn_from = self.source.pairs, dict[str, Any](), self.source.learn_from
        may_use_wheel = self.config.learn_from is None and learn_from == "pairs" and self.config.default_model
        known = _mean_recall(wheel_model(), pairs, split) if may_use_wheel else 0.0
        if known >= KNOWN and scores.complete(pairs).sum() < MANY_PAIRS:
            return wheel_model(), delta
        key = digest(key, learn_from, method.config.model_dump(mode="json"))
        if learn_from == "labels":
            delta = self.stages.run("bounds", key, lambda: _choose_delta(method, pairs, split))
            self.tell(describe_delta(delta, method.config.bits))
        else:
            pairs = replace(pairs, labels=None, class_names=())
        model = self._train(method, pairs, split, encoders, key)
        count = model.facts["items"]
        self.tell(f"trained on the {learn_from} of {count:,} items; {len(split.query):,} were held out")
        if may_use_wheel and (own := _mean_recall(model, pairs, split)) < known:
            self.tell(f"recall@10 of held-out items: {own:.3f} by the trained model, {known:.3f} by the bundled one")
            model = wheel_model()
        return model, delta

    def _train(self, method: Method, pairs: Pairs, split: Split, encoders: _Encoders, key: str) -> Model:
        work = self.stages.folder
        folder, checkpoint = work / "model", work / f"checkpoint-{key}.safetensors"

        def train() -> dict[str, Any]:
            for other in set(work.glob("checkpoint-*")) - {checkpoint}:
                other.unlink()
            method.fit(pairs.take(split.train), checkpoint=checkpoint, on_progress=self.on_progress)
            model = method.model.with_encoders({m: encoder.describe() for m, encoder in encoders.items()})
            shutil.rmtree(folder, ignore_errors=True)
            model.save(folder)
            checkpoint.unlink(missing_ok=True)
            return {"fingerprint": model.fingerprint, "items": int(model.facts["items"])}

        self.stages.run("train", key, train, exists=(folder / "config.json").is_file())
        return load(folder)

    def _score(self, model: Model, split: Split, model_key: str, store_key: str) -> dict[str, Any]:
        source, config, stages = self.source, self.config, self.stages
        found: dict[str, Any] = {"recall": {} if source.named else scores.recall_of(model, source.pairs, split)}
        if not source.judged:
            return found | {"words": {}, "scores": {}}
        score = partial(scores.score, model, source.pairs, split, on_progress=self.on_progress)
        words = partial(
            scores.word_precision, model, source, split, store=config.store, seed=config.seed, work=stages.folder
        )
        found["scores"] = stages.run("scores", model_key, score)
        found["words"] = stages.run("words", store_key, words)
        return found

    def _write_library(self, model: Model, key: str) -> None:
        folder, origin = self.stages.folder / "library", self.source.origin

        def write() -> dict[str, Any]:
            shutil.rmtree(folder, ignore_errors=True)
            images = None if origin.unpacked else origin.folder
            with Library.create(folder, model, source=images, store=self.config.store) as library:
                write_items(library, model, self.source, copy_images=origin.unpacked, on_progress=self.on_progress)
                library.write_snapshot()
            return {"items": len(self.source.pairs)}

        self.stages.run("library", key, write, exists=folder.is_dir())

    def _write_report(self, model: Model, split: Split, facts: Mapping[str, Any]) -> dict[str, Any]:
        """Complete the report, and write the files for people into the library's folder."""
        source, config, folder = self.source, self.config, self.stages.folder / "library"
        pairs, origin = source.pairs, source.origin
        queries = split.query if split.query.size else np.flatnonzero(scores.complete(pairs))
        with Library.open(folder) as library:
            searches = example_searches(library, pairs.ids[queries], seed=config.seed)
            with library.reading() as connection:
                sizes = bytes_per_item(connection)
        learned_from = 0 if source.learn_from == "nothing" else int(model.facts["items"])
        report = {
            "name": source.name,
            "warning": scores.warn_of(facts["recall"], facts["words"], learned_from=learned_from),
            "credit": read_credit(origin.folder),
            "bits": model.bits,
            "model": model.fingerprint,
            "bytes_per_item": sizes,
            "counts": {
                "items": len(pairs),
                "pictures": int(pairs.has_image.sum()),
                "texts": int(pairs.has_text.sum()),
                "labelled": int(pairs.labelled.sum()),
                "classes": len(pairs.class_names),
                "learned_from": learned_from,
                "held_out": int(split.query.size),
            },
            "options": config.model_dump(mode="json"),
            "learn_from": source.learn_from,
            "classes": None if source.classes is None else {name: [*words] for name, words in source.classes.items()},
            "searches": searches,
            "skipped": {"count": len(origin.skipped), "examples": count_skipped(origin.skipped)},
            "no_scores": "" if facts["recall"] or facts["words"] or facts["scores"] else _no_scores(source, split),
            **facts,
        }
        if report["credit"]:
            write_text(folder / CREDIT, report["credit"] + "\n")
        write_skipped(folder / SKIPPED, origin.skipped)
        write_text(folder / PAGE, render_report(report, images=folder if origin.unpacked else origin.folder))
        return report


def _no_scores(source: Source, split: Split) -> str:
    """Why a build has no scores."""
    if source.learn_from == "nothing":
        return f"No scores: fewer than {scores.LEAST_RANKED} items have an image and a text."
    if not split.query.size:
        return f"No scores: fewer than {LEAST_ITEMS} items have an image and a text, so none were held out."
    return "No scores: no held-out item shares a label with another item."


def _method(config: BuildConfig) -> Method:
    bits = {} if config.bits is None else {"bits": config.bits}
    return create(config.method, **{**config.options, **bits, "seed": config.seed})


def _mean_recall(model: Model, pairs: Pairs, split: Split) -> float:
    """Recall@10 of held-out items by codes, mean of both directions; 0 if there are too few."""
    found = [score["recall@10"]["value"] for score in scores.recall_of(model, pairs, split).values()]
    return float(np.mean(found)) if found else 0.0


def _choose_delta(method: Method, pairs: Pairs, split: Split) -> dict[str, Any]:
    """The delta of the user or of the bounds for the training labels; ``asked`` is False if the method uses none."""
    options = method.config
    asked, given = {"asked": hasattr(options, "delta")}, getattr(options, "delta", None)
    if given is not None:
        return asked | {"delta": given, "reason": "set by the user."}
    rows = split.train[method.learns_from(pairs)[split.train]]
    confidence = getattr(options, "confidence", 0.9)
    return asked | choose_delta(np.asarray(pairs.labels)[rows], options.bits, confidence=confidence).to_json()


def _check_output(folder: Path, *, overwrite: bool) -> None:
    """Refuse a folder whose content would be lost."""
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return
    if not (folder / MANIFEST).is_file():
        raise InputError(f"{folder} exists and is not a library; choose a new folder.")
    if not overwrite:
        other = "a library of other items or options"
        raise InputError(f"{folder} is {other}; choose another folder, use `rmsh add`, or replace it with --overwrite.")


def _publish(finished: Path, folder: Path, *, replaced: Path) -> None:
    """Give the library its final name; a library that it replaces stays until then."""
    shutil.rmtree(replaced, ignore_errors=True)
    if folder.exists():
        os.rename(folder, replaced)
    os.rename(finished, folder)
    flush_folder(folder.parent)
    shutil.rmtree(replaced, ignore_errors=True)


# Rates per second on two cores of a laptop; training takes at least half a minute.
_IMAGES_PER_SECOND, _TEXTS_PER_SECOND, _TRAINING_PER_SECOND = 80.0, 500.0, 300.0
_LEAST_TRAINING, _CORES = 30.0, 2

# Bytes: float32 features of an image and of a text, a row of the library, and a model with its checkpoint.
_PER_IMAGE, _PER_TEXT, _PER_ITEM, _MODEL = 4 * 1280, 4 * 384, 2_000, 60 << 20


def estimate(source: Source) -> tuple[float, int]:
    """The approximate time of a build in seconds, and the disk space in bytes."""
    items, images, texts = len(source.pairs), int(source.pairs.has_image.sum()), int(source.pairs.has_text.sum())
    training = 0 if source.learn_from == "nothing" else max(_LEAST_TRAINING, items / _TRAINING_PER_SECOND)
    seconds = images / _IMAGES_PER_SECOND + texts / _TEXTS_PER_SECOND + training
    size = images * _PER_IMAGE + texts * _PER_TEXT + items * _PER_ITEM + _MODEL
    if source.origin.unpacked:  # the library keeps copies of the images
        names = (record.picture for record in source.origin.records)
        size += sum((source.origin.folder / name).stat().st_size for name in names if name is not None)
    return seconds * _CORES / (os.cpu_count() or 1), size
