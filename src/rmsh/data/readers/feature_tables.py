"""Features in Parquet files, one row per item, as `rmsh encode` writes shards and other programs write tables.

``image_features`` and ``text_features`` are lists of numbers of equal length, ``id`` is a string or an integer, and
``labels`` is a list of strings. One column of features is enough; null stands for what an item lacks.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from rmsh.core.errors import DataError
from rmsh.core.files import open_regular
from rmsh.core.types import BitArray, FloatArray
from rmsh.data.labels import multi_hot
from rmsh.data.pairs import Pairs
from rmsh.data.readers.matrix_files import MOST_UNPACKED

_FEATURES = {"images": "image_features", "texts": "text_features"}
_OTHER = {"ids": "id", "labels": "labels"}


def feature_tables(path: Path) -> list[Path]:
    """The Parquet file with features that a path names, or those directly in a folder."""
    files = sorted(path.glob("*.parquet")) if path.is_dir() else [path]
    return [file for file in files if file.suffix.lower() == ".parquet" and _has_features(file)]


def _has_features(path: Path) -> bool:
    import pyarrow as pa
    import pyarrow.parquet as pq

    with suppress(pa.ArrowException, OSError, DataError), open_regular(path) as file:
        return not {*_FEATURES.values()}.isdisjoint(pq.read_schema(file).names)
    return False


def read_feature_tables(files: Sequence[Path], *, skip: Collection[str] = (), source: str) -> Pairs:
    """Pairs of all files together; the roles in ``skip`` are not read."""
    import pyarrow as pa

    wanted = [column for role, column in {**_FEATURES, **_OTHER}.items() if role not in skip]
    try:
        table = pa.concat_tables([_read(file, wanted) for file in files])
    except pa.ArrowException as error:
        found = f"{source} has files that cannot be read together ({error})"
        raise DataError(f"{found}; give them the same columns.") from error
    columns: dict[str, Any] = {"ids": np.arange(len(table))}
    if "id" in table.column_names:
        columns["ids"] = np.array([str(name) for name in table["id"].to_pylist()])
    for role, name in _FEATURES.items():
        if name in table.column_names:
            columns[role], columns[f"has_{name.partition('_')[0]}"] = _matrix(table[name], f"{source}, column {name!r}")
    if "labels" in table.column_names:
        labels = [names or [] for names in table["labels"].to_pylist()]
        if known := sorted({name for names in labels for name in names}):
            columns |= {"labels": multi_hot(labels, known), "class_names": tuple(known)}
    return Pairs(**columns, source=source)


def _read(path: Path, wanted: Sequence[str]) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with open_regular(path) as binary, pq.ParquetFile(binary) as file:
            groups = [file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)]
            size = sum(group.column(n).total_uncompressed_size for group in groups for n in range(group.num_columns))
            if size > MOST_UNPACKED:
                found = f"{size:,} bytes, {MOST_UNPACKED:,} are allowed"
                raise DataError(f"{path} has {found}; divide it into several files.")
            return file.read(columns=[name for name in file.schema_arrow.names if name in wanted])
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{path} cannot be read as Parquet ({error}); check it, or write it again.") from error


def _matrix(column: Any, where: str) -> tuple[FloatArray, BitArray]:
    """Features float32 (n, width), zero for items without any, and which items have some."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_nested(column.type) or not pa.types.is_primitive(column.type.value_type):
        raise DataError(f"{where} has values of type {column.type}; lists of numbers are expected.")
    widths = pc.unique(pc.list_value_length(column).drop_null()).to_pylist()
    if len(widths) > 1:
        raise DataError(f"{where} has lists of {', '.join(map(str, sorted(widths)[:5]))} numbers; all need as many.")
    present = np.asarray(column.is_valid())
    features = np.zeros((len(column), *(widths or [1])), np.float32)
    values = [np.asarray(chunk.drop_null().flatten(), np.float32) for chunk in column.chunks]
    features[present] = np.concatenate([*values, np.empty(0, np.float32)]).reshape(-1, features.shape[1])
    return features, present
