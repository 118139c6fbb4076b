"""Files of chains: arrays and JSON in one .npz, read without executing anything."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gramgraph.exceptions import ModelError, ParseError
from gramgraph.sequences.crf.decoding import Chain, Rules
from gramgraph.sequences.crf.encoding import FeatureTable
from gramgraph.sequences.crf.objective import ChainWeights, padded

if TYPE_CHECKING:
    from gramgraph.sequences.crf.chain import LinearChainCRF

__all__ = ["load", "save"]

_FORMAT, _VERSION = "gramgraph linear-chain CRF", 1


def save(model: LinearChainCRF, path: Path) -> None:
    """Write weights, attributes, labels and parameters."""
    weights, table = model._chain.weights, model._table
    parameters = model.get_params()
    if not isinstance(parameters["random_state"], (int, type(None))):
        parameters["random_state"] = None  # a generator is no part of what was learned
    head = {
        "format": _FORMAT, "version": _VERSION, "parameters": parameters, "labels": model._labels,
        "size": table.size, "plain": table.plain,
        "levels": {key: {v: i for v, i in level.items() if isinstance(v, str)} for key, level in table.levels.items()},
        "numbers": {key: level[1.0] for key, level in table.levels.items() if 1.0 in level},
        "n_iter": model.n_iter_, "converged": bool(model.converged_), "objective": model.objective_,
    }  # fmt: skip
    try:
        text = json.dumps(head, ensure_ascii=False, allow_nan=False, default=_plain)
    except (TypeError, ValueError) as error:
        raise ModelError(f"the model cannot be written: {error}") from None
    with path.open("wb") as file:
        np.savez_compressed(
            file, head=np.frombuffer(text.encode("utf-8", "surrogatepass"), dtype=np.uint8), dense=weights.dense,
            sp_ptr=weights.sp_ptr, sp_label=weights.sp_label, sp_weight=weights.sp_weight,
            transitions=weights.transitions, history=model.history_,
        )  # fmt: skip


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"a {type(value).__name__} has no place in a file")


def load(path: Path) -> LinearChainCRF:
    """Read what `save` wrote."""
    from gramgraph.sequences.crf.chain import LinearChainCRF

    try:
        with np.load(path, allow_pickle=False) as found:
            arrays = {name: found[name] for name in found.files}
        head = json.loads(arrays.pop("head").tobytes().decode("utf-8", "surrogatepass"))
        if head["format"] != _FORMAT or head["version"] != _VERSION:
            raise ParseError(f"expected {_FORMAT}, version {_VERSION}", source=str(path))
        parameters = head["parameters"]
        if isinstance(parameters["constraints"], list):
            parameters["constraints"] = [tuple(pair) for pair in parameters["constraints"]]
        model = LinearChainCRF(**parameters)
        K, size = len(head["labels"]), int(head["size"])
        table = FeatureTable()
        for key, level in head["levels"].items():
            table.levels[key] = {value: int(i) for value, i in level.items()}
            if key in head["numbers"]:
                table.levels[key] |= {1.0: int(head["numbers"][key]), 0.0: -1}
        table.plain, table.size = {word: int(i) for word, i in head["plain"].items()}, size
        history = arrays.pop("history")
        weights = ChainWeights(**arrays, width=padded(K))
        _check(weights, table, K, path)
    except (KeyError, TypeError, ValueError, AttributeError, zipfile.BadZipFile, EOFError) as error:
        if isinstance(error, ParseError):
            raise
        raise ParseError(f"not a file of a linear-chain CRF ({error})", source=str(path)) from None
    model._chain, model._table = Chain(weights, Rules.free(K)), table.closed()
    model._labels, model.classes_, model.history_ = head["labels"], np.array(head["labels"]), history
    model.n_iter_, model.converged_, model.objective_ = head["n_iter"], head["converged"], head["objective"]
    return model


def _check(weights: ChainWeights, table: FeatureTable, K: int, path: Path) -> None:
    """The loops trust their arrays: what does not fit is refused here."""
    kinds = {"dense": "f8", "sp_ptr": "i8", "sp_label": "i4", "sp_weight": "f8", "transitions": "f8"}
    fits = all(getattr(weights, name).dtype == np.dtype(kind) for name, kind in kinds.items())
    fits = fits and K > 0 and weights.transitions.shape == (K, K) and weights.dense.ndim == 1
    fits = fits and len(weights.dense) % weights.width == 0 and weights.sp_ptr.ndim == 1 and len(weights.sp_ptr) > 0
    fits = fits and weights.n_dense + len(weights.sp_ptr) - 1 == table.size
    fits = fits and weights.sp_ptr[0] == 0 and weights.sp_ptr[-1] == len(weights.sp_label) == len(weights.sp_weight)
    fits = fits and bool((np.diff(weights.sp_ptr) >= 0).all())
    fits = fits and bool(((weights.sp_label >= 0) & (weights.sp_label < K)).all())
    fits = fits and all(0 <= number < table.size for _, _, number in table.pairs())
    if not fits:
        raise ParseError("the arrays of the file do not fit together", source=str(path))
