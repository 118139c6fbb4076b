"""Arrow columns of texts as codes and labels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gramgraph.typing import Array

#: Labels up to which texts are looked up in a small table, and texts from which that is worth the trouble.
FEW, MANY = 100, 10_000
#: Seconds that Arrow's own encoding of a text takes more.
_SAVED = 1.2e-8


def distinct_texts(column: Any) -> tuple[Array, list[Any]]:
    """Where each cell of an Arrow column of texts stands among its distinct values (-1: missing), and these values."""
    labels: dict[str, int] = {}

    def number(text: str) -> int:
        return labels[text] if text in labels else labels.setdefault(text, len(labels)) if len(labels) < FEW else -1

    if (found := text_codes(column, number)) is not None:
        return found, list(labels)
    coded = column.dictionary_encode()
    chunks = coded.chunks if hasattr(coded, "chunks") else [coded]
    if not chunks:
        return np.zeros(0, np.int64), []
    codes = [part.indices.fill_null(-1) if part.null_count else part.indices for part in chunks]
    indices = [part.to_numpy(zero_copy_only=False) for part in codes]
    return indices[0] if len(indices) == 1 else np.concatenate(indices), chunks[0].dictionary.to_pylist()


def text_codes(column: Any, number: Callable[[str], int]) -> Array | None:
    """The number (below 128) of every text of an Arrow column, by compiled code; `number` is asked for each label once.

    None where that does not pay or is not possible: gaps, many labels, labels whose number is negative.
    """
    from gramgraph._numerics.compiling import pays
    from gramgraph._numerics.counts.texts import encode_texts

    if len(column) < MANY or column.null_count or not pays(encode_texts, _SAVED * len(column)):
        return None
    found = []
    for chunk in column.chunks if hasattr(column, "chunks") else [column]:
        codes = _by_table(chunk, number)
        if codes is None:
            return None
        found.append(codes)
    return found[0] if len(found) == 1 else np.concatenate(found)


def _by_table(texts: Any, number: Callable[[str], int]) -> Array | None:
    import pyarrow as pa

    from gramgraph._numerics.counts.texts import EMPTY, PLACES, encode_texts, enter_text

    wide = pa.types.is_large_string(texts.type)
    if not (wide or pa.types.is_string(texts.type)):
        return None
    if not len(texts):
        return np.empty(0, np.int8)
    _, ends, content = texts.buffers()
    offsets = np.frombuffer(ends, np.int64 if wide else np.int32)[texts.offset : texts.offset + len(texts) + 1]
    if content is None or content.size < 8:
        return None
    windows = np.ndarray((content.size - 7,), np.uint64, buffer=content, strides=(1,))
    whole = int(np.searchsorted(offsets[:-1], content.size - 8, side="right"))  # the last ones have no eight bytes
    out = np.empty(len(texts), np.int8)
    keys, lengths = np.full(PLACES, EMPTY), np.zeros(PLACES, np.uint64)
    starts, codes = np.zeros(PLACES, np.uint64), np.zeros(PLACES, np.int8)
    at = entered = 0
    while (at := encode_texts(at, whole, offsets, windows, keys, lengths, starts, codes, out)) < whole:
        code = number(texts[at].as_py())
        if entered == FEW or code < 0:
            return None
        enter_text(code, at, offsets, windows, keys, lengths, starts, codes)
        entered += 1
    rest = [number(text) for text in texts[whole:].to_pylist()]  # seven or so
    if min(rest, default=0) < 0:
        return None
    out[whole:] = rest
    return out
