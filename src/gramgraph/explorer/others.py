"""Sequences and processes on the page: state ribbons that fill step by step, and a Gaussian process to click on."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np

from gramgraph.exceptions import GramGraphError, ModelError, OptionError
from gramgraph.explorer.waiting import Waiting, always

#: Steps of a sequence that are shown, and of one that is drawn from the model.
MOST_STEPS, DRAWN_STEPS = 2000, 60
GRID, MOST_POINTS = 161, 500


def other_view(model: Any, data: Any = None, title: str | None = None, source: str | None = None, **_: Any) -> Any:
    """The view of a sequence model or a process."""
    from gramgraph.estimators import GaussianProcessRegressor
    from gramgraph.sequences import DynamicBayesianNetwork, KalmanFilter
    from gramgraph.sequences.hmm import HiddenMarkovModel

    title = title or type(model).__name__
    if isinstance(model, HiddenMarkovModel):
        return SequenceView(_hidden_markov(model, data), title)
    if isinstance(model, KalmanFilter):
        return SequenceView(_kalman(model, data), title)
    if isinstance(model, DynamicBayesianNetwork):
        return SequenceView(_dynamic(model, data), title)
    if isinstance(model, GaussianProcessRegressor):
        return ProcessView(model, title)
    raise ModelError(
        f"{type(model).__name__} cannot be explored: networks, hidden Markov models, Kalman filters, dynamic Bayesian "
        "networks and Gaussian processes can"
    )


class _View:
    """Answers requests by name."""

    kind = ""
    actions: dict[str, Callable[[dict[str, Any]], dict[str, Any]]]

    def request(self, name: str, body: dict[str, Any], waiting: Waiting = always) -> dict[str, Any]:
        """The answer to one question of the page."""
        action = self.actions.get(name)
        if action is None:
            raise KeyError(name)
        try:
            return action(body)
        except GramGraphError as error:
            return {"error": str(error)}


# ------------------------------------------------------------------------------------------------------- sequences

#: What is observed (texts or numbers by step), and steps → ribbons and bands after so many steps.
Sequence = tuple[dict[str, Any], Callable[[int], dict[str, Any]]]


def _plain(values: Any) -> list[Any]:
    """Rows as lists of plain numbers."""
    found: list[Any] = np.asarray(values).tolist()
    return found


def _hidden_markov(model: Any, data: Any) -> Sequence:
    X = model.sample(DRAWN_STEPS, random_state=0)[0] if data is None else data
    X = np.asarray(X)[:MOST_STEPS]
    k = len(model.startprob_)
    rows = X.reshape(len(X), -1)
    numeric = np.issubdtype(rows.dtype, np.floating)
    about = {
        "steps": len(X),
        "ribbons": [{"name": "state", "states": [str(i) for i in range(k)]}],
        "observed": _plain(rows[:, 0]) if numeric else [str(v) for v in rows[:, 0].tolist()],
        "numeric": bool(numeric),
        "words": "hidden Markov model",
    }

    def after(t: int) -> dict[str, Any]:
        part = X[:t]
        score, path = model.decode(part)
        return {
            "filtered": [_plain(model.filter_proba(part))],
            "smoothed": [_plain(model.predict_proba(part))],
            "path": [_plain(path)],
            "log_evidence": float(model.score(part)),
        }

    return about, after


def _kalman(model: Any, data: Any) -> Sequence:
    y = np.asarray(model.sample(DRAWN_STEPS, random_state=0)[0] if data is None else data, dtype=np.float64)
    y = y.reshape(len(y), -1)[:MOST_STEPS]
    size = model.filter(y[:1]).means.shape[1]
    about = {
        "steps": len(y),
        "bands": [f"state {i}" for i in range(size)],
        "observed": [float(v) if np.isfinite(v) else None for v in y[:, 0]],
        "numeric": True,
        "words": "Kalman filter",
    }

    def bands(found: Any) -> list[Any]:
        means, covs = np.asarray(found.means), np.asarray(found.covariances)
        sd = np.sqrt(np.maximum(np.diagonal(covs, axis1=1, axis2=2), 0.0))
        return [[_plain(means[:, i]), _plain(sd[:, i])] for i in range(size)]

    def after(t: int) -> dict[str, Any]:
        part = y[:t]
        return {
            "filtered": bands(model.filter(part)),
            "smoothed": bands(model.smooth(part)),
            "log_evidence": float(model.log_likelihood(part)),
        }

    return about, after


def _dynamic(model: Any, data: Any) -> Sequence:
    if data is None:
        drawn = model.sample(DRAWN_STEPS, random_state=0)
        names = [name for name in drawn.columns if name in model.variables]
        shown = [name for name in names if not model.step.children(name)] if hasattr(model, "step") else names
        data = drawn[shown[-1:] or names[-1:]]
    import pandas as pd

    rows = pd.DataFrame(data).iloc[:MOST_STEPS]
    column = next((name for name in rows.columns if name in model.variables), None)
    hidden = [name for name in model.variables if name not in rows.columns] or list(model.variables)
    about = {
        "steps": len(rows),
        "ribbons": [{"name": name, "states": list(model.first.states(name))} for name in hidden],
        "observed": [] if column is None else [str(v) for v in rows[column]],
        "numeric": False,
        "words": "dynamic Bayesian network",
    }

    def after(t: int) -> dict[str, Any]:
        part = rows.iloc[:t]
        filtered, smoothed = model.filter(part), model.smooth(part)
        return {
            "filtered": [_plain(filtered[name].probabilities) for name in hidden],
            "smoothed": [_plain(smoothed[name].probabilities) for name in hidden],
            "log_evidence": float(model.log_likelihood(part)),
        }

    return about, after


class SequenceView(_View):
    """A sequence, and what was known about the hidden states after each of its steps."""

    kind = "sequence"

    def __init__(self, sequence: Sequence, title: str) -> None:
        self.about, self._after = sequence
        self.title = title
        self.actions = {"model": self.describe, "ask": self.ask}

    def describe(self, body: dict[str, Any]) -> dict[str, Any]:
        """Lengths, states and observations."""
        return {"kind": self.kind, "title": self.title, "can": [], "cannot": {}, **self.about}

    def ask(self, body: dict[str, Any]) -> dict[str, Any]:
        """What is known after `t` steps: filtered as they came, smoothed with all of them."""
        t = body.get("t")
        if not isinstance(t, int) or isinstance(t, bool) or not 1 <= t <= self.about["steps"]:
            raise OptionError(f"t is a step from 1 to {self.about['steps']}, not {t!r}")
        return {"t": t, **self._after(t)}


# ------------------------------------------------------------------------------------------------------- processes


class ProcessView(_View):
    """A Gaussian process of one input: points are clicked, parameters stand on sliders, the evidence is told."""

    kind = "process"

    def __init__(self, model: Any, title: str) -> None:
        from gramgraph.kernels import RBF

        self.model, self.title = model, title
        fitted = hasattr(model, "X_train_")
        self.kernel = getattr(model, "kernel_", None) or model.kernel or 1.0 * RBF(1.0)
        X = np.asarray(model.X_train_, dtype=np.float64).reshape(-1, 1) if fitted else np.zeros((0, 1))
        if fitted and np.ndim(model.X_train_) > 1 and np.shape(model.X_train_)[1] != 1:
            raise ModelError("a process of one input can be explored; this one has more")
        y = _targets(model) if fitted else np.zeros(0)
        order = np.argsort(X[:, 0], kind="stable")[:MOST_POINTS]
        self.points = [[float(X[i, 0]), float(y[i])] for i in order]
        self.actions = {"model": self.describe, "ask": self.ask}

    def _ranges(self) -> tuple[list[float], list[float]]:
        if not self.points:
            return [-5.0, 5.0], [-3.0, 3.0]
        x, y = np.array(self.points).T
        wide, high = float(np.ptp(x)) or 1.0, float(np.ptp(y)) or 1.0
        return [float(x.min() - 0.15 * wide), float(x.max() + 0.15 * wide)], [
            float(y.min() - 0.6 * high),
            float(y.max() + 0.6 * high),
        ]

    def describe(self, body: dict[str, Any]) -> dict[str, Any]:
        """The points, the parameters with their ranges, and what is drawn."""
        xs, ys = self._ranges()
        theta = np.asarray(self.kernel.theta, dtype=np.float64)
        bounds = np.clip(np.asarray(self.kernel.bounds, dtype=np.float64), -10.0, 10.0)
        labels = _short_names(list(self.kernel.parameter_names))
        sliders = [
            {
                "name": name,
                "label": label,
                "theta": float(t),
                "low": float(max(low, t - 4.0)),
                "high": float(min(high, t + 4.0)),
            }
            for name, label, t, (low, high) in zip(self.kernel.parameter_names, labels, theta, bounds, strict=False)
        ]
        return {
            "kind": self.kind,
            "title": self.title,
            "can": [],
            "cannot": {},
            "points": self.points,
            "sliders": sliders,
            "x": xs,
            "y": ys,
            "kernel": str(self.kernel),
        }

    def ask(self, body: dict[str, Any]) -> dict[str, Any]:
        """Mean, band and draws on the grid, the evidence, and mean and deviation at single places."""
        from gramgraph.estimators import GaussianProcessRegressor

        points = _pairs(body.get("points", self.points))
        theta = body.get("theta")
        kernel = self.kernel if theta is None else self.kernel.with_theta(_numbers(theta, len(self.kernel.theta)))
        low, high = self._ranges()[0]
        grid = np.linspace(low, high, GRID)
        at = _numbers(body.get("at") or [], None)
        alpha = self.model.alpha if np.ndim(self.model.alpha) == 0 else float(np.mean(self.model.alpha))
        places = np.concatenate([grid, at])[:, None]
        if points:
            x, y = np.array(points).T
            made = GaussianProcessRegressor(
                kernel, alpha=alpha, optimizer=None, normalize_y=self.model.normalize_y, mean=self.model.mean
            ).fit(x[:, None], y)
            mean, sd = made.predict(places, return_std=True)
            cov, scale = made.predict(grid[:, None], return_cov=True)[1], float(made.target_scale[1][0])
            evidence: float | None = float(made.log_marginal_likelihood(kernel.theta))
        else:
            mean, sd = np.zeros(len(places)), np.sqrt(np.asarray(kernel.diag(places), dtype=np.float64))
            cov, scale = kernel.gram(grid[:, None]), 1.0
            evidence = None
        return {
            "grid": _plain(grid),
            "mean": _plain(np.asarray(mean)[:GRID]),
            "sd": _plain(np.asarray(sd)[:GRID]),
            "draws": _plain(np.asarray(mean)[:GRID] + _functions(kernel, grid[:, None], np.asarray(cov), scale)),
            "log_evidence": evidence,
            "at": [[float(m), float(s)] for m, s in zip(mean[GRID:], sd[GRID:], strict=True)],
            "kernel": str(kernel),
        }


def _short_names(names: list[str]) -> list[str]:
    """The last part of each name, numbered where several parameters share it.

    >>> _short_names(["terms[0].variance", "terms[0].base.length_scale", "terms[1].variance"])
    ['variance 1', 'length scale', 'variance 2']
    """
    ends = [name.rpartition(".")[2].replace("_", " ") for name in names]
    return [f"{end} {ends[: i + 1].count(end)}" if ends.count(end) > 1 else end for i, end in enumerate(ends)]


def _functions(kernel: Any, grid: Any, cov: Any, scale: float) -> Any:
    """Three deviations from the mean, drawn of the function alone: a White part is noise of what is observed of it."""
    noise = np.asarray(kernel.diag(grid)) - np.diag(np.asarray(kernel.gram(grid, grid.copy())))
    left = cov - np.diag(noise * scale**2)
    normal = np.random.default_rng(0).standard_normal((GRID, 3))
    top = float(np.abs(np.diag(cov)).max()) + 1e-300
    for share in (1e-9, 1e-7, 1e-5, 1e-3):  # rounding may leave something below zero
        with contextlib.suppress(np.linalg.LinAlgError):
            return (np.linalg.cholesky(left + share * top * np.eye(GRID)) @ normal).T
    return np.zeros((3, GRID))


def _targets(model: Any) -> Any:
    """The observed values, on the scale that they were given in."""
    center, scale = model.target_scale
    return np.asarray(model.y_train_, dtype=np.float64).reshape(-1) * float(scale[0]) + float(center[0])


def _numbers(values: Any, count: int | None) -> Any:
    if not isinstance(values, list) or (count is not None and len(values) != count):
        raise OptionError(f"a list of {count if count is not None else 'several'} numbers is needed")
    try:
        found = np.array(values, dtype=np.float64).reshape(-1)
    except (TypeError, ValueError):
        raise OptionError("a list of numbers is needed") from None
    if not np.isfinite(found).all() or len(found) > 10_000:
        raise OptionError("a list of finite numbers is needed")
    return found


def _pairs(points: Any) -> list[list[float]]:
    if not isinstance(points, list) or len(points) > MOST_POINTS:
        raise OptionError(f"up to {MOST_POINTS} points can be shown")
    return [_numbers(point, 2).tolist() for point in points]
