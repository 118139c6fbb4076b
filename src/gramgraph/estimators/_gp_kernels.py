"""Kernels of Gaussian-process estimators: ours, names, and scikit-learn's own kernel objects."""

from __future__ import annotations

from typing import Any

import numpy as np

from gramgraph.estimators._base import is_kernel, resolve_kernel
from gramgraph.exceptions import ModelError
from gramgraph.kernels import RBF, Constant, Kernel, Linear, Matern, Periodic, Power, RationalQuadratic, Scale, White
from gramgraph.typing import FloatArray

__all__ = ["as_process_kernel", "from_scikit_learn", "names_columns"]


def as_process_kernel(kernel: Any, X: Any = None, *, fixed: bool = True) -> tuple[Kernel, FloatArray]:
    """A kernel value and the bounds of its theta, (p, 2).

    None is scikit-learn's default `1.0 * RBF(1.0)`, `fixed` for classification and learned for regression; names are
    those of the other kernel machines.
    """
    if kernel is None:
        found: Kernel = (1.0 * RBF(1.0)).fix() if fixed else 1.0 * RBF(1.0)
    elif is_kernel(kernel):
        found = kernel
    elif isinstance(kernel, str):
        value = resolve_kernel(kernel, X).value
        if value is None:
            raise ModelError(
                "A Gaussian process needs a kernel that can be evaluated at new points: kernel='precomputed' is not "
                "possible here. What helps: gg.kernels.Precomputed, or gg.KernelRidge."
            )
        found = value
    elif type(kernel).__module__.startswith("sklearn."):
        return from_scikit_learn(kernel)
    else:
        raise ModelError(
            f"kernel must be a kernel value such as 2 * gg.kernels.RBF() + gg.kernels.White(0.1), a name, a kernel of "
            f"scikit-learn, or None; it is {kernel!r}."
        )
    return found, found.bounds


def from_scikit_learn(kernel: Any) -> tuple[Kernel, FloatArray]:
    """Our value of a kernel of sklearn.gaussian_process.kernels, with its bounds.

    Constant, White, RBF, Matern, RationalQuadratic, ExpSineSquared (one column), DotProduct, sums, products, powers.
    theta has the same entries; those of RationalQuadratic stand in the other order.

    >>> from sklearn.gaussian_process.kernels import RBF, WhiteKernel
    >>> from_scikit_learn(2.0 * RBF(0.5) + WhiteKernel(0.1))[0]
    2 * RBF(length_scale=0.5) + White(0.1)
    """
    from sklearn.gaussian_process import kernels as sk

    if isinstance(kernel, sk.Exponentiation):
        base, bounds = from_scikit_learn(kernel.kernel)
        if kernel.exponent < 1 or float(kernel.exponent) != int(kernel.exponent):
            raise ModelError(
                f"A power of a kernel is positive definite for sure only if the exponent is a whole number from 1; "
                f"it is {kernel.exponent!r} in {kernel!r}. What helps: RBF(ℓ) ** p is RBF(ℓ / √p)."
            )
        return Power(base, int(kernel.exponent)), bounds
    if isinstance(kernel, (sk.Sum, sk.Product)):
        (a, a_bounds), (b, b_bounds) = from_scikit_learn(kernel.k1), from_scikit_learn(kernel.k2)
        both = np.concatenate([a_bounds, b_bounds])
        if isinstance(kernel, sk.Sum):
            return a + b, both
        if isinstance(a, Constant) and not isinstance(b, Constant):
            return Scale(a.value, b, fixed=("variance",) if a.fixed else ()), both
        return a * b, both
    return _leaf(kernel, sk)


def _leaf(kernel: Any, sk: Any) -> tuple[Kernel, FloatArray]:
    names = {
        sk.ConstantKernel: (Constant, {"value": "constant_value"}),
        sk.WhiteKernel: (White, {"variance": "noise_level"}),
        sk.RBF: (RBF, {"length_scale": "length_scale"}),
        sk.Matern: (Matern, {"length_scale": "length_scale"}),
        sk.RationalQuadratic: (RationalQuadratic, {"length_scale": "length_scale", "alpha": "alpha"}),
        sk.ExpSineSquared: (Periodic, {"length_scale": "length_scale", "period": "periodicity"}),
    }
    if type(kernel) is sk.DotProduct:
        fixed = ("value",) if kernel.hyperparameter_sigma_0.fixed else ()
        offset = Constant(float(kernel.sigma_0) ** 2, fixed=fixed)
        ends = np.zeros((0, 2)) if fixed else 2.0 * np.log(np.atleast_2d(kernel.hyperparameter_sigma_0.bounds))
        return Linear() + offset, ends
    if type(kernel) not in names:
        raise ModelError(
            f"{type(kernel).__name__} of scikit-learn has no counterpart here. Known: ConstantKernel, WhiteKernel, "
            f"RBF, Matern, RationalQuadratic, ExpSineSquared, DotProduct, sums, products and powers of them."
        )
    ours, fields = names[type(kernel)]
    values: dict[str, Any] = {mine: getattr(kernel, theirs) for mine, theirs in fields.items()}
    declared = {mine: getattr(kernel, f"hyperparameter_{theirs}") for mine, theirs in fields.items()}
    kept: tuple[str, ...] = tuple(mine for mine, h in declared.items() if h.fixed)
    if ours is Matern:
        if np.isinf(kernel.nu):
            ours = RBF
        else:
            values["nu"], kept = float(kernel.nu), (*kept, "nu")
    made = ours(**values, fixed=kept)
    rows = [
        np.broadcast_to(np.log(np.atleast_2d(h.bounds)), (np.size(values[m]), 2))
        for m, h in declared.items()
        if not h.fixed
    ]
    return made, np.concatenate([np.zeros((0, 2)), *rows])


def names_columns(kernel: Any) -> bool:
    """Whether a part of the kernel asks for columns of a frame by name, as in `RBF().on("age")`.

    >>> names_columns(2 * RBF().on("age") + White(0.1)), names_columns(RBF().on(0))
    (True, False)
    """
    from gramgraph.kernels.input_maps import OnColumns

    if not is_kernel(kernel):
        return False
    if isinstance(kernel, OnColumns):
        columns = [kernel.columns] if isinstance(kernel.columns, (str, int, np.integer)) else kernel.columns
        if any(isinstance(c, str) for c in columns):
            return True
    return any(names_columns(part.value) for part in kernel._parts() if part.declared is None)
