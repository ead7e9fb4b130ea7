"""Compute bounds of delta, list the methods, train one on pairs of images and texts, and encode data with the model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from rmsh.cli.console import Console, ExecutorName, RayAddress, listed_numbers, table
from rmsh.codes import check_bits
from rmsh.core.errors import ConfigError, DataError
from rmsh.core.files import cache_folder
from rmsh.core.types import Modality
from rmsh.data.open import open_pairs
from rmsh.data.records import Skipped, count_skipped
from rmsh.methods import DEFAULT_METHOD, create, method_class

if TYPE_CHECKING:
    from rmsh.model import Model

MethodOptions: TypeAlias = Annotated[
    list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="Option of the method.")
]
_MANY_DOUBTED = 0.05  # share of doubted labels that is worth a note
_SEPARATE_OPTIONS = ("bits", "seed")  # which have their own command-line options
_METHOD_COLUMNS = ("name", "needs", "what it does", "reference")
_OPTION_COLUMNS = ("option", "values", "default", "what it does")


def methods(
    console: Console,
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="Method whose options to show.")] = None,
) -> None:
    """List the hashing methods, or show the options of one method.

    Example:
        rmsh methods
        rmsh methods cmfh
    """
    from rmsh.methods.catalogue import catalogue, describe

    if name is not None:
        entry = describe(name, method_class(name))
        rows = [[o.name, o.allowed, "none" if o.default is None else o.default, o.description] for o in entry.options]
        console.result(
            asdict(entry),
            f"{entry.name}: {entry.summary}",
            f"{entry.reference}; {'needs labels' if entry.supervised else 'needs no labels'}.",
            f"Presets: {', '.join(entry.presets) or 'none'}.",
            table("Options", _OPTION_COLUMNS, rows, words=_OPTION_COLUMNS),
        )
        return
    entries, missing = catalogue()
    console.note(*missing)
    rows = [[e.name, "labels" if e.supervised else "no labels", e.summary, e.reference] for e in entries]
    console.result(
        {"methods": [asdict(entry) for entry in entries], "missing": missing},
        table("Methods", _METHOD_COLUMNS, rows, words=_METHOD_COLUMNS),
        "Options (--bits, --seed; others as --set NAME=VALUE); `rmsh methods NAME` explains them:",
        *(f"{e.name}: {', '.join(option.name for option in e.options)}" for e in entries),
    )


def train(
    console: Console,
    data: Annotated[str, typer.Argument(metavar="DATA", help="Training data.")],
    out: Annotated[Path, typer.Option(help="Model folder to create.")],
    *,
    method: Annotated[str, typer.Option(help="Method to train; see `rmsh methods`.")] = DEFAULT_METHOD,
    bits: Annotated[int | None, typer.Option(help="Code length, 1 to 512 (default: that of the method).")] = None,
    preset: Annotated[str | None, typer.Option(help="Named set of options, such as paper.")] = None,
    seed: Annotated[int, typer.Option(help="Random seed.")] = 0,
    options: MethodOptions = None,
    image_encoder: Annotated[str, typer.Option(help="Encoder of raw images; also timm:NAME.")] = "efficientnet-lite0",
    text_encoder: Annotated[str, typer.Option(help="Encoder of raw texts; also bag-of-words.")] = "minilm",
    queries: Annotated[int | None, typer.Option(help="Rows to hold out as queries, if DATA has no split.")] = None,
    protocol: Annotated[
        str, typer.Option(metavar="paper|unseen", help="unseen: hold the database out of training.")
    ] = "paper",
    validation: Annotated[bool, typer.Option(help="Hold out 2,000 pairs for choosing options.")] = False,
    strict: Annotated[bool, typer.Option(help="Fail instead of skipping invalid items.")] = False,
) -> None:
    """Train a hashing method on pairs of images and texts.

    DATA is a matrix file (.npz, .mat), a folder of matrix files or of images, coco66k:FOLDER, or generated:N. If
    interrupted, run the same command again to continue.

    Example:
        rmsh train features --out model --bits 64 --queries 1000
        rmsh train generated:2000 --out model --bits 32 --set epochs=5
    """
    from rmsh import pipeline

    length = {} if bits is None else {"bits": bits}
    learner = create(method, preset=preset, seed=seed, **length, **parse_options(options or []))
    encoders: dict[Modality, str] = {"image": image_encoder, "text": text_encoder}
    pipeline.check_training(out, encoders)
    with console.progress() as report:
        opened = open_pairs(data, strict=strict, on_progress=report)
    if queries is not None:
        opened = pipeline.with_queries(opened, queries)
    if opened.split is None:
        console.note(f"{data} has no split, so all items are trained on; --queries N holds some out.")
    opened = pipeline.for_protocol(opened, protocol, validation=validation)
    console.note(
        *opened.notes,
        f"Training {learner.name}, {learner.config.bits} bits, on {len(pipeline.training_rows(opened)):,} of "
        f"{len(opened.pairs):,} pairs of {opened.name}; writing the model to {out}.",
    )
    with console.progress() as report:
        model = pipeline.learn(
            learner,
            opened,
            out=out,
            encoders=encoders,
            cache=cache_folder(),
            strict=strict,
            on_skipped=None if strict else partial(_note_unreadable, console),
            on_progress=report,
        )
    console.note(*_summary(model.facts))
    result = {"model": str(out), "fingerprint": model.fingerprint, "bits": model.bits, "facts": dict(model.facts)}
    console.result(result, f"{out}: {model.method}, {model.bits} bits, fingerprint {model.fingerprint}")


def _note_unreadable(console: Console, skipped: Sequence[Skipped]) -> None:
    console.note(f"{len(skipped):,} unreadable images count as missing; the first: {skipped[0].reason}")


def parse_options(options: list[str]) -> dict[str, Any]:
    """Parse NAME=VALUE pairs; values are YAML scalars: numbers, true, null, words."""
    import yaml

    parsed: dict[str, Any] = {}
    for option in options:
        name, equals, value = option.partition("=")
        if not equals or not name:
            raise ConfigError(f"--set got {option!r}; write NAME=VALUE, such as --set epochs=5.")
        if name.strip() in _SEPARATE_OPTIONS:
            raise ConfigError(f"--set got {option!r}; use --{name.strip()} {value} instead.")
        try:
            parsed[name.strip().replace("-", "_")] = yaml.safe_load(value)
        except yaml.YAMLError:
            raise ConfigError(f"--set got {option!r}; give a number, true, false, null or a word.") from None
    return parsed


def _summary(facts: Any) -> list[str]:
    """Sentences about a fit: skipped items, doubted labels, and which delta was used and why."""
    lines = [f"{count:,} items {reason} were skipped." for reason, count in facts.get("skipped", {}).items()]
    doubted = 0.0 if facts.get("trusted") is None else 1 - facts["trusted"]
    if doubted > _MANY_DOUBTED:
        lines.append(
            f"About {100 * doubted:.0f} % of the items seem to have wrong labels and get a lower weight; check the "
            "labels, or trust all of them with --set check_labels=false."
        )
    if delta := facts.get("delta", {}):
        lines.append(f"delta is {delta['delta']}: {delta['reason']}")
    return lines


def encode(
    console: Console,
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="Model folder.")],
    data: Annotated[str, typer.Argument(metavar="DATA", help="Data to encode, as for `rmsh train`; also a URL.")],
    out: Annotated[str, typer.Option(metavar="PATH", help="Codes file to write (.npz), or folder or URL of shards.")],
    *,
    protocol: Annotated[str | None, typer.Option(metavar="paper|unseen", help="Protocol whose split to use.")] = None,
    validation: Annotated[bool, typer.Option(help="Use the split of `rmsh train --validation`.")] = False,
    no_features: Annotated[bool, typer.Option(help="Leave the features out of shards.")] = False,
    executor: ExecutorName = None,
    address: RayAddress = None,
) -> None:
    """Encode images and texts with a trained model.

    A codes file contains the codes of both modalities, IDs, labels and the split, as `rmsh evaluate` reads them. The
    split is that of `rmsh train` if DATA has the same IDs, else that of DATA. Shards are written for images and texts
    of any number, by many machines; `rmsh library load` and `rmsh library push` read them. If interrupted, run the same
    command again to continue.

    Example:
        rmsh encode model generated:2000 --out codes.npz
        rmsh encode model photos --out shards --executor ray --address 10.0.0.1:6379
    """
    from rmsh import pipeline
    from rmsh.features.executors import open_executor
    from rmsh.model import load

    learned = load(model)
    if not out.endswith(".npz"):
        with open_executor(executor, address) as place, console.progress() as report:
            _encode_shards(console, learned, data, out, features=not no_features, executor=place, on_progress=report)
        return
    with console.progress() as report:
        opened = open_pairs(data, on_progress=report)
    console.note(*opened.notes)
    used = pipeline.split_of_training(model, opened)
    if used is None or not used.query.size or (opened.split is not None and (validation or protocol)):
        opened = pipeline.for_protocol(opened, protocol or "paper", validation=validation)
    else:
        opened = replace(opened, split=used)
    with open_executor(executor, address) as place, console.progress() as report:
        told: dict[str, Any] = {"on_skipped": partial(_note_unreadable, console), "on_progress": report}
        codes = pipeline.code(learned, opened, trained=used, cache=cache_folder(), executor=place, **told)
    codes.save(Path(out))
    console.note(*codes.leak())
    count = len(codes.ids)
    console.result(
        {"codes": out, "items": count, "bits": codes.bits, "model": learned.fingerprint},
        f"{out}: {count:,} items, {codes.bits} bits",
    )


def _encode_shards(console: Console, model: Model, data: str, out: str, **options: Any) -> None:
    from rmsh.shards import encode_shards

    manifest, skipped = encode_shards(model, data, out, **options)
    console.note(*count_skipped(skipped))
    facts = {name: manifest[name] for name in ("items", "bits", "model")} | {"shards": len(manifest["shards"])}
    readable = f"{out}: {facts['items']:,} items in {facts['shards']:,} shards, {model.bits} bits"
    console.result({"codes": out, **facts, "skipped": len(skipped)}, readable)


def bounds(
    console: Console,
    data: Annotated[str, typer.Argument(metavar="DATA", help="Data; only its labels are read.")],
    bits: Annotated[
        list[str] | None, typer.Option("--bits", "-b", metavar="N,N,...", help="Code lengths (default: 16,32,64,128).")
    ] = None,
    confidence: Annotated[float, typer.Option(help="Confidence p of the lower bound, between 0.5 and 1.")] = 0.9,
) -> None:
    """Compute bounds on the minimum distance delta from labels.

    A delta is chosen for each code length. DATA is a file or folder with labels, or a known data set. If it has a
    split, its training items are used.

    Example:
        rmsh bounds mirflickr25k-lall.mat --bits 16,32,64,128
    """
    from rmsh.coding.bounds import choose_delta
    from rmsh.coding.entropy import LabelStatistics

    lengths = code_lengths(bits or []) or [16, 32, 64, 128]
    opened = open_pairs(data, skip=("images", "texts"))
    console.note(*opened.notes)
    labels = opened.pairs.labels
    if labels is None:
        raise DataError(f"{opened.name} has no labels, and the bounds need them; give data with labels.")
    if opened.split is not None:
        console.note(f"Using the {len(opened.split.train):,} training items of the split.")
        labels = labels[opened.split.train]
    statistics = LabelStatistics.of(labels)
    choices = [choose_delta(statistics, length, confidence=confidence) for length in lengths]
    rows = [
        [
            choice.bits,
            f"{choice.paper.lower:.2f}",
            choice.paper.upper or "none",
            "yes" if choice.paper.feasible else "no",
            choice.delta if choice.feasible else f"{choice.delta}, infeasible",
        ]
        for choice in choices
    ]
    counts = {name: getattr(statistics, name) for name in ("items", "without_labels", "classes", "labels_per_item")}
    entropy = {form: statistics.entropy(form) for form in ("independent", "joint")}
    title = f"Bounds of the paper at confidence {confidence:g}, and the delta chosen"
    console.result(
        counts | {"entropy": entropy, "confidence": confidence, "choices": [choice.to_json() for choice in choices]},
        f"{statistics.items:,} items with labels, {statistics.without_labels:,} without; {statistics.classes} classes, "
        f"{statistics.labels_per_item:.2f} labels per item",
        f"H(L) = {entropy['independent']:.2f} bits with independent classes (the paper's form), "
        f"{entropy['joint']:.2f} jointly (biased low)",
        table(title, ["bits", "lower", "upper", "feasible", "delta"], rows),
        *(f"{choice.bits} bits, delta {choice.delta}: {choice.reason}" for choice in choices),
    )


def code_lengths(words: Sequence[str]) -> list[int]:
    """Sorted, distinct code lengths."""
    return sorted({check_bits(length) for length in listed_numbers(words, "--bits")})
