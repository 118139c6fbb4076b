"""The contract of exponential families, as a check that any member can be put through."""

from __future__ import annotations

from typing import Any

import numpy as np

from gramgraph.distributions._supports import DISCRETE
from gramgraph.distributions.base import ExponentialFamily, bounded_dot
from gramgraph.exceptions import ModelError
from gramgraph.testing._supports import every_point, total_mass
from gramgraph.typing import Array, FloatArray

_SIGMAS = 5.5  # a correct family fails one comparison by chance once in 26 million


def check_distribution(distribution: Any, other: Any = None, *, n_samples: int = 20_000, seed: int = 0) -> None:
    """Raise `AssertionError` with a sentence where the distribution breaks the contract of an exponential family.

    Checked: shapes; the density sums or integrates to one; the mean parameters are the gradient of the log-partition
    and the average of the statistics over draws; the Hessian is the derivative of the mean parameters and the
    covariance of the statistics; natural and mean parameters lead back to the same density; entropy and divergence
    agree with draws, and the divergence is never negative; moment matching maximizes the likelihood, with weights as
    repetitions; products, quotients and tilts add and subtract natural parameters; draws repeat under a seed; NaN is
    refused. `other` is a second member (found by fitting to draws when not given).

    Parameters
    ----------
    distribution : the one to check.
    other : a second member of the family, for divergences; None draws on the first alone.
    n_samples : number of draws.
    seed : of the random numbers.

    Examples
    --------
    >>> from gramgraph.distributions import Gamma
    >>> check_distribution(Gamma(2.0, 3.0), n_samples=2000)
    """
    assert isinstance(distribution, ExponentialFamily), f"{type(distribution).__name__} is no ExponentialFamily."
    rng = np.random.default_rng(seed)
    x = distribution.sample(n_samples, random_state=seed)
    _check_shapes(distribution, x, seed)
    _check_mass(distribution, x, rng)
    _check_derivatives(distribution)
    _check_draws(distribution, x)
    _check_round_trips(distribution, x[:50])
    if other is None:
        other = type(distribution).fit(x[: max(200, n_samples // 100)], **distribution.known)
    _check_divergence(distribution, other, x)
    _check_fit(distribution, x[:100], rng)
    _check_algebra(distribution, other, x[:50])


def _name(p: Any) -> str:
    return type(p).__name__


def _check_shapes(p: Any, x: Array, seed: int) -> None:
    theta, mu, H = p.natural_parameters, p.mean_parameters, p.log_partition_hessian
    k = len(theta)
    assert theta.shape == mu.shape == (k,) and H.shape == (k, k), (
        f"{_name(p)}: natural parameters {theta.shape}, mean parameters {mu.shape} and Hessian {H.shape} do not match."
    )
    assert x.shape == (len(x), *p.event_shape), f"{_name(p)}.sample(n): expected (n, *{p.event_shape}), got {x.shape}."
    assert np.array_equal(x[:20], p.sample(len(x), random_state=seed)[:20]), f"{_name(p)}: draws differ under one seed."
    assert p.statistics(x).shape == (len(x), k), f"{_name(p)}.statistics: expected {(len(x), k)}."
    one = p.log_density(x[0])
    single = isinstance(one, float) or p.event_shape == (1,)  # vectors of one may stand for many numbers
    assert single and p.log_density(x).shape == (len(x),), f"{_name(p)}.log_density: wrong shapes."
    assert np.allclose(one, p.log_density(x)[0], rtol=1e-12, atol=1e-12), (
        f"{_name(p)}: one point alone gives another density."
    )
    assert np.isfinite(p.log_density(x)).all(), f"{_name(p)}: some draws have density zero."
    assert _name(p) in repr(p), f"{_name(p)} prints as {p!r}."
    try:
        p.log_density(np.full((2, *p.event_shape), np.nan))
    except ModelError:
        return
    raise AssertionError(f"{_name(p)}.log_density takes NaN without a word.")


def _check_mass(p: Any, x: Array, rng: np.random.Generator) -> None:
    if p.support in DISCRETE:
        points = every_point(p, x)
        if points is None:
            return
        mass, room = float(p.density(points).sum()), 1e-8
        mean = bounded_dot(p.statistics(points).T, p.density(points))
        assert np.allclose(mean, p.mean_parameters, rtol=1e-6, atol=1e-8), f"{_name(p)}: Σ φ(x) p(x) ≠ mean parameters."
    else:
        mass, room = total_mass(p, np.asarray(x, dtype=np.float64), rng)
    assert abs(mass - 1.0) <= room, f"The density of {_name(p)} integrates to {mass:.8g} (± {room:.2g}), not to 1."


def _check_derivatives(p: Any) -> None:
    theta = p.natural_parameters
    if not np.isfinite(theta).all():
        return
    cls, known = type(p), p.known
    steps = 1e-5 * np.maximum(np.abs(theta), 1e-2)
    for i, h in enumerate(steps):
        up, down = (cls.from_natural(theta + s * h * np.eye(len(theta))[i], **known) for s in (1.0, -1.0))
        slope = (up.log_partition - down.log_partition) / (2.0 * h)
        bend = (up.mean_parameters - down.mean_parameters) / (2.0 * h)
        noise = 1e-15 * max(1.0, abs(p.log_partition)) / h
        _near(slope, p.mean_parameters[i], 1e-6, noise, f"{_name(p)}: mean parameter {i} against ∂A/∂θ_{i}")
        _near(bend, p.log_partition_hessian[i], 1e-5, 1e-7, f"{_name(p)}: row {i} of the Hessian against ∂μ/∂θ_{i}")


def _check_draws(p: Any, x: Array) -> None:
    phi, H, mu = p.statistics(x), p.log_partition_hessian, p.mean_parameters
    n = len(x)
    low = float(np.linalg.eigvalsh(H)[0])
    assert low >= -1e-9 * max(1.0, float(np.abs(H).max())), f"The Hessian of {_name(p)} has the eigenvalue {low:g}."
    room = _SIGMAS * np.sqrt(np.maximum(np.diagonal(H), 0.0) / n) + 1e-12 * (1.0 + np.abs(mu))
    off = np.abs(phi.mean(axis=0) - mu)
    assert (off <= room).all(), (
        f"{_name(p)}: E φ is off the average over draws by {off / room * _SIGMAS} standard errors."
    )
    D = phi - mu
    outer = D[:, :, None] * D[:, None, :]
    room = 1.5 * _SIGMAS * outer.std(axis=0) / np.sqrt(n) + 1e-9 * (1.0 + np.abs(H))
    off = np.abs(outer.mean(axis=0) - H)
    assert (off <= room).all(), (
        f"{_name(p)}: the Hessian is off the covariance of φ over draws by up to {off.max():.3g}."
    )


def _check_round_trips(p: Any, x: Array) -> None:
    cls, known = type(p), p.known
    wanted = p.log_density(x)
    natural = cls.from_natural(p.natural_parameters, **known)
    assert np.allclose(natural.log_density(x), wanted, rtol=1e-8, atol=1e-8), f"{_name(p)}: from_natural(θ) differs."
    mean = cls.from_mean(p.mean_parameters, **known)
    assert np.allclose(mean.log_density(x), wanted, rtol=1e-6, atol=1e-6), f"{_name(p)}: from_mean(μ) differs."


def _check_divergence(p: Any, q: Any, x: Array) -> None:
    assert abs(p.kl(p)) <= 1e-9, f"{_name(p)}: KL(p ‖ p) is {p.kl(p):g}."
    assert p.kl(q) >= 0.0 and q.kl(p) >= 0.0, f"{_name(p)}: a divergence is negative."
    log_p = p.log_density(x)
    _average(-log_p, p.entropy(), f"{_name(p)}: entropy against −log p of draws")
    if np.isfinite(q.log_density(x)).all():
        _average(log_p - q.log_density(x), p.kl(q), f"{_name(p)}: KL(p ‖ q) against log p/q of draws")


def _check_fit(p: Any, x: Array, rng: np.random.Generator) -> None:
    cls, known = type(p), p.known
    weights = rng.integers(1, 4, size=len(x))
    best = cls.fit(x, weights=weights, **known)
    again = cls.fit(np.repeat(x, weights, axis=0), **known)
    assert np.allclose(best.log_density(x), again.log_density(x), rtol=1e-6, atol=1e-6), (
        f"{_name(p)}.fit: weights are not repetitions."
    )
    top = float(weights @ best.log_density(x))
    theta = best.natural_parameters
    for sign in (-1.0, 1.0):
        for i in range(len(theta)):
            try:
                near = cls.from_natural(theta + sign * 1e-3 * np.eye(len(theta))[i], **known)
            except ModelError:
                continue
            value = float(bounded_dot(weights.astype(np.float64), near.log_density(x)))
            assert value <= top + 1e-9 * abs(top) + 1e-9, f"{_name(p)}.fit: θ_{i} {sign:+g}·0.001 is more likely."


def _check_algebra(p: Any, q: Any, x: Array) -> None:
    with np.errstate(invalid="ignore"):
        delta = 0.1 * (q.natural_parameters - p.natural_parameters)
    if np.isfinite(delta).all():
        moved = p.tilt(delta)
        gap = p.log_density(x) + p.statistics(x) @ delta - moved.log_density(x)
        _constant(gap, moved.log_partition - p.log_partition, f"{_name(p)}.tilt")
    if not p.flat_base:
        for operation in (p.product, p.quotient):
            try:
                operation(q)
            except ModelError:
                continue
            raise AssertionError(f"{_name(p)} has a base measure, so its products leave the family; none was refused.")
        return
    try:
        both = p * q
    except ModelError:  # a product may have no finite integral, such as that of two Beta(0.3, 1)
        return
    gap = p.log_density(x) + q.log_density(x) - both.log_density(x)
    _constant(gap, p.log_overlap(q), f"{_name(p)}: product")
    assert np.allclose((q * p).log_density(x), both.log_density(x), rtol=1e-8, atol=1e-8), f"{_name(p)}: p q ≠ q p."
    back = both / q
    assert np.allclose(back.log_density(x), p.log_density(x), rtol=1e-6, atol=1e-6), f"{_name(p)}: (p q) / q ≠ p."


# --- comparisons ------------------------------------------------------------------------------------------------------


def _near(found: Any, wanted: Any, rtol: float, atol: float, what: str) -> None:
    scale = float(np.abs(wanted).max(initial=0.0)) if np.ndim(wanted) else abs(wanted)
    gap = float(np.abs(np.asarray(found) - wanted).max(initial=0.0))
    assert gap <= rtol * max(scale, 1e-3) + atol, f"{what}: {wanted} against {found}."


def _average(values: FloatArray, wanted: float, what: str) -> None:
    room = _SIGMAS * float(values.std()) / np.sqrt(len(values)) + 1e-8 * (1.0 + abs(wanted))
    assert abs(float(values.mean()) - wanted) <= room, f"{what}: {wanted:.8g} against {values.mean():.8g} ± {room:.2g}."


def _constant(gap: FloatArray, wanted: float, what: str) -> None:
    gap = gap[np.isfinite(gap)]
    off = float(np.abs(gap - wanted).max(initial=0.0))
    assert off <= 1e-7 * max(1.0, float(np.abs(gap).max(initial=0.0))), f"{what}: log densities are off by {off:.3g}."
