"""Shards: images and texts encoded piece by piece, by any number of machines, into a place that they share.

An input shard is a tar file, a Parquet file with images inside, or some items of a folder or metadata file. It becomes

NAME.parquet     one row per item: id, text, picture, labels, and for images and texts the packed code (see codes.py),
                 the int8 vector and, unless left out, the features; null for what an item lacks
NAME.json        written after it: its SHA-256, what it was made from, and what was skipped

A shard that has both is not encoded again for the same input and model. The same input, model and kind of processor
give the same bytes, whatever the executor. The folder ``model`` has a copy of the model; ``manifest.json``, which lists
all shards, is written last.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import astuple, dataclass, replace
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeAlias

import numpy as np
from threadpoolctl import threadpool_limits

from rmsh.codes import Codes
from rmsh.core.errors import DataError, FormatError, InputError, RmshError
from rmsh.core.files import checked_format
from rmsh.core.files import sha256 as sha256_of
from rmsh.core.locks import try_lock
from rmsh.core.places import Place, is_url
from rmsh.core.progress import OnProgress, counter, ignore
from rmsh.core.types import MODALITIES
from rmsh.data.open import open_pairs
from rmsh.data.pairs import Pairs, dense_rows
from rmsh.data.readers.packed_images import packed_files, read_packed
from rmsh.data.records import Origin, Record, Skipped, to_pairs
from rmsh.features.executors import Executor, Task, run
from rmsh.features.extract import encode_pairs, file_state, restore_once
from rmsh.library.items import Item
from rmsh.library.queries import Generation, stack_vectors
from rmsh.model import Model, load
from rmsh.pipeline import codes_of, restore_encoders

if TYPE_CHECKING:
    from rmsh.core.types import Modality

FORMAT, VERSION = "rmsh-shards", 1
MANIFEST, MODEL = "manifest.json", "model"
MOST_ITEMS = 1 << 20  # of a shard
ROWS = 1 << 13  # that are read at once
_SIZE = 1000  # items of a folder per shard: less than a minute of work
_PACKED = (".tar", ".parquet")
_MODEL_FILES = ("model.safetensors", "card.md", "config.json")
_NAME = re.compile(r"\w[\w .+()-]*")  # of a shard
_ITEM, _KINDS = ("id", "text", "picture", "labels"), ("code", "vector")

_Input: TypeAlias = tuple[str, str, Task]  # the name of a shard, a string that changes when it does, what to read


def encode_shards(
    model: Model,
    data: str,
    out: str,
    *,
    features: bool = True,
    size: int = _SIZE,
    executor: Executor | None = None,
    on_progress: OnProgress = ignore,
) -> tuple[dict[str, Any], list[Skipped]]:
    """Encode images and texts into shards; returns the manifest, and what was skipped.

    If interrupted, a second call continues. ``data`` is that of :func:`rmsh.open_pairs`, or the URL of tar or Parquet
    files with images. ``out`` is a folder or URL that all workers reach; if it has shards of another model, they are
    refused. ``features`` are stored unless this is False; ``size`` is a number of items, for data without shards.
    """
    place, (inputs, skipped) = Place(out), _inputs(data, size, on_progress)
    if len({name for name, *_ in inputs}) < len(inputs) or not all(_NAME.fullmatch(name) for name, *_ in inputs):
        raise DataError(f"{data}: give shards different names of letters, digits, spaces and . - + _ ( ).")
    with nullcontext(True) if is_url(place.name) else try_lock(Path(place.name) / "encode.claim") as locked:
        if not locked:
            raise RmshError(f"Another process encodes into {out}; wait until it ends, or stop it.")
        _write_model(model, place)
        encoders = {modality: described.get("fingerprint") for modality, described in model.encoders.items()}
        job = {"out": place.name, "model": model.fingerprint, "features": features}
        keys = {name: _digest(state, model.fingerprint, encoders, features, VERSION) for name, state, _ in inputs}
        tasks = {name: {**job, **task, "name": name, "key": keys[name]} for name, _, task in inputs}
        facts = _finished(place, keys)
        missing = {name: task for name, task in tasks.items() if name not in facts}
        report = counter(on_progress, "encode shards", len(missing), "shard")
        done = run(executor, "rmsh.shards:encode_shard", missing, check="rmsh.shards:check_worker")
        for count, (name, found) in enumerate(done, start=1):
            facts[name] = found
            report(count)
        skipped += [Skipped(*one) for name in tasks for one in facts[name]["skipped"]]
        shards = [{"name": name} | {key: facts[name][key] for key in ("items", "bytes", "sha256")} for name in tasks]
        about = {"id": _digest(Place(data).name), "model": model.fingerprint, "bits": model.bits, "encoders": encoders}
        about |= {"items": sum(shard["items"] for shard in shards), "shards": shards}
        manifest = {"format": FORMAT, "version": VERSION, **about}
        _write_json(place, MANIFEST, manifest)
    return manifest, skipped


def _inputs(data: str, size: int, on_progress: OnProgress) -> tuple[list[_Input], list[Skipped]]:
    """The input shards of some data, and what was skipped when they were listed."""
    if is_url(data):
        folder, _, one = data.rpartition("/") if data.lower().endswith(_PACKED) else (data.rstrip("/"), "", "")
        states = {n: s for n, s in Place(folder).states().items() if n.lower().endswith(_PACKED) and one in ("", n)}
        if not states:
            raise DataError(f"{data} has no .tar or .parquet files; give the URL of a folder that has.")
        return [(Path(n).stem, state, {"folder": folder, "file": n}) for n, state in states.items()], []
    if files := packed_files(Path(data)):
        packed = [file.absolute() for file in files]
        return [(f.stem, str(file_state(f)), {"folder": str(f.parent), "file": f.name}) for f in packed], []
    origin = open_pairs(data, on_progress=on_progress).origin
    if origin is None:
        raise DataError(f"{data} contains features; give images, or write a codes file (--out codes.npz).")
    found: list[_Input] = []
    for first in range(0, len(origin.records), size):
        records = [astuple(record) for record in origin.records[first : first + size]]
        images = [file_state(origin.folder / picture) if (picture := record[3]) else None for record in records]
        task = {"folder": str(origin.folder.absolute()), "records": records}
        found.append((f"items-{first:09}", _digest(records, images), task))
    return found, list(origin.skipped)


def _digest(*values: Any) -> str:
    return sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:16]


def _write_json(place: Place, name: str, value: Any) -> None:
    place.write(name, (json.dumps(value, indent=1, ensure_ascii=False) + "\n").encode())


def _write_model(model: Model, place: Place) -> None:
    """Copy the model; InputError if the place has shards of another one."""
    try:
        found = json.loads(place.read(f"{MODEL}/config.json"))["fingerprint"]
    except FileNotFoundError:
        with tempfile.TemporaryDirectory() as folder:
            model.save(folder)
            for name in _MODEL_FILES:
                place.write(f"{MODEL}/{name}", (Path(folder) / name).read_bytes())
        return
    if found != model.fingerprint:
        raise InputError(f"{place.name} has shards of the model {found}, not {model.fingerprint}; give a new folder.")


def _finished(place: Place, keys: Mapping[str, str]) -> dict[str, Any]:
    """What is known about the shards that exist and have these keys."""
    there = place.states()
    names = [name for name in keys if {f"{name}.json", f"{name}.parquet"} <= there.keys()]
    found = {name: json.loads(place.read(f"{name}.json")) for name in names}
    return {name: facts for name, facts in found.items() if facts["key"] == keys[name]}


@lru_cache(maxsize=1)
def _model(out: str, fingerprint: str) -> Model:
    """The model of some shards, kept for the next one."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            *_, config = (Place(out).fetch(f"{MODEL}/{name}", Path(folder)) for name in _MODEL_FILES)
            model = load(config.parent)
        except (FileNotFoundError, InputError) as error:
            raise InputError(f"{out} is not there, or has no model; give a place that all machines share.") from error
    if model.fingerprint != fingerprint:
        raise FormatError(f"The model in {out} is {model.fingerprint}, {fingerprint} is expected; start again.")
    return model


def check_worker(task: Task) -> bool:
    """Whether a worker reaches the output, and has the encoders of the model; InputError or FormatError if not."""
    return all(restore_once(json.dumps(one)) for one in _model(task["out"], task["model"]).encoders.values())


def encode_shard(task: Task) -> dict[str, Any]:
    """The work of one shard: read, encode, write; returns what its .json file has."""
    model, place, name = _model(task["out"], task["model"]), Place(task["out"]), task["name"]
    # With several threads, sums of products may be rounded differently.
    with tempfile.TemporaryDirectory(prefix="rmsh-") as folder, threadpool_limits(1):
        origin, unread = _read(task, Path(folder)), list[Skipped]()
        pairs = Pairs(ids=np.empty(0, dtype=np.str_))
        if origin.records:
            pairs = to_pairs(origin.records, folder=origin.folder, source=name)
        encoders = {m: restore_once(json.dumps(model.encoders[m])) for m in restore_encoders(model, pairs)}
        pairs = encode_pairs(pairs, encoders, on_skipped=unread.extend)
        records = {record.id: record for record in origin.records}
        found = [(one, records[one.id], one.reason.replace(f"{folder}/", "")) for one in unread]
        skipped = [replace(one, file=record.file, row=record.row, reason=reason) for one, record, reason in found]
        pairs = pairs.take(np.flatnonzero(pairs.has_image | pairs.has_text))
        content = _to_parquet(model, pairs, records, features=task["features"])
    place.write(f"{name}.parquet", content)
    facts = {"key": task["key"], "items": len(pairs), "bytes": len(content), "sha256": sha256(content).hexdigest()}
    facts["skipped"] = [astuple(one) for one in (*origin.skipped, *skipped)]
    _write_json(place, f"{name}.json", facts)
    return facts


def _read(task: Task, folder: Path) -> Origin:
    """The items of an input shard; images are unpacked into a folder."""
    if "records" in task:
        records = [replace(Record(*one), labels=tuple(one[-1])) for one in task["records"]]
        return Origin(Path(task["folder"]), tuple(records), ())
    file = Place(task["folder"]).fetch(task["file"], folder / "input")
    origin, _ = read_packed([file], into=folder / "images", several=True)
    if len(origin.records) > MOST_ITEMS:
        raise DataError(f"{task['name']} has {len(origin.records):,} items, {MOST_ITEMS:,} are allowed; divide it.")
    return origin


def _to_parquet(model: Model, pairs: Pairs, records: Mapping[str, Record], *, features: bool) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    kept, codes = [records[name] for name in pairs.ids.tolist()], codes_of(model, pairs, vectors=True)
    texts = [record.text if has else None for record, has in zip(kept, pairs.has_text, strict=True)]
    images = [record.picture if has else None for record, has in zip(kept, pairs.has_image, strict=True)]
    columns = {"id": (pa.string(), pairs.ids.tolist()), "text": (pa.string(), texts), "picture": (pa.string(), images)}
    columns["labels"] = pa.list_(pa.string()), [list(record.labels) for record in kept]
    for modality in model.functions:
        found, has = codes.get(modality), pairs.has(modality)

        def spread(values: Iterable[Any], has: Iterable[np.bool_] = has) -> list[Any]:
            following = iter(values)
            return [next(following) if there else None for there in has]

        columns[f"{modality}_code"] = pa.binary(-(-model.bits // 8)), spread(map(bytes, found.packed) if found else ())
        if model.has_embedding:
            columns[f"{modality}_vector"] = pa.binary(), spread(map(bytes, np.asarray(found.vectors)) if found else ())
        if features:
            rows = dense_rows(pairs.features(modality), np.flatnonzero(has)) if has.any() else ()
            columns[f"{modality}_features"] = pa.list_(pa.float32()), spread(rows)
    facts = {"rmsh.model": model.fingerprint, "rmsh.bits": str(model.bits)}
    schema = pa.schema([(name, kind) for name, (kind, _) in columns.items()], metadata=facts)
    with pa.BufferOutputStream() as file:
        table = pa.table([pa.array(values, kind) for kind, values in columns.values()], schema=schema)
        pq.write_table(table, file, row_group_size=ROWS, use_dictionary=False)
        return bytes(file.getvalue())


class Coded(NamedTuple):
    """An item with the codes and vectors of its image and its text, or None."""

    item: Item
    codes: Mapping[Modality, bytes | None]
    vectors: Mapping[Modality, bytes | None]


def is_shards(place: str | Path) -> bool:
    """Whether a place has finished shards."""
    try:
        return bool(json.loads(Place(place).read(MANIFEST))["format"] == FORMAT)
    except (OSError, DataError, ValueError, TypeError, KeyError):
        return False


@dataclass(frozen=True)
class Shards:
    """Finished shards, for reading."""

    place: Place
    manifest: Mapping[str, Any]

    @classmethod
    def open(cls, place: str | Path) -> Self:
        """Open the shards of a folder or URL; FormatError if they are unfinished, damaged or of a newer rmsh."""
        opened = Place(place)
        try:
            content = json.loads(opened.read(MANIFEST))
        except (OSError, ValueError) as error:
            raise FormatError(f"{place} has no readable {MANIFEST}; run `rmsh encode` to its end.") from error
        manifest = checked_format(content, place, name=FORMAT, version=VERSION, hint="give shards of `rmsh encode`")
        if not all(_NAME.fullmatch(shard["name"]) for shard in manifest["shards"]):
            raise FormatError(f"{place} has shards with unusual names; restore its {MANIFEST}.")
        return cls(opened, manifest)

    def model(self) -> Model:
        """The model that computed the codes."""
        return _model(self.place.name, self.manifest["model"])

    def read(self, number: int) -> Iterator[list[Coded]]:
        """The items of a shard, at most :data:`ROWS` at a time; FormatError if its content has changed."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        entry, columns = self.manifest["shards"][number], [*_ITEM, *(f"{m}_{k}" for m in MODALITIES for k in _KINDS)]
        try:
            with tempfile.TemporaryDirectory(prefix="rmsh-") as folder:
                path = self.place.fetch(f"{entry['name']}.parquet", Path(folder))
                if sha256_of(path) != entry["sha256"]:
                    raise FormatError(f"{path} does not match its SHA-256; delete it, and run `rmsh encode` again.")
                with pq.ParquetFile(path) as file:
                    for batch in file.iter_batches(ROWS, columns=columns):
                        yield [_coded(row) for row in batch.to_pylist()]
        except (pa.ArrowException, OSError) as error:
            raise FormatError(f"{entry['name']}.parquet in {self.place.name} cannot be read ({error}).") from error

    def codes(self, coded: Sequence[Coded]) -> dict[Modality, Codes]:
        """The codes of some items by modality, with vectors if the first item has one."""
        found: dict[Modality, Codes] = {}
        for m in MODALITIES:
            some, generation = [one for one in coded if one.codes[m]], Generation(1, "", self.manifest["bits"])
            vectors = {row: vector for row, one in enumerate(some) if (vector := one.vectors[m])}
            packed, names = generation.to_array([one.codes[m] or b"" for one in some]), [one.item.id for one in some]
            stacked = stack_vectors(range(len(some)), vectors) if vectors else None
            found[m] = Codes(packed, generation.bits, np.array(names), stacked)
        return found


def _coded(row: Mapping[str, Any]) -> Coded:
    codes, vectors = ({m: row.get(f"{m}_{kind}") for m in MODALITIES} for kind in _KINDS)
    return Coded(Item(*(row[name] for name in _ITEM)), codes, vectors)
