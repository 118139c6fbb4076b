"""Arrow columns of texts as codes and labels."""

from __future__ import annotations

from typing import Any

import numpy as np

from gramgraph.typing import Array

#: Labels up to which texts are looked up in a small table, and texts from which that is worth the trouble.
FEW, MANY = 100, 10_000
#: Seconds that Arrow's own encoding of a text takes more.
_SAVED = 1.2e-8


def distinct_texts(column: Any) -> tuple[Array, list[Any]]:
    """Where each cell of an Arrow column of texts stands among its distinct values (-1: missing), and these values."""
    chunks = column.chunks if hasattr(column, "chunks") else [column]
    if len(chunks) == 1 and (found := _by_table(chunks[0])) is not None:
        return found
    coded = column.dictionary_encode()
    chunks = coded.chunks if hasattr(coded, "chunks") else [coded]
    if not chunks:
        return np.zeros(0, np.int64), []
    codes = [part.indices.fill_null(-1) if part.null_count else part.indices for part in chunks]
    indices = [part.to_numpy(zero_copy_only=False) for part in codes]
    return indices[0] if len(indices) == 1 else np.concatenate(indices), chunks[0].dictionary.to_pylist()


def _by_table(texts: Any) -> tuple[Array, list[Any]] | None:
    """The same for texts without gaps that are few labels, by compiled code; None where that does not pay."""
    import pyarrow as pa

    from gramgraph._numerics.compiling import pays
    from gramgraph._numerics.counts.texts import PLACES, encode_texts, enter_text

    wide = pa.types.is_large_string(texts.type)
    if len(texts) < MANY or texts.null_count or not (wide or pa.types.is_string(texts.type)):
        return None
    if not pays(encode_texts, _SAVED * len(texts)):
        return None
    _, ends, content = texts.buffers()
    offsets = np.frombuffer(ends, np.int64 if wide else np.int32)[texts.offset : texts.offset + len(texts) + 1]
    if content is None or content.size < 8:
        return None
    data = np.frombuffer(content, np.uint8)
    windows = np.ndarray((len(data) - 7,), np.uint64, buffer=content, strides=(1,))
    whole = int(np.searchsorted(offsets[:-1], len(data) - 8, side="right"))  # the last ones have no eight bytes
    out = np.empty(len(texts), np.int8)
    heads, lengths = np.zeros(PLACES, np.uint64), np.full(PLACES, -1, np.int64)
    starts, places = np.zeros(PLACES, np.int64), np.zeros(PLACES, np.int8)
    labels: dict[Any, int] = {}
    at = 0
    while (at := encode_texts(at, whole, offsets, windows, data, heads, lengths, starts, places, out)) < whole:
        if len(labels) == FEW:
            return None
        length = int(offsets[at + 1] - offsets[at])
        enter_text(len(labels), int(offsets[at]), length, windows, heads, lengths, starts, places)
        labels[texts[at].as_py()] = len(labels)
    out[whole:] = [labels.setdefault(text, len(labels)) for text in texts[whole:].to_pylist()]  # seven or so
    return out, list(labels)
