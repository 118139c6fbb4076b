"""From names to numbers: a Gaussian model as moments, or as a sparse precision around its mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gramgraph.compile.budget import check_budget
from gramgraph.conditionals.continuous import log_density
from gramgraph.exceptions import ModelError
from gramgraph.factors.gaussian import LOG_2PI
from gramgraph.graphs import Digraph, topological_order
from gramgraph.models.layout import Layout, layout_of
from gramgraph.typing import FloatArray, IntArray

if TYPE_CHECKING:
    from gramgraph.models.base import GraphicalModel

#: Up to this many components the joint covariance is kept as one dense matrix.
DENSE_LIMIT = 1500
_CANCELS = 1e-8  # smallest share of a component's precision that the others may leave, for numbers to be trusted
_ONE_SYSTEM = 300  # networks of so many scalars are solved as one linear system


# ---------------------------------------------------------------------------------------------- moments


def joint_moments(model: GraphicalModel) -> tuple[FloatArray, FloatArray, float]:
    """(mean, covariance, log Z) of a Gaussian model, dense; Z = 1 for a Bayesian network.

    A network's moments are found by recursion, parents first: E[y] = b + W E[x], Cov[·, y] = Cov[·, x] Wᵀ,
    Var[y] = W Var[x] Wᵀ + S. O(n² · parents).
    """
    found = model.plans.get(("lowered", "moments"))
    if found is None:
        n = layout_of(model).size
        check_budget(24.0 * n * n, None, model.variables, float(n) * n)
        made = _moments_of_network(model) if hasattr(model, "conditionals") else _moments_of_factors(model)
        found = model.plans[("lowered", "moments")] = made
    return found  # type: ignore[no-any-return]


def joint_precision(model: GraphicalModel) -> tuple[FloatArray, float] | None:
    """(P, log |P|) of a Gaussian model, dense; None where some variable has (next to) no noise, so that numbers of
    very different size would cancel in it."""
    found: Any = model.plans.get(("lowered", "dense precision"), False)
    if found is False:
        found = None
        if has_noise(model):
            P = _dense_precision(model)
            scale = np.sqrt(np.diagonal(P))
            try:
                pivots = np.diagonal(np.linalg.cholesky(P / np.outer(scale, scale)))
                if pivots.min() ** 2 >= _CANCELS:
                    found = P, 2.0 * float(np.log(pivots).sum() + np.log(scale).sum())
            except np.linalg.LinAlgError:
                pass
        model.plans[("lowered", "dense precision")] = found
    return found  # type: ignore[no-any-return]


def has_noise(model: GraphicalModel) -> bool:
    """Whether a precision matrix exists: no variable is a function of others, or fixed."""
    found: Any = model.plans.get(("lowered", "noise"))
    if found is None:
        try:
            if _is_small_system(model) and (_system(model)[2] > 0.0).all():
                found = True
            else:
                found = not len(sparse_precision(model).clamped)
        except ModelError:
            found = False
        model.plans[("lowered", "noise")] = found
    return bool(found)


def _is_small_system(model: Any) -> bool:
    layout = layout_of(model)
    return hasattr(model, "conditionals") and layout.scalar and layout.size <= _ONE_SYSTEM


def _dense_precision(model: Any) -> FloatArray:
    """P = (I − A)ᵀ D⁻¹ (I − A) of a small network; else the sparse one, written out."""
    if not _is_small_system(model):
        return np.asarray(sparse_precision(model).P.toarray())
    A, _, d = _system(model)
    M = -A.toarray()
    M[np.diag_indices(len(d))] += 1.0
    half = M / np.sqrt(d)[:, None]
    return np.asarray(half.T @ half)


def _system(model: Any) -> tuple[Any, FloatArray, FloatArray]:
    """`_linear_system`, made once."""
    key = ("lowered", "system")
    found = model.plans.get(key)
    if found is None:
        found = model.plans[key] = _linear_system(model)
    return found  # type: ignore[no-any-return]


def _linear_system(model: Any) -> tuple[Any, FloatArray, FloatArray]:
    """(A, b, d) of a network of scalars as one system x = A x + b + noise with variances d; A is sparse."""
    from scipy.sparse import csr_array

    parts = model.conditionals
    counts = np.array([len(row) for row in model.parent_positions])
    columns = np.array([p for row in model.parent_positions for p in row], np.int64)
    values = np.concatenate([c.coefficients[0] for c in parts]) if parts else np.zeros(0)
    ptr = np.concatenate([[0], np.cumsum(counts)])
    n = len(parts)
    b = np.array([c.intercept[0] for c in parts], dtype=np.float64)
    d = np.array([c.covariance[0, 0] for c in parts], dtype=np.float64)
    return csr_array((values, columns, ptr), shape=(n, n)), b, d


def log_joint(model: GraphicalModel, X: FloatArray, codes: dict[int, IntArray]) -> FloatArray:
    """log of the joint density at full assignments: values of all components, state codes by discrete variable."""
    conditionals = getattr(model, "conditionals", None)
    if conditionals is None:
        low = sparse_precision(model)
        off = X - low.mean
        return np.asarray(low.log_norm - 0.5 * np.einsum("ij,ji->i", off, low.P @ off.T))
    quick = _log_joint_of_scalars(model, X)
    if quick is not None:
        return quick
    layout = layout_of(model)
    values = {var: codes[v] if v in codes else X[:, layout.components(v)] for v, var in enumerate(model.vars)}
    return np.asarray(np.sum([log_density(c, values) for c in conditionals], axis=0))


def _log_joint_of_scalars(model: Any, X: FloatArray) -> FloatArray | None:
    """log p(x) of full rows of a linear-Gaussian network of scalars with noise, all nodes at once; else None."""
    if model.kind != "gaussian" or not layout_of(model).scalar:
        return None
    A, b, d = _system(model)
    if not (d > 0.0).all():
        return None
    off = X.T - A @ X.T  # (nodes, cases)
    off -= b[:, None]
    off *= off
    return np.asarray((-0.5 / d) @ off - 0.5 * (float(np.log(d).sum()) + len(d) * LOG_2PI))


def _moments_of_network(model: Any) -> tuple[FloatArray, FloatArray, float]:
    layout = layout_of(model)
    n = layout.size
    if layout.scalar and n <= _ONE_SYSTEM:
        A, b, d = _system(model)
        T = np.linalg.inv(np.eye(n) - A.toarray())
        T[np.abs(T) < 1e-300] = 0.0
        return T @ b, (T * d) @ T.T, 0.0
    mu, S = np.zeros(n), np.zeros((n, n))
    for v in topological_order(Digraph(model.parent_positions)):
        c = model.conditionals[v]
        at, pa = layout.components(v), layout.of(model.parent_positions[v])
        W = c.coefficients
        mu[at] = c.intercept + W @ mu[pa]
        if len(pa):
            cross = S[:, pa] @ W.T
            S[:, at] = cross
            S[at, :] = cross.T
            S[np.ix_(at, at)] = W @ cross[pa] + c.covariance
        else:
            S[np.ix_(at, at)] = c.covariance
    return mu, S, 0.0


def _moments_of_factors(model: GraphicalModel) -> tuple[FloatArray, FloatArray, float]:
    from scipy.linalg import cholesky
    from scipy.linalg.lapack import dpotri

    low = sparse_precision(model)
    P = low.P.toarray()
    L = cholesky(P, lower=True, check_finite=False)
    inverse, _ = dpotri(L, lower=1)
    S = np.tril(inverse) + np.tril(inverse, -1).T
    log_z = low.log_norm - float(np.log(np.diagonal(L)).sum()) + 0.5 * len(P) * LOG_2PI
    return low.mean, S, log_z


# ---------------------------------------------------------------------------------------------- precision


@dataclass(frozen=True, eq=False)
class SparsePrecision:
    """f(x) = exp(log_norm − ½ (x − mean)ᵀ P (x − mean)), with P sparse and symmetric."""

    P: Any  # scipy.sparse.csc_array (n, n)
    mean: FloatArray
    log_norm: float
    clamped: IntArray  # components that are fixed at their mean, without a factor of their own


def sparse_precision(model: GraphicalModel) -> SparsePrecision:
    """The precision of a Gaussian model, made once. O(Σ family²) entries."""
    found = model.plans.get(("lowered", "precision"))
    if found is None:
        made = _precision_of_network(model) if hasattr(model, "conditionals") else _precision_of_factors(model)
        found = model.plans[("lowered", "precision")] = made
    return found  # type: ignore[no-any-return]


def _assemble(n: int, places: list[IntArray], blocks: list[FloatArray]) -> Any:
    from scipy.sparse import csc_array

    rows = np.concatenate([np.repeat(at, len(at)) for at in places]) if places else np.zeros(0, np.int64)
    columns = np.concatenate([np.tile(at, len(at)) for at in places]) if places else np.zeros(0, np.int64)
    values = np.concatenate([block.ravel() for block in blocks]) if blocks else np.zeros(0)
    made = csc_array((values, (rows, columns)), shape=(n, n))
    made.sum_duplicates()
    return made


def _precision_of_network(model: Any) -> SparsePrecision:
    layout: Layout = layout_of(model)
    if layout.scalar:
        found = _precision_of_scalars(model)
        if found is not None:
            return found
    mean = np.zeros(layout.size)
    places: list[IntArray] = []
    blocks: list[FloatArray] = []
    clamped: list[IntArray] = []
    log_norm = 0.0
    for v in topological_order(Digraph(model.parent_positions)):
        c = model.conditionals[v]
        at, pa = layout.components(v), layout.of(model.parent_positions[v])
        mean[at] = c.intercept + c.coefficients @ mean[pa]
        k = len(at)
        if not len(pa) and not c.covariance.any():
            clamped.append(at)
            continue
        if k == 1:
            s = float(c.covariance[0, 0])
            if not s > 0.0:
                raise _degenerate(c)
            row = np.concatenate([-c.coefficients[0], [1.0]])
            blocks.append(np.outer(row, row) / s)
            log_norm -= 0.5 * (np.log(s) + LOG_2PI)
        else:
            try:
                L = np.linalg.cholesky(c.covariance)
            except np.linalg.LinAlgError:
                raise _degenerate(c) from None
            half = np.linalg.solve(L, np.hstack([-c.coefficients, np.eye(k)]))
            blocks.append(half.T @ half)
            log_norm -= float(np.log(np.diagonal(L)).sum()) + 0.5 * k * LOG_2PI
        places.append(np.concatenate([pa, at]))
    fixed = np.concatenate(clamped) if clamped else np.zeros(0, np.int64)
    return SparsePrecision(_assemble(layout.size, places, blocks), mean, log_norm, fixed)


def _precision_of_scalars(model: Any) -> SparsePrecision | None:
    """P = (I − A)ᵀ D⁻¹ (I − A) in a few operations on all nodes; None where some node has no noise."""
    from scipy.sparse import csc_array, diags_array, eye_array

    A, b, d = _system(model)
    if not (d > 0.0).all():
        return None
    n = len(d)
    mean = b.copy()
    rows, weights, ptr = A.indices.tolist(), A.data.tolist(), A.indptr.tolist()
    values = mean.tolist()
    for v in topological_order(Digraph(model.parent_positions)):
        values[v] += sum(weights[k] * values[rows[k]] for k in range(ptr[v], ptr[v + 1]))
    M = eye_array(n, format="csr") - A
    P = csc_array(M.T @ diags_array(1.0 / d) @ M)
    P.sum_duplicates()
    log_norm = -0.5 * (float(np.log(d).sum()) + n * LOG_2PI)
    return SparsePrecision(P, np.array(values), log_norm, np.zeros(0, np.int64))


def _degenerate(c: Any) -> ModelError:
    return ModelError(
        f"{c.child.name} is a function of its parents without noise: that has no precision matrix. Ask with "
        f"engine='dense' (up to a few thousand components), or give it a small variance"
    )


def _precision_of_factors(model: GraphicalModel) -> SparsePrecision:
    layout = layout_of(model)
    n = layout.size
    h, g = np.zeros(n), 0.0
    places, blocks = [], []
    for factor in model.factors():
        at = layout.of([model.positions[var.name] for var in factor.scope])
        places.append(at)
        blocks.append(factor.precision)  # type: ignore[attr-defined]
        h[at] += factor.shift  # type: ignore[attr-defined]
        g += factor.log_scale
    from gramgraph.engines.gaussian.factorized import Factorized

    P = _assemble(n, places, blocks)
    mean = Factorized.of(P).solve(h[:, None])[:, 0]
    return SparsePrecision(P, mean, g + 0.5 * float(h @ mean), np.zeros(0, np.int64))
