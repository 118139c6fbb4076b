"""The native container (.gg): every kind of model, with a checksum over the whole file.

Networks, distributions and sequence models are held as the tree of their JSON files; kernel models, chains and
estimators as a tree beside raw arrays. A new kind of model is one line in `KINDS`.
"""

from __future__ import annotations

import importlib
from typing import Any

from gramgraph._container import pack, unpack
from gramgraph.exceptions import ModelError, ParseError, did_you_mean

#: Kind in a file → module with `holds(model)`, `to_parts(model)` and `from_parts(tree, arrays, source=…)`. The first
#: module that holds a model writes it.
KINDS: dict[str, str] = {
    "document": "gramgraph.io.native",
    "kernel_model": "gramgraph.embeddings.network.files",
    "linear_chain_crf": "gramgraph.sequences.crf.storage",
    "value": "gramgraph.io.values",
}


def kind_of(model: Any) -> str | None:
    """The kind under which a model is written; None for something that has no place in a file."""
    return next((kind for kind, module in KINDS.items() if importlib.import_module(module).holds(model)), None)


def loads(data: bytes, *, source: str = "<bytes>", normalize: bool = True) -> Any:
    """A model from the bytes of a file.

    >>> import gramgraph as gg
    >>> loads(dumps(gg.kernels.RBF(0.5)))
    RBF(length_scale=0.5)
    """
    content = unpack(data, source=source)
    if content.kind not in KINDS:
        hint = did_you_mean(content.kind, KINDS)
        raise ParseError(f"kind {content.kind!r} is not known. Kinds: {', '.join(KINDS)}.{hint}", source=source)
    module = importlib.import_module(KINDS[content.kind])
    return module.from_parts(content.value, content.arrays, source=source)


def dumps(model: Any) -> bytes:
    """The bytes of a file."""
    kind = kind_of(model)
    if kind is None:
        raise ModelError(
            f"a {type(model).__name__} has no place in a file. Files hold networks, distributions, models of "
            "sequences, kernel models, kernels and fitted estimators."
        )
    return pack(kind, *importlib.import_module(KINDS[kind]).to_parts(model))
