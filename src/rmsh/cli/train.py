"""Learn hash functions from pairs of pictures and texts.

DATA is a file of matrices (.npz, .mat, .h5), a folder of such files or of pictures, coco66k:FOLDER, or generated:N.
A run that was stopped goes on when the same command is given again.

Example:
    rmsh train generated:2000 --out model --bits 32 --set epochs=5
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
import yaml

from rmsh.cli.console import Console, Json, Quiet
from rmsh.core.errors import ConfigError

if TYPE_CHECKING:
    from rmsh.data.open import Opened
    from rmsh.data.records import Skipped
    from rmsh.methods.base import Method

__all__ = ["parse_options", "tell_unreadable", "train"]

_WORTH_TELLING = 0.05  # the share of labels that are not believed
_OWN_OPTIONS = ("bits", "seed")  # of the command line, for every method


def train(
    data: Annotated[str, typer.Argument(metavar="DATA", help="What to learn from.")],
    out: Annotated[Path, typer.Option(help="The model folder to write.")],
    *,
    method: Annotated[str, typer.Option(help="Which method learns.")] = "rmsh",
    bits: Annotated[int, typer.Option(help="Length of a code, 1 to 512.")] = 64,
    preset: Annotated[str | None, typer.Option(help="A named set of options, such as paper.")] = None,
    seed: Annotated[int, typer.Option(help="Everything random follows from it.")] = 0,
    options: Annotated[list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="An option.")] = None,
    image_encoder: Annotated[str, typer.Option(help="For raw pictures; or timm:NAME.")] = "efficientnet-lite0",
    text_encoder: Annotated[str, typer.Option(help="For raw texts; or bag-of-words.")] = "minilm",
    validation: Annotated[bool, typer.Option(help="Leave out 2,000 pairs to choose options on.")] = False,
    strict: Annotated[bool, typer.Option(help="Refuse incomplete items instead of skipping them.")] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    from rmsh import pipeline
    from rmsh.core.cache import cache_folder
    from rmsh.data.open import open_pairs
    from rmsh.methods import create

    console = Console(json=json, quiet=quiet)
    learner = create(method, preset=preset, bits=bits, seed=seed, **parse_options(options or []))
    opened = open_pairs(data, strict=strict)
    opened = pipeline.for_validation(opened) if validation else opened
    for note in (*opened.notes, _plan(learner, opened, out)):
        console.note(note)
    raw: dict[str, Any] = {
        "encoders": {"image": image_encoder, "text": text_encoder},
        "cache": cache_folder(),
        "on_skipped": None if strict else partial(tell_unreadable, console),
    }
    with console.progress() as report:
        model = pipeline.learn(learner, opened, out=out, strict=strict, on_progress=report, **raw)
    for sentence in _told(model.facts):
        console.note(sentence)
    result = {"model": str(out), "fingerprint": model.fingerprint, "bits": model.bits, "facts": dict(model.facts)}
    console.result(result, f"{out}: {model.method}, {model.bits} bits, fingerprint {model.fingerprint}")


def tell_unreadable(console: Console, skipped: Sequence[Skipped]) -> None:
    """Say how many images count as missing, and why the first does."""
    console.note(f"{len(skipped):,} unreadable images count as missing; the first: {skipped[0].reason}")


def _plan(learner: Method, opened: Opened, out: Path) -> str:
    """What will happen, before it does."""
    from rmsh.pipeline import training_rows

    return (
        f"{learner.name} learns {learner.config.bits}-bit codes from {len(training_rows(opened)):,} of "
        f"{len(opened.pairs):,} pairs of {opened.name}; the model goes to {out}."
    )


def parse_options(options: list[str]) -> dict[str, Any]:
    """NAME=VALUE pairs with values as YAML reads them: numbers, true, null, words."""
    parsed: dict[str, Any] = {}
    for option in options:
        name, equals, value = option.partition("=")
        if not equals or not name:
            raise ConfigError(f"--set got {option!r}; write NAME=VALUE, such as --set epochs=5.")
        if name.strip() in _OWN_OPTIONS:
            raise ConfigError(f"--set got {option!r}; this has an option of its own: give --{name.strip()} {value}.")
        try:
            parsed[name.strip().replace("-", "_")] = yaml.safe_load(value)
        except yaml.YAMLError:
            raise ConfigError(f"--set got {option!r}; give a number, true, false, null or a word as value.") from None
    return parsed


def _told(facts: Any) -> list[str]:
    """What a user should hear of a fit: items left out, labels not believed, and which delta was used and why."""
    told = [f"{count:,} items {reason} were skipped." for reason, count in facts.get("skipped", {}).items()]
    doubted = 1 - facts.get("trusted", 1.0)
    if doubted > _WORTH_TELLING:
        told.append(
            f"About {100 * doubted:.0f} % of the items seem to have the labels of another item and count less; look at "
            "your labels, or believe them all with --set check_labels=false."
        )
    if delta := facts.get("delta", {}):
        told.append(f"delta is {delta['delta']}: {delta['reason']}")
    return told
