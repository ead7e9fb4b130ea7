"""The stages of a build between the items and the report, each skipped where it was done for the same inputs."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rmsh.builder.examples import example_searches
from rmsh.builder.features import encode_source
from rmsh.builder.report import about_delta, render_report
from rmsh.builder.scores import LEAST_ITEMS, complete, hold_out, score, split_by
from rmsh.builder.shelf import PICTURES, add_items, own_pictures
from rmsh.builder.stages import Stages, digest
from rmsh.coding.bounds import choose_delta
from rmsh.data.skipped import count_skipped
from rmsh.features import extract
from rmsh.library import Library
from rmsh.methods import create
from rmsh.model import load
from rmsh.types import MODALITIES

if TYPE_CHECKING:
    from rmsh.builder.config import BuildConfig
    from rmsh.builder.source import Source
    from rmsh.data.splits import Split
    from rmsh.features.base import Encoder
    from rmsh.model import Model
    from rmsh.progress import OnProgress
    from rmsh.types import IdArray, Modality

__all__ = ["Road"]


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
            modality: extract.prepare(names[modality], pairs, modality=modality, rows=seen[pairs.has(modality)[seen]])
            for modality in MODALITIES
        }
        self._key = digest(self._key, [encoder.fingerprint for encoder in encoders.values()])
        before, start = len(self.source.origin.skipped), time.perf_counter()
        self.source = encode_source(
            self.source,
            [*encoders.values()],
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
