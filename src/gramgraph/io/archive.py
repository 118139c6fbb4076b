"""NumPy archives (.npz), as version 0.1.0 wrote kernel models and chains: read; containers are written instead."""

from __future__ import annotations

from typing import Any

from gramgraph._archive import read_archive
from gramgraph._container import is_container
from gramgraph.exceptions import ParseError
from gramgraph.io import container


def loads(data: bytes, *, source: str = "<bytes>", normalize: bool = True) -> Any:
    """A model from the bytes of an archive, or of a container that bears the name of one."""
    if is_container(data):  # `save` of a model writes a container, whatever the file is called
        return container.loads(data, source=source)
    arrays = read_archive(data, source=source)
    if "header" in arrays:
        from gramgraph.embeddings.network.files import from_arrays as kernel_model

        return kernel_model(arrays, source=source)
    if "head" in arrays:
        from gramgraph.sequences.crf.storage import from_arrays as chain

        return chain(arrays, source=source)
    raise ParseError("the archive holds arrays, but no model of this library", source=source)


def dumps(model: Any) -> bytes:
    """The bytes of a container: archives have no checksum over the whole, and are only read."""
    return container.dumps(model)
