"""The Matérn function of s = (r/ℓ)² for any ν, and its slopes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gramgraph.typing import FloatArray

_NU_STEP = 1e-3
_PART = 1 << 16  # entries at a time: what lies between stays in the cache, and no whole matrix is held for it


def matern(S: FloatArray, nu: float) -> FloatArray:
    """2^(1−ν)/Γ(ν) t^ν K_ν(t) with t = √(2ν s); 1 at s = 0."""
    return _in_parts(S, lambda s: _bessel(np.sqrt(2.0 * nu * s), nu, nu, 1.0))


def matern_slope(S: FloatArray, nu: float) -> FloatArray:
    """∂/∂s, exact: −ν 2^(1−ν)/Γ(ν) t^(ν−1) K_{ν−1}(t).

    At s = 0 it is −ν / (2(ν − 1)) for ν > 1; for ν ≤ 1 there is none, and 0 stands, the mean of both sides.
    """
    limit = 1.0 / (2.0 * (nu - 1.0)) if nu > 1.0 else 0.0
    return _in_parts(S, lambda s: -nu * _bessel(np.sqrt(2.0 * nu * s), nu - 1.0, nu, limit))


def matern_by_nu(S: FloatArray, nu: float) -> FloatArray:
    """∂/∂ν, numeric: a five-point difference of relative step 1e-3, error about 1e-11."""
    h = _NU_STEP * nu

    def slope(s: FloatArray) -> FloatArray:
        near = matern(s, nu + h) - matern(s, nu - h)
        far = matern(s, nu + 2 * h) - matern(s, nu - 2 * h)
        return np.asarray((8.0 * near - far) / (12.0 * h))

    return _in_parts(S, slope)


def _in_parts(S: FloatArray, f: Callable[[FloatArray], FloatArray]) -> FloatArray:
    """f of every entry, some at a time."""
    out = np.empty(S.shape)
    flat, found = np.ravel(S), out.reshape(-1)
    for start in range(0, flat.size, _PART):
        found[start : start + _PART] = f(flat[start : start + _PART])
    return out


def _bessel(t: FloatArray, order: float, nu: float, limit: float) -> FloatArray:
    """2^(1−ν)/Γ(ν) t^order K_order(t), and `limit` where t is 0 or K overflows."""
    from scipy.special import gammaln, kve

    tiny = t < 1e-12
    safe = np.where(tiny, 1.0, t)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        logs = order * np.log(safe) + np.log(kve(order, safe)) - safe + (1.0 - nu) * np.log(2.0) - gammaln(nu)
        found = np.exp(logs)
    return np.where(tiny | ~np.isfinite(found), limit, found)
