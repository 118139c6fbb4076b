"""What questions need of a fitted chain: checked once, and kept while the numbers of the model stay the same."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from gramgraph.sequences._reading import check_chain
from gramgraph.typing import FloatArray

if TYPE_CHECKING:
    from gramgraph.sequences.baum_welch import Emission
    from gramgraph.sequences.hmm import HiddenMarkovModel

_FEW = 4096  # numbers of an array that are compared faster than they are checked again
_PLAIN = (type(None), bool, int, float, str)


class Checked(NamedTuple):
    """Start and transition probabilities that sum to one, and the emission."""

    start: FloatArray
    transition: FloatArray
    emission: Emission


_KEPT: WeakKeyDictionary[HiddenMarkovModel, tuple[tuple[Any, ...], Checked]] = WeakKeyDictionary()


def checked(model: HiddenMarkovModel) -> Checked:
    """Of a fitted model, whose attributes its user may have changed since the last question."""
    key = _key(model)
    kept = _KEPT.get(model)
    if key is not None and kept is not None and kept[0] == key:
        return kept[1]
    found = Checked(*check_chain(model.startprob_, model.transmat_), model._emission())
    if key is not None:
        found = found._replace(emission=deepcopy(found.emission))  # in arrays that nobody else can change
        _KEPT[model] = key, found
    return found


def _key(model: HiddenMarkovModel) -> tuple[Any, ...] | None:
    """Every attribute with its value; None where one is large, or could change without being seen."""
    parts: list[Any] = []
    for name, value in vars(model).items():
        if type(value) is np.ndarray and value.size <= _FEW and value.dtype.kind in "fiub":
            parts.append((name, value.shape, value.dtype.char, value.tobytes()))
        elif type(value) in _PLAIN or (type(value) is tuple and not value):
            parts.append((name, value))
        else:
            return None
    return tuple(parts)
