"""Prepare benchmark data sets, and describe any data set.

Example:
    rmsh data prepare mirflickr25k --root mirflickr --out pairs
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from rmsh.cli.console import Console  # noqa: TC001  # typer reads it


def list(console: Console) -> None:  # noqa: A001  # the name of the command
    """List the benchmarks, their publishers and their splits.

    Example:
        rmsh data list
    """
    from rmsh.data.benchmarks.base import BENCHMARKS

    lines = [
        f"{benchmark.name}: {benchmark.title}\n  {benchmark.published}\n"
        + "\n".join(f"  split {protocol.name}: {protocol.about}" for protocol in benchmark.protocols)
        for benchmark in BENCHMARKS.values()
    ]
    console.result({name: benchmark.model_dump() for name, benchmark in BENCHMARKS.items()}, *lines)


def prepare(
    console: Console,
    name: Annotated[str, typer.Argument(metavar="NAME", help="mirflickr25k, nuswide or mscoco.")],
    root: Annotated[Path, typer.Option(help="Folder with the publisher's files, or with feature matrices.")],
    out: Annotated[Path, typer.Option(help="Folder to write the pairs to.")],
    *,
    split: Annotated[str, typer.Option(help="Split to draw; see `rmsh data list`.")] = "paper",
    seed: Annotated[int, typer.Option(min=0, help="Random seed of the split.")] = 0,
    stratified: Annotated[bool, typer.Option(help="Sample each class in proportion.")] = False,
    images: Annotated[str | None, typer.Option(metavar="FILE", help="Image features by ID.")] = None,
    texts: Annotated[str | None, typer.Option(metavar="FILE", help="Text features by ID.")] = None,
    without_images: Annotated[bool, typer.Option(help="Prepare without images and image features.")] = False,
    paper_inputs: Annotated[bool, typer.Option(help="Require features of the same width as in the paper.")] = False,
) -> None:
    """Read a benchmark as published, draw its split, and write pairs for `rmsh train` and `rmsh bounds`.

    Nothing is downloaded; missing files are listed with the publisher's page.

    Example:
        rmsh data prepare mscoco --root coco --out pairs --images resnet152.npz --texts skip-thought.npz
    """
    from rmsh.data.benchmarks.prepare import prepare as write_pairs

    console.note(f"Reading {name} from {root}; writing pairs to {out}.")
    manifest = write_pairs(
        name,
        root,
        out=out,
        split=split,
        seed=seed,
        stratified=stratified,
        images=images,
        texts=texts,
        without_images=without_images,
        paper_inputs=paper_inputs,
    )
    console.note(*manifest["notes"])
    drawn = manifest["split"]
    console.result(
        {"pairs": str(out), **{key: manifest[key] for key in ("items", "split", "splits", "notes")}},
        f"{out}: {manifest['items']:,} pairs: database {drawn['database']:,}, queries {drawn['query']:,}, "
        f"training {drawn['train']:,}",
        *(f"{file}: SHA-256 {digest}" for file, digest in manifest["splits"].items()),
    )


def card(
    console: Console,
    data: Annotated[str, typer.Argument(metavar="NAME", help="Benchmark, prepared pairs, or any other data.")],
) -> None:
    """Describe a data set: counts, labels, entropy, dissimilar pairs, chance levels.

    The name of a benchmark shows its declaration; prepared pairs show their own figures as well. `rmsh bounds` computes
    delta.

    Example:
        rmsh data card pairs
    """
    from rmsh.data.benchmarks.base import BENCHMARKS
    from rmsh.data.open import open_pairs
    from rmsh.datacard import card_sentences, declared_sentences, make_card

    if data in BENCHMARKS:
        declared = BENCHMARKS[data]
        console.result({"benchmark": declared.model_dump(), "card": None}, *declared_sentences(declared))
        return
    opened = open_pairs(data)
    console.note(*opened.notes)
    made, benchmark = make_card(opened), BENCHMARKS.get(opened.name)
    console.result(
        {"benchmark": None if benchmark is None else benchmark.model_dump(), "card": asdict(made)},
        *card_sentences(made),
        *([] if benchmark is None else declared_sentences(benchmark)),
    )
