"""Files of chains: plain values and arrays in one container, read without executing anything."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gramgraph._archive import read_archive
from gramgraph._container import is_container, pack, unpack
from gramgraph._replace import write_whole
from gramgraph.exceptions import GramGraphError, ModelError, ParseError
from gramgraph.sequences.crf.decoding import Chain, Rules, read_rules
from gramgraph.sequences.crf.encoding import FeatureTable
from gramgraph.sequences.crf.objective import ChainWeights, padded
from gramgraph.typing import Array

if TYPE_CHECKING:
    from gramgraph.sequences.crf.chain import LinearChainCRF

_FORMAT, _VERSION = "gramgraph linear-chain CRF", 1
_UNFIT = (GramGraphError, ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)


def holds(model: Any) -> bool:
    """Whether a model is a chain."""
    return type(model).__module__ == "gramgraph.sequences.crf.chain" and type(model).__name__ == "LinearChainCRF"


def to_parts(model: LinearChainCRF) -> tuple[dict[str, Any], dict[str, Array]]:
    """Weights, attributes, labels and parameters as plain values and arrays."""
    model._check_fitted()
    weights, table = model._chain.weights, model._table
    parameters = model.get_params()
    if not isinstance(parameters["random_state"], (int, type(None))):
        parameters["random_state"] = None  # a generator is not part of what was learned
    head = {
        "format": _FORMAT, "version": _VERSION, "parameters": parameters, "labels": model._labels,
        "size": table.size, "plain": table.plain,
        "levels": {key: {v: i for v, i in level.items() if isinstance(v, str)} for key, level in table.levels.items()},
        "numbers": {key: level[1.0] for key, level in table.levels.items() if 1.0 in level},
        "n_iter": model.n_iter_, "converged": bool(model.converged_), "objective": model.objective_,
    }  # fmt: skip
    try:
        plain = json.loads(json.dumps(head, allow_nan=False, default=_plain))
    except (TypeError, ValueError) as error:
        raise ModelError(f"the model cannot be written: {error}") from None
    names = ("dense", "sp_ptr", "sp_label", "sp_weight", "transitions")
    return plain, {**{name: getattr(weights, name) for name in names}, "history": model.history_}


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"a {type(value).__name__} has no place in a file")


def save(model: LinearChainCRF, path: Path) -> None:
    """Write a container (`gg.write` to .gg writes the same)."""
    write_whole(path, pack("linear_chain_crf", *to_parts(model)))


def load(path: Path) -> LinearChainCRF:
    """Read what `save` wrote, or an archive (.npz) of version 0.1.0."""
    data, source = path.read_bytes(), str(path)
    if not is_container(data):
        return from_arrays(read_archive(data, source=source), source=source)
    content = unpack(data, source=source)
    if content.kind != "linear_chain_crf":
        raise ParseError(f"not a file of a linear-chain CRF, but of a {content.kind}", source=source)
    return from_parts(content.value, content.arrays, source=source)


def from_arrays(arrays: Mapping[str, Array], *, source: str) -> LinearChainCRF:
    """The chain in the arrays of an archive of version 0.1.0."""
    rest = dict(arrays)
    try:
        head = json.loads(rest.pop("head").tobytes().decode("utf-8", "surrogatepass"))
    except _UNFIT as error:
        raise ParseError(f"not a file of a linear-chain CRF ({error})", source=source) from None
    return from_parts(head, rest, source=source)


def from_parts(tree: Any, arrays: Mapping[str, Array], *, source: str) -> LinearChainCRF:
    """The model of `to_parts`; anything that does not fit together is a `ParseError`."""
    try:
        return _read(tree, dict(arrays))
    except _UNFIT as error:
        raise ParseError(f"not a file of a linear-chain CRF ({error or type(error).__name__})", source=source) from None


def _read(head: Any, arrays: dict[str, Array]) -> LinearChainCRF:
    from gramgraph.sequences.crf.chain import LinearChainCRF

    if head["format"] != _FORMAT or head["version"] != _VERSION:
        raise ValueError(f"expected {_FORMAT}, version {_VERSION}")
    parameters = dict(head["parameters"])
    if isinstance(parameters["constraints"], list):
        parameters["constraints"] = [tuple(pair) for pair in parameters["constraints"]]
    model = LinearChainCRF(**parameters)
    model._check_parameters()
    labels = head["labels"]
    if not isinstance(labels, list) or {type(label) for label in labels} not in ({str}, {int}, {bool}):
        raise ValueError("labels are all texts, or all whole numbers")
    if labels != sorted(set(labels)):
        raise ValueError("labels stand in their order, each once")
    read_rules(model.constraints, labels)
    history = arrays.pop("history")
    if history.ndim != 1 or history.dtype != np.float64 or not np.isfinite(history).all():
        raise ValueError("the history is a list of numbers")
    weights = ChainWeights(**arrays, width=padded(len(labels)))
    table = _table(head)
    _check(weights, table, len(labels))
    model._chain, model._table = Chain(weights, Rules.free(len(labels))), table.closed()
    model._labels, model.classes_, model.history_ = labels, np.array(labels), history
    model.n_iter_, model.converged_, model.objective_ = (
        int(head["n_iter"]), bool(head["converged"]), float(head["objective"]),
    )  # fmt: skip
    return model


def _table(head: Any) -> FeatureTable:
    table = FeatureTable()
    for key, level in head["levels"].items():
        table.levels[key] = {value: _index(i) for value, i in level.items()}
        if key in head["numbers"]:
            table.levels[key] |= {1.0: _index(head["numbers"][key]), 0.0: -1}
    table.plain, table.size = {word: _index(i) for word, i in head["plain"].items()}, _index(head["size"])
    return table


def _index(value: Any) -> int:
    if type(value) is not int:
        raise ValueError(f"{value!r:.40} is not a position")
    return value


def _check(weights: ChainWeights, table: FeatureTable, K: int) -> None:
    """The loops trust their arrays: what does not fit is refused here."""
    kinds = {"dense": "f8", "sp_ptr": "i8", "sp_label": "i4", "sp_weight": "f8", "transitions": "f8"}
    fits = all(getattr(weights, name).dtype == np.dtype(kind) for name, kind in kinds.items())
    fits = fits and K > 0 and weights.transitions.shape == (K, K) and weights.dense.ndim == 1
    fits = fits and len(weights.dense) % weights.width == 0 and weights.sp_ptr.ndim == 1 and len(weights.sp_ptr) > 0
    fits = fits and weights.sp_label.ndim == weights.sp_weight.ndim == 1
    fits = fits and weights.n_dense + len(weights.sp_ptr) - 1 == table.size
    fits = fits and weights.sp_ptr[0] == 0 and weights.sp_ptr[-1] == len(weights.sp_label) == len(weights.sp_weight)
    fits = fits and bool((np.diff(weights.sp_ptr) >= 0).all())
    fits = fits and bool(((weights.sp_label >= 0) & (weights.sp_label < K)).all())
    fits = fits and all(0 <= number < table.size for _, _, number in table.pairs())
    if not fits:
        raise ValueError("the arrays of the file do not fit together")
    if not all(np.isfinite(part).all() for part in (weights.dense, weights.sp_weight, weights.transitions)):
        raise ValueError("a weight is not a finite number")
