"""Files: read and write models by suffix, and the evidence and result files of the UAI format."""

from __future__ import annotations

import gzip
import os
from os import PathLike
from typing import Any

from gramgraph._lazy import lazy_names
from gramgraph._replace import write_whole
from gramgraph.exceptions import OptionError
from gramgraph.io.registry import find_format, inflate, load_format

__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "arviz_export": "to_arviz",
        "uai_results": (
            "read_uai_evidence read_uai_query read_uai_result UaiResult write_uai_evidence write_uai_result"
        ),
    },
    "read",
    "write",
)


def read(path: str | PathLike[str], *, format: str | None = None, normalize: bool = True) -> Any:
    """The model in a file; the format follows from the suffix (`.bif`, `.xmlbif`, `.xml`, `.uai`, `.fg`, `.net`,
    `.hugin`, `.xdsl`, `.json`, `.gg`, each also with `.gz`) or is named by `format`. `.gg` is the library's container:
    it holds every model, fitted estimators included, under a checksum.

    Rows of a conditional table are divided by their sum; `normalize=False` keeps the numbers as the file has them, so
    that `check_model()` can speak of them. A file that does not follow its format is a `ParseError` with line and
    column.

    Parameters
    ----------
    path : the file.
    format : its format, where the suffix does not tell.
    normalize : whether rows of tables are divided by their sum.

    Examples
    --------
    >>> import os, tempfile
    >>> import gramgraph as gg
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = os.path.join(folder, "asia.bif.gz")
    ...     gg.write(gg.datasets.asia(), file)
    ...     gg.read(file) == gg.datasets.asia()
    True
    """
    file = os.fspath(path)
    name, packed = find_format(file, format)
    with open(file, "rb") as stream:
        data = stream.read()
    if packed:
        data = inflate(data, source=file)
    return load_format(name).loads(data, source=file, normalize=normalize)


def write(model: Any, path: str | PathLike[str], *, format: str | None = None) -> None:
    """Write a model to a file; the format follows from the suffix as in `read`.

    Numbers are written so that reading gives the same bits. Nothing is written when the format cannot hold the model,
    and an old file of that name stays as it was until the new one is whole (a full disk, an interrupt).

    Parameters
    ----------
    model : a model, an estimator, a stream.
    path : the file.
    format : its format, where the suffix does not tell.

    Examples
    --------
    >>> import os, tempfile
    >>> import gramgraph as gg
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = os.path.join(folder, "asia.bif")
    ...     write(gg.datasets.asia(), file)
    ...     len(read(file))
    8
    """
    if isinstance(model, (str, PathLike)):
        raise OptionError("write takes the model first and then the path: gg.write(model, path)")
    file = os.fspath(path)
    name, packed = find_format(file, format)
    data = load_format(name).dumps(model)
    if packed:
        data = gzip.compress(data, mtime=0)
    write_whole(file, data)
