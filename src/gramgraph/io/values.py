"""Fitted estimators and the values they are made of, as a tree of plain values beside arrays.

An estimator is written as the parameters of its constructor and what it learned; a kernel, a posterior and every other
value as its fields. A class stands in a file by its name and is looked up among `MODULES`: nothing is ever imported or
executed because a file says so. Functions have no place in files.

Reading goes through the constructors where there are any, checks every field against its declared type, refuses numbers
that are not finite, and looks at shapes and matrices (`io/sound.py`) before a model is handed out.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import math
import re
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np

from gramgraph.exceptions import GramGraphError, ModelError, ParseError
from gramgraph.io import sound
from gramgraph.typing import Array

#: Package → its modules whose estimators and values may stand in a file ("": modules of no package).
_SAVED = {
    "": "losses rkhs tree_sum variables",
    "data": "discretize",
    "embeddings": "anchors conditional features mean",
    "estimators": (
        "_svm_others _svm_path basis_regression bayesian_linear boosting clustering conditional_embedding "
        "discriminant feature_maps gp_classifier gp_counts gp_regressor gradient_boosting graphical_lasso "
        "least_squares logistic mixture mixture_columns multiclass_svm neighbors network_classifiers pca "
        "pruned_tree ridge rvm smoothing svm topics"
    ),
    "gp": (
        "_log_link bases coregional evidence grids hetero hyper iterative latent latent_fit likelihoods linear "
        "markov means methods mixture posterior priors repeats softmax sparse state_space"
    ),
    "kernels": (
        "algebra directional discrete dot_product feature_space fisher generative input_maps latent maps periodic "
        "precomputed process spectral stationary structured tables"
    ),
    "learn": "em",
    "linalg": "blocks dense kronecker low_rank nystrom toeplitz",
    "machines": (
        "glasso kernels logistic ridge ridge_features rvm spectrum svm.approx svm.classes svm.kernel svm.machine"
    ),
    "sequences": "crf.field_objective crf.fields crf.graph structural switching",
}
MODULES = frozenset(f"{package}.{name}".lstrip(".") for package, names in _SAVED.items() for name in names.split())
#: Where classes stood when older files were written; these files stay readable.
_MOVED = {
    "estimators._base": "machines.kernels",
    "estimators._glasso_path": "machines.glasso",
    "estimators._pca_spectrum": "machines.spectrum",
    "estimators._ridge_features": "machines.ridge_features",
    "estimators._rvm_base": "machines.rvm",
    "estimators._svm_approx": "machines.svm.approx",
    "estimators._svm_classes": "machines.svm.classes",
    "estimators._svm_kernel": "machines.svm.kernel",
    "estimators._svm_machine": "machines.svm.machine",
}
_DEEPEST = 60
_NAME = re.compile(r"[A-Za-z_]\w{0,80}", re.ASCII)
_SPARSE = ("csr", "csc")
#: What constructors raise when fields are not what they wrote.
_UNFIT = (GramGraphError, ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError)


def names(cls: type) -> str | None:
    """How a class is called in files; None for one that has no place there."""
    module = cls.__module__.removeprefix("gramgraph.")
    return f"{module}.{cls.__name__}" if module in MODULES and cls.__module__ != module else None


def find_class(name: object, source: str) -> type:
    """The class of a name in a file."""
    module, _, last = str(name).rpartition(".")
    module = _MOVED.get(module, module)
    if isinstance(name, str) and module in MODULES and _NAME.fullmatch(last):
        found = getattr(importlib.import_module(f"gramgraph.{module}"), last, None)
        if isinstance(found, type) and names(found) == f"{module}.{last}":
            return found
    raise ParseError(f"{name!r:.60} is not a class of saved models", source=source)


def holds(model: Any) -> bool:
    """Whether a model is one that these files hold."""
    return names(type(model)) is not None


# ----------------------------------------------------------------------------------------------------- writing


def to_parts(model: Any) -> tuple[Any, dict[str, Array]]:
    """A model as plain values and arrays by name."""
    writer = _Writer()
    return writer.plain(model, type(model).__name__, 0), writer.arrays


class _Writer:
    """Collects arrays; one that is met twice is written once."""

    def __init__(self) -> None:
        self.arrays: dict[str, Array] = {}
        self._names: dict[int, str] = {}
        self._kept: list[Any] = []  # an id stays that of its array

    def plain(self, value: Any, where: str, depth: int, loose: bool = False) -> Any:
        if depth > _DEEPEST:
            raise ModelError(f"{where} is nested too deeply to be written.")
        if value is None or type(value) in (bool, int, str):
            return value
        if type(value) is float:
            return _float(value, where, loose)
        if isinstance(value, np.generic):
            return {"scalar": self._array(np.asarray(value), where, loose)}
        if isinstance(value, np.ndarray):
            if value.dtype.kind == "O":
                items = [self.plain(item, where, depth + 1) for item in value.ravel()]
                return {"objects": items, "shape": list(value.shape)}
            return {"array": self._array(value, where, loose)}
        if type(value) is list:
            return [self.plain(item, f"{where}[{i}]", depth + 1, loose) for i, item in enumerate(value)]
        if type(value) is tuple:
            items = [self.plain(item, f"{where}[{i}]", depth + 1, loose) for i, item in enumerate(value)]
            return {"tuple": items}
        if isinstance(value, range):
            return {"range": [value.start, value.stop, value.step]}
        if isinstance(value, Mapping):
            return {"mapping": [[self.plain(x, where, depth + 1, loose) for x in pair] for pair in value.items()]}
        if hasattr(value, "tocsr") and hasattr(value, "nnz"):
            return self._sparse(value, where)
        return self._instance(value, where, depth)

    def _array(self, array: Array, where: str, loose: bool) -> str:
        if array.dtype.kind == "f" and not loose and not np.isfinite(array).all():
            raise ModelError(f"{where} holds NaN or infinity: the model is not sound and cannot be saved.")
        name = self._names.get(id(array))
        if name is None:
            name = self._names[id(array)] = str(len(self.arrays))
            self.arrays[name] = array
            self._kept.append(array)
        return name

    def _sparse(self, value: Any, where: str) -> Any:
        form = value.format if value.format in _SPARSE else "csr"
        value = value if value.format == form else value.tocsr()
        parts = [self._array(np.asarray(part), where, False) for part in (value.data, value.indices, value.indptr)]
        return {"sparse": form, "shape": list(value.shape), "parts": parts}

    def _instance(self, value: Any, where: str, depth: int) -> Any:
        document = _document(value)
        if document is not None:
            return {"model": document}
        name = names(type(value))
        if name is None:
            what = "a function" if callable(value) else f"a {type(value).__name__}"
            raise ModelError(f"{where} is {what}, which has no place in a file.{_help(value)}")
        parameters = _parameters(value)
        own = {
            key: item
            for key, item in _state(value).items()
            if key not in parameters and not sound.is_cache(type(value), key)
        }

        def fields(of: Mapping[str, Any]) -> dict[str, Any]:
            return {
                key: self.plain(item, f"{key} of {type(value).__name__}", depth + 1, sound.is_loose(type(value), key))
                for key, item in of.items()
            }

        found = {"is": name, "fields": fields(own)}
        return {**found, "parameters": fields(parameters)} if parameters else found


def _float(value: float, where: str, loose: bool) -> Any:
    if math.isfinite(value):
        return value
    if math.isnan(value) and not loose:
        raise ModelError(f"{where} is NaN: the model is not sound and cannot be saved.")
    return {"float": repr(value)}


def _help(value: Any) -> str:
    return " Use a kernel value of gg.kernels instead." if callable(value) else ""


def _parameters(value: Any) -> dict[str, Any]:
    """Arguments of an estimator's constructor; generators are no part of a model."""
    if not hasattr(value, "get_params") or _is_record(type(value)):
        return {}
    found = dict(value.get_params(deep=False))
    state = found.get("random_state")
    if "random_state" in found and not isinstance(state, (int, np.integer, type(None))):
        found["random_state"] = None
    return found


def _state(value: Any) -> dict[str, Any]:
    """What an instance holds, cached answers left out."""
    if _is_record(type(value)):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    slots = [name for cls in type(value).__mro__ for name in getattr(cls, "__slots__", ())]
    found = {name: getattr(value, name) for name in slots if hasattr(value, name) and not name.startswith("__")}
    found.update(getattr(value, "__dict__", {}))
    return {key: item for key, item in found.items() if not _is_cached(type(value), key)}


def _is_record(cls: type) -> bool:
    """A value that is its fields; estimators declare only their parameters that way."""
    return dataclasses.is_dataclass(cls) and not hasattr(cls, "__sklearn_tags__")


def _is_cached(cls: type, name: str) -> bool:
    return isinstance(getattr(cls, name, None), functools.cached_property)


def _document(value: Any) -> Any:
    """Models that have a JSON form of their own: networks, distributions, sequence models."""
    import json

    from gramgraph.io import native

    return json.loads(native.dumps(value)) if native.holds(value) else None


# ----------------------------------------------------------------------------------------------------- reading


def from_parts(tree: Any, arrays: Mapping[str, Array], *, source: str = "<bytes>") -> Any:
    """The model of `to_parts`, or a `ParseError`."""
    try:
        return _Reader(arrays, source).value(tree, 0)
    except ParseError:
        raise
    except RecursionError:
        raise ParseError("the values are nested too deeply", source=source) from None
    except _UNFIT as error:
        raise ParseError(f"no sound model: {error or type(error).__name__}", source=source) from None


class _Reader:
    def __init__(self, arrays: Mapping[str, Array], source: str) -> None:
        self.arrays, self.source = arrays, source

    def fail(self, message: str) -> ParseError:
        return ParseError(message, source=self.source)

    def value(self, node: Any, depth: int, loose: bool = False) -> Any:
        if depth > _DEEPEST:
            raise self.fail("the values are nested too deeply")
        if node is None or isinstance(node, (bool, int, str, float)):
            return node
        if isinstance(node, list):
            return [self.value(item, depth + 1, loose) for item in node]
        for key, read in self._READERS.items():
            if key in node:
                return read(self, node, depth, loose)
        raise self.fail("an object in the place of a value")

    def _scalar(self, node: Any, depth: int, loose: bool) -> Any:
        found = self._taken(node["scalar"], loose)
        if found.ndim:
            raise self.fail("an array in the place of a number")
        return found[()]

    def _array(self, node: Any, depth: int, loose: bool) -> Any:
        return self._taken(node["array"], loose)

    def _taken(self, name: Any, loose: bool) -> Array:
        found = self.arrays.get(name) if isinstance(name, str) else None
        if found is None:
            raise self.fail(f"there is no array {name!r:.40}")
        if found.dtype.kind == "f" and not loose and not np.isfinite(found).all():
            raise self.fail("an array holds NaN or infinity")
        return found

    def _objects(self, node: Any, depth: int, loose: bool) -> Any:
        items = self._list(node["objects"])
        found = np.empty(len(items), dtype=object)
        for i, item in enumerate(items):
            found[i] = self.value(item, depth + 1)
        return found.reshape([self._count(n) for n in self._list(node.get("shape"))])

    def _tuple(self, node: Any, depth: int, loose: bool) -> Any:
        return tuple(self.value(item, depth + 1, loose) for item in self._list(node["tuple"]))

    def _range(self, node: Any, depth: int, loose: bool) -> Any:
        ends = self._list(node["range"])
        if len(ends) != 3 or not all(type(n) is int for n in ends) or len(range(*ends)) > 10**6:
            raise self.fail("a range is three whole numbers")
        return range(*ends)

    def _mapping(self, node: Any, depth: int, loose: bool) -> Any:
        pairs = [self._list(pair) for pair in self._list(node["mapping"])]
        if any(len(pair) != 2 for pair in pairs):
            raise self.fail("a mapping is a list of pairs")
        return {self.value(k, depth + 1): self.value(v, depth + 1, loose) for k, v in pairs}

    def _float(self, node: Any, depth: int, loose: bool) -> Any:
        if node["float"] not in (("inf", "-inf", "nan") if loose else ("inf", "-inf")):
            raise self.fail("a number is not finite")
        return float(node["float"])

    def _sparse(self, node: Any, depth: int, loose: bool) -> Any:
        import scipy.sparse

        parts = [self._taken(name, False) for name in self._list(node.get("parts"))]
        shape = tuple(self._count(n) for n in self._list(node.get("shape")))
        if node["sparse"] not in _SPARSE or len(parts) != 3 or len(shape) != 2:
            raise self.fail("a sparse matrix is not described as it should be")
        made = {"csr": scipy.sparse.csr_matrix, "csc": scipy.sparse.csc_matrix}[node["sparse"]]
        found = made(tuple(parts), shape=shape)
        found.check_format(full_check=True)
        return found

    def _model(self, node: Any, depth: int, loose: bool) -> Any:
        from gramgraph.io import native

        if not isinstance(node["model"], dict):
            raise self.fail("an object in the place of a value")
        return native.from_object(node["model"], source=self.source)

    def _instance(self, node: Any, depth: int, loose: bool) -> Any:
        cls = find_class(node["is"], self.source)

        def fields(key: str) -> dict[str, Any]:
            of = node.get(key, {})
            if not isinstance(of, dict) or not all(_NAME.fullmatch(name) and name[:2] != "__" for name in of):
                raise self.fail(f"the fields of {cls.__name__} are not described as they should be")
            return {name: self.value(item, depth + 1, sound.is_loose(cls, name)) for name, item in of.items()}

        own, parameters = fields("fields"), fields("parameters")
        if _is_record(cls):
            made = _dataclass(cls, own)
        elif parameters or hasattr(cls, "get_params"):
            made = cls(**parameters)
            self._set(made, own)
        else:
            made = object.__new__(cls)
            self._set(made, own)
        sound.check(made)
        return made

    def _set(self, made: Any, own: dict[str, Any]) -> None:
        for name, item in own.items():
            there = getattr(type(made), name, None)
            if callable(there) or isinstance(there, (property, functools.cached_property)):
                raise self.fail(f"{name} is not a field of {type(made).__name__}")
            setattr(made, name, item)

    def _list(self, node: Any) -> list[Any]:
        if not isinstance(node, list):
            raise self.fail("expected a list")
        return node

    def _count(self, n: Any) -> int:
        if type(n) is not int or n < 0:
            raise self.fail("expected a size")
        return n

    _READERS: ClassVar[dict[str, Callable[..., Any]]] = {
        "is": _instance,
        "array": _array,
        "tuple": _tuple,
        "scalar": _scalar,
        "model": _model,
        "mapping": _mapping,
        "objects": _objects,
        "float": _float,
        "sparse": _sparse,
        "range": _range,
    }


def _dataclass(cls: type, own: dict[str, Any]) -> Any:
    """An instance through its constructor, so that it checks what it is given."""
    declared = {field.name: field for field in dataclasses.fields(cls)}
    needed = {name for name, field in declared.items() if field.default is dataclasses.MISSING}
    needed -= {name for name, field in declared.items() if field.default_factory is not dataclasses.MISSING}
    if not needed <= set(own) <= set(declared):
        raise ValueError(f"{cls.__name__} has the fields {', '.join(declared)}")
    for name, item in own.items():
        if not sound.fits(str(declared[name].type), item):
            raise ValueError(f"{name} of {cls.__name__} is a {type(item).__name__}, not a {declared[name].type}")
    made = cls(**{name: item for name, item in own.items() if declared[name].init})
    for name, item in own.items():
        if not declared[name].init:
            object.__setattr__(made, name, item)
    return made
