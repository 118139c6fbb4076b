"""Kernels of Gaussian-process estimators: ours, names, and scikit-learn's own kernel objects."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from gramgraph.estimators._gp_scikit_kernels import from_scikit_learn
from gramgraph.exceptions import ModelError, ModelWarning
from gramgraph.kernels import RBF, Kernel
from gramgraph.machines.kernels import is_kernel, resolve_kernel
from gramgraph.typing import FloatArray

__all__ = [
    "as_process_kernel",
    "check_restarts",
    "from_scikit_learn",
    "warn_at_bounds",
    "warn_of_noise",
    "warn_of_repeats",
]


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
                "possible here. Try: gg.kernels.Precomputed, or gg.KernelRidge."
            )
        found = value
    elif type(kernel).__module__.startswith("sklearn."):
        shape = np.shape(X) if isinstance(X, np.ndarray) else ()
        return from_scikit_learn(kernel, shape[1] if len(shape) == 2 else None)
    else:
        raise ModelError(
            f"kernel must be a kernel value such as 2 * gg.kernels.RBF() + gg.kernels.White(0.1), a name, a kernel of "
            f"scikit-learn, or None; it is {kernel!r}."
        )
    return found, found.bounds


def check_restarts(bounds: FloatArray, restarts: int) -> None:
    """Further starts are drawn between the bounds, which then must be finite."""
    if restarts and not np.isfinite(bounds).all():
        raise ModelError(
            f"n_restarts_optimizer={restarts} draws starts between the bounds of the parameters, so it requires that "
            "all bounds are finite. Try: kernel.with_bounds({name: (low, high)}), or n_restarts_optimizer=0."
        )


def warn_at_bounds(kernels: Sequence[Kernel], asked: Any) -> None:
    """One warning a parameter that ended at a bound of the search; `asked` is the kernel that the user gave."""
    seen = set()
    for kernel in kernels:
        bounds = kernel.bounds
        for i, (name, entry) in enumerate(_entries(kernel, asked)):
            for side, word, way in ((0, "lower", "Decreasing"), (1, "upper", "Increasing")):
                if not np.isclose(bounds[i, side], kernel.theta[i]) or (name, entry, side) in seen:
                    continue
                seen.add((name, entry, side))
                value = _value_bounds(kernel)[i][side]
                text = (  # the words that users of scikit-learn filter their warnings by
                    f"The optimal value found for dimension {entry} of parameter {name} is close to the specified "
                    f"{word} bound {value}. {way} the bound and calling fit again may find a better value."
                )
                if is_kernel(asked) or asked is None:
                    ends = "(…, high)" if side == 0 else "(low, …)"
                    text += f" Try: kernel.with_bounds({{{name!r}: {ends}}}), or kernel.fix({name!r})."
                warnings.warn(text, ConvergenceWarning, stacklevel=4)


def _entries(kernel: Kernel, asked: Any) -> Iterator[tuple[str, int]]:
    """Name of the parameter, and place in it, of every entry of theta; names as the user's kernel has them."""
    if hasattr(asked, "hyperparameters"):  # of scikit-learn, with the same theta in the same order
        for one in asked.hyperparameters:
            if not one.fixed:
                yield from ((one.name, entry) for entry in range(one.n_elements))
        return
    for full in kernel.parameter_names:
        name, _, place = full.rpartition("[")
        indexed = full.endswith("]") and place[:-1].isdigit()
        yield (name, int(place[:-1])) if indexed else (full, 0)


def _value_bounds(kernel: Kernel) -> list[tuple[float, float]]:
    """Ends of every entry of theta in the units of the parameter, as they were written."""
    found: list[tuple[float, float]] = []
    for part in kernel._parts():
        if part.declared is None:
            found.extend(_value_bounds(part.value))
        elif part.name not in kernel.fixed:
            found.extend((float(low), float(high)) for low, high in kernel.own_ends(part))
    return found


def warn_of_repeats(repeats: Any, alpha: Any) -> bool:
    """Warn where y differs at points that are equal though nothing in the model lets it; whether it did."""
    if repeats is None or (worst := repeats.worst()) is None:
        return False
    i, j = worst
    n, u = len(repeats.which), len(repeats.points.Y)
    least = f"alpha={alpha:.3g}" if np.ndim(alpha) == 0 else "their alpha is next to 0"
    warnings.warn(
        f"Rows {i} and {j} of X are equal, y differs there, and the model has no noise that allows it ({least}): the "
        f"fit goes through the mean of y at each of the {u} places that the {n} rows have, as if it were certain. "
        "Try: kernel + gg.kernels.White(…), alpha=<variance of the noise>, or noise='learned'.",
        ModelWarning,
        stacklevel=4,
    )
    return True


def warn_of_noise(kernel: Kernel, X: Any, noise: FloatArray, *, rows: int = 200) -> None:
    """Warn where a kernel without a noise term has fitted every point on its own: the answer elsewhere is the prior."""
    from gramgraph.gp.repeats import has_noise
    from gramgraph.kernels.inputs import count, take

    if count(X) < 3 or has_noise(kernel):
        return
    n = min(count(X), rows)
    K = kernel.gram(take(X, slice(0, n)))
    scale = float(np.diagonal(K).max(initial=0.0))
    np.fill_diagonal(K, 0.0)
    if scale > 0.0 and np.abs(K).max() < 1e-3 * scale and float(noise.max(initial=0.0)) < 1e-3 * scale:
        warnings.warn(
            f"At the learned parameters, {kernel}, no two training points are correlated: every y is fitted on its own "
            "and predictions elsewhere are the prior mean. This is how a kernel without a noise term meets noisy data. "
            "Try: kernel + gg.kernels.White(…), alpha=<variance of the noise>, or noise='learned'.",
            ConvergenceWarning,
            stacklevel=4,
        )
