"""Pictures of kernels: the function, draws of the process that has it, projections by kernel PCA."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gramgraph.exceptions import ModelError
from gramgraph.plot.axes import axes, plain
from gramgraph.typing import RandomState

if TYPE_CHECKING:
    from gramgraph.estimators.pca import KernelPCA
    from gramgraph.kernels.base import Kernel

_COLORS = ("#4c78a8", "#dd9a27", "#54a24b", "#b279a2", "#e45756", "#7b8794")


def plot_kernel(
    kernels: Kernel | Sequence[Kernel], *, at: float = 0.0, span: tuple[float, float] = (-3.0, 3.0), ax: Any = None
) -> Any:
    """The curves x ↦ k(at, x) of one or several kernels on the line, labeled by their formulas.

    Parameters
    ----------
    kernels : one, or several.
    at : the fixed point.
    span : (left, right) end of the axis; None takes that of the data.
    ax : axes to draw on; None makes new ones.

    Examples
    --------
    >>> from gramgraph.kernels import RBF
    >>> ax = plot_kernel(RBF(0.5))  # doctest: +SKIP
    """
    ax = axes(ax, size=(5.0, 3.4))
    x = np.linspace(*span, 401)[:, None]
    for i, kernel in enumerate(kernels if isinstance(kernels, (list, tuple)) else [kernels]):
        ax.plot(x[:, 0], kernel.gram([[at]], x)[0], color=_COLORS[i % len(_COLORS)], label=plain(str(kernel)))
    ax.set_xlabel("x")
    ax.set_ylabel(f"k({at:g}, x)")
    ax.legend(frameon=False, fontsize=8)
    return _tidy(ax)


def plot_kernel_draws(
    kernel: Kernel,
    *,
    n_draws: int = 4,
    span: tuple[float, float] = (-3.0, 3.0),
    points: int = 200,
    random_state: RandomState = None,
    ax: Any = None,
) -> Any:
    """Draws of the Gaussian process with mean zero and this kernel, and the band of two deviations around zero.

    Parameters
    ----------
    kernel : the kernel.
    n_draws : how many functions.
    span : (left, right) end of the axis; None takes that of the data.
    points : number of places where curves are computed.
    random_state : seed, or a generator.
    ax : axes to draw on; None makes new ones.

    Examples
    --------
    >>> from gramgraph.kernels import Matern
    >>> ax = plot_kernel_draws(Matern(nu=1.5), random_state=0)  # doctest: +SKIP
    """
    from gramgraph.linalg.base import sample
    from gramgraph.linalg.dense import Dense

    if n_draws < 1 or points < 2:
        raise ModelError(f"n_draws must be at least 1 and points at least 2; they are {n_draws} and {points}.")
    ax = axes(ax, size=(5.0, 3.4))
    x = np.linspace(*span, points)[:, None]
    K = kernel.gram(x)
    deviation = 2.0 * np.sqrt(np.maximum(np.diagonal(K), 0.0))
    for i, draw in enumerate(sample(Dense(K).factor(), n_draws, random_state=random_state)):
        ax.plot(x[:, 0], draw, color=_COLORS[i % len(_COLORS)], linewidth=1.2)
    ax.fill_between(x[:, 0], -deviation, deviation, color="#7b8794", alpha=0.15, linewidth=0)
    ax.set_title(plain(str(kernel)), fontsize=9)
    ax.set_xlabel("x")
    return _tidy(ax)


def plot_kernel_pca(
    model: KernelPCA, X: Any = None, *, labels: Any = None, components: tuple[int, int] = (0, 1), ax: Any = None
) -> Any:
    """Points along two components of a fitted `KernelPCA`, colored by label; the training points without X.

    Parameters
    ----------
    model : a fitted `KernelPCA`.
    X : points to draw; None for the training points.
    labels : one for each, or None.
    components : which two.
    ax : axes to draw on; None makes new ones.

    Examples
    --------
    >>> from gramgraph.estimators import KernelPCA
    >>> ax = plot_kernel_pca(KernelPCA(2).fit([[0.0], [1.0], [5.0]]))  # doctest: +SKIP
    """
    found = len(model.eigenvalues_)
    if not all(0 <= c < found for c in components):
        raise ModelError(f"components must be two numbers below {found}, as many as were fitted; got {components}.")
    Z = model.eigenvectors_ * np.sqrt(model.eigenvalues_) if X is None else np.asarray(model.transform(X))
    groups = np.zeros(len(Z), dtype=int) if labels is None else np.asarray(labels)
    if groups.shape != (len(Z),):
        raise ModelError(f"labels must have one entry per point, {len(Z)}; their shape is {groups.shape}.")
    ax = axes(ax, size=(5.0, 3.4))
    for i, label in enumerate(np.unique(groups)):
        here = groups == label
        first, second = (Z[here, c] for c in components)
        ax.scatter(first, second, s=14, color=_COLORS[i % len(_COLORS)], label=plain(str(label)))
    for axis, c in zip(("x", "y"), components, strict=True):
        share = model.explained_variance_ratio_[c]
        getattr(ax, f"set_{axis}label")(f"component {c + 1} ({share:.1%} of the variance)")
    if labels is not None:
        ax.legend(frameon=False, fontsize=8)
    return _tidy(ax)


def _tidy(ax: Any) -> Any:
    ax.spines[["top", "right"]].set_visible(False)
    return ax
