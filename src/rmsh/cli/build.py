"""Build a library to search from your own pictures and texts.

DATA is a folder of pictures with metadata.csv, .jsonl or .parquet (file_name, text or caption, labels), or with a .txt
beside each picture, or with a folder a class; or tar shards. A build that was stopped goes on when the same command is
given again.

Example:
    rmsh build my_pictures --out library
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rmsh.cli.console import Console, Json, Quiet, table

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["build"]


def build(
    data: Annotated[Path, typer.Argument(metavar="DATA", help="Your pictures and texts.")],
    out: Annotated[Path, typer.Option(help="The folder of the library.")],
    *,
    labels_from: Annotated[
        str | None,
        typer.Option(metavar="data|text|FILE", help="Where labels are from; by default the data, or else its texts."),
    ] = None,
    method: Annotated[str, typer.Option(help="What learns, see rmsh methods.")] = "glint",
    bits: Annotated[int, typer.Option(help="Length of a code, 1 to 512.")] = 64,
    seed: Annotated[int, typer.Option(help="Everything random follows from it.")] = 0,
    image_encoder: Annotated[str, typer.Option(help="Turns pictures into features.")] = "efficientnet-lite0",
    text_encoder: Annotated[str, typer.Option(help="Turns texts into features.")] = "minilm",
    options: Annotated[list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="Of the method.")] = None,
    strict: Annotated[bool, typer.Option(help="Stop over anything that would be left out.")] = False,
    overwrite: Annotated[bool, typer.Option(help="Replace a library of other items or options.")] = False,
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
    from rmsh.builder.report import DIRECTION_WORDS

    counts, scores = report["counts"], report["scores"]
    summary = f"{out}: {counts['items']:,} items, {report['bits']} bits; the report is {out / 'report.html'}"
    if not scores:
        return [report["no_scores"], summary]
    k = next(iter(scores.values()))["settings"]["k"]
    rows = [
        [
            DIRECTION_WORDS[direction],
            *(f"{found[name][what]:.3f}" for name in ("ndcg", "map") for what in ("value", "chance")),
        ]
        for direction, found in scores.items()
    ]
    title = f"{counts['held_out']:,} held-out items find the others"
    return [table(title, ["", f"NDCG@{k}", "chance", "mAP", "chance"], rows), summary]
