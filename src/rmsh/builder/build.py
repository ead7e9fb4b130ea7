"""Build a searchable library from a folder of images in one call.

The stages are: read, encode, hold out, choose delta, train (unless the model of the wheel is used), score, write items,
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
from pydantic import Field

from rmsh.builder.add import write_items
from rmsh.builder.report import describe_delta, example_searches, render_report
from rmsh.builder.scores import (
    LEAST_RANKED,
    complete,
    hold_out,
    recall_of,
    score,
    split_by,
    warn_of,
    word_precision,
)
from rmsh.builder.source import LEAST_ITEMS, Signal, Source, encode_source, read_source
from rmsh.builder.stages import Stages, digest
from rmsh.codes import MAX_BITS
from rmsh.coding.bounds import choose_delta
from rmsh.core.config import Config
from rmsh.core.errors import ConfigError, InputError, RmshError
from rmsh.core.files import flush_folder, make_folder, write_json, write_text
from rmsh.core.locks import try_lock
from rmsh.core.progress import OnProgress, ignore
from rmsh.core.types import Store  # noqa: TC001 (pydantic reads it)
from rmsh.data.readers.folder import CREDIT, read_credit
from rmsh.data.records import count_skipped, write_skipped
from rmsh.library import Library
from rmsh.library.database import translate_errors
from rmsh.library.folder import MANIFEST, REPORT, read_report
from rmsh.library.maintenance import bytes_per_item
from rmsh.methods import DEFAULT_METHOD, create
from rmsh.model import Model, load
from rmsh.models import wheel_model
from rmsh.pipeline import DEFAULT_ENCODERS, prepare_encoders, restore_encoders

if TYPE_CHECKING:
    from rmsh.core.types import Modality
    from rmsh.data.pairs import Pairs
    from rmsh.data.splits import Split
    from rmsh.features.base import Encoder
    from rmsh.methods.base import Method

PAGE, SKIPPED = "report.html", "skipped.csv"
WHEEL = (
    "nothing is trained: the model of the wheel is used, which knows what English captions of everyday photographs "
    "name (61,903 of MS COCO), but no names, written words or drawings"
)

# With this recall@10 of held-out items, the model of the wheel is used and no other is trained, unless there are many
# pairs. `make lab ARGS="few-pairs"`: 2,500 pairs of photographs train a worse model, 100 of drawings a better one.
KNOWN, MANY_PAIRS = 0.5, 20_000

Tell: TypeAlias = Callable[[str], None]  # called with a sentence for the user


class BuildConfig(Config):
    """Options of :func:`rmsh.builder.build`."""

    method: str = Field(DEFAULT_METHOD, description="training method, see `rmsh methods`")
    bits: int | None = Field(None, ge=1, le=MAX_BITS, description="length of a code; None: the method's default")
    seed: int = Field(0, ge=0, description="random seed")
    labels_from: str | None = Field(None, description='"data", "text", or a file of classes; None: data, else text')
    learn_from: Signal | None = Field(
        None,
        description='"labels"; "pairs" of image and text; or "nothing": the model of the wheel. None: labels of the '
        "data, else pairs or nothing, whichever finds more held-out items",
    )
    image_encoder: str = Field(DEFAULT_ENCODERS["image"], description="encoder of images")
    text_encoder: str = Field(DEFAULT_ENCODERS["text"], description="encoder of texts")
    store: Store = Field(
        "codes+vectors", description="what is stored of each image and text: codes, or also vectors, which rank better"
    )
    strict: bool = Field(False, description="fail instead of skipping invalid items")
    options: Mapping[str, Any] = Field(default_factory=dict, description="further options of the method")

    @property
    def default_model(self) -> bool:
        """Whether the model of the wheel has the method, the options and the encoders that are asked for."""
        names = {"image": self.image_encoder, "text": self.text_encoder}
        return self.method == DEFAULT_METHOD and self.bits is None and not self.options and names == DEFAULT_ENCODERS


@dataclass(frozen=True)
class Built:
    """The result of a build."""

    library: Path  # its folder
    report: dict[str, Any]  # content of its report.json
    is_new: bool  # False if the library was up to date and nothing was done


def work_folder(out: Path) -> Path:
    """The folder in which the stages of a build keep their results.

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
    tell: Tell = lambda _: None,
    on_progress: OnProgress = ignore,
) -> Built:
    """Build a library from images and texts; a build that was interrupted is resumed.

    Args:
        data: a folder of images, its metadata file, or tar shards; see :func:`rmsh.open_pairs`.
        out: the folder of the library.
        config: options.
        overwrite: replace a library of other data or options.
        tell: called with sentences for the user: what was found, the expected time, the chosen delta and its reason.
        on_progress: called with a Progress.

    Raises:
        InputError: ``out`` exists and is not a library of the same data and options.
        DataError: nothing can be learned from the data; the message gives the reason.
    """
    folder, config = Path(os.path.abspath(out)), config or BuildConfig.parse({})
    work = work_folder(folder)
    if config.learn_from == "nothing" and not config.default_model:
        raise ConfigError(
            "--learn-from nothing uses the model of the wheel, which has its own method, bits and encoders "
            f"({', '.join(DEFAULT_ENCODERS.values())}); leave these options out, or learn from pairs or labels."
        )
    source = read_source(
        data,
        labels_from=config.labels_from,
        learn_from=config.learn_from,
        method=config.method,
        wheel=config.default_model,
        strict=config.strict,
        work=work,
    )
    for note in source.notes:
        tell(note)
    items_key = source.key()
    unnamed = {"strict"} | ({"store"} if config.store == "codes+vectors" else set())  # as before there was a choice
    key = digest(config.model_dump(mode="json", exclude=unnamed), items_key)
    finished = read_report(folder)
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
        free = shutil.disk_usage(work).free
        if free < size:
            raise RmshError(
                f"The disk of {work} has {free >> 20:,} MB free, and about {size >> 20:,} MB are needed; free some "
                "space, or choose a folder on another disk."
            )
        tell(
            f"{len(source.pairs):,} items with {source.pairs.has_image.sum():,} images and "
            f"{source.pairs.has_text.sum():,} texts: about {max(1, round(seconds / 60))} min and {size >> 20:,} MB of "
            f"disk space on the first run; the library is written to {out}, intermediate results to {work.name} next "
            "to it"
        )
        stages = Stages(work, on_skip=lambda name: tell(f"{name}: already done"))
        report = _run_stages(source, config, stages, items_key=items_key, tell=tell, on_progress=on_progress)
        report["key"] = key
        write_json(work / "library" / REPORT, report)
        _publish(work / "library", folder, replaced=work / "replaced")
    return Built(folder, report, is_new=True)


def _run_stages(
    source: Source, config: BuildConfig, stages: Stages, *, items_key: str, tell: Tell, on_progress: OnProgress
) -> dict[str, Any]:
    """Run the stages after reading that are not finished for the same inputs; returns the report."""
    # Created first, so that unknown options are refused before anything takes long.
    bits = {} if config.bits is None else {"bits": config.bits}
    learner = (
        wheel_model()
        if source.learn_from == "nothing"
        else create(config.method, **{**config.options, **bits, "seed": config.seed})
    )

    # Encode; encoders that learn a vocabulary do not see held-out items.
    held_out = hold_out(source.pairs, seed=config.seed, everything=isinstance(learner, Model))
    if isinstance(learner, Model):
        encoders = restore_encoders(learner, source.pairs)
    else:
        names: dict[Modality, str] = {"image": config.image_encoder, "text": config.text_encoder}
        encoders = prepare_encoders(source.pairs, names, rows=np.flatnonzero(~np.isin(source.pairs.ids, held_out)))
    key = digest(items_key, [encoder.fingerprint for encoder in encoders.values()])
    start, skipped_before = time.perf_counter(), len(source.origin.skipped)
    cache = stages.folder / "features"
    source = encode_source(source, encoders, cache=cache, strict=config.strict, on_progress=on_progress)
    stages.seconds["features"] = round(time.perf_counter() - start, 3)
    for sentence in count_skipped(source.origin.skipped[skipped_before:]):
        tell(sentence)

    # Train, unless the model of the wheel knows the data well; it learned from none of the items, so all are scored.
    pairs, split = source.pairs, split_by(source.pairs, held_out)
    if isinstance(learner, Model):
        model, delta = learner, dict[str, Any]()
    else:
        model, delta = _learn(
            learner, source, config, split, encoders, stages=stages, key=key, tell=tell, on_progress=on_progress
        )
    if model.fingerprint == wheel_model().fingerprint:
        source = replace(source, learn_from="nothing")
        split = split_by(pairs, hold_out(pairs, seed=config.seed, everything=True))
        tell(WHEEL)

    # Score, write the items, report.
    model_key = digest(key, model.fingerprint)
    store_key = digest(model_key, config.store)
    judged = source.classes is None  # classes mined from the texts say nothing about the images
    recall = {} if source.named else recall_of(model, pairs, split)
    scores, words = {}, {}
    if judged:
        scores = stages.run("scores", model_key, lambda: score(model, pairs, split, on_progress=on_progress))
        options: dict[str, Any] = {"store": config.store, "seed": config.seed, "work": stages.folder}
        words = stages.run("words", store_key, lambda: word_precision(model, source, split, **options))
    folder = stages.folder / "library"
    write = partial(_write_library, folder, model, source, config.store, on_progress)
    stages.run("library", store_key, write, exists=folder.is_dir())
    facts = {"delta": delta, "recall": recall, "words": words, "scores": scores, "seconds": dict(stages.seconds)}
    return _write_report(folder, source, config, model, split, facts)


def _learn(
    method: Method,
    source: Source,
    config: BuildConfig,
    split: Split,
    encoders: Mapping[Modality, Encoder],
    *,
    stages: Stages,
    key: str,
    tell: Tell,
    on_progress: OnProgress,
) -> tuple[Model, dict[str, Any]]:
    """The trained model, or that of the wheel if it finds more held-out items; and the choice of delta."""
    pairs, delta = source.pairs, dict[str, Any]()
    may_use_wheel = config.learn_from is None and source.learn_from == "pairs" and config.default_model
    known = _mean_recall(wheel_model(), pairs, split) if may_use_wheel else 0.0
    if known >= KNOWN and complete(pairs).sum() < MANY_PAIRS:
        return wheel_model(), delta
    taught = pairs if source.learn_from == "labels" else replace(pairs, labels=None, class_names=())
    key = digest(key, source.learn_from, method.config.model_dump(mode="json"))
    if source.learn_from == "labels":
        delta = stages.run("bounds", key, lambda: _choose_delta(method, pairs, split))
        tell(describe_delta(delta, method.config.bits))
    model = _train(method, taught, split, encoders, stages=stages, key=key, on_progress=on_progress)
    count = model.facts["items"]
    tell(f"trained on the {source.learn_from} of {count:,} items; {len(split.query):,} were held out")
    if may_use_wheel and (trained := _mean_recall(model, pairs, split)) < known:
        tell(f"held-out items: recall@10 of the trained model is {trained:.3f}, of the model of the wheel {known:.3f}")
        model = wheel_model()
    return model, delta


def _mean_recall(model: Model, pairs: Pairs, split: Split) -> float:
    """Recall@10 of held-out items by codes, mean of both directions; 0 if there are too few."""
    found = [scores["recall@10"]["value"] for scores in recall_of(model, pairs, split).values()]
    return float(np.mean(found)) if found else 0.0


def _choose_delta(method: Method, pairs: Pairs, split: Split) -> dict[str, Any]:
    """The user's delta, or that of the bounds for the training labels.

    A method without such an option does not use it ("asked" is False): then the bounds only inform the user.
    """
    options = method.config
    asked, given = {"asked": hasattr(options, "delta")}, getattr(options, "delta", None)
    if given is not None:
        return asked | {"delta": given, "reason": "set by the user."}
    rows = split.train[method.learns_from(pairs)[split.train]]
    confidence = getattr(options, "confidence", 0.9)
    return asked | choose_delta(np.asarray(pairs.labels)[rows], options.bits, confidence=confidence).to_json()


def _train(
    method: Method,
    pairs: Pairs,
    split: Split,
    encoders: Mapping[Modality, Encoder],
    *,
    stages: Stages,
    key: str,
    on_progress: OnProgress,
) -> Model:
    folder, checkpoint = stages.folder / "model", stages.folder / f"checkpoint-{key}.safetensors"

    def work() -> dict[str, Any]:
        for other in set(stages.folder.glob("checkpoint-*")) - {checkpoint}:
            other.unlink()
        method.fit(pairs.take(split.train), checkpoint=checkpoint, on_progress=on_progress)
        model = method.model.with_encoders({m: encoder.describe() for m, encoder in encoders.items()})
        shutil.rmtree(folder, ignore_errors=True)
        model.save(folder)
        checkpoint.unlink(missing_ok=True)
        return {"fingerprint": model.fingerprint, "items": int(model.facts["items"])}

    stages.run("train", key, work, exists=(folder / "config.json").is_file())
    return load(folder)


def _write_library(folder: Path, model: Model, source: Source, store: Store, on_progress: OnProgress) -> dict[str, Any]:
    shutil.rmtree(folder, ignore_errors=True)
    origin = source.origin
    with Library.create(folder, model, source=None if origin.unpacked else origin.folder, store=store) as library:
        write_items(library, model, source, copy_images=origin.unpacked, on_progress=on_progress)
        library.write_snapshot()
    return {"items": len(source.pairs)}


def _write_report(
    folder: Path, source: Source, config: BuildConfig, model: Model, split: Split, facts: Mapping[str, Any]
) -> dict[str, Any]:
    """Complete the report, and write the files for people into the library's folder."""
    pairs, origin = source.pairs, source.origin
    if facts["recall"] or facts["words"] or facts["scores"]:
        no_scores = ""
    elif source.learn_from == "nothing":
        no_scores = f"No scores: fewer than {LEAST_RANKED} items have an image and a text."
    elif not split.query.size:
        no_scores = (
            f"No scores: fewer than {LEAST_ITEMS} items have an image and a text, so all were used for training and "
            "none were held out."
        )
    else:
        no_scores = "No scores: no held-out item shares a label with another item."
    queries = split.query if split.query.size else np.flatnonzero(complete(pairs))
    with Library.open(folder) as library:
        searches = example_searches(library, pairs.ids[queries], seed=config.seed)
        with library.reading() as connection:
            sizes = bytes_per_item(connection)
    learned_from = 0 if source.learn_from == "nothing" else int(model.facts["items"])
    report = {
        "name": source.name,
        "warning": warn_of(facts["recall"], facts["words"], learned_from=learned_from),
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
        "no_scores": no_scores,
        **facts,
    }
    if report["credit"]:
        write_text(folder / CREDIT, report["credit"] + "\n")
    write_skipped(folder / SKIPPED, origin.skipped)
    write_text(folder / PAGE, render_report(report, images=folder if origin.unpacked else origin.folder))
    return report


def _check_output(folder: Path, *, overwrite: bool) -> None:
    """Refuse a folder whose content would be lost."""
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return
    if not (folder / MANIFEST).is_file():
        raise InputError(f"{folder} exists and is not a library; choose a new folder.")
    if not overwrite:
        raise InputError(
            f"{folder} is a library of other items or options; choose another folder, add new items to it with "
            "`rmsh add`, or replace it with --overwrite."
        )


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
