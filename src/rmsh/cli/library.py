"""Inspect and maintain libraries.

Example:
    rmsh library info photos
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from rmsh.cli.console import Console, LibraryFolder, table


def info(console: Console, library: LibraryFolder) -> None:
    """Show the contents, file sizes and model of a library.

    Example:
        rmsh library info photos
    """
    from rmsh.library import Library
    from rmsh.library.maintenance import describe

    with Library.open(library) as opened:
        found = describe(opened)
    title = f"{library}: {found.bits} bits, model {found.model}, generation {found.generation}, format {found.format}"
    console.result(
        asdict(found),
        table(title, ["content", "count"], [[name, f"{count:,}"] for name, count in found.counts.items()]),
        table("Files", ["file", "bytes"], [[name, f"{size:,}"] for name, size in found.bytes.items()]),
        f"images: in {', '.join(found.folders.values()) or 'the library itself'}",
        f"stored: {found.store}; {found.bytes_per_item['codes']:,.0f} bytes of codes and "
        f"{found.bytes_per_item['vectors']:,.0f} bytes of vectors per item",
        f"snapshot: {found.snapshot}; last change: {found.changes:,}",
    )


def verify(
    console: Console,
    library: LibraryFolder,
    *,
    images: Annotated[bool, typer.Option(help="Read and compare all image files, too.")] = False,
) -> None:
    """Check a library for damage; the exit code is 1 if any is found.

    With --images, image files that are missing, changed or unreadable are found, too.

    Example:
        rmsh library verify photos --images
    """
    from rmsh.library.verify import verify as run

    console.note(f"Checking {library}: database, codes, model and snapshot.")
    with console.progress() as progress:
        found = run(library, images=images, on_progress=progress)
    intact = f"{library} is intact; checked: {', '.join(found.checked)}."
    console.result({"whole": not found.problems, **asdict(found)}, *(found.problems or [intact]))
    if found.problems:
        raise typer.Exit(1)


def compact(console: Console, library: LibraryFolder) -> None:
    """Delete unused data, such as the codes of old models, and shrink the files.

    Example:
        rmsh library compact photos
    """
    from rmsh.library import Library
    from rmsh.library.maintenance import compact as run

    console.note(f"Compacting {library}; this needs about as much free disk space as the database itself.")
    before = _size(library)
    with Library.open(library, writable=True) as opened:
        run(opened)
    after = _size(library)
    console.result({"bytes_before": before, "bytes": after}, f"{library}: {before:,} bytes before, {after:,} bytes now")


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def backup(
    console: Console,
    library: LibraryFolder,
    out: Annotated[Path, typer.Option(help="Folder to write; it must be new or empty.")],
    *,
    with_images: Annotated[bool, typer.Option(help="Also copy the images, captions and metadata files.")] = False,
) -> None:
    """Copy a library, which may be in use, and verify the copy.

    The images of a library built from a folder are only copied if asked for.

    Example:
        rmsh library backup photos --out photos-copy
    """
    from rmsh.library import Library
    from rmsh.library.backup import backup as run

    console.note(f"Copying {library} to {out}, then verifying the copy.")
    with Library.open(library) as opened:
        missing = run(opened, out, with_images=with_images)
    if missing:
        console.note(f"{missing:,} image files are missing and could not be copied.")
    console.result({"backup": str(out), "missing_pictures": missing}, f"{out}: verified copy of {library}")


def restore(
    console: Console,
    backup: Annotated[Path, typer.Argument(metavar="BACKUP", help="Folder that `rmsh library backup` wrote.")],
    to: Annotated[Path, typer.Option(metavar="LIBRARY", help="Library to restore; a new or empty folder works too.")],
    *,
    replace: Annotated[bool, typer.Option(help="Replace a library with another ID.")] = False,
    keep_replaced: Annotated[bool, typer.Option(help="Keep the files that were replaced.")] = False,
) -> None:
    """Restore a library from a backup, after verifying the backup.

    If interrupted, run the same command again.

    Example:
        rmsh library restore photos-copy --to photos
    """
    from rmsh.library.backup import restore as run

    console.note(f"Verifying {backup}, then restoring {to}; this needs free disk space for two copies.")
    done = run(backup, to, replace=replace, keep=keep_replaced)
    kept = None if done.replaced is None else str(done.replaced)
    readable = [f"{to}: restored from {backup}, {done.items:,} items", *[f"replaced files: {kept}"] * bool(kept)]
    console.result({**asdict(done), "replaced": kept}, *readable)


def repair(console: Console, library: LibraryFolder) -> None:
    """Restore damaged codes, indexes and lists from intact copies; the exit code is 1 if something is lost.

    Damaged items are listed: remove them and add them again, or restore a backup.

    Example:
        rmsh library repair photos
    """
    from rmsh.library.repair import repair as run

    done = run(library)
    lost = [f"Not restored: {sentence}" for sentence in done.lost]
    advice = "Remove damaged items and add them again (`rmsh remove`, `rmsh sync`), or restore a backup."
    ending = [advice] if lost else [] if done.restored else [f"{library} has no damaged rows."]
    console.result(asdict(done), *done.restored, *lost, *ending)
    if done.lost:
        raise typer.Exit(1)


def relocate(
    console: Console,
    library: LibraryFolder,
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="The folder that contains the images now.")],
) -> None:
    """Name the new place of the image folder of a library.

    Example:
        rmsh library relocate photos /media/disk/pictures
    """
    from rmsh.library import Library
    from rmsh.library.maintenance import relocate as run

    with Library.open(library, writable=True) as opened:
        present, expected = run(opened, folder)
    found = {"folder": str(folder.resolve()), "present": present, "images": expected}
    console.result(found, f"{library}: {present:,} of {expected:,} images are in {folder}")


def upgrade(console: Console, library: LibraryFolder) -> None:
    """Upgrade a library to the current format, and rewrite its manifest if necessary.

    Example:
        rmsh library upgrade photos
    """
    from rmsh.library.maintenance import upgrade as run

    before, now = run(library)
    console.result({"format_before": before, "format": now}, f"{library}: format {now}, was {before}")


def export(
    console: Console,
    library: LibraryFolder,
    out: Annotated[Path, typer.Option(help="File to write: .parquet (items and codes) or .faiss (codes).")],
    *,
    codes: Annotated[str, typer.Option(help="Codes to export to .faiss: text or image.")] = "text",
) -> None:
    """Export a library for other programs, as a Parquet file or a faiss index.

    Example:
        rmsh library export photos --out photos.parquet
    """
    from rmsh.library import Library
    from rmsh.library.export import export as run

    with Library.open(library) as opened:
        count = run(opened, out, codes=codes)
    console.result({"export": str(out), "count": count}, f"{out}: {count:,} written")


def load(
    console: Console,
    shards: Annotated[str, typer.Argument(metavar="SHARDS", help="Folder or URL that `rmsh encode` wrote.")],
    out: Annotated[Path, typer.Option(help="Library folder to create or to add to.")],
    *,
    images: Annotated[Path | None, typer.Option(help="Folder of the images (default: the library itself).")] = None,
) -> None:
    """Create a library from shards, or add their new items to it.

    If interrupted, run the same command again.

    Example:
        rmsh library load shards --out photos --images my_images
    """
    from rmsh.builder.add import load_shards
    from rmsh.shards import Shards

    with console.progress() as progress:
        added, total = load_shards(Shards.open(shards), out, images=images, on_progress=progress)
    console.result({"added": added, "items": total}, f"{out}: {added:,} items added, {total:,} in total")


def push(
    console: Console,
    library: Annotated[str, typer.Argument(metavar="LIBRARY", help="Library folder, or shards of `rmsh encode`.")],
    to: Annotated[str, typer.Option(metavar="ADDRESS", help="Collection to fill: http(s)://HOST:PORT/NAME.")],
    *,
    drop_former: Annotated[bool, typer.Option(help="Drop collections of former models, even if in use.")] = False,
) -> None:
    """Copy a library or shards, or the changes since the last push, to a Milvus server.

    If interrupted, run the same command again. User, password or token, database and certificates come from
    MILVUS_USER, MILVUS_PASSWORD, MILVUS_TOKEN, MILVUS_DB and MILVUS_TLS_CA, or from the file named by MILVUS_SETTINGS.

    Example:
        rmsh library push photos --to http://127.0.0.1:19530/photos
    """
    from rmsh.library import Library
    from rmsh.milvus.push import push as run
    from rmsh.shards import Shards, is_shards

    source = nullcontext(Shards.open(library)) if is_shards(library) else Library.open(library)
    with source as opened, console.progress() as on_progress:
        done = run(opened, to, drop_former=drop_former, on_progress=on_progress)
    if done.former:
        console.note(f"Collections of former models still exist: {', '.join(done.former)}; --drop-former drops them.")
    console.result(asdict(done), f"{to} matches {library}: {done.written:,} codes written, {done.removed:,} removed")
