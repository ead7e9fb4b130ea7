"""How long a text search takes over HTTP: one client, many clients, and millions of items.

The texts are captions of coco66k and phrases of one to four words out of them, each sent once; the server remembers no
query. Codes and vectors of 256 bits are those of the wheel's model for coco66k: for more items than it has, images meet
the captions of other images, and in the library of millions, which has no captions, codes and vectors are drawn around
real ones. Server and clients share the processors of the machine.
"""

from __future__ import annotations

import http.client
import itertools
import random
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote_plus

import numpy as np
import typer

import rmsh
from lab.console import Tables  # noqa: TC001  # typer reads it
from lab.data import RESULTS, coco66k, coco66k_place, write_measurement
from lab.speed.serving import family_memory_mb, meanwhile, percentiles, read_metrics, stages, start_server
from rmsh.codes import Codes
from rmsh.core.files import read_json
from rmsh.data.open import open_pairs
from rmsh.features.decoding import processors
from rmsh.library import Item, Library
from rmsh.library.items import Batch
from rmsh.library.writing import insert
from rmsh.model import load
from rmsh.pipeline import codes_of

if TYPE_CHECKING:
    from rmsh.core.types import Modality

ITEMS, MILLIONS, CLIENTS = 100_000, 10_000_000, 16
NAMES = {"captions": "speed/latency_captions", "images": "speed/latency_images"}
_BATCH = 50_000  # items that are added at once
_WARM_UP = 500  # requests that are not counted
_PARTS = 5  # memory is measured between them


def main(
    *,
    seconds: Annotated[float, typer.Option(min=1, help="Duration of each measurement.")] = 60.0,
    items: Annotated[int, typer.Option(help="Items without captions; 0 leaves this part out.")] = MILLIONS,
    folder: Annotated[Path | None, typer.Option(help="Folder that keeps the libraries for the next time.")] = None,
    tables: Tables = False,
) -> None:
    """Measure, write the results and print the table."""
    if not tables:
        with tempfile.TemporaryDirectory() as temporary:
            place = folder or Path(temporary)
            write_measurement(NAMES["captions"], _with_captions(place, seconds))
            if items:
                write_measurement(NAMES["images"], _without_captions(place, items, seconds))
    print(table_text({name: read_json(RESULTS / f"{file}.json") for name, file in NAMES.items()}))


def table_text(results: dict[str, dict[str, Any]]) -> str:
    """One line per measurement, and where the time of one client goes."""
    columns = ("items", "workers", "clients", "per second", "p50 ms", "p95 ms", "p99 ms")
    lines = ["".join(f"{name:>12}" for name in columns) + "  memory MB"]
    for result in results.values():
        for row in result["rows"]:
            numbers = [row["items"], row.get("workers", 0), row["clients"], round(row["per_second"])]
            shown = "".join(f"{value:12,}" for value in [*numbers, row["p50"], row["p95"], row["p99"]])
            lines.append(f"{shown}  {row['memory_mb']}")
    spent = results["captions"]["where_the_time_goes"]
    return "\n".join([*lines, *(f"{stage:18} {row['mean_ms']:6.1f} ms" for stage, row in spent.items())])


def _with_captions(folder: Path, seconds: float) -> dict[str, Any]:
    """One client and many clients on a library with captions, without and with search processes."""
    library = folder / "captions"
    built = _build(library, ITEMS, captions=True)
    rows, spent = [], dict[str, Any]()
    for workers in (0, processors()):
        texts = queries()
        with start_server(library, "--remember", "0", "--workers", str(workers)) as (pid, port):
            _send(port, pid, texts, clients=CLIENTS, requests=10 * _WARM_UP)  # by then memory has its size
            for clients in (1, CLIENTS):
                before = read_metrics(port)
                row = _send(port, pid, texts, clients=clients, seconds=seconds)
                rows.append({"items": ITEMS, "workers": workers, **row})
                spent = spent or stages(before, read_metrics(port))
    return {"rows": rows, "where_the_time_goes": spent, **built}


def _without_captions(folder: Path, items: int, seconds: float) -> dict[str, Any]:
    """One client on a library of millions of images."""
    library = folder / f"images-{items}"
    built = _build(library, items, captions=False)
    texts = queries()
    with start_server(library, "--remember", "0") as (pid, port):
        _send(port, pid, texts, clients=1, requests=_WARM_UP)
        before = read_metrics(port)
        row = _send(port, pid, texts, clients=1, seconds=seconds)
        after = read_metrics(port)
    return {"rows": [{"items": items, **row}], "where_the_time_goes": stages(before, after), **built}


def queries() -> Iterator[str]:
    """Different texts: captions, and phrases out of them."""
    chance = random.Random(0)  # noqa: S311
    captions = np.asarray(open_pairs(coco66k_place()).pairs.texts).tolist()
    chance.shuffle(captions)
    texts = list[str]()
    for caption in captions:
        words = caption.rstrip(" .").split()
        size = chance.randint(1, 4)
        first = chance.randint(0, max(len(words) - size, 0))
        texts += [caption, " ".join(words[first : first + size])]
    return iter(dict.fromkeys(text for text in texts if text.strip()))


def _send(
    port: int, pid: int, texts: Iterator[str], *, clients: int, seconds: float = 0.0, requests: int = 0
) -> dict[str, Any]:
    """Let clients search, each as soon as its previous search is answered, for a time or a number of requests."""
    spent, errors = list[float](), list[int]()
    lock, memory = threading.Lock(), [family_memory_mb(pid)]

    def search(stop: threading.Event) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        while not stop.is_set() and not 0 < requests <= len(spent):
            with lock:
                path = f"/api/search?text={quote_plus(next(texts))}"
            start = time.perf_counter()
            connection.request("GET", path)
            answer = connection.getresponse()
            answer.read()
            spent.append(time.perf_counter() - start)
            errors.extend([answer.status] * (answer.status != 200))

    def watch() -> None:
        for _ in range(_PARTS if seconds else 1):
            time.sleep(seconds / _PARTS)
            memory.append(family_memory_mb(pid))
        while len(spent) < requests:
            time.sleep(0.1)

    start = time.perf_counter()
    meanwhile([search] * clients, watch)
    rate = len(spent) / (time.perf_counter() - start)
    return {"clients": clients, "per_second": rate, "errors": len(errors), "memory_mb": memory, **percentiles(spent)}


def _build(folder: Path, items: int, *, captions: bool) -> dict[str, Any]:
    """Write a library, unless the folder has it; returns how long that took."""
    if (folder / "codes.snapshot").exists():
        return {}
    start, chance = time.perf_counter(), np.random.default_rng(0)
    pairs, model = coco66k("minilm").pairs, load(Path(rmsh.__file__).parent / "models" / "coco")
    texts = np.asarray(open_pairs(coco66k_place()).pairs.texts).tolist()
    labels = [tuple(pairs.class_names[c] for c in np.flatnonzero(row)) for row in np.asarray(pairs.labels)]
    coded = codes_of(model, pairs, vectors=True)
    pictures = folder.with_name(f"{folder.name}.pictures")
    pictures.mkdir(parents=True, exist_ok=True)
    with Library.create(folder, model, source=pictures) as library:
        for first in range(0, items, _BATCH):
            numbers = np.arange(first, min(first + _BATCH, items))
            images, names = numbers % len(pairs), numbers.astype(np.str_)
            if captions:
                others = (numbers + len(pairs) // 2 * (numbers >= len(pairs))) % len(pairs)
                facts = zip(names.tolist(), others.tolist(), images.tolist(), strict=True)
                added = [Item(name, texts[text], f"{name}.jpg", labels[image]) for name, text, image in facts]
                codes: dict[Modality, Codes] = {
                    "image": _renamed(coded["image"].take(images), names),
                    "text": _renamed(coded["text"].take(others), names),
                }
            else:
                added = [Item(name, picture=f"{name}.jpg") for name in names.tolist()]
                codes = {"image": _renamed(_around(coded["image"].take(images), chance), names)}
            with library.transaction() as connection:  # as Library.add, but with one snapshot at the end
                insert(connection, Batch(tuple(added), codes, model.fingerprint))
        library.write_snapshot()
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    return {"build_seconds": time.perf_counter() - start, "bytes": size}


def _renamed(codes: Codes, names: Any) -> Codes:
    return Codes(codes.packed, codes.bits, names, codes.vectors)


def _around(codes: Codes, chance: np.random.Generator) -> Codes:
    """Codes with about an eighth of their bits flipped, and vectors with as much noise."""
    flips = itertools.accumulate(
        (chance.integers(0, 256, codes.packed.shape, dtype=np.uint8) for _ in range(3)), np.bitwise_and
    )
    assert codes.vectors is not None  # noqa: S101
    noise = chance.integers(-8, 9, codes.vectors.shape, dtype=np.int8)
    vectors = np.clip(codes.vectors.astype(np.int16) + noise, -127, 127).astype(np.int8)
    return Codes(codes.packed ^ list(flips)[-1], codes.bits, codes.ids, vectors)
