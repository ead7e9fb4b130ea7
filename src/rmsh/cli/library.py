"""Look after a library: info, verify, repair, compact, backup, restore, upgrade, export, push.

Example:
    rmsh library info photos
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from rmsh.cli.console import Console, Json, Quiet, table

__all__ = ["app"]

app = typer.Typer(help=__doc__, no_args_is_help=True, rich_markup_mode=None)

Folder: TypeAlias = Annotated[Path, typer.Argument(metavar="LIB", help="The folder of a library.")]


@app.command()
def info(library: Folder, *, json: Json = False, quiet: Quiet = False) -> None:
    """Show what a library holds: counts, sizes, whose codes.

    Example:
        rmsh library info photos
    """
    from rmsh.library import Library
    from rmsh.library.maintenance import describe

    console = Console(json=json, quiet=quiet)
    with Library.open(library) as opened:
        found = describe(opened)
    codes = (
        f"codes of {found.bits} bits by the model {found.model}, generation {found.generation}, format {found.format}"
    )
    console.result(
        asdict(found),
        table(f"{library}: {codes}", ["what", "count"], [[what, f"{n:,}"] for what, n in found.counts.items()]),
        table("Files", ["file", "bytes"], [[name, f"{size:,}"] for name, size in found.bytes.items()]),
        f"pictures: in {found.source or 'the library itself'}",
        f"snapshot: {found.snapshot}; last change: {found.changes:,}",
    )


@app.command()
def verify(library: Folder, *, json: Json = False, quiet: Quiet = False) -> None:
    """Check that a library is whole; ends with exit code 1 when it is not.

    Example:
        rmsh library verify photos
    """
    from rmsh.library.verify import verify as check

    console = Console(json=json, quiet=quiet)
    console.note(f"Checking {library}: every page of the database, every code, the model and the snapshot.")
    verdict = check(library)
    whole = f"{library} is whole; checked: {', '.join(verdict.checked)}."
    console.result({"whole": not verdict.problems, **asdict(verdict)}, *(verdict.problems or [whole]))
    if verdict.problems:
        raise typer.Exit(1)


@app.command()
def compact(library: Folder, *, json: Json = False, quiet: Quiet = False) -> None:
    """Drop what nobody needs any more, such as codes of older models, and make the files small.

    Example:
        rmsh library compact photos
    """
    from rmsh.library import Library
    from rmsh.library.maintenance import compact as shrink

    console = Console(json=json, quiet=quiet)
    console.note(f"Compacting {library}: the database is written anew and needs about its own size of free disk space.")
    before = _size(library)
    with Library.open(library, writable=True) as opened:
        shrink(opened)
    after = _size(library)
    console.result({"bytes_before": before, "bytes": after}, f"{library}: {before:,} bytes before, {after:,} now")


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


@app.command()
def backup(
    library: Folder,
    out: Annotated[Path, typer.Option(help="The folder to write; a new one, or an empty one.")],
    *,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Copy a library, while others may write to it, and verify the copy.

    Example:
        rmsh library backup photos --out photos-copy
    """
    from rmsh.library import Library
    from rmsh.library.backup import backup as copy

    console = Console(json=json, quiet=quiet)
    console.note(f"Copying {library} to {out}, then verifying the copy.")
    with Library.open(library) as opened:
        missing = copy(opened, out)
    if missing:
        console.note(f"{missing:,} pictures were not where the items say, and are not in the copy.")
    console.result({"backup": str(out), "missing_pictures": missing}, f"{out}: a whole copy of {library}")


@app.command()
def restore(
    backup: Annotated[Path, typer.Argument(metavar="BACKUP", help="Folder that `rmsh library backup` wrote.")],
    to: Annotated[Path, typer.Option(metavar="LIBRARY", help="Library to restore; a new or empty folder works too.")],
    *,
    replace: Annotated[bool, typer.Option("--replace", help="Replace a library with another ID.")] = False,
    keep_replaced: Annotated[bool, typer.Option("--keep-replaced", help="Keep the files that were replaced.")] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Restore a library from a backup, after verifying the backup; run it again if it was interrupted.

    Example:
        rmsh library restore photos-copy --to photos
    """
    from rmsh.library.restore import restore as put

    console = Console(json=json, quiet=quiet)
    console.note(f"Verifying {backup}, then restoring {to}; this needs free disk space for two copies.")
    done = put(backup, to, replace=replace, keep=keep_replaced)
    kept = None if done.replaced is None else str(done.replaced)
    console.result(
        {**asdict(done), "replaced": kept},
        f"{to}: restored from {backup}, {done.items:,} items",
        *([f"replaced files: {kept}"] if kept else []),
    )


@app.command()
def repair(
    library: Folder,
    *,
    backup: Annotated[Path | None, typer.Option(help="Backup of the same library, to take intact rows from.")] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Restore damaged rows from the snapshot or a backup; ends with exit code 1 if some cannot be restored.

    Example:
        rmsh library repair photos --backup photos-copy
    """
    from rmsh.library.repair import repair as mend

    console = Console(json=json, quiet=quiet)
    done = mend(library, backup=backup)
    nothing = [] if done.restored or done.lost else [f"{library} has no damaged rows."]
    console.result(asdict(done), *done.restored, *(f"Not restored: {sentence}" for sentence in done.lost), *nothing)
    if done.lost:
        raise typer.Exit(1)


@app.command()
def upgrade(library: Folder, *, json: Json = False, quiet: Quiet = False) -> None:
    """Bring a library to the format of this rmsh, and write its manifest anew where it was lost.

    Example:
        rmsh library upgrade photos
    """
    from rmsh.library.maintenance import upgrade as migrate

    console = Console(json=json, quiet=quiet)
    before, now = migrate(library)
    console.result({"format_before": before, "format": now}, f"{library}: format {now}, was {before}")


@app.command()
def export(
    library: Folder,
    out: Annotated[Path, typer.Option(help="The file to write: .parquet for everything, .faiss for codes.")],
    *,
    codes: Annotated[str, typer.Option(help="For .faiss: whether the codes of text or of image.")] = "text",
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write a library for other programs: a parquet file, or a faiss index.

    Example:
        rmsh library export photos --out photos.parquet
    """
    from rmsh.library import Library
    from rmsh.library.export import export as write

    console = Console(json=json, quiet=quiet)
    with Library.open(library) as opened:
        count = write(opened, out, codes=codes)
    console.result({"export": str(out), "count": count}, f"{out}: {count:,} written")


@app.command()
def push(
    library: Folder,
    to: Annotated[str, typer.Option(metavar="ADDRESS", help="The collection to fill: http(s)://HOST:PORT/NAME.")],
    *,
    lists: Annotated[
        int | None,
        typer.Option(min=0, max=65_536, help="0 for exact search, or the number of lists of an approximate index."),
    ] = None,
    drop_former: Annotated[
        bool, typer.Option("--drop-former", help="Drop collections of former models, which somebody may have open.")
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Bring a library to a Milvus server, or what changed since the last time; run it again when it was stopped.

    User, password or token, database and certificates come from MILVUS_USER, MILVUS_PASSWORD, MILVUS_TOKEN, MILVUS_DB
    and MILVUS_TLS_CA, or from a file that MILVUS_SETTINGS names.

    Example:
        rmsh library push photos --to http://127.0.0.1:19530/photos
    """
    from rmsh.library import Library
    from rmsh.milvus.push import push as bring

    console = Console(json=json, quiet=quiet)
    with Library.open(library) as opened, console.progress() as on_progress:
        done = bring(opened, to, lists=lists, drop_former=drop_former, on_progress=on_progress)
    if done.former:
        console.note(
            f"Collections of former models are still there: {', '.join(done.former)}; --drop-former drops them."
        )
    console.result(asdict(done), f"{to} is what {library} is: {done.written:,} codes written, {done.removed:,} removed")
