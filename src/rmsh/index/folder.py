"""An index on disk: arrays in .npy files, and a manifest.json that is written last and names them.

Each save writes files under new names, so that an index which is replaced stays whole, and stays readable to who has
it open, until the new manifest takes its place. The codes are the same for every index: one opens what another saved.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rmsh.core.errors import FormatError, RmshError
from rmsh.core.files import atomic, checked_format, read_json, write_json
from rmsh.index.store import CodeStore

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rmsh.core.types import WordArray

__all__ = ["read_folder", "read_kind", "read_manifest", "write_folder", "write_manifest"]

FORMAT = "rmsh index"
VERSION = 1

_FILE = re.compile(r"[a-z]+-([0-9]+)\.npy")  # what a manifest may name: files beside it, of one generation


def write_folder(folder: Path, store: CodeStore, *, kind: str, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Save codes, and what an index of this kind derived from them."""
    before = read_manifest(folder)["files"].values() if (folder / "manifest.json").exists() else ()
    generation = 1 + max((int(_FILE.fullmatch(name)[1]) for name in before), default=0)  # type: ignore[index]
    derived = dict(arrays)
    if store.alive is not None:
        derived["alive"] = np.packbits(store.alive, bitorder="little")
    files = {name: f"{name}-{generation}.npy" for name in ("codes", *derived)}
    _write_codes(folder / files["codes"], store)
    for name, array in derived.items():
        with atomic(folder / files[name]) as file:
            np.lib.format.write_array(file, array, allow_pickle=False)
    facts = {"kind": kind, "bits": store.bits, "rows": store.row_count, "items": len(store), "files": files}
    write_manifest(folder, facts)
    for name in before:
        with contextlib.suppress(OSError):  # Windows deletes no file that somebody has mapped; it does no harm
            (folder / name).unlink()


def write_manifest(folder: Path, facts: Mapping[str, Any]) -> None:
    """Write what is to be known of an index: its kind, and the names of its files under ``files``."""
    write_json(folder / "manifest.json", {"format": FORMAT, "version": VERSION, **facts})


def _write_codes(path: Path, store: CodeStore) -> None:
    header = {"descr": "<u8", "fortran_order": False, "shape": (store.row_count, store.width)}
    with atomic(path) as file:
        np.lib.format.write_array_header_1_0(file, header)
        for segment in store.segments:
            file.write(segment.astype("<u8", copy=False).data)  # as it lies in memory, without a copy


def read_kind(folder: Path) -> str:
    """Which index saved a folder."""
    return str(read_manifest(folder)["kind"])


def read_folder(folder: Path) -> tuple[CodeStore, dict[str, NDArray[Any]]]:
    """The codes of a saved index, memory-mapped, and the arrays its kind derived from them.

    Raises:
        FormatError: there is no finished index, or it is damaged, or of a newer rmsh.
    """
    manifest = read_manifest(folder)
    try:
        files, rows = dict(manifest["files"]), int(manifest["rows"])
        codes = _map_codes(folder / files.pop("codes"), rows)
        arrays = {name: _load(folder / file) for name, file in files.items()}
        removed = arrays.pop("alive", None)
        alive = None if removed is None else np.unpackbits(removed, count=rows, bitorder="little").astype(np.bool_)
        store = CodeStore(manifest["bits"], codes, alive=alive)
        if len(store) != manifest["items"]:
            raise FormatError(f"{len(store)} items were found, {manifest['items']} were saved")
    except (OSError, ValueError, KeyError, TypeError, RmshError) as error:
        raise FormatError(f"The index in {folder} is damaged ({error}); build it anew.") from error
    return store, arrays


def _map_codes(path: Path, rows: int) -> WordArray:
    codes = np.lib.format.open_memmap(path, mode="r") if rows else _load(path)  # nothing cannot be mapped
    if codes.dtype != np.dtype("<u8") or codes.ndim != 2 or len(codes) != rows:
        raise FormatError(f"{path.name} holds {codes.dtype} {codes.shape}, and {rows} codes were saved")
    return codes.astype(np.uint64, copy=False)


def _load(path: Path) -> NDArray[Any]:
    with path.open("rb") as file:
        return np.lib.format.read_array(file, allow_pickle=False)


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a saved index.

    Raises:
        FormatError: there is no finished index, or it is of a newer rmsh.
    """
    path = folder / "manifest.json"
    if not path.is_file():
        raise FormatError(f"{folder} has no manifest.json: it is no index, or one whose saving did not finish.")
    hint = "give the folder that an index was saved in"
    manifest = checked_format(read_json(path), path, name=FORMAT, version=VERSION, hint=hint)
    files = manifest.get("files")
    if not isinstance(files, dict) or not all(_FILE.fullmatch(str(name)) for name in files.values()):
        raise FormatError(f"{path} is damaged: it does not name the files of an index; build it anew.")
    return manifest
