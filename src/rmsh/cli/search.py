"""Find pictures or texts in a library, by words, by a picture, or by an item that is there.

The distance is the number of bits in which two codes differ. A filter says which items may be found: `label=dog`,
`text="two dogs"`, `id=7`, joined by `and`, `or`, `not` and parentheses.

Example:
    rmsh search photos "two dogs and a bicycle" -k 5
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from rmsh.cli.console import Console, Json, Quiet, table
from rmsh.core.errors import InputError

if TYPE_CHECKING:
    from rmsh.library.items import Hit
    from rmsh.search.searcher import Query, Searcher

__all__ = ["search"]


def search(
    library: Annotated[str, typer.Argument(metavar="LIB", help="A library's folder, or http://HOST:PORT/NAME.")],
    text: Annotated[str | None, typer.Argument(metavar="TEXT", help="Words to search with.")] = None,
    *,
    image: Annotated[Path | None, typer.Option(help="A picture to search with.")] = None,
    like: Annotated[str | None, typer.Option(metavar="ID", help="An item to search onward from.")] = None,
    to: Annotated[
        Literal["texts", "images"] | None,
        typer.Option(help="What to find; by default pictures for words, texts for a picture."),
    ] = None,
    where: Annotated[str | None, typer.Option(metavar="FILTER", help='Such as "label=dog and not label=cat".')] = None,
    k: Annotated[int, typer.Option("-k", help="How many to find.")] = 10,
    skip: Annotated[int, typer.Option(help="How many of the nearest to pass over.")] = 0,
    model: Annotated[Path | None, typer.Option(help="The model's folder, where LIB is an address.")] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    from rmsh.index.filters import parse
    from rmsh.search.searcher import Searcher

    console = Console(json=json, quiet=quiet)
    if sum(given is not None for given in (text, image, like)) != 1:
        raise InputError("Give one thing to search with: words, --image FILE or --like ID.")
    target = to or ("texts" if image is not None else "images")
    condition = None if where is None else parse(where)
    with Searcher.open(library, model=model) as searcher:
        hits = searcher.asked(
            lambda: _query(searcher, text=text, image=image, like=like),
            lambda query: searcher.search(
                query, k, to="text" if target == "texts" else "image", where=condition, skip=skip
            ),
        )
    console.result({"to": target, "hits": [_plain(hit) for hit in hits]}, _shown(hits, target))


def _query(searcher: Searcher, *, text: str | None, image: Path | None, like: str | None) -> Query:
    if image is not None:
        return searcher.picture(image)
    return searcher.item(like) if like is not None else searcher.text(text or "")


def _plain(hit: Hit) -> dict[str, Any]:
    item = hit.item
    return {"distance": hit.distance, "id": item.id, "labels": item.labels, "text": item.text, "picture": item.picture}


def _shown(hits: list[Hit], target: str) -> Any:
    if not hits:
        return f"No {target} were found; a filter may admit none, or the library has no codes of {target}."
    rows = [[hit.item.id, hit.distance, ", ".join(hit.item.labels), hit.item.text or ""] for hit in hits]
    columns = ["id", "distance", "labels", "text"]
    return table(f"The {len(hits)} nearest {target}", columns, rows, words=("labels", "text"))
