"""Serve a search page and its HTTP interface for a library, or for a collection of a Milvus server.

It listens on this machine alone, unless another host is given; then everything needs a token, which is printed. End it
with Ctrl-C.

Example:
    rmsh serve photos
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rmsh.cli.console import Console, Json, Quiet
from rmsh.core.errors import require

if TYPE_CHECKING:
    from rmsh.serve.server import Listening

__all__ = ["serve"]


def serve(
    library: Annotated[str, typer.Argument(metavar="LIB", help="A library's folder, or http://HOST:PORT/NAME.")],
    *,
    host: Annotated[str, typer.Option(help="The address to listen on; 0.0.0.0 for all.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="0 for any that is free.", min=0, max=65535)] = 8000,
    token: Annotated[
        str | None, typer.Option(envvar="RMSH_TOKEN", help="What clients must know; made where needed and not given.")
    ] = None,
    allow_host: Annotated[list[str] | None, typer.Option(help="A host name that clients use; may be repeated.")] = None,
    model: Annotated[Path | None, typer.Option(help="The model's folder, where LIB is an address.")] = None,
    pictures: Annotated[Path | None, typer.Option(help="The folder of the pictures, where LIB is an address.")] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    for package in ("fastapi", "uvicorn", "python_multipart", "prometheus_client"):
        require(package, "serve")
    from rmsh.search.searcher import Searcher
    from rmsh.serve.server import serve as run

    console = Console(json=json, quiet=quiet)

    def ready(server: Listening) -> None:
        for note in server.notes:
            console.note(f"Not available: {note}")
        console.result({"url": server.url, "token": server.token}, f"Search {library} at {server.link}")
        console.note("Ctrl-C ends the server.")

    with Searcher.open(library, model=model, pictures=pictures) as searcher:
        name = Path(library).resolve().name
        run(searcher, name=name, host=host, port=port, token=token, names=allow_host or (), on_ready=ready)
