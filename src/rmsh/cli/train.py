"""Learn hash functions from pairs of pictures and texts.

DATA is a file of matrices (.npz, .mat, .h5), a folder of such files, coco66k:FOLDER, or generated:N.
A run that was stopped goes on when the same command is given again.

Example:
    rmsh train generated:2000 --out model --bits 32 --set epochs=5
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
import yaml

from rmsh.cli.console import Console, Json, Quiet
from rmsh.errors import ConfigError

__all__ = ["parse_options", "train"]


def train(
    data: Annotated[str, typer.Argument(metavar="DATA", help="What to learn from.")],
    out: Annotated[Path, typer.Option(help="The model folder to write.")],
    *,
    method: Annotated[str, typer.Option(help="Which method learns.")] = "rmsh",
    bits: Annotated[int, typer.Option(help="Length of a code, 1 to 512.")] = 64,
    preset: Annotated[str | None, typer.Option(help="A named set of options, such as paper.")] = None,
    seed: Annotated[int, typer.Option(help="Everything random follows from it.")] = 0,
    options: Annotated[list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="An option.")] = None,
    text_encoder: Annotated[str, typer.Option(help="For raw texts: minilm or bag-of-words.")] = "minilm",
    validation: Annotated[bool, typer.Option(help="Leave out 2,000 pairs to choose options on.")] = False,
    strict: Annotated[bool, typer.Option(help="Refuse incomplete items instead of skipping them.")] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    from rmsh import pipeline
    from rmsh.data.open import open_pairs
    from rmsh.features.extract import cache_folder
    from rmsh.methods import create

    console = Console(json=json, quiet=quiet)
    learner = create(method, preset=preset, bits=bits, seed=seed, **parse_options(options or []))
    opened = open_pairs(data, strict=strict)
    for note in opened.notes:
        console.note(note)
    opened = pipeline.for_validation(opened) if validation else opened
    console.note(
        f"{method} learns {bits}-bit codes from {len(pipeline.training_rows(opened)):,} of {len(opened.pairs):,} pairs "
        f"of {opened.name}; the model goes to {out}."
    )
    with console.progress() as report:
        model = pipeline.learn(
            learner,
            opened,
            out=out,
            encoders={**pipeline.DEFAULT_ENCODERS, "text": text_encoder},
            cache=cache_folder(),
            strict=strict,
            on_progress=report,
        )
    for sentence in _told(model.facts):
        console.note(sentence)
    result = {"model": str(out), "fingerprint": model.fingerprint, "bits": model.bits, "facts": dict(model.facts)}
    console.result(result, f"{out}: {model.method}, {model.bits} bits, fingerprint {model.fingerprint}")


def parse_options(options: list[str]) -> dict[str, Any]:
    """NAME=VALUE pairs with values as YAML reads them: numbers, true, null, words."""
    parsed: dict[str, Any] = {}
    for option in options:
        name, equals, value = option.partition("=")
        if not equals or not name:
            raise ConfigError(f"--set got {option!r}; write NAME=VALUE, such as --set epochs=5.")
        parsed[name.strip().replace("-", "_")] = yaml.safe_load(value)
    return parsed


def _told(facts: Any) -> list[str]:
    """What a user should hear of a fit: items left out, and which delta was used and why."""
    skipped = [f"{count:,} items {reason} were skipped." for reason, count in facts.get("skipped", {}).items()]
    delta = facts.get("delta", {})
    return [*skipped, *([f"delta is {delta['delta']}: {delta['reason']}"] if delta else [])]
