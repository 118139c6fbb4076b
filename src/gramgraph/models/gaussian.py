"""Gaussian models from matrices: a precision matrix as a Markov network, a joint Gaussian as a Bayesian network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gramgraph.conditionals import LinearGaussian
from gramgraph.exceptions import ModelError, VariableError
from gramgraph.factors import GaussianFactor
from gramgraph.factors.gaussian import LOG_2PI
from gramgraph.models.notation import read_structure
from gramgraph.typing import FloatArray, IntArray
from gramgraph.variables import Var, real

_SMALL = 2000  # up to this size definiteness is checked at once; larger matrices are checked when they are factorized


def symmetric_matrix(given: Any, what: str) -> tuple[FloatArray, tuple[str, ...] | None]:
    """A finite symmetric matrix, and the names that a data frame brings."""
    names = tuple(map(str, given.columns)) if hasattr(given, "columns") else None
    try:
        M = np.array(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise ModelError(f"{what} must be a square matrix of numbers") from None
    if M.ndim != 2 or M.shape[0] != M.shape[1] or not len(M):
        raise ModelError(f"{what} must be a square matrix, not of shape {M.shape}")
    if not np.isfinite(M).all():
        raise ModelError(f"{what} has entries that are not finite numbers")
    if not np.allclose(M, M.T, rtol=1e-8, atol=1e-10 * float(np.abs(M).max())):
        raise ModelError(f"{what} is not symmetric (largest difference {float(np.abs(M - M.T).max()):.3g})")
    return 0.5 * (M + M.T), names


def _names(given: Sequence[str] | None, own: tuple[str, ...] | None, n: int) -> tuple[str, ...]:
    names = tuple(map(str, given)) if given is not None else own or tuple(f"x{i}" for i in range(n))
    if len(names) != n:
        raise VariableError(f"{n} names are needed, one for each row of the matrix, not {len(names)}")
    return names


def factors_of_precision(
    precision: Any, mean: Any, shift: Any, names: Sequence[str] | None, tolerance: float
) -> tuple[tuple[Var, ...], list[GaussianFactor]]:
    """A variable and a factor for each row, a factor for each entry off the diagonal that is not zero."""
    own = None
    if hasattr(precision, "tocoo"):
        n = precision.shape[0]
        part = precision.tocoo()
        keep = (part.row < part.col) & (np.abs(part.data) > tolerance)
        rows, columns, values = part.row[keep], part.col[keep], part.data[keep]
        diagonal = np.asarray(precision.diagonal(), dtype=np.float64)
        gap = abs(precision - precision.T).max() if n else 0.0
        if gap > 1e-8 * max(1.0, float(np.abs(part.data).max(initial=0.0))):
            raise ModelError(f"the precision matrix is not symmetric (largest difference {gap:.3g})")
    else:
        P, own = symmetric_matrix(precision, "the precision matrix")
        n = len(P)
        if n <= _SMALL and float(low := np.linalg.eigvalsh(P)[0]) <= 0.0:
            raise ModelError(f"the precision matrix is not positive definite (smallest eigenvalue {low:.3g})")
        rows, columns = np.nonzero(np.triu(np.abs(P) > tolerance, 1))
        values, diagonal = P[rows, columns], np.diagonal(P)
    if not np.isfinite(values).all() or not (diagonal > 0).all():
        raise ModelError("the precision matrix needs finite entries and a positive diagonal")
    variables = tuple(real(name) for name in _names(names, own, n))
    h = _shift(precision, mean, shift, n)
    share = _log_normalizer(n, rows, columns, values, diagonal, h) / n
    factors = [
        GaussianFactor((var,), np.array([[d]]), np.array([s]), share)
        for var, d, s in zip(variables, diagonal.tolist(), h.tolist(), strict=True)
    ]
    nothing = np.zeros(2)
    for i, j, p in zip(rows.tolist(), columns.tolist(), values.tolist(), strict=True):
        factors.append(GaussianFactor((variables[i], variables[j]), np.array([[0.0, p], [p, 0.0]]), nothing))
    return variables, factors


def _log_normalizer(
    n: int, rows: IntArray, columns: IntArray, values: FloatArray, diagonal: FloatArray, h: FloatArray
) -> float:
    """½ log |P| − ½ hᵀP⁻¹h − ½ n log 2π, which makes the product of all factors a density. By a sparse factor."""
    from scipy.sparse import csc_array
    from scipy.sparse.linalg import splu

    at = np.arange(n)
    places = (np.concatenate([rows, columns, at]), np.concatenate([columns, rows, at]))
    P = csc_array((np.concatenate([values, values, diagonal]), places), shape=(n, n))
    try:
        factor = splu(P, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
        pivots = factor.U.diagonal()
    except RuntimeError:  # exactly singular
        pivots = np.zeros(1)
    if not (pivots > 0.0).all():
        raise ModelError("the precision matrix is not positive definite")
    inside = float(h @ factor.solve(h)) if h.any() else 0.0
    return 0.5 * (float(np.log(pivots).sum()) - inside - n * LOG_2PI)


def _shift(precision: Any, mean: Any, shift: Any, n: int) -> FloatArray:
    if mean is not None and shift is not None:
        raise ModelError("give the mean or the shift (precision · mean), not both")
    given = mean if mean is not None else shift
    vector = np.zeros(n) if given is None else np.asarray(given, dtype=np.float64).reshape(-1)
    if len(vector) != n or not np.isfinite(vector).all():
        raise ModelError(f"the {'mean' if mean is not None else 'shift'} must be {n} finite numbers")
    if mean is None:
        return vector
    P = precision if hasattr(precision, "tocoo") else np.asarray(precision, dtype=np.float64)
    return np.asarray(P @ vector).reshape(-1)


def network_parts(
    mean: Any, covariance: Any, structure: Any, names: Sequence[str] | None
) -> tuple[tuple[Var, ...], list[LinearGaussian]]:
    """Each variable regressed on its parents in the structure, or on all before it where none is given.

    The network then has exactly this joint where the structure's independencies hold in it, else the nearest one
    (in Kullback–Leibler divergence) that the structure can express.
    """
    S, own = symmetric_matrix(covariance, "the covariance matrix")
    mu = np.asarray(mean, dtype=np.float64).reshape(-1)
    if len(mu) != len(S):
        raise ModelError(f"a mean of {len(S)} numbers is needed, not of {len(mu)}")
    low, high = np.linalg.eigvalsh(S)[[0, -1]]
    if low < -1e-10 * max(high, 0.0):
        raise ModelError(f"the covariance matrix is not positive semidefinite (smallest eigenvalue {low:.3g})")
    labels = _names(names, own, len(S))
    index = {name: i for i, name in enumerate(labels)}
    if structure is None:
        parents = {name: list(labels[:i]) for i, name in enumerate(labels)}
    else:
        written = read_structure(structure)
        unknown = [name for name in written.names if name not in index]
        if unknown:
            raise VariableError.unknown(unknown[0], labels)
        parents = {name: list(written.parents.get(name, ())) for name in labels}
    variables = {name: real(name) for name in labels}
    made = []
    for name in labels:
        i, pa = index[name], [index[p] for p in parents[name]]
        W = np.linalg.lstsq(S[np.ix_(pa, pa)], S[pa, i], rcond=None)[0] if pa else np.zeros(0)
        noise = max(float(S[i, i] - W @ S[pa, i]), 0.0)
        if noise <= 1e-14 * S[i, i]:
            noise = 0.0
        scope = tuple(variables[p] for p in parents[name])
        made.append(LinearGaussian(variables[name], scope, W[None], mu[i] - float(W @ mu[pa]), noise))
    return tuple(variables.values()), made
