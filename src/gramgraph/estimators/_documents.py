"""Collections of documents as estimators read them: counts in matrices and frames, or lists of tokens."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np

from gramgraph.estimators._sound import read_matrix
from gramgraph.exceptions import ModelError

_LARGEST = 2**53


def read_documents(estimator: Any, X: Any, *, reset: bool) -> Any:
    """X as a sparse matrix of counts (documents, words).

    Arrays, sparse matrices and frames hold counts. A list of lists holds tokens: words, or numbers of words from 0 on.
    With `reset` these words are the vocabulary, in the order in which they come; later, words that are not in it are
    left out.
    """
    if isinstance(X, (list, tuple)) and len(X) and all(_is_document(d) for d in X):
        return _from_tokens(estimator, X, reset=reset)
    if isinstance(X, (list, tuple)) and any(isinstance(d, str) for d in X):
        raise ModelError(f"a document is a list of words, not one text: split it first, such as {X[0]!r:.30}.split()")
    found = read_matrix(estimator, X, limit=np.inf, reset=reset, accept_sparse="csr", dtype="numeric")
    values = found.data if hasattr(found, "tocsr") else found
    _check_counts(type(estimator).__name__, values)
    import scipy.sparse

    return scipy.sparse.csr_array(found)


def _is_document(value: Any) -> bool:
    if isinstance(value, np.ndarray):
        return value.ndim == 1
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))


def _check_counts(name: str, values: Any) -> None:
    if values.dtype.kind == "b":
        return
    low = values.min() if values.size else 0
    if low < 0:
        raise ModelError(
            f"Negative values in data passed to {name}: counts of words are whole numbers from 0 on, not {low:g}"
        )
    if values.dtype.kind == "f":
        odd = values[values != np.rint(values)]
        if odd.size:
            raise ModelError(
                f"{name} takes counts of words, which are whole numbers, not {odd.flat[0]:g}: give how often each word "
                f"stands in each document, not shares or weights such as tf-idf"
            )
        if values.size and values.max() > _LARGEST:
            raise ModelError(f"{name}: a count of {values.max():g} is beyond what is counted exactly, 2**53")


def _from_tokens(estimator: Any, documents: Sequence[Any], *, reset: bool) -> Any:
    lengths = [len(d) for d in documents]
    kinds = {_kind(token) for d in documents for token in (d if not isinstance(d, np.ndarray) else d[:1].tolist())}
    if len(kinds) > 1 or kinds - {"word", "number"}:
        raise ModelError(
            "documents in lists hold tokens: either words (strings) or their numbers from 0 on. Counts are given as an "
            "array, a sparse matrix or a frame"
        )
    if kinds == {"word"}:
        index, n_words = _by_name(estimator, documents, reset=reset)
    else:
        index, n_words = _by_number(estimator, documents, reset=reset)
    rows = np.repeat(np.arange(len(documents)), lengths)
    known = index >= 0
    import scipy.sparse

    ones = np.ones(int(known.sum()), np.int64)
    return scipy.sparse.coo_array((ones, (rows[known], index[known])), shape=(len(documents), n_words)).tocsr()


def _kind(token: Any) -> str:
    if isinstance(token, str):
        return "word"
    return "number" if isinstance(token, Integral) and not isinstance(token, (bool, np.bool_)) else "other"


def _by_number(estimator: Any, documents: Sequence[Any], *, reset: bool) -> tuple[Any, int]:
    parts = [np.asarray(d, dtype=np.int64) for d in documents if len(d)]
    index = np.concatenate(parts) if parts else np.zeros(0, np.int64)
    if index.min(initial=0) < 0:
        raise ModelError(f"words have numbers from 0 on, not {index.min()}")
    if reset:
        estimator.n_features_in_ = int(index.max(initial=-1)) + 1
        estimator.__dict__.pop("feature_names_in_", None)
    n = int(estimator.n_features_in_)
    return np.where(index < n, index, -1), n


def _by_name(estimator: Any, documents: Sequence[Any], *, reset: bool) -> tuple[Any, int]:
    if reset:
        words = list(dict.fromkeys(word for d in documents for word in d))
        estimator.n_features_in_ = len(words)
        estimator.feature_names_in_ = np.array(words, dtype=object)
    elif not hasattr(estimator, "feature_names_in_"):
        raise ModelError(
            "the model was fitted on counts without names of words: give counts, or lists of the numbers of columns"
        )
    place = {word: j for j, word in enumerate(estimator.feature_names_in_.tolist())}
    index = np.array([place.get(word, -1) for d in documents for word in d], dtype=np.int64)
    return index, len(place)
