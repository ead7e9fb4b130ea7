"""Build a library, add, remove and recode items, keep it in step with its image folders, and find duplicates."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from rmsh.cli.console import Console, ExecutorName, LibraryFolder, RayAddress, table
from rmsh.cli.train import MethodOptions, parse_options
from rmsh.data.records import Skipped, count_skipped, write_csv, write_skipped
from rmsh.methods import DEFAULT_METHOD


def build(
    console: Console,
    data: Annotated[Path, typer.Argument(metavar="DATA", help="Images and texts.")],
    out: Annotated[Path, typer.Option(help="Library folder to create.")],
    *,
    labels_from: Annotated[
        str | None, typer.Option(metavar="SOURCE", help="data, folders or text (default: data, else text).")
    ] = None,
    learn_from: Annotated[
        str | None,
        typer.Option(
            metavar="SOURCE",
            help="labels, pairs or nothing (default: labels, else the better of pairs and nothing).",
        ),
    ] = None,
    method: Annotated[str, typer.Option(help="Method to train; see `rmsh methods`.")] = DEFAULT_METHOD,
    bits: Annotated[int | None, typer.Option(help="Code length, 1 to 512 (default: that of the method).")] = None,
    seed: Annotated[int, typer.Option(help="Random seed.")] = 0,
    image_encoder: Annotated[str, typer.Option(help="Encoder of images; also timm:NAME.")] = "efficientnet-lite0",
    text_encoder: Annotated[str, typer.Option(help="Encoder of texts; also bag-of-words.")] = "minilm",
    options: MethodOptions = None,
    store: Annotated[
        str, typer.Option(metavar="codes|codes+vectors", help="Store codes alone, or also vectors, which rank better.")
    ] = "codes+vectors",
    strict: Annotated[bool, typer.Option(help="Fail instead of skipping invalid items.")] = False,
    no_place: Annotated[bool, typer.Option(help="Do not store where images were taken.")] = False,
    overwrite: Annotated[bool, typer.Option(help="Replace a library built from other items or options.")] = False,
    executor: ExecutorName = None,
    address: RayAddress = None,
) -> None:
    """Build a searchable library from images and texts.

    DATA is a folder of images with metadata.csv, .jsonl or .parquet (file_name, text or caption, labels), or with a
    .txt file next to each image, or with one folder per class, or images alone; or tar shards. If interrupted, run the
    same command again to continue.

    Example:
        rmsh build my_images --out library
    """
    from rmsh.builder import BuildConfig
    from rmsh.builder import build as run
    from rmsh.builder.report import describe_size, describe_words, score_tables
    from rmsh.features.executors import open_executor

    training: dict[str, Any] = {"method": method, "bits": bits, "seed": seed, "options": parse_options(options or [])}
    encoders = {"image_encoder": image_encoder, "text_encoder": text_encoder}
    sources = {"labels_from": labels_from, "learn_from": learn_from}
    stored = {"store": store, "strict": strict, "place": not no_place}
    config = BuildConfig.parse(training | encoders | sources | stored)
    with open_executor(executor, address) as place, console.progress() as bar:
        built = run(data, out, config=config, overwrite=overwrite, executor=place, tell=console.note, on_progress=bar)
    report = built.report
    quality: list[Any] = [f"Warning. {report['warning']}"] if report.get("warning") else []
    quality += [report["no_scores"]] if report["no_scores"] else []
    quality += [table(*each) for each in score_tables(report)]
    quality += [describe_words(report["words"])] if report.get("words") else []
    quality += [describe_size(report["bytes_per_item"])] if "bytes_per_item" in report else []
    summary = f"{out}: {report['counts']['items']:,} items, {report['bits']} bits; report: {out / 'report.html'}"
    console.result({"library": str(out), "is_new": built.is_new, "report": report}, *quality, summary)


def add(
    console: Console,
    library: LibraryFolder,
    data: Annotated[list[Path], typer.Argument(metavar="DATA...", help="Images, folders and the like.")],
    *,
    skipped: Annotated[Path | None, typer.Option(help="Write skipped items to this .csv file.")] = None,
    strict: Annotated[bool, typer.Option(help="Fail instead of skipping invalid items.")] = False,
) -> None:
    """Add images and texts to a library, encoded with its model.

    DATA are images, folders and what else `rmsh build` takes. Items whose ID is already in the library are left
    unchanged. If the library was built from a folder, other folders and images stay where they are, and `rmsh sync`
    follows them from now on.

    Example:
        rmsh add library my_images one_more.jpg
    """
    from rmsh.builder.add import add as run
    from rmsh.library import Library

    with Library.open(library, writable=True) as opened, console.progress() as progress:
        found = run(opened, *data, strict=strict, on_progress=progress)
        total = opened.count()
    report_skipped(found.skipped, skipped, console)
    console.result(
        {"added": found.added, "there": found.existing, "skipped": len(found.skipped), "items": total},
        f"{library}: {found.added:,} items added, {found.existing:,} already present, {total:,} in total",
    )


def report_skipped(skipped: Sequence[Skipped], file: Path | None, console: Console) -> None:
    console.note(*count_skipped(skipped))
    if file is not None:
        write_skipped(file, skipped)


def remove(
    console: Console,
    library: LibraryFolder,
    ids: Annotated[list[str], typer.Argument(metavar="ID", help="Items to remove; all of them or none.")],
) -> None:
    """Remove items from a library by ID.

    Their image files are not deleted.

    Example:
        rmsh remove library dog.jpg cat.jpg
    """
    from rmsh.library import Library

    with Library.open(library, writable=True) as opened:
        opened.remove(ids)
        total = opened.count()
    console.result({"removed": len(ids), "items": total}, f"{library}: {len(ids):,} items removed, {total:,} left")


def recode(
    console: Console,
    library: LibraryFolder,
    model: Annotated[Path, typer.Option(help="Folder of the new model.")],
    *,
    skipped: Annotated[Path | None, typer.Option(help="Write unreadable images to this .csv file.")] = None,
    strict: Annotated[bool, typer.Option(help="Fail if an image cannot be read.")] = False,
) -> None:
    """Re-encode a library with another model.

    The library stays searchable with the old codes meanwhile. Images and texts are encoded with the new model's
    encoders. If interrupted, run the same command again to continue. Old codes are kept until `rmsh library compact`.

    An item whose image can no longer be read is encoded from its text alone and reported. If it has no text either,
    the library keeps its old codes until the image is back or the item is removed, and the command is run again.

    Example:
        rmsh recode photos --model newmodel
    """
    from rmsh.library import Library
    from rmsh.library.recode import recode as run
    from rmsh.model import load
    from rmsh.pipeline import item_coder

    lost: list[Skipped] = []
    learned = load(model)
    with Library.open(library, writable=True) as target:
        unread = None if strict else lost.extend
        encode = item_coder(learned, image_path=target.picture_path, on_skipped=unread)
        console.note(f"{library}: {target.count():,} items get {learned.bits}-bit codes; the library stays searchable.")
        try:
            with console.progress() as progress:
                run(target, learned, encode=encode, on_progress=progress)
        finally:
            report_skipped(lost, skipped, console)
        count = target.count()
    found = {"items": count, "bits": learned.bits, "model": learned.fingerprint, "skipped": len(lost)}
    readable = f"{library}: {count:,} items, {learned.bits} bits, model {learned.fingerprint}"
    console.result({"library": str(library), **found}, readable)


_PAUSE = 30  # seconds between two syncs; one with nothing to do opens no image


def sync(
    console: Console,
    library: LibraryFolder,
    *,
    prune: Annotated[
        bool, typer.Option(help="Remove items with missing files at once, not at the second sync.")
    ] = False,
    watch: Annotated[bool, typer.Option(help="Keep running, and sync twice a minute.")] = False,
    skipped: Annotated[Path | None, typer.Option(help="Write skipped items to this .csv file.")] = None,
) -> None:
    """Bring a library to the state of its image folders.

    New files are added, changed images and captions are encoded again, and moved files keep their codes. An item whose
    file is missing is removed by the second sync that misses it, so a disk that is not mounted never empties a library.
    Safe to run from cron, and while the library is being searched.

    Example:
        rmsh sync photos
    """
    from rmsh.builder.sync import sync as run
    from rmsh.library import Library

    first = True
    while True:
        with Library.open(library, writable=True) as opened, console.progress() as progress:
            done, total = run(opened, prune=prune, on_progress=progress), opened.count()
        report_skipped(done.skipped, skipped, console)
        if lost := done.missing:
            console.note(f"{len(lost):,} files are missing, such as {lost[0]}; they are forgotten next time.")
        counts = {name: getattr(done, name) for name in ("added", "changed", "moved", "removed")}
        if first or any(counts.values()):
            told = ", ".join(f"{count:,} {name}" for name, count in counts.items() if count) or "nothing has changed"
            found = counts | {"missing": list(done.missing), "skipped": len(done.skipped), "items": total}
            console.result(found, f"{library}: {told}; {total:,} items")
        if not watch:
            break
        console.note(*["Watching for changes; press Ctrl-C to stop."] * first)
        first = False
        time.sleep(_PAUSE)


def duplicates(
    console: Console,
    library: LibraryFolder,
    *,
    seconds: Annotated[float, typer.Option(min=0, help="Longest time between two images of a burst.")] = 2.0,
    csv_file: Annotated[Path | None, typer.Option("--csv", help="Write the groups to this .csv file.")] = None,
) -> None:
    """Find images that a library has more than once: copies, similar images and bursts.

    Copies have the same content; similar images were resized, compressed again or slightly cropped; a burst was taken
    within seconds. The best image of a group, with most pixels and bytes, comes first. Nothing is deleted.

    Example:
        rmsh duplicates photos --csv duplicates.csv
    """
    from rmsh.library import Library
    from rmsh.library.duplicates import groups_in

    with Library.open(library) as opened, console.progress() as progress:
        groups = groups_in(opened, seconds=seconds, on_progress=progress)
    rows = [
        [number, group.kind, place, name]
        for number, group in enumerate(groups, start=1)
        for place, name in enumerate(group.ids, start=1)
    ]
    if csv_file is not None:
        write_csv(csv_file, [["group", "kind", "place", "id"], *rows])
    shown = [[group.kind, len(group.ids), group.ids[0], ", ".join(group.ids[1:])] for group in groups]
    title = f"{len(groups):,} groups with {len({name for group in groups for name in group.ids}):,} images"
    found = [{"kind": group.kind, "ids": list(group.ids)} for group in groups]
    readable = table(title, ["kind", "images", "best", "others"], shown, words=("best", "others"))
    console.result({"groups": found}, readable)
