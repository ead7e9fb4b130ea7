"""Search a library in the terminal, or serve its search page."""

from __future__ import annotations

import logging
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import typer

from rmsh.cli.console import Console, table
from rmsh.core.errors import InputError, require
from rmsh.core.types import MODALITIES

if TYPE_CHECKING:
    from rmsh.library.items import Hit
    from rmsh.search.query import Query
    from rmsh.serve.server import Listening

FolderOrAddress: TypeAlias = Annotated[
    str, typer.Argument(metavar="LIBRARY", help="Library folder, or http://HOST:PORT/NAME of a Milvus collection.")
]
AddressModel: TypeAlias = Annotated[Path | None, typer.Option(help="Model folder, if LIBRARY is an address.")]


def search(
    console: Console,
    library: FolderOrAddress,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="Words to search for.")] = "",
    *,
    image: Annotated[list[Path] | None, typer.Option(help="Search with this image file; repeatable.")] = None,
    like: Annotated[list[str] | None, typer.Option(metavar="ID", help="Find items like this ID; repeatable.")] = None,
    minus: Annotated[list[str] | None, typer.Option(metavar="TEXT", help="Words to subtract; repeatable.")] = None,
    minus_image: Annotated[list[Path] | None, typer.Option(help="Image file to subtract; repeatable.")] = None,
    minus_like: Annotated[list[str] | None, typer.Option(metavar="ID", help="Item to subtract; repeatable.")] = None,
    to: Annotated[str, typer.Option(metavar="images|texts", help="What to find.")] = "images",
    where: Annotated[
        str | None, typer.Option(metavar="FILTER", help='Restrict the results, e.g. "label=dog and not label=cat".')
    ] = None,
    k: Annotated[int, typer.Option("-k", help="Number of results.")] = 10,
    skip: Annotated[int, typer.Option(help="Number of results to skip.")] = 0,
    rank: Annotated[
        Literal["best", "codes"], typer.Option(help="Order by image, text, labels and words, or by code alone.")
    ] = "best",
    model: AddressModel = None,
) -> None:
    """Search a library by words, images and its own items.

    Several parts are added up: an image and words find what both describe. In words, a lone + adds and a lone -
    subtracts, as in "dog + beach - people"; "a phrase" in quotes must occur as it is, and -word must not.

    The score is 0 for an unrelated item; the distance is the number of bits in which two codes differ. A filter
    restricts the results: `label=dog`, `text="two dogs"`, `id=7`, combined with `and`, `or`, `not` and parentheses.

    Example:
        rmsh search photos "two dogs and a bicycle" -k 5
        rmsh search photos "on the beach - people" --image dog.jpg
        rmsh search photos --image dog.jpg --to texts
    """
    from rmsh.index.filters import parse
    from rmsh.search.searcher import Searcher

    words = " - ".join([text, *(minus or [])])
    if not (words or image or like):
        raise InputError("There is nothing to search for; give TEXT, --image FILE or --like ID.")
    target = to.removesuffix("s")
    if target not in MODALITIES:
        raise InputError(f"--to got {to!r}; give images or texts.")
    condition = None if where is None else parse(where)
    with Searcher.open(library, model=model) as searcher:

        def query() -> Query:
            if not (image or like or minus_image or minus_like):
                return searcher.text(words)
            plus, less = (
                [*map(searcher.image, images or ()), *map(searcher.item, items or ())]
                for images, items in ((image, like), (minus_image, minus_like))
            )
            return searcher.compose(plus, minus=less, text=words)

        def run(made: Query) -> list[Hit]:
            return searcher.search(made, k, to=target, where=condition, skip=skip, rank=rank)

        hits = searcher.run(query, run)
        hints = searcher.hints(condition)
    if hits and hits[0].match is not None and hits[0].match.weak:
        console.note("Nothing in the library matches well; these are the nearest.")
    console.note(*hints)
    value = {"to": f"{target}s", "hits": [_plain(hit) for hit in hits], "hints": hints}
    if hits:
        title = f"The {len(hits)} {'nearest' if rank == 'codes' else 'best'} {target}s"
        console.result(value, table(title, _COLUMNS, [_cells(hit) for hit in hits], words=("labels", "text")))
    else:
        reasons = "the filter may exclude everything, or the library has no codes of"
        console.result(value, f"No {target}s found; {reasons} {target}s.")


def _plain(hit: Hit) -> dict[str, Any]:
    item = {name: getattr(hit.item, name) for name in ("id", "labels", "text", "picture")}
    return {"distance": hit.distance, **item, "match": None if hit.match is None else vars(hit.match)}


_COLUMNS = ("id", "score", "distance", "labels", "text")


def _cells(hit: Hit) -> list[object]:
    score = "" if hit.match is None else f"{hit.match.score:.1f}{' weak' * hit.match.weak}"
    return [hit.item.id, score, hit.distance, ", ".join(hit.item.labels), hit.item.text or ""]


def serve(
    console: Console,
    library: FolderOrAddress,
    *,
    title: Annotated[str | None, typer.Option(metavar="TITLE", help="Title of the page (default: LIBRARY).")] = None,
    host: Annotated[str, typer.Option(metavar="ADDRESS", help="Address to listen on; 0.0.0.0 for all.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on; 0 picks a free port.", min=0, max=65535)] = 8000,
    token: Annotated[
        str | None, typer.Option(metavar="TOKEN", envvar="RMSH_TOKEN", help="Access token; generated if required.")
    ] = None,
    allow_host: Annotated[list[str] | None, typer.Option(help="Host name that clients may use; repeatable.")] = None,
    trusted_proxy: Annotated[
        list[str] | None,
        typer.Option(metavar="ADDRESS", help="Reverse proxy whose X-Forwarded-For and -Proto are used; repeatable."),
    ] = None,
    access_log: Annotated[bool, typer.Option(help="Log requests to standard error.")] = False,
    remember: Annotated[int, typer.Option(help="Recent texts whose codes are kept; 0 for none.", min=0)] = 1024,
    workers: Annotated[
        int, typer.Option(help="Processes that search by words, for many users; 0: the server does.", min=0, max=64)
    ] = 0,
    model: AddressModel = None,
    images: Annotated[Path | None, typer.Option(help="Folder of the images, if LIBRARY is an address.")] = None,
) -> None:
    """Serve the search page and HTTP API of a library.

    Listens on this machine only, unless --host says otherwise. With another --host or --allow-host than this machine,
    every request needs an access token, which is printed. Stop the server with Ctrl-C.

    Example:
        rmsh serve photos --title "Our photographs"
    """
    for package in ("fastapi", "uvicorn", "python_multipart", "prometheus_client"):
        require(package, "serve")
    from rmsh.search.searcher import Searcher
    from rmsh.serve.server import serve as run
    from rmsh.serve.workers import Workers

    def ready(server: Listening) -> None:
        console.note(*(f"Not available: {note}" for note in server.notes))
        console.result({"url": server.url, "token": server.token}, f"Search {library} at {server.link}")
        if allow_host and not trusted_proxy:
            console.note("Behind a reverse proxy, add --trusted-proxy with its address: docs/howto/proxy.md says why.")
        console.note("Press Ctrl-C to stop.")

    if access_log:
        logging.basicConfig(format="%(asctime)s %(message)s", level=logging.INFO)
    open_searcher = partial(Searcher.open, library, model=model, images=images, remember=remember)
    with open_searcher() as searcher, Workers(workers, open_searcher) if workers else nullcontext() as processes:
        name = title or Path(library).resolve().name
        access: dict[str, Any] = {"token": token, "names": allow_host or (), "proxies": trusted_proxy or ()}
        run(searcher, name=name, host=host, port=port, workers=processes, on_ready=ready, **access)
