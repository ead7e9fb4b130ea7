"""Exporting a library for other programs: items and codes as a Parquet file, or codes as a faiss index."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rmsh.core.errors import InputError, require
from rmsh.core.files import atomic
from rmsh.core.types import MODALITIES
from rmsh.library.database import translate_errors
from rmsh.library.queries import code_blocks, coded_items, facts_of, generation_of, last_row

if TYPE_CHECKING:
    from rmsh.core.types import Modality
    from rmsh.library.library import Library

_ROWS = 1 << 14  # items in memory at once


def export(library: Library, out: Path, *, codes: str = "text") -> int:
    """Write a ``.parquet`` file, or a ``.faiss`` file with the codes of one modality; return the number of entries."""
    if out.suffix == ".parquet":
        return export_parquet(library, out)
    for modality in MODALITIES:
        if out.suffix == ".faiss" and codes == modality:
            return export_faiss(library, out, modality=modality)
    raise InputError(
        f"Cannot export {codes!r} codes to {out}; give a .parquet file, or a .faiss file and {' or '.join(MODALITIES)}."
    )


def export_parquet(library: Library, out: Path) -> int:
    """Write all items with row, id, text, picture, labels and both packed codes (or null); return their number.

    The metadata of the file contains the number of bits, the model and the library. Bit i of a code is bit i % 8 of
    byte i // 8, counted from the least significant.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    with library.reading() as connection, translate_errors(out), atomic(out) as file:
        generation = generation_of(connection)
        code = pa.binary(-(-generation.bits // 8))
        fields = {"row": pa.int64(), "id": pa.string(), "text": pa.string(), "picture": pa.string()}
        fields |= {"labels": pa.list_(pa.string()), "image_code": code, "text_code": code}
        facts = {"rmsh.bits": str(generation.bits), "rmsh.model": generation.fingerprint}
        schema = pa.schema(list(fields.items()), metadata={**facts, "rmsh.library": facts_of(connection).id})
        count = 0
        with pq.ParquetWriter(file, schema) as writer:
            for first in range(0, last_row(connection) + 1, _ROWS):
                found = coded_items(connection, first, first + _ROWS)
                entries = [
                    {"row": row, **vars(item), "image_code": image, "text_code": text}
                    for row, item, image, text in found
                ]
                writer.write_table(pa.Table.from_pylist(entries, schema=schema))
                count += len(entries)
    return count


def export_faiss(library: Library, out: Path, *, modality: Modality) -> int:
    """Write the codes of one modality as a faiss ``IndexBinaryFlat`` with an ID map to rows; return their number.

    Codes are padded with zeros to a multiple of 8 bits, which does not change distances.
    """
    faiss: Any = require("faiss", "bench")
    with library.reading() as connection, translate_errors(out):
        generation = generation_of(connection)
        index = faiss.IndexBinaryIDMap(faiss.IndexBinaryFlat(-(-generation.bits // 8) * 8))
        for rows, packed in code_blocks(connection, modality):
            index.add_with_ids(np.ascontiguousarray(packed), rows)
        with atomic(out) as file:
            file.write(memoryview(faiss.serialize_index_binary(index)))
    return int(index.ntotal)
