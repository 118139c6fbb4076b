"""Pictures of Gaussian processes: bands with draws, the terms of the kernel, profiles of the evidence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gramgraph.exceptions import ModelError, did_you_mean, listing
from gramgraph.plot.axes import axes, plain

_BLUE, _AMBER, _GRAY = "#4c78a8", "#dd9a27", "#7b8794"


def _grid(model: Any, span: tuple[float, float] | None, points: int) -> Any:
    X = np.asarray(getattr(model, "X_train_", np.zeros((0, 1))), dtype=float)
    if X.ndim != 2 or X.shape[1] != 1:
        raise ModelError(f"this picture is of a process on the line; the points have {X.shape[-1]} columns.")
    if span is None:
        low, high = (float(X.min()), float(X.max())) if len(X) else (-3.0, 3.0)
        margin = 0.05 * (high - low) or 1.0
        span = (low - margin, high + margin)
    return np.linspace(*span, points)[:, None]


def plot_process(
    model: Any,
    *,
    span: tuple[float, float] | None = None,
    draws: int = 3,
    deviations: float = 2.0,
    points: int = 300,
    random_state: Any = 0,
    data: bool = True,
    ax: Any = None,
) -> Any:
    """A fitted `GaussianProcessRegressor` (or `BayesianLinearRegression`) on one column and one output.

    The mean, a band of ± `deviations` standard deviations, some draws, and the data (in the units of y).

    Parameters
    ----------
    model : the fitted model.
    span : (left, right) end of the axis; None takes that of the data.
    draws : how many functions are drawn.
    deviations : width of the band in standard deviations, or several.
    points : number of places where curves are computed.
    random_state : seed, or a generator.
    data : whether the training points are shown.
    ax : axes to draw on; None makes new ones.

    Examples
    --------
    >>> import gramgraph as gg
    >>> gp = gg.GaussianProcessRegressor(gg.kernels.RBF(), alpha=0.1).fit([[0.0], [1.0]], [0.0, 1.0])
    >>> ax = plot_process(gp)  # doctest: +SKIP
    """
    grid = _grid(model, span, points)
    mean, std = model.predict(grid, return_std=True)
    if mean.ndim != 1:
        raise ModelError(f"plot_process draws one output; the model has {mean.shape[1]}.")
    ax = axes(ax, size=(5.5, 3.6))
    band = f"± {deviations:g} standard deviations"
    x = grid[:, 0]
    ax.fill_between(x, mean - deviations * std, mean + deviations * std, color=_BLUE, alpha=0.18, lw=0, label=band)
    if draws:
        paths = model.sample_y(grid, draws, random_state=random_state)
        ax.plot(x, paths, color=_BLUE, lw=0.6, alpha=0.6)
    ax.plot(x, mean, color=_BLUE, label="mean")
    if data and hasattr(model, "X_train_"):
        center, scale = model.target_scale
        y = np.asarray(model.y_train_) * scale[0] + center[0]
        ax.scatter(model.X_train_[:, 0], y, s=9, color=_GRAY, zorder=3, label="data")
    ax.legend(fontsize=8, frameon=False)
    return ax


def plot_components(
    model: Any,
    *,
    span: tuple[float, float] | None = None,
    spans: Mapping[int, tuple[float, float]] | None = None,
    deviations: float = 2.0,
    points: int = 300,
    size: Any = None,
) -> Any:
    """The mean function and every term of a sum kernel given the data, one below the other; returns their axes.

    `spans` gives panels (by number) an axis of their own: one week of a weekly term says more than a comb of them.

    Parameters
    ----------
    model : the fitted model.
    span : (left, right) end of the axis; None takes that of the data.
    spans : (left, right) ends of single panels, by their number.
    deviations : width of the band in standard deviations, or several.
    points : number of places where curves are computed.
    size : (width, height) of a panel in inches.

    Examples
    --------
    >>> import gramgraph as gg
    >>> kernel = gg.kernels.RBF() + gg.kernels.Periodic() + gg.kernels.White(0.1)
    >>> gp = gg.GaussianProcessRegressor(kernel, approx="exact").fit([[0.0], [1.0]], [0.0, 1.0])
    >>> panels = plot_components(gp)  # doctest: +SKIP
    """
    from gramgraph.gp.components import components

    grid = _grid(model, span, points)
    found = components(model.posterior_, grid)
    if not found:
        raise ModelError("the kernel has no term beside noise.")
    first = axes(None, size=size or (5.5, 1.7 * len(found)))
    figure = first.figure
    first.remove()
    own = dict(spans or {})
    odd = [i for i in own if not -len(found) <= i < len(found)]
    if odd:
        raise ModelError(f"spans: there is no panel {odd[0]}; there are {len(found)}.")
    own = {i % len(found): ends for i, ends in own.items()}
    panels = figure.subplots(len(found), 1, sharex=not own, squeeze=False)
    scale = float(model.target_scale[1][0])
    for i, (ax, whole) in enumerate(zip(panels[:, 0], found, strict=True)):
        near = _grid(model, own[i], points) if i in own else grid
        part = components(model.posterior_, near)[i] if i in own else whole
        x = near[:, 0]
        mean, wide = scale * part.mean[:, 0], deviations * scale * np.sqrt(part.var)
        ax.fill_between(x, mean - wide, mean + wide, color=_BLUE, alpha=0.18, lw=0)
        ax.plot(x, mean, color=_BLUE)
        ax.set_title(plain(part.name), fontsize=8, loc="left")
    return panels[:, 0]


def plot_evidence(
    model: Any,
    parameters: str | tuple[str, str] | None = None,
    *,
    width: float = 2.0,
    points: int = 40,
    ax: Any = None,
) -> Any:
    """log p(y) around the learned hyper-parameters: a curve over one of them, contours over two; the others are kept.

    Parameters are named as in `model.kernel_.parameter_names`, or by the end of such a name; the first by default.
    `width` is how far to go to each side on the scale of theta (logarithms).

    Parameters
    ----------
    model : the fitted model.
    parameters : one or two names of parameters; None for the first.
    width : how far to go to each side, on the scale of theta.
    points : number of places where curves are computed.
    ax : axes to draw on; None makes new ones.

    Examples
    --------
    >>> import gramgraph as gg
    >>> gp = gg.GaussianProcessRegressor(gg.kernels.RBF(), alpha=0.1).fit([[0.0], [1.0]], [0.0, 1.0])
    >>> ax = plot_evidence(gp, "length_scale")  # doctest: +SKIP
    """
    names = model.kernel_.parameter_names
    if not names:
        raise ModelError("the kernel has no free parameters.")
    chosen = (names[0],) if parameters is None else (parameters,) if isinstance(parameters, str) else tuple(parameters)
    if not 1 <= len(chosen) <= 2:
        raise ModelError(f"plot_evidence draws one or two parameters, not {len(chosen)}.")
    at = [_position(name, names) for name in chosen]
    theta = model.kernel_.theta
    sides = [np.linspace(theta[i] - width, theta[i] + width, points) for i in at]
    ax = axes(ax, size=(5.0, 3.6))

    def value(*moved: float) -> float:
        new = theta.copy()
        new[at] = moved
        return float(model.log_marginal_likelihood(new))

    ax.set_xscale("log")
    ax.set_xlabel(plain(names[at[0]]))
    if len(at) == 1:
        ax.plot(np.exp(sides[0]), [value(v) for v in sides[0]], color=_BLUE)
        ax.axvline(np.exp(theta[at[0]]), color=_AMBER, lw=1)
        ax.set_ylabel("log evidence")
        return ax
    Z = np.array([[value(a, b) for a in sides[0]] for b in sides[1]])
    levels = Z.max() - np.array([30.0, 20.0, 12.0, 8.0, 5.0, 3.0, 2.0, 1.0, 0.25])
    contours = ax.contour(np.exp(sides[0]), np.exp(sides[1]), Z, levels=levels, cmap="viridis", linewidths=1)
    ax.clabel(contours, fontsize=8)
    ax.plot(np.exp(theta[at[0]]), np.exp(theta[at[1]]), "+", color=_AMBER, ms=10)
    ax.set_yscale("log")
    ax.set_ylabel(plain(names[at[1]]))
    return ax


def _position(name: str, names: tuple[str, ...]) -> int:
    found = [i for i, full in enumerate(names) if full == name] or [
        i for i, full in enumerate(names) if full.endswith("." + name)
    ]
    if not found:
        raise ModelError(f"{name!r} is not a free parameter. Parameters: {listing(names)}.{did_you_mean(name, names)}")
    return found[0]
