"""From potentials as one writes them to factors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from gramgraph.conditionals.base import Kind
from gramgraph.conditionals.potential import KernelPotential
from gramgraph.exceptions import ModelError, listing
from gramgraph.factors import GaussianFactor, TableFactor
from gramgraph.models.writing import as_states
from gramgraph.typing import FloatArray
from gramgraph.variables import Discrete, Var, discrete

Scoped = tuple[tuple[str, ...], Any]  # names, and what stands over them: numbers, a function, or a factor


def has_kernels(given: Any) -> bool:
    """Whether kernel potentials, or kinds of them to be fitted, are among factors as one writes them."""
    if not isinstance(given, (Mapping, list, tuple)):
        return False
    for item in given.values() if isinstance(given, Mapping) else given:
        piece = item[1] if isinstance(item, (tuple, list)) and len(item) == 2 else item
        if isinstance(piece, KernelPotential) or (isinstance(piece, Kind) and piece.cls is KernelPotential):
            return True
    return False


def scoped(given: Any, what: str = "factors") -> list[Scoped]:
    """Factors, pairs (names, numbers) or a dict {names: numbers} as one list."""
    if given is None:
        return []
    items = given.items() if isinstance(given, Mapping) else given
    out: list[Scoped] = []
    for item in items:
        if isinstance(item, TableFactor | GaussianFactor):
            out.append((tuple(var.name for var in item.scope), item))
        elif isinstance(item, tuple | list) and len(item) == 2:
            names = (item[0],) if isinstance(item[0], str) else tuple(item[0])
            out.append((tuple(map(str, names)), item[1]))
        else:
            kinds = "TableFactors, GaussianFactors or pairs (names, numbers)"
            raise ModelError(f"{what} are {kinds}; got {item!r:.80}")
    return out


def make_scopes(
    pieces: Sequence[Scoped],
    states: Mapping[str, Any] | None,
    first: Iterable[str] = (),
    faults: list[str] | None = None,
) -> dict[str, Var]:
    """Name → variable, in first-seen order: states as declared, else as in a given factor, else by the table's shape.

    A shape with two states means no and yes; another number k means "0", …, "k-1".
    """
    wrong = [] if faults is None else faults
    known: dict[str, Var] = {name: discrete(name, as_states(given)) for name, given in (states or {}).items()}

    def learn(var: Var) -> None:
        before = known.setdefault(var.name, var)
        if before != var and not (before.is_discrete and var.is_discrete):
            wrong.append(f"{var.name} is {var!r} here, {before!r} there")
        elif before != var:
            wrong.append(f"{var.name} has the states {listing(var.states)} here, {listing(before.states)} there")

    for _, content in pieces:
        for var in content.scope if isinstance(content, TableFactor | GaussianFactor) else ():
            learn(var)
    for names, content in pieces:
        if isinstance(content, TableFactor | GaussianFactor) or callable(content):
            continue
        shape = np.shape(content)
        for name, size in zip(names, shape, strict=False):
            if name not in known:
                known[name] = _plain(name, size)
    order = dict.fromkeys([*first, *(name for names, _ in pieces for name in names), *known])
    return {name: known[name] if name in known else _plain(name, 2) for name in order}


def _plain(name: str, size: int) -> Var:
    return Var(name, Discrete(("no", "yes"))) if size == 2 else discrete(name, size)


def tabulate(content: Any, scope: tuple[Var, ...], what: str) -> FloatArray:
    """Numbers over a scope, from an array of its shape (or flat), or from a function of one label per variable."""
    shape = tuple(var.size for var in scope)
    if isinstance(content, TableFactor):
        return np.array(content.values) * np.exp(content.log_scale)
    if callable(content) and not hasattr(content, "__array__"):
        return _evaluated(content, scope, what)
    try:
        values = np.array(content, dtype=np.float64)
    except (TypeError, ValueError):
        raise ModelError(f"{what}: numbers are expected, not {content!r:.80}") from None
    if values.shape == (int(np.prod(shape)),):
        values = values.reshape(shape)
    if values.shape != shape:
        order = ", ".join(f"{var.name} ({var.size})" for var in scope)
        raise ModelError(f"{what} must have shape {shape} [{order}], not {values.shape}")
    return values


def _evaluated(f: Callable[..., Any], scope: tuple[Var, ...], what: str) -> FloatArray:
    out = np.empty([var.size for var in scope])
    for at in product(*(range(var.size) for var in scope)):
        labels = [var.states[i] for var, i in zip(scope, at, strict=True)]
        try:
            out[at] = float(f(*labels))
        except Exception as error:
            where = ", ".join(f"{var.name}={label}" for var, label in zip(scope, labels, strict=True))
            raise ModelError(f"{what}: the function failed at {where}: {type(error).__name__}: {error}") from error
    return out


def factor_faults(factors: Iterable[TableFactor | GaussianFactor], known: Mapping[str, Var]) -> list[str]:
    """Factors over variables that the model does not have, entries that are negative or not finite."""
    found = []
    for factor in factors:
        names = [var.name for var in factor.scope]
        what = f"the factor over ({', '.join(names)})"
        if len(set(names)) != len(names):
            found.append(f"{what} names a variable twice")
        for var in factor.scope:
            if var.name not in known:
                found.append(f"{what} is over {var.name}, which is not a variable of the model")
            elif known[var.name] != var:
                found.append(f"{what} has {var!r}, the model {known[var.name]!r}")
        if isinstance(factor, GaussianFactor):
            if factor.pinned:
                at = listing(var.name for var in factor.pinned)
                found.append(f"{what} pins {at} to one value: give that as evidence instead")
            if not np.isfinite(factor.precision).all() or not np.isfinite(factor.shift).all():
                found.append(f"{what} has entries that are not finite numbers")
            elif not np.allclose(P := factor.precision, P.T, rtol=1e-8, atol=1e-10 * float(np.abs(P).max(initial=0.0))):
                found.append(f"{what} has a precision that is not symmetric")
            continue
        if not np.isfinite(factor.values).all() or not np.isfinite(factor.log_scale):
            found.append(f"{what} has entries that are not finite numbers")
        elif (factor.values < 0).any():
            found.append(f"{what} has negative entries (smallest {factor.values.min():g})")
    return found
