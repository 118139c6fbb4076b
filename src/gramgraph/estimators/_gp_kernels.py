"""Kernels of Gaussian-process estimators: ours, names, and scikit-learn's own kernel objects."""

from __future__ import annotations

from typing import Any

import numpy as np

from gramgraph.estimators._base import is_kernel, resolve_kernel
from gramgraph.estimators._gp_scikit_kernels import from_scikit_learn
from gramgraph.exceptions import ModelError
from gramgraph.kernels import RBF, Kernel
from gramgraph.typing import FloatArray

__all__ = ["as_process_kernel", "from_scikit_learn"]


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
        shape = np.shape(X) if isinstance(X, np.ndarray) else ()
        return from_scikit_learn(kernel, shape[1] if len(shape) == 2 else None)
    else:
        raise ModelError(
            f"kernel must be a kernel value such as 2 * gg.kernels.RBF() + gg.kernels.White(0.1), a name, a kernel of "
            f"scikit-learn, or None; it is {kernel!r}."
        )
    return found, found.bounds
