"""Kernels on the line as linear stochastic differential equations, in units in which all states have one scale.

A model has transitions Φ(Δ) = exp(F Δ), a stationary covariance Pinf and an observation h. By every parameter of the
kernel ∂Φ/∂θ = Δ · dF Φ, since F's parts commute: gradients need no derivative of a matrix exponential.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np

from gramgraph.kernels.algebra import Product, Scale, Sum
from gramgraph.kernels.inputs import KernelError
from gramgraph.kernels.stationary import Constant, Matern, White
from gramgraph.typing import FloatArray

if TYPE_CHECKING:
    from gramgraph.kernels.base import Kernel

_N = {
    0.5: np.array([[-1.0]]),
    1.5: np.array([[0.0, 1.0], [-1.0, -2.0]]),
    2.5: np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [-1.0, -3.0, -3.0]]),
}
_P = {
    0.5: np.eye(1),
    1.5: np.eye(2),
    2.5: np.array([[1.0, 0.0, -1 / 3], [0.0, 1 / 3, 0.0], [-1 / 3, 0.0, 1.0]]),
}


@dataclass(frozen=True, eq=False)
class MarkovModel:
    """One kernel as a Markov process; s states, p parameters."""

    F: FloatArray  # (s, s)
    Pinf: FloatArray  # (s, s)
    h: FloatArray  # (s,)
    dF: FloatArray  # (p, s, s)
    dPinf: FloatArray  # (p, s, s)
    transitions: Callable[[FloatArray], FloatArray]  # steps (u,) ↦ Φ (u, s, s)


def _matern(kernel: Matern) -> MarkovModel:
    if kernel.nu not in _N or np.size(kernel.length_scale) != 1 or kernel.is_free("nu"):
        raise KernelError(f"{kernel}: expected nu 1/2, 3/2 or 5/2, fixed, and one length scale.")
    N, P = _N[kernel.nu], _P[kernel.nu]
    s = len(N)
    rate = float(np.sqrt(2.0 * kernel.nu) / np.ravel(kernel.length_scale)[0])
    powers = [np.eye(s)]
    for k in range(1, s):  # N + I is nilpotent: the exponential is a short polynomial
        powers.append(powers[-1] @ (N + np.eye(s)) / k)

    def transitions(steps: FloatArray) -> FloatArray:
        x = rate * np.asarray(steps, dtype=float)[:, None, None]
        return np.exp(-x) * sum((x**k * powers[k] for k in range(s)), start=np.zeros(()))

    p = len(kernel.theta)
    dF = np.repeat(-(rate * N)[None], p, axis=0)
    return MarkovModel(rate * N, P, np.eye(s)[0], dF, np.zeros((p, s, s)), transitions)


def _constant(kernel: Constant) -> MarkovModel:
    one = np.ones((1, 1))
    p = len(kernel.theta)
    return MarkovModel(
        0 * one,
        kernel.value * one,
        np.ones(1),
        np.zeros((p, 1, 1)),
        np.full((p, 1, 1), kernel.value),
        lambda steps: np.ones((len(steps), 1, 1)),
    )


def _scale(kernel: Scale) -> MarkovModel:
    base = markov_model(kernel.base)
    v, Pinf = kernel.variance, kernel.variance * base.Pinf
    zero = np.zeros((1, *base.F.shape))
    dF, dPinf = base.dF, v * base.dPinf
    if kernel.is_free("variance"):
        dF, dPinf = np.concatenate([zero, dF]), np.concatenate([Pinf[None], dPinf])
    return MarkovModel(base.F, Pinf, base.h, dF, dPinf, base.transitions)


def _block(A: FloatArray, B: FloatArray) -> FloatArray:
    """Stacks of block-diagonal matrices, (…, s + r, s + r)."""
    s, r = A.shape[-1], B.shape[-1]
    out = np.zeros((*A.shape[:-2], s + r, s + r))
    out[..., :s, :s] = A
    out[..., s:, s:] = B
    return out


def _add(a: MarkovModel, b: MarkovModel) -> MarkovModel:
    def both(da: FloatArray, db: FloatArray) -> FloatArray:
        left = _block(da, np.zeros((len(da), *b.F.shape)))
        return np.concatenate([left, _block(np.zeros((len(db), *a.F.shape)), db)])

    return MarkovModel(
        _block(a.F, b.F),
        _block(a.Pinf, b.Pinf),
        np.concatenate([a.h, b.h]),
        both(a.dF, b.dF),
        both(a.dPinf, b.dPinf),
        lambda steps: _block(a.transitions(steps), b.transitions(steps)),
    )


def _kron(A: FloatArray, B: FloatArray) -> FloatArray:
    """Stacks of Kronecker products."""
    s, r = A.shape[-1], B.shape[-1]
    return np.einsum("...ij,...kl->...ikjl", A, B).reshape(
        *np.broadcast_shapes(A.shape[:-2], B.shape[:-2]), s * r, s * r
    )


def _multiply(a: MarkovModel, b: MarkovModel) -> MarkovModel:
    I, J = np.eye(len(a.F)), np.eye(len(b.F))
    return MarkovModel(
        _kron(a.F, J) + _kron(I, b.F),
        _kron(a.Pinf, b.Pinf),
        np.kron(a.h, b.h).astype(float),
        np.concatenate([_kron(a.dF, J), _kron(I, b.dF)]),
        np.concatenate([_kron(a.dPinf, b.Pinf), _kron(a.Pinf, b.dPinf)]),
        lambda steps: _kron(a.transitions(steps), b.transitions(steps)),
    )


def markov_model(kernel: Kernel) -> MarkovModel:
    """The kernel as a Markov process: Matérn 1/2, 3/2, 5/2, constants, their scaled sums and products.

    Parameters
    ----------
    kernel : the kernel.

    Examples
    --------
    >>> model = markov_model(2.0 * Matern(1.0, nu=0.5))
    >>> (model.h @ model.transitions(np.array([1.0]))[0] @ model.Pinf @ model.h).round(4)  # 2 exp(−1)
    np.float64(0.7358)
    """
    if isinstance(kernel, Matern):
        return _matern(kernel)
    if isinstance(kernel, Constant):
        return _constant(kernel)
    if isinstance(kernel, Scale):
        return _scale(kernel)
    if isinstance(kernel, Sum):
        return reduce(_add, [markov_model(term) for term in kernel.terms])
    if isinstance(kernel, Product):
        return reduce(_multiply, [markov_model(factor) for factor in kernel.factors])
    raise KernelError(
        f"{type(kernel).__name__} has no finite state-space form here. It exists for Matern with nu 1/2, 3/2, 5/2 and "
        "one length scale, Constant, and their scaled sums and products (White is noise)."
    )


def is_markov(kernel: Kernel) -> bool:
    """Whether `markov_model` knows the kernel once its noise is split off."""
    smooth = split_noise(kernel).smooth
    if smooth is None:
        return False
    try:
        markov_model(smooth)
    except KernelError:
        return False
    return True


@dataclass(frozen=True, eq=False)
class NoiseSplit:
    """k = smooth + noise · δ: the `White` terms of a sum taken out."""

    smooth: Kernel | None
    noise: float
    slots: tuple[tuple[str, int, float], ...]  # ("smooth" | "noise", size, ∂ noise / ∂ theta) in the order of theta

    def theta(self, by_smooth: FloatArray, by_noise: float) -> FloatArray:
        """The gradient by the whole kernel's theta."""
        out, at = [], 0
        for kind, size, slope in self.slots:
            if kind == "smooth":
                out.append(by_smooth[at : at + size])
                at += size
            else:
                out.append(np.full(size, by_noise * slope))
        return np.concatenate([np.zeros(0), *out])


def split_noise(kernel: Kernel) -> NoiseSplit:
    """Take `White` terms (scaled ones too) out of a sum.

    >>> from gramgraph.kernels import RBF
    >>> split_noise(RBF() + White(0.1)).noise
    0.1
    """
    terms = kernel.terms if isinstance(kernel, Sum) else (kernel,)
    kept: list[Kernel] = []
    noise, slots = 0.0, []
    for term in terms:
        size = len(term.theta)
        if isinstance(term, White) or (isinstance(term, Scale) and isinstance(term.base, White)):
            value = float(term.diag(np.zeros((1, 1)))[0])
            noise += value
            slots.append(("noise", size, value))  # every factor's logarithm moves the product by itself
        else:
            kept.append(term)
            slots.append(("smooth", size, 0.0))
    smooth = None if not kept else kept[0] if len(kept) == 1 else Sum(tuple(kept))
    return NoiseSplit(smooth, noise, tuple(slots))
