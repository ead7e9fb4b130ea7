"""Matrix files (.npy, .npz, .mat, .faiss): list their arrays by key, meaning and shape, read one, and form pairs.

A file with a single unnamed matrix uses the file's stem as its key. Pickles are never loaded.

A key names a kind of array and perhaps a part of the items, in any order, case and punctuation: ``image_features``,
``LAll``, ``I_tr``, ``query_labels``, ``qB``. Published files call image features XAll, tags YAll and file names FAll.

MATLAB up to version 7.2 has its own format; version 7.3 writes HDF5, which is not read.
"""

from __future__ import annotations

import math
import re
import zipfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray
from scipy import io, sparse

from rmsh.core.errors import DataError, RmshError, require
from rmsh.core.files import open_regular
from rmsh.data.pairs import Pairs, checked_column, checked_ids, checked_labels
from rmsh.data.splits import Split

Part: TypeAlias = Literal["all", "database", "train", "query"]
Kind: TypeAlias = Literal["images", "texts", "labels", "ids", "class_names", "codes"]
Shapes: TypeAlias = dict[str, tuple[int, ...]]

SUFFIXES = (".npz", ".npy", ".mat")
_HDF5_SUFFIXES, _HDF5, _FAISS = (".h5", ".hdf5"), b"\x89HDF\r\n\x1a\n", ".faiss"
_USER_BLOCK = 512  # bytes of MATLAB's header in front of the HDF5 part of a version 7.3 file
MOST_UNPACKED = 16 << 30  # bytes of compressed matrices
SPARSE_MEMBERS = {"format", "shape", "data"}  # written by scipy.sparse.save_npz for every sparse format

_PARTS: dict[Part, tuple[str, ...]] = {
    "all": ("", "all"),
    "database": ("database", "retrieval", "gallery", "db", "re", "r"),
    "train": ("train", "tr"),
    "query": ("query", "queries", "test", "te", "qu", "q"),
}
_KINDS: dict[Kind, tuple[str, ...]] = {
    "images": ("images", "image", "imgs", "img", "imagefeatures", "i"),
    "texts": ("texts", "text", "txt", "tags", "captions", "textfeatures", "t"),
    "labels": ("labels", "label", "l", "targets", "target"),
    "ids": ("ids", "id"),
    "class_names": ("classnames", "names", "labelnames"),
    "codes": ("", "codes", "code", "b", "bits", "binary", "hash", "hashes", "hashcodes"),
}
_MEANINGS: dict[str, tuple[Part, Kind]] = {
    key: (part, kind)
    for part, names in _PARTS.items()
    for kind, words in _KINDS.items()
    for name in names
    for word in words
    for key in (name + word, word + name)
    if word or part in ("query", "database")  # "query" alone names the codes of the queries
} | {"xall": ("all", "images"), "yall": ("all", "texts"), "fall": ("all", "ids")}


@dataclass(frozen=True)
class MatrixKey:
    """A matrix in a file: the file, its key there, and its shape."""

    path: Path
    key: str
    shape: tuple[int, ...]

    def __str__(self) -> str:
        size = " x ".join(f"{length:,}" for length in self.shape) or "a single value"
        return f"key {self.key!r} ({size}) of {self.path.name}"

    @property
    def meaning(self) -> tuple[Part, Kind] | None:
        """The part and the kind that the key names, or None."""
        return _MEANINGS.get(re.sub(r"[^a-z0-9]", "", self.key.lower()))

    @property
    def where(self) -> str:
        """The whole path and the key, for error messages."""
        return f"{self.path}, key {self.key!r}"


def matrix_files(path: Path, *, allowed: str = "a matrix file") -> list[Path]:
    """The path itself if it is a matrix file, or those directly in a folder; an error says what else is ``allowed``."""
    candidates = sorted(path.iterdir()) if path.is_dir() else [path] if path.exists() else []
    files = [file for file in candidates if file.suffix.lower() in (*SUFFIXES, *_HDF5_SUFFIXES, _FAISS)]
    for file in files:
        open_regular(file, inside=path if path.is_dir() else None).close()
    if not files:
        kind = "is a folder without matrices" if path.is_dir() else f"has the suffix {path.suffix!r}"
        problem = kind if path.exists() else "does not exist"
        raise DataError(f"{path} {problem}; give {allowed} ({', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}).")
    return files


def list_matrices(*files: Path) -> list[MatrixKey]:
    """The matrices of some files, from their headers alone."""
    found = []
    for path in files:
        with _parser_errors(path, str(path)):
            found += [MatrixKey(path, key, shape) for key, shape in _reader(path)[0](path).items()]
    return found


def read_matrix(matrix: MatrixKey) -> Any:
    """An array (memory-mapped if the format allows it), a CSR matrix, or an array of strings."""
    with _parser_errors(matrix.path, matrix.where):
        return _reader(matrix.path)[1](matrix.path, matrix.key)


@contextmanager
def _parser_errors(path: Path, source: str) -> Iterator[None]:
    """Turn any exception that a parser raises for a damaged file into a DataError."""
    try:
        yield
    except RmshError:
        raise
    except Exception as error:
        reason = str(error) or type(error).__name__
        raise DataError(f"{source} cannot be read as {path.suffix} ({reason}); check the file.") from error


def _reader(path: Path) -> tuple[Callable[[Path], Shapes], Callable[[Path, str], Any]]:
    """The functions that list and read the matrices of a file."""
    suffix = path.suffix.lower()
    if suffix in (".npz", ".npy"):
        return _numpy_shapes, _read_numpy
    if suffix == _FAISS:
        return lambda path: {path.stem: _read_faiss(path, path.stem).shape}, _read_faiss
    with path.open("rb") as file:
        head = file.read(_USER_BLOCK + len(_HDF5))
    if suffix in _HDF5_SUFFIXES or head.startswith(_HDF5) or head.endswith(_HDF5):
        instead = "write its matrices with numpy.savez, or in MATLAB with save('-v7', ...)"
        raise DataError(f"{path} is in HDF5, which is not read; {instead}.")
    return _matlab_shapes, _read_matlab


def _numpy_shapes(path: Path) -> Shapes:
    if path.suffix.lower() == ".npy":
        with path.open("rb") as file:
            return {path.stem: _header(file)[0]}
    shapes: Shapes = {}
    with zipfile.ZipFile(path) as archive:
        _check_size(sum(member.file_size for member in archive.infolist()), path)
        for member in archive.infolist():
            if member.filename.endswith(".npy"):
                key = member.filename.removesuffix(".npy")
                with archive.open(member) as file:
                    shapes[key], itemsize = _header(file)
                if math.prod(shapes[key]) * itemsize > member.file_size:
                    raise DataError(f"{path}, key {key!r} has fewer values than its header says; write it again.")
    if shapes.keys() >= SPARSE_MEMBERS:
        with np.load(path, allow_pickle=False) as arrays:
            shape = tuple(int(size) for size in arrays["shape"])
        _check_size(8 * sum(shape), path)  # a row or column without values takes space, too
        return {path.stem: shape}
    return shapes


def _header(file: IO[bytes]) -> tuple[tuple[int, ...], int]:
    """The shape of an array and the bytes of a value, from the beginning of its file."""
    version = np.lib.format.read_magic(file)
    read_header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read_header(file)
    return shape, dtype.itemsize


def _check_size(size: int, source: object) -> None:
    if size > MOST_UNPACKED:
        found = f"{size:,} bytes when it is unpacked, {MOST_UNPACKED:,} are allowed"
        raise DataError(f"{source} has {found}; divide it, or store the matrix as .npy, which is not packed.")


def _read_numpy(path: Path, key: str) -> Any:
    if path.suffix.lower() == ".npy":
        return np.load(path, mmap_mode="r", allow_pickle=False)
    with np.load(path, allow_pickle=False) as arrays:
        if {*arrays} >= SPARSE_MEMBERS:
            return sparse.csr_array(sparse.load_npz(path))
        return arrays[key]


def _read_faiss(path: Path, key: str) -> Any:
    """The packed codes of a flat binary index of faiss, in the order in which they were added."""
    faiss: Any = require("faiss", "bench")
    index = faiss.read_index_binary(str(path))
    flat = faiss.downcast_IndexBinary(getattr(index, "index", index))  # an ID map has the index inside
    if not hasattr(flat, "xb"):
        raise DataError(f"{path}, key {key!r} is an {type(flat).__name__}; only flat binary indexes are read.")
    return faiss.vector_to_array(flat.xb).reshape(flat.ntotal, flat.code_size)


def _matlab_shapes(path: Path) -> Shapes:
    found = io.whosmat(path)
    dense = [math.prod(shape) for _, shape, kind in found if kind != "sparse"]
    _check_size(max(dense, default=0), path)  # a value has one byte or more
    return {name: tuple(shape) for name, shape, _ in found}


def _read_matlab(path: Path, key: str) -> Any:
    value = io.loadmat(path, variable_names=[key])[key]
    if sparse.issparse(value):
        return sparse.csr_array(value)
    if value.dtype.kind == "O":
        cells = [np.asarray(cell) for cell in value.flat]
        if not all(cell.dtype.kind == "U" and cell.size <= 1 for cell in cells):
            raise DataError(f"{path}, key {key!r} is a MATLAB cell array of more than strings; save a numeric matrix.")
        texts = [str(cell.item()) if cell.size else "" for cell in cells]
        return np.array(texts, dtype=np.str_).reshape(value.shape)
    if value.dtype.names is not None:
        raise DataError(f"{path}, key {key!r} is a MATLAB struct; save the matrix inside it as a separate variable.")
    # MATLAB pads the rows of a character matrix with blanks to equal length.
    return np.strings.rstrip(value) if value.dtype.kind == "U" else value


Role: TypeAlias = Literal["images", "texts", "labels", "ids", "class_names"]
ROLES: tuple[Role, ...] = get_args(Role)
BAG_DENSITY = 0.1  # a binary matrix with a smaller share of ones is a bag of words and is kept sparse

Selection: TypeAlias = Mapping[Role, Mapping[Part, MatrixKey]]  # "all", or the database (or "train") and the queries


def select_matrices(
    matrices: Sequence[MatrixKey], *, skip: Collection[Role] = (), source: str
) -> tuple[Selection, list[str]]:
    """A matrix, or its parts, for each role that is not skipped, by the meaning of keys; and notes on these guesses."""
    found: dict[Role, dict[Part, MatrixKey]] = {role: {} for role in ROLES}
    notes, unused = [], []
    for matrix in matrices:
        part, role = matrix.meaning or ("all", None)
        if role not in found or matrix.key.lower() in ("i", "t"):  # without a part, these letters may mean anything
            unused.append(f"{matrix} was not used")
        elif role in skip:
            continue
        elif len(matrix.shape) > 2:
            notes.append(f"{matrix} was skipped: it has {len(matrix.shape)} dimensions, like pixels; features have 2")
        elif clash := next((m for other, m in found[role].items() if part == other or "all" in (part, other)), None):
            raise DataError(f"Two keys match the {role}: {clash} and {matrix}; remove one of them.")
        else:
            found[role][part] = matrix
    spare = [parts.pop("train") for parts in found.values() if {"database", "train"} <= parts.keys()]
    notes += [f"{matrix} was skipped: training uses the database, which usually has these rows" for matrix in spare]
    if not found["labels"]:
        found["class_names"].clear()
    # The parts of a role in the order of their type: the database or the training rows, then the queries.
    selected = {r: {p: parts[p] for p in get_args(Part) if p in parts} for r, parts in found.items() if parts}
    by_item = _by_item(selected)
    if not by_item:
        keys = f"the keys are {', '.join(map(str, matrices)) or 'none'}"
        raise DataError(f"{source}: no key is named like images, texts or labels; {keys}. Rename them.")
    if len({tuple(by_part) for by_part in by_item.values()}) > 1:
        shown = ", ".join(f"{role} for {' and '.join(by_part)}" for role, by_part in by_item.items())
        raise DataError(f"{source}: the matrices come in different parts ({shown}); all need the same parts.")
    notes += [f"{role} were taken from {matrix}" for role, parts in selected.items() for matrix in parts.values()]
    return selected, notes + unused


def _by_item(selected: Selection) -> Selection:
    """The matrices that have one row per item."""
    return {role: by_part for role, by_part in selected.items() if role != "class_names"}


def read_matrix_pairs(
    files: Sequence[Path], *, skip: Collection[Role] = (), source: str
) -> tuple[Pairs, Split | None, tuple[str, ...]]:
    """Pairs from matrix files, their split if the matrices come in parts, and notes on what was guessed."""
    selected, notes = select_matrices(list_matrices(*files), skip=skip, source=source)
    pairs, sizes = read_selected(selected, source)
    texts: Any = pairs.texts
    empty = np.count_nonzero(np.diff(texts.indptr) == 0) if sparse.issparse(texts) else 0
    if empty:
        notes.append(f"{empty:,} of {len(pairs):,} texts have no words")
    split = None
    if len(sizes) == 2:
        database, query = np.split(np.arange(len(pairs)), sizes[:1])
        split = Split(Path(source).stem, database, query, database)
    return pairs, split, tuple(notes)


def read_selected(selected: Selection, source: str) -> tuple[Pairs, list[int]]:
    """Pairs, and the number of items of each part; items without IDs are numbered."""
    by_item = _by_item(selected)
    parts = next(iter(by_item.values()))
    sizes = [_common_rows({role: by_part[part] for role, by_part in by_item.items()}, source) for part in parts]
    if not sum(sizes):
        raise DataError(f"{source}: the matrices have no rows; at least one item is needed.")
    columns: dict[str, Any] = {role: _read_parts(role, [*by_part.values()]) for role, by_part in selected.items()}
    return Pairs(**({"ids": np.arange(sum(sizes))} | columns), source=source), sizes


def _common_rows(matrices: Mapping[Role, MatrixKey], source: str) -> int:
    """The number of items, which must be the same in all matrices; a list of IDs may be a row or a column."""
    counts: dict[Role, int] = {}
    for role, matrix in matrices.items():
        if not matrix.shape:
            raise DataError(f"{matrix.where} is a single value; a matrix with one row per item is expected.")
        counts[role] = math.prod(matrix.shape) if role == "ids" else matrix.shape[0]
    if len(set(counts.values())) == 1:
        return counts.popitem()[1]
    shown = ", ".join(f"{counts[role]} of {role} ({matrix})" for role, matrix in matrices.items())
    widths = {matrix.shape[1:] for matrix in matrices.values()}
    rows = widths.pop() if len(widths) == 1 else counts.values()  # equal widths: all of them may be transposed
    turned = [matrix.where for matrix in matrices.values() if len(matrix.shape) == 2 and matrix.shape[1] in rows]
    raise DataError(
        f"{source}: the matrices have different numbers of rows: {shown}; each needs one row per item."
        + (f" Possibly transposed (features x items): {' and '.join(turned)}; transpose it." if turned else "")
    )


def _read_parts(role: Role, parts: Sequence[MatrixKey]) -> Any:
    columns = [_column(role, read_matrix(matrix), matrix.where) for matrix in parts]
    if len(columns) == 1:
        return columns[0]
    if len({column.shape[1:] for column in columns}) > 1:
        shown = " and ".join(map(str, parts))
        raise DataError(f"The parts of {role} have different widths: {shown}; all parts need the same features.")
    if any(sparse.issparse(column) for column in columns):
        return sparse.vstack(columns, format="csr")
    return np.concatenate(columns)


def _column(role: Role, matrix: Any, source: str) -> Any:
    if role == "class_names":
        return _strings(matrix, source)
    if role == "ids":
        return checked_ids(_strings(matrix, source), source)
    if role == "labels":
        return checked_labels(matrix, matrix.shape[0], source)
    if matrix.dtype.kind in "SU":
        return _strings(matrix, source)
    if role == "texts" and not sparse.issparse(matrix) and matrix.ndim == 2 and matrix.dtype.kind in "fiub":
        # A thin binary matrix is a bag of words.
        thin = np.count_nonzero(matrix) < BAG_DENSITY * matrix.size
        bag = sparse.csr_array(matrix) if thin else None
        matrix = bag if bag is not None and (bag.data == 1).all() else matrix
    return checked_column(matrix, matrix.shape[0], source)


def _strings(values: Any, source: str) -> NDArray[np.str_]:
    """A list of strings or integers, which MATLAB stores as a matrix of one row or column."""
    if sparse.issparse(values) or math.prod(values.shape) != max(values.shape, default=0):
        raise DataError(f"{source}: the shape is {values.shape}; a list of strings or integers is expected.")
    flat = values.ravel()
    if flat.dtype.kind == "S":
        try:
            return np.asarray(np.strings.decode(flat, "utf-8"))
        except UnicodeDecodeError as error:
            raise DataError(f"{source}: the strings are not valid UTF-8 ({error}); write them in UTF-8.") from error
    if flat.dtype.kind == "f" and np.isfinite(flat).all() and (flat == np.floor(flat)).all():
        flat = flat.astype(np.int64)
    if flat.dtype.kind not in "Uiu":
        raise DataError(f"{source}: the dtype is {values.dtype}; strings or integers are expected.")
    return np.asarray(flat, dtype=np.str_)
