"""Serve the search page and HTTP API of a library.

Listens on this machine only, unless --host says otherwise; then every request needs an access token, which is
printed. Stop the server with Ctrl-C.

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


def serve(
    library: Annotated[
        str, typer.Argument(metavar="LIBRARY", help="Library folder, or http://HOST:PORT/NAME of a Milvus collection.")
    ],
    *,
    host: Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0 means all.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on; 0 picks a free port.", min=0, max=65535)] = 8000,
    token: Annotated[
        str | None, typer.Option(envvar="RMSH_TOKEN", help="Access token; generated if required and not given.")
    ] = None,
    allow_host: Annotated[list[str] | None, typer.Option(help="Host name that clients may use; repeatable.")] = None,
    model: Annotated[Path | None, typer.Option(help="Model folder, if LIBRARY is an address.")] = None,
    images: Annotated[
        Path | None, typer.Option("--images", "--pictures", help="Folder of the images, if LIBRARY is an address.")
    ] = None,
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
        console.note("Press Ctrl-C to stop.")

    with Searcher.open(library, model=model, images=images) as searcher:
        name = Path(library).resolve().name
        run(searcher, name=name, host=host, port=port, token=token, names=allow_host or (), on_ready=ready)
