"""Pictures of sequences: ribbons of states, posterior heat maps, forecasts with intervals, clouds of particles."""

from __future__ import annotations

from typing import Any

import numpy as np

from gramgraph.exceptions import ModelError
from gramgraph.plot.axes import axes, plain

_BLUE, _AMBER, _GRAY = "#4c78a8", "#dd9a27", "#7b8794"
#: Colors of states, which repeat after the eighth.
_STATES = ("#4c78a8", "#dd9a27", "#54a24b", "#b279a2", "#e45756", "#72b7b2", "#9d755d", "#bab0ac")


def _one(X: Any) -> Any:
    """The sequence as an array with a row a time."""
    array = np.asarray(list(X) if isinstance(X, str) else X)
    return array[:, None] if array.ndim == 1 else array


def _spans(ax: Any, states: Any, *, low: float = 0.0, high: float = 1.0, alpha: float = 0.25) -> None:
    """Background by state: one rectangle a stay, between two heights of the axes."""
    states = np.asarray(states)
    cuts = np.concatenate(([0], np.flatnonzero(np.diff(states)) + 1, [len(states)]))
    for a, b in zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True):
        color = _STATES[int(states[a]) % len(_STATES)]
        ax.axvspan(a - 0.5, b - 0.5, low, high, color=color, alpha=alpha, lw=0)


def _state_names(labels: Any, K: int) -> list[str]:
    names = [str(k) for k in range(K)] if labels is None else [plain(str(label), 24) for label in labels]
    if len(names) != K:
        raise ModelError(f"labels has {len(names)} names, but the model {K} states.")
    return names


def plot_states(model: Any, X: Any, *, truth: Any = None, labels: Any = None, ax: Any = None) -> Any:
    """The most probable states of one sequence as colored ribbons behind its observations.

    Numbers are drawn as lines, symbols as steps. With `truth`, the true states stand in a second ribbon below.

    Parameters
    ----------
    model : a fitted hidden Markov model.
    X : one sequence.
    truth : what was true, where it is known.
    labels : of the states.
    ax : axes to draw on; None makes new ones.

    Examples
    --------
    >>> import gramgraph as gg
    >>> model = gg.GaussianHMM(2, random_state=0).fit([[0.0], [0.1], [5.0], [5.1]])
    >>> ax = plot_states(model, [[0.0], [0.1], [5.0], [5.1]])  # doctest: +SKIP
    """
    from matplotlib.patches import Patch

    states = model.predict(X)
    names = _state_names(labels, int(model.n_states))
    ax = axes(ax, size=(7.0, 2.8))
    bottom = 0.0 if truth is None else 0.08
    _spans(ax, states, low=bottom)
    if truth is not None:
        if len(truth) != len(states):
            raise ModelError(f"truth has {len(truth)} states, but X {len(states)} rows.")
        _spans(ax, truth, high=0.06, alpha=0.9)
    values = _one(X)
    t = np.arange(len(values))
    for column in values.T:
        if values.dtype.kind == "f":
            ax.plot(t, column, color="black", lw=0.8)
        else:
            shown = column.astype(str) if values.dtype.kind not in "iub" else column
            ax.plot(t, shown, ".", color="black", ms=3)
    handles = [Patch(color=_STATES[k % len(_STATES)], alpha=0.5, label=name) for k, name in enumerate(names)]
    ax.legend(handles=handles, fontsize=8, frameon=False, ncols=min(len(names), 6), loc="upper right")
    ax.set(xlim=(-0.5, len(t) - 0.5), xlabel="time")
    return ax


def plot_posteriors(model: Any, X: Any, *, labels: Any = None, ax: Any = None) -> Any:
    """p(state | the whole sequence) as a heat map: time to the right, a row a state.

    Parameters
    ----------
    model : a fitted hidden Markov model.
    X : one sequence.
    labels : of the states.
    ax : axes to draw on; None makes new ones.

    Examples
    --------
    >>> import gramgraph as gg
    >>> model = gg.GaussianHMM(2, random_state=0).fit([[0.0], [0.1], [5.0], [5.1]])
    >>> ax = plot_posteriors(model, [[0.0], [0.1], [5.0], [5.1]])  # doctest: +SKIP
    """
    p = model.predict_proba(X)
    K = p.shape[1]
    names = _state_names(labels, K)
    ax = axes(ax, size=(7.0, 0.9 + 0.35 * K))
    image = ax.imshow(p.T, aspect="auto", interpolation="nearest", cmap="Blues", vmin=0.0, vmax=1.0, origin="lower")
    ax.figure.colorbar(image, ax=ax, label="probability")
    ax.set(xlabel="time", ylabel="state", yticks=range(K), yticklabels=names)
    return ax


def plot_forecast(
    model: Any,
    y: Any,
    steps: int = 20,
    *,
    level: float = 0.95,
    last: int | None = None,
    output: int = 0,
    ax: Any = None,
) -> Any:
    """The observations, their smoothed level and the forecast of a `KalmanFilter` (or structural model) with intervals.

    `last` shows only that many observations; `output` chooses the column of y.

    Parameters
    ----------
    model : the fitted model.
    y : the observations.
    steps : how far ahead.
    level : share that an interval holds.
    last : how many observations are shown; None for all.
    output : which column of y.
    ax : axes to draw on; None makes new ones.

    Examples
    --------
    >>> import gramgraph as gg
    >>> ax = plot_forecast(gg.KalmanFilter(1.0, 1.0, 1.0, 1.0, 0.0, 1.0), [1.0, 2.0, 1.5], 5)  # doctest: +SKIP
    """
    values = np.asarray(_one(y), dtype=np.float64)
    if not 0 <= output < values.shape[1]:
        raise ModelError(f"output must be a column of y, 0 … {values.shape[1] - 1}; it is {output!r}.")
    found = model.forecast(y, steps, level=level)
    T = len(values)
    first = 0 if last is None else max(T - last, 0)
    ax = axes(ax, size=(7.0, 3.2))
    past, future = np.arange(first, T), np.arange(T, T + steps)
    ax.plot(past, values[first:, output], ".", color=_GRAY, ms=3, label="observed")
    ax.plot(future, found.means[:, output], color=_BLUE, label="forecast")
    label = f"{100 * level:g} % interval"
    ax.fill_between(future, found.lower[:, output], found.upper[:, output], color=_BLUE, alpha=0.2, lw=0, label=label)
    ax.axvline(T - 0.5, color=_GRAY, lw=0.6, ls=":")
    ax.legend(fontsize=8, frameon=False, loc="upper left")
    ax.set_xlabel("time")
    return ax


def plot_particles(states: Any, *, component: int = 0, truth: Any = None, most: int = 200, ax: Any = None) -> Any:
    """The cloud of a particle filter over time: `model.filter(y, keep=True)`, one number of the state.

    Darker dots weigh more; at most `most` particles of a step are drawn. The line is the mean.

    Parameters
    ----------
    states : `model.filter(y, keep=True)`.
    component : which number of the state.
    truth : what was true, where it is known.
    most : particles of a step that are drawn, at most.
    ax : axes to draw on; None makes new ones.

    Examples
    --------
    >>> import numpy as np, gramgraph as gg
    >>> one = gg.sequences.ParticleFilter.gaussian(
    ...     lambda x: x, lambda x: x, Q=[[1.0]], R=[[1.0]], m0=[0.0], P0=[[1.0]], random_state=0
    ... )  # doctest: +SKIP
    >>> ax = plot_particles(one.filter([0.5, 1.0, 0.8], keep=True))  # doctest: +SKIP
    """
    if states.particles is None:
        raise ModelError("the particles were not kept: ask filter(y, keep=True).")
    T, n, s = states.particles.shape
    if not 0 <= component < s:
        raise ModelError(f"component must be one of the {s} numbers of the state; it is {component!r}.")
    ax = axes(ax, size=(7.0, 3.2))
    some = np.linspace(0, n - 1, min(n, most)).astype(int)
    weights = states.weights[:, some]
    top = np.maximum(weights.max(axis=1, keepdims=True), 1e-300)
    t = np.repeat(np.arange(T), len(some))
    alpha = 0.05 + 0.45 * (weights / top).ravel()
    ax.scatter(t, states.particles[:, some, component].ravel(), s=4, color=_BLUE, alpha=alpha, lw=0, label="particles")
    ax.plot(np.arange(T), states.means[:, component], color=_AMBER, lw=1.2, label="mean")
    if truth is not None:
        ax.plot(np.arange(T), np.asarray(truth).reshape(T, -1)[:, 0], color="black", lw=0.8, label="truth")
    ax.legend(fontsize=8, frameon=False)
    ax.set_xlabel("time")
    return ax


def plot_casino(model: Any, rolls: Any, *, truth: Any = None, state: int = 1, ax: Any = None) -> Any:
    """The dishonest casino: p(the die is loaded | all rolls) over time.

    Where the loaded die (state number `state`) was in use, the ground is shaded, if `truth` is known; the bar on top is
    the most probable path.

    Parameters
    ----------
    model : a fitted hidden Markov model.
    rolls : the faces.
    truth : what was true, where it is known.
    state : number of the loaded die.
    ax : axes to draw on; None makes new ones.

    Examples
    --------
    >>> import gramgraph as gg
    >>> casino = gg.CategoricalHMM.from_parameters(
    ...     [0.5, 0.5], [[0.95, 0.05], [0.1, 0.9]], [[1 / 6] * 6, [0.1] * 5 + [0.5]], symbols=range(1, 7)
    ... )
    >>> rolls, dice = casino.sample(300, random_state=0)
    >>> ax = plot_casino(casino, rolls, truth=dice)  # doctest: +SKIP
    """
    p = model.predict_proba(rolls)
    if not 0 <= state < p.shape[1]:
        raise ModelError(f"state must be one of the {p.shape[1]} states; it is {state!r}.")
    path = model.predict(rolls)
    ax = axes(ax, size=(7.0, 2.6))
    t = np.arange(len(p))
    if truth is not None:
        wrong = np.asarray(truth) == state
        ax.fill_between(
            t, 0.0, wrong.astype(float), step="mid", color=_GRAY, alpha=0.3, lw=0, label="loaded die in use"
        )
    ax.plot(t, p[:, state], color=_BLUE, label="p(loaded | all rolls)")
    ax.fill_between(
        t, 1.03, np.where(path == state, 1.08, 1.03), step="mid", color=_AMBER, lw=0, label="most probable path"
    )
    ax.set(xlim=(0, len(t) - 1), ylim=(0.0, 1.1), xlabel="roll", ylabel="probability")
    ax.legend(fontsize=8, frameon=False, ncols=3, loc="upper center", bbox_to_anchor=(0.5, -0.2))
    return ax
