"""Build a searchable library from images and texts.

DATA is a folder of images with metadata.csv, .jsonl or .parquet (file_name, text or caption, labels), or with a .txt
file next to each image, or with one folder per class; or tar shards. If interrupted, run the same command again to
continue.

Example:
    rmsh build my_images --out library
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rmsh.cli.console import Console, Json, Quiet, table
from rmsh.methods import DEFAULT_METHOD

if TYPE_CHECKING:
    from rich.table import Table


def build(
    data: Annotated[Path, typer.Argument(metavar="DATA", help="Images and texts.")],
    out: Annotated[Path, typer.Option(help="Library folder to create.")],
    *,
    labels_from: Annotated[
        str | None,
        typer.Option(metavar="data|text|FILE", help="Source of labels (default: the data, else its texts)."),
    ] = None,
    method: Annotated[str, typer.Option(help="Method to train; see `rmsh methods`.")] = DEFAULT_METHOD,
    bits: Annotated[int, typer.Option(help="Code length, 1 to 512.")] = 64,
    seed: Annotated[int, typer.Option(help="Random seed.")] = 0,
    image_encoder: Annotated[str, typer.Option(help="Image encoder.")] = "efficientnet-lite0",
    text_encoder: Annotated[str, typer.Option(help="Text encoder.")] = "minilm",
    options: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="Option of the method.")
    ] = None,
    strict: Annotated[bool, typer.Option(help="Fail instead of skipping invalid items.")] = False,
    overwrite: Annotated[bool, typer.Option(help="Replace a library built from other items or options.")] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    from rmsh.builder import BuildConfig
    from rmsh.builder import build as run
    from rmsh.cli.train import parse_options

    console = Console(json=json, quiet=quiet)
    config = BuildConfig.parse(
        {
            "method": method,
            "bits": bits,
            "seed": seed,
            "labels_from": labels_from,
            "image_encoder": image_encoder,
            "text_encoder": text_encoder,
            "strict": strict,
            "options": parse_options(options or []),
        }
    )
    with console.progress() as report:
        built = run(data, out, config=config, overwrite=overwrite, tell=console.note, on_progress=report)
    value = {"library": str(out), "is_new": built.is_new, "report": built.report}
    console.result(value, *_readable(out, built.report))


def _readable(out: Path, report: dict[str, Any]) -> list[str | Table]:
    from rmsh.builder.report import DIRECTION_NAMES

    counts, scores = report["counts"], report["scores"]
    summary = f"{out}: {counts['items']:,} items, {report['bits']} bits; report: {out / 'report.html'}"
    if not scores:
        return [report["no_scores"], summary]
    k = next(iter(scores.values()))["settings"]["k"]
    rows = [
        [
            DIRECTION_NAMES[direction],
            *(f"{found[name][what]:.3f}" for name in ("ndcg", "map") for what in ("value", "chance")),
        ]
        for direction, found in scores.items()
    ]
    title = f"{counts['held_out']:,} held-out items as queries"
    return [table(title, ["", f"NDCG@{k}", "chance", "mAP", "chance"], rows), summary]
