"""Search a library by words, by an image or by one of its items.

The distance is the number of bits in which two codes differ. A filter restricts the results: `label=dog`,
`text="two dogs"`, `id=7`, combined with `and`, `or`, `not` and parentheses.

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


def search(
    library: Annotated[
        str, typer.Argument(metavar="LIBRARY", help="Library folder, or http://HOST:PORT/NAME of a Milvus collection.")
    ],
    text: Annotated[str | None, typer.Argument(metavar="TEXT", help="Words to search for.")] = None,
    *,
    image: Annotated[Path | None, typer.Option(help="Search with this image file.")] = None,
    like: Annotated[str | None, typer.Option(metavar="ID", help="Find items similar to this ID.")] = None,
    to: Annotated[
        Literal["texts", "images"] | None,
        typer.Option(help="What to find (default: images for words, texts for an image)."),
    ] = None,
    where: Annotated[
        str | None, typer.Option(metavar="FILTER", help='Restrict the results, e.g. "label=dog and not label=cat".')
    ] = None,
    k: Annotated[int, typer.Option("-k", help="Number of results.")] = 10,
    skip: Annotated[int, typer.Option(help="Number of results to skip.")] = 0,
    model: Annotated[Path | None, typer.Option(help="Model folder, if LIBRARY is an address.")] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    from rmsh.index.filters import parse
    from rmsh.search.searcher import Searcher

    console = Console(json=json, quiet=quiet)
    if sum(given is not None for given in (text, image, like)) != 1:
        raise InputError("Give exactly one query: TEXT, --image FILE or --like ID.")
    target = to or ("texts" if image is not None else "images")
    condition = None if where is None else parse(where)
    with Searcher.open(library, model=model) as searcher:
        hits = searcher.run(
            lambda: _query(searcher, text=text, image=image, like=like),
            lambda query: searcher.search(
                query, k, to="text" if target == "texts" else "image", where=condition, skip=skip
            ),
        )
    console.result({"to": target, "hits": [_plain(hit) for hit in hits]}, _shown(hits, target))


def _query(searcher: Searcher, *, text: str | None, image: Path | None, like: str | None) -> Query:
    if image is not None:
        return searcher.image(image)
    return searcher.item(like) if like is not None else searcher.text(text or "")


def _plain(hit: Hit) -> dict[str, Any]:
    item = hit.item
    return {"distance": hit.distance, "id": item.id, "labels": item.labels, "text": item.text, "picture": item.picture}


def _shown(hits: list[Hit], target: str) -> Any:
    if not hits:
        return f"No {target} found; the filter may exclude everything, or the library has no codes of {target}."
    rows = [[hit.item.id, hit.distance, ", ".join(hit.item.labels), hit.item.text or ""] for hit in hits]
    columns = ["id", "distance", "labels", "text"]
    return table(f"The {len(hits)} nearest {target}", columns, rows, words=("labels", "text"))
