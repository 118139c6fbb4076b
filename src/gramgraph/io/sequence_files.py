"""Models of sequences as JSON: hidden Markov models, Kalman filters, dynamic networks; nothing is executed.

    {"format": "gramgraph", "version": 1, "kind": "sequence_model", "class": "GaussianHMM",
     "parameters": {"n_states": 2, …}, "attributes": {"transmat_": {"array": [[…]], "dtype": "float64"}, …}}

`parameters` are those of the constructor, `attributes` what was learned. Arrays carry their type, tuples and
distributions are marked as such, a wrapped model is an object of its own. A dynamic network has its two slices, `first`
and `step`. Numbers are written so that reading gives the same bits.
"""

from __future__ import annotations

import json
from math import isfinite
from typing import Any

import numpy as np

from gramgraph import sequences
from gramgraph.distributions import files as distribution_files
from gramgraph.exceptions import GramGraphError, ModelError, ParseError
from gramgraph.io import _json, sound
from gramgraph.io._text import shown
from gramgraph.sequences._reading import check_chain, check_rows

KINDS = ("dynamic_bayesian_network", "sequence_model")
CLASSES = (
    "CategoricalHMM",
    "DistributionHMM",
    "DurationHMM",
    "GaussianHMM",
    "GaussianMixtureHMM",
    "InputHMM",
    "KalmanFilter",
    "MultiCategoricalHMM",
    "PoissonHMM",
)
#: What a model keeps without an underscore at the end of its name.
_INNER = ("_pool", "_spread")
_TYPES = ("bool", "float64", "int64")
_DEEPEST = 20
#: What a family or a model may raise when its fields are not what it wrote.
_UNFIT = (GramGraphError, ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)


def holds(model: Any) -> bool:
    """Whether a model is one that these files hold."""
    name = type(model).__name__
    return name in (*CLASSES, "DynamicBayesianNetwork") and type(model) is getattr(sequences, name)


def to_object(model: Any) -> dict[str, Any]:
    """A model as plain values."""
    head: dict[str, Any] = {"format": "gramgraph", "version": 1}
    if type(model).__name__ == "DynamicBayesianNetwork":
        from gramgraph.io.native import dumps

        slices = {"first": json.loads(dumps(model.first)), "step": json.loads(dumps(model.step))}
        return {**head, "kind": "dynamic_bayesian_network", **slices}
    return {**head, "kind": "sequence_model", **_written(model)}


def _written(model: Any) -> dict[str, Any]:
    name = type(model).__name__
    found = {
        key: value
        for key, value in vars(model).items()
        if (key.endswith("_") and not key.startswith("_")) or key in _INNER
    }
    return {
        "class": name,
        "parameters": {key: _plain(value, key, name) for key, value in model.get_params(deep=False).items()},
        "attributes": {key: _plain(value, key, name) for key, value in sorted(found.items())},
    }


def _plain(value: Any, key: str, name: str) -> Any:
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, (np.ndarray, np.generic)):
        array = np.asarray(value)
        if array.dtype.kind == "U":
            return {"array": array.tolist(), "dtype": "str"}
        if array.dtype.kind == "O":
            raise ModelError(f"{key} of {name} holds objects, which have no place in a file.")
        kind = {"f": "float64", "b": "bool"}.get(array.dtype.kind, "int64")
        return {"array": array.astype(kind).tolist(), "dtype": kind, "shape": list(array.shape)}
    if isinstance(value, (int, float)):
        return value
    if isinstance(value, (list, tuple, range)):
        return {"items": [_plain(item, key, name) for item in value], "tuple": isinstance(value, tuple)}
    if distribution_files.is_distribution(value):
        return {"distribution": distribution_files.to_object(value)}
    if isinstance(value, type) and value.__module__.startswith("gramgraph.distributions"):
        return value.__name__  # a family goes by its name
    if holds(value):
        return {"model": _written(value)}
    if key == "random_state":
        return None  # a generator is not a part of the model
    raise ModelError(f"{key} of {name} is a {type(value).__name__}, which has no place in a file.")


def from_object(top: dict[str, Any], *, source: str) -> Any:
    """The model in plain values, or a `ParseError`."""
    if top.get("kind") == "dynamic_bayesian_network":
        from gramgraph.io.native import loads

        parts = [_json.get(top, key, dict, "", source) for key in ("first", "step")]
        if any(part.get("kind") != "bayesian_network" for part in parts):
            raise ParseError("first and step must be Bayesian networks", source=source)
        nets = [loads(json.dumps(part).encode(), source=source) for part in parts]
        try:
            return sequences.DynamicBayesianNetwork.from_networks(*nets)
        except GramGraphError as error:
            raise ParseError(str(error), source=source) from None
    return _read(top, source, 0)


def _read(top: dict[str, Any], source: str, depth: int) -> Any:
    name = _json.get(top, "class", str, "", source)
    if name not in CLASSES:
        raise ParseError(f"class {shown(name)} is not known. Classes: {', '.join(CLASSES)}", source=source)
    made = getattr(sequences, name)
    parameters = _json.get(top, "parameters", dict, "", source)
    attributes = _json.get(top, "attributes", dict, "", source)
    known = set(made._get_param_names())
    odd = [key for key in parameters if key not in known]
    odd += [key for key in attributes if key not in _INNER and (not key.endswith("_") or key.startswith("_"))]
    if odd:
        raise ParseError(f"{shown(odd[0])} is not a parameter or attribute of {name}", source=source)
    try:
        model = made(**{key: _value(item, source, depth) for key, item in parameters.items()})
        for key, item in attributes.items():
            setattr(model, key, _value(item, source, depth))
        _check(model)
    except ParseError:
        raise
    except _UNFIT as error:
        raise ParseError(f"{name}: {error or type(error).__name__}", source=source) from None
    return model


def _value(item: Any, source: str, depth: int) -> Any:
    if depth > _DEEPEST:
        raise ParseError("objects are nested too deeply", source=source)
    if not isinstance(item, dict):
        if isinstance(item, list):
            raise ParseError("a list without its type: expected an object with 'array' or 'items'", source=source)
        if isinstance(item, float) and not isfinite(item):
            raise ParseError("a number is not finite", source=source)
        return item
    if "array" in item:
        kind = item.get("dtype")
        if kind == "str":
            return np.array(_json.strings(item, "array", "", source))
        if kind not in _TYPES:
            raise ParseError(f"dtype must be one of {', '.join((*_TYPES, 'str'))}, not {shown(kind)}", source=source)
        array = np.array(item["array"])
        if array.dtype.kind not in "biuf":
            raise ParseError("an array holds something else than numbers", source=source)
        if kind == "int64" and array.size and array.dtype.kind not in "biu":
            raise ParseError("an array of whole numbers holds others", source=source)
        if not np.isfinite(array).all():
            raise ParseError("an array holds NaN or infinity", source=source)
        shape = _json.get(item, "shape", list, "", source)
        if not all(type(n) is int and n >= 0 for n in shape):
            raise ParseError("a shape is a list of whole numbers", source=source)
        return array.astype(kind).reshape(shape)
    if isinstance(item.get("items"), list):
        items = [_value(part, source, depth + 1) for part in item["items"]]
        return tuple(items) if item.get("tuple") is True else items
    if isinstance(item.get("distribution"), dict):
        return distribution_files.from_object(item["distribution"], source=source)
    if isinstance(item.get("model"), dict):
        return _read(item["model"], source, depth + 1)
    raise ParseError("an object in the place of a value", source=source)


def _check(model: Any) -> None:
    """Numbers that the model itself would refuse are a fault of the file."""
    K = None
    if hasattr(model, "model_"):
        _check(model.model_)
        K = len(model.model_.startprob_)
        _check_wrapped(model, K)
    elif hasattr(model, "transmat_"):
        start, _ = check_chain(model.startprob_, model.transmat_)
        if len(start) != model.n_states:
            raise ModelError(f"n_states is {model.n_states}, but startprob has {len(start)}.")
        model.check_emission()
        _check_symbols(model)
    elif hasattr(model, "A_") or type(model).__name__ == "KalmanFilter":
        model._model()
        for name in ("Q", "R", "P0"):
            _check_noise(getattr(model, f"{name}_", getattr(model, name, None)), name)
    _check_columns(model)
    covars = getattr(model, "covars_", None)
    if covars is not None and getattr(model, "covariance_type", "") in ("full", "tied"):
        for S in np.asarray(covars).reshape(-1, *np.shape(covars)[-2:]):
            sound.check_covariance(S, "covars", definite=True)


def _check_noise(S: Any, name: str) -> None:
    """A covariance of the noise, or a stack of them, one per step."""
    if S is None or isinstance(S, str):
        return
    numbers = np.asarray(S, dtype=np.float64)
    if numbers.ndim < 2:
        numbers = np.atleast_2d(numbers) if numbers.ndim == 0 else np.diag(numbers)
    for one in numbers.reshape(-1, *numbers.shape[-2:]):
        sound.check_covariance(one, name)


def _check_columns(model: Any) -> None:
    """The number of columns is one, and that of the emissions."""
    n = getattr(model, "n_features_in_", None)
    if n is None:
        return
    if type(n) is not int or n < 1:
        raise ModelError(f"n_features_in_ must be a whole number from 1, not {n!r}.")
    for name in ("means_", "rates_"):
        numbers = getattr(model, name, None)
        if numbers is not None and np.shape(numbers)[-1] != n:
            raise ModelError(f"{name} has {np.shape(numbers)[-1]} columns, n_features_in_ is {n}.")


def _check_wrapped(model: Any, K: int) -> None:
    """The chain of a model around another one: a stack of transitions (inputs) or the durations of states."""
    if not hasattr(model, "transmat_"):
        return
    transmat = np.asarray(model.transmat_)
    check_rows("startprob", model.startprob_, 1)
    check_rows("transmat", transmat, transmat.ndim)
    if transmat.ndim not in (2, 3) or transmat.shape[-2:] != (K, K) or np.shape(model.startprob_) != (K,):
        raise ModelError(f"transmat has shape {transmat.shape} for {K} states.")
    durations = getattr(model, "durations_", None)
    if durations is not None and check_rows("durations", durations, 2).shape[0] != K:
        raise ModelError(f"durations has shape {np.shape(durations)} for {K} states.")


def _check_symbols(model: Any) -> None:
    """As many symbols as columns of the table, each once."""
    tables, symbols = getattr(model, "emissionprob_", None), getattr(model, "symbols_", None)
    if tables is None or symbols is None:
        return
    pairs = list(zip(tables, symbols, strict=True)) if isinstance(tables, (list, tuple)) else [(tables, symbols)]
    for table, known in pairs:
        if np.ndim(known) != 1 or len(set(np.asarray(known).tolist())) != np.shape(table)[-1]:
            raise ModelError(f"a table of {np.shape(table)[-1]} symbols names {np.size(known)}.")
