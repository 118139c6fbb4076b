"""Structural time series: level, trend, season and regression as pieces of a state space that are added up."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from gramgraph._validation import check_count, check_fraction
from gramgraph.exceptions import ModelError, ModelWarning
from gramgraph.sequences._state_space import series_of
from gramgraph.sequences._variances import ScalarLikelihood, Top, highest
from gramgraph.sequences.kalman import Forecast, KalmanFilter
from gramgraph.typing import FloatArray


@dataclass(frozen=True)
class Piece:
    """A part of a series: states with their move, the noises that drive them, and the row that reads them.

    `a + b` is a `StructuralModel` of both.
    """

    name: str
    noises: tuple[str, ...] = field(default=(), init=False)

    @property
    def A(self) -> FloatArray:
        """(s, s) the move."""
        raise NotImplementedError

    @property
    def driven(self) -> tuple[int, ...]:
        """The state that each noise moves."""
        return tuple(range(len(self.noises)))

    @property
    def row(self) -> FloatArray:
        """(s,) what the series reads."""
        out = np.zeros(len(self.A))
        out[0] = 1.0
        return out

    def __add__(self, other: Piece | StructuralModel) -> StructuralModel:
        return StructuralModel((self,)) + other

    def fit(self, y: Any, X: Any = None) -> StructuralModel:
        """The `StructuralModel` of this piece alone, fitted."""
        return StructuralModel((self,)).fit(y, X)


@dataclass(frozen=True)
class Level(Piece):
    """A level that walks at random: μ_t = μ_{t−1} + N(0, σ²).

    Parameters
    ----------
    name : of the piece.

    Examples
    --------
    >>> Level() + Season(12)
    StructuralModel(pieces=(Level(name='level', noises=('level',)),
                            Season(name='season', noises=('season',), period=12)))
    """

    name: str = "level"
    noises: tuple[str, ...] = field(default=("level",), init=False)

    @property
    def A(self) -> FloatArray:
        """One state."""
        return np.eye(1)


@dataclass(frozen=True)
class Trend(Piece):
    """A level with a slope, both walking: μ_t = μ_{t−1} + β_{t−1} + N(0, σ²), β_t = β_{t−1} + N(0, τ²).

    `smooth=True` leaves the first noise out: the slope alone moves, an integrated random walk.

    Parameters
    ----------
    name : of the piece.
    smooth : whether the slope alone moves.

    Examples
    --------
    >>> Trend(smooth=True) + Season(12)
    StructuralModel(pieces=(Trend(name='trend', noises=('slope',), smooth=True),
                            Season(name='season', noises=('season',), period=12)))
    """

    name: str = "trend"
    smooth: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "noises", ("slope",) if self.smooth else ("level", "slope"))

    @property
    def A(self) -> FloatArray:
        """Level and slope."""
        return np.array([[1.0, 1.0], [0.0, 1.0]])

    @property
    def driven(self) -> tuple[int, ...]:
        """The slope alone, or both."""
        return (1,) if self.smooth else (0, 1)


@dataclass(frozen=True)
class Season(Piece):
    """Effects of a period that sum to zero, slowly changing: γ_t = −γ_{t−1} − … − γ_{t−period+1} + N(0, σ²).

    Parameters
    ----------
    period : steps of a turn.
    name : of the piece.

    Examples
    --------
    >>> Level() + Season(4)
    StructuralModel(pieces=(Level(name='level', noises=('level',)),
                            Season(name='season', noises=('season',), period=4)))
    """

    period: int = 12
    name: str = "season"
    noises: tuple[str, ...] = field(default=("season",), init=False)

    def __init__(self, period: int = 12, name: str = "season") -> None:
        object.__setattr__(self, "period", check_count("period", period))
        if self.period < 2:
            raise ModelError(f"a season has a period of at least 2 steps, not {period!r}.")
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "noises", ("season",))

    @property
    def A(self) -> FloatArray:
        """The last period − 1 effects."""
        n = self.period - 1
        out = np.eye(n, k=-1)
        out[0] = -1.0
        return out


@dataclass(frozen=True)
class Regression(Piece):
    """Constant coefficients of given columns: Σ_k b_k x_tk; `fit` and `forecast` then take X.

    Parameters
    ----------
    n_columns : how many columns X has.
    name : of the piece.

    Examples
    --------
    >>> Trend() + Regression(2)
    StructuralModel(pieces=(Trend(name='trend',
                                  noises=('level', 'slope'),
                                  smooth=False),
                            Regression(name='regression', noises=(), n_columns=2)))
    """

    n_columns: int = 1
    name: str = "regression"

    def __init__(self, n_columns: int = 1, name: str = "regression") -> None:
        object.__setattr__(self, "n_columns", check_count("n_columns", n_columns))
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "noises", ())

    @property
    def A(self) -> FloatArray:
        """One state per column."""
        return np.eye(self.n_columns)


class StructuralModel(BaseEstimator):
    """y_t = Σ of its pieces + N(0, σ²), with every variance learned by maximum likelihood.

    Pieces are added up: `Trend() + Season(12) + Regression(2)`. The start is unknown, and the likelihood that of Durbin
    and Koopman (`KalmanFilter(P0="diffuse")`): a shift of y changes nothing where there is a level, and c · y has c²
    times the variances. The climb begins at several patterns of variances and ends where none leads up; a variance that
    adds nothing is 0. It takes about a hundred passes of O(T s²), forward and back.

    `max_iter` limits the steps of each climb. Attributes after `fit`: `variances_` (name → variance, "noise" that of
    the observations), `filter_` (the `KalmanFilter`), `log_likelihood_`, `converged_` (whether it is a maximum).

    Parameters
    ----------
    pieces : what is added up.
    max_iter : most steps that are taken.

    Examples
    --------
    >>> t = np.arange(60)
    >>> y = 0.5 * t + np.where(t % 4 == 0, 3.0, -1.0) + 0.1 * np.cos(17.0 * t)
    >>> model = (Trend() + Season(4)).fit(y)
    >>> np.abs(model.forecast(4).means.ravel() - (0.5 * np.arange(60, 64) + [3.0, -1.0, -1.0, -1.0])).max() < 0.2
    np.True_
    >>> sorted(model.decompose())
    ['season', 'trend']
    """

    def __init__(self, pieces: tuple[Piece, ...] = (), *, max_iter: int = 200) -> None:
        self.pieces = pieces
        self.max_iter = max_iter

    def __add__(self, other: Piece | StructuralModel) -> StructuralModel:
        more = other.pieces if isinstance(other, StructuralModel) else (other,)
        return StructuralModel((*self.pieces, *more), max_iter=self.max_iter)

    # ------------------------------------------------------------------------------------------- matrices

    def _layout(self) -> tuple[FloatArray, FloatArray, list[tuple[str, int]], list[slice]]:
        """A, the row, (noise, state) pairs, and where each piece's states are."""
        pieces = tuple(self.pieces)
        if not pieces or not all(isinstance(piece, Piece) for piece in pieces):
            raise ModelError("a structural model is a sum of pieces, such as Trend() + Season(12).")
        names = [piece.name for piece in pieces]
        if len(set(names)) != len(names):
            raise ModelError(f"two pieces have one name, {names}: give them names, such as Season(7, name='week').")
        ends = np.cumsum([0, *(len(piece.A) for piece in pieces)])
        places = [slice(int(a), int(b)) for a, b in pairwise(ends)]
        noises = [
            (noise if noise == piece.name else f"{piece.name}.{noise}", place.start + state)
            for piece, place in zip(pieces, places, strict=True)
            for noise, state in zip(piece.noises, piece.driven, strict=True)
        ]
        A = np.zeros((int(ends[-1]), int(ends[-1])))
        for piece, place in zip(pieces, places, strict=True):
            A[place, place] = piece.A
        return A, np.concatenate([piece.row for piece in pieces]), noises, places

    def _rows(self, T: int, X: Any) -> FloatArray:
        """H: (1, s), or (T, 1, s) with the columns of a regression in it."""
        _, row, _, places = self._layout()
        columns = [
            (piece.n_columns, place)
            for piece, place in zip(self.pieces, places, strict=True)
            if isinstance(piece, Regression)
        ]
        if not columns:
            if X is not None:
                raise ModelError("X belongs to a Regression piece; this model has none.")
            return row[None]
        if X is None:
            raise ModelError("the model has a Regression piece: it needs X, one row per step.")
        values = np.array(X, dtype=np.float64)
        values = values[:, None] if values.ndim == 1 else values
        width = sum(n for n, _ in columns)
        if values.shape != (T, width) or not np.isfinite(values).all():
            raise ModelError(f"X must be {T} rows of {width} finite numbers; its shape is {values.shape}.")
        H = np.broadcast_to(row, (T, 1, len(row))).copy()
        at = 0
        for n, place in columns:
            H[:, 0, place] = values[:, at : at + n]
            at += n
        return H

    def _filter(self, variances: FloatArray, H: FloatArray) -> KalmanFilter:
        """The state space with these variances, (noise, those of the pieces), and an unknown start."""
        A, _, noises, _ = self._layout()
        Q = np.zeros((len(A), len(A)))
        for value, (_, state) in zip(variances[1:], noises, strict=True):
            Q[state, state] = value
        return KalmanFilter(A, Q, H, variances[:1, None], None, "diffuse", form="square_root")

    # ------------------------------------------------------------------------------------------- learning

    def fit(self, y: Any, X: Any = None) -> Self:
        """Learn the variances; NaN entries of y were not observed."""
        check_count("max_iter", self.max_iter)
        y = series_of(y, 1)
        A, _, noises, places = self._layout()
        H = self._rows(len(y), X)
        s = len(A)
        if np.count_nonzero(~np.isnan(y)) <= s:
            raise ModelError(f"y needs more than {s} observed values: the model has {s} states.")
        free = any(isinstance(piece, (Level, Trend)) for piece in self.pieces)  # a shift of y changes the level alone
        middle = float(np.nanmean(y)) if free else 0.0
        scale = float(np.sqrt(np.nanmean((y - middle) ** 2))) or 1.0
        driven = tuple(state for _, state in noises)
        seasons = tuple(place for piece, place in zip(self.pieces, places, strict=True) if type(piece) is Season)
        likelihood = ScalarLikelihood(A, H.reshape(-1, s), driven, (y[:, 0] - middle) / scale, seasons)
        top = self._top(likelihood, s)
        variances = top.variances * scale**2
        self.variances_ = dict(zip(["noise", *(name for name, _ in noises)], variances.tolist(), strict=True))
        self.filter_ = self._filter(variances, H)
        self.log_likelihood_ = top.log_likelihood - likelihood.n_counted * float(np.log(scale))
        self.converged_ = top.converged
        self._y, self._X = y, None if X is None else np.array(X, dtype=np.float64)
        return self

    def _top(self, likelihood: ScalarLikelihood, s: int) -> Top:
        """The highest likelihood; a series that the pieces follow exactly has none, and gets hardly any noise."""
        even = np.ones(1 + len(likelihood.driven))
        value, variances = likelihood.at_best_scale(even)
        if likelihood.n_closed < s:
            raise ModelError(
                "y and X do not determine the pieces: columns of X, or pieces, say the same at every observed step. "
                "Try: leave one of them out."
            )
        if not np.isfinite(value) or float(variances[0]) < 1e-24:
            warnings.warn(
                "the pieces follow y exactly: its variances have no maximum likelihood, and the noise is set to a "
                "share of 1e-10 of y.",
                ModelWarning,
                stacklevel=3,
            )
            variances = np.where(np.arange(len(even)) == 0, 1e-20, 0.0)
            return Top(variances, likelihood.value(variances), False)
        return highest(likelihood, self.max_iter)

    # ------------------------------------------------------------------------------------------- questions

    def decompose(self) -> dict[str, tuple[FloatArray, FloatArray]]:
        """Piece → (mean (T,), standard deviation (T,)) of its part in the fitted series, given all of it."""
        check_is_fitted(self, "filter_")
        found = self.filter_.smooth(self._y)
        H = self._rows(len(self._y), self._X)
        rows = np.broadcast_to(H if H.ndim == 2 else H[:, 0], found.means.shape)
        out = {}
        for piece, place in zip(self.pieces, self._layout()[3], strict=True):
            r = rows[:, place]
            variance = np.einsum("ts,tsr,tr->t", r, found.covariances[:, place, place], r)
            out[piece.name] = (
                np.einsum("ts,ts->t", r, found.means[:, place]),
                np.sqrt(np.maximum(variance, 0.0)),
            )
        return out

    def forecast(self, steps: int = 1, X: Any = None, *, level: float = 0.95) -> Forecast:
        """The next values with central intervals; X holds the rows of a regression for them."""
        from scipy.special import ndtri

        check_is_fitted(self, "filter_")
        h = check_count("steps", steps)
        check_fraction("level", level)
        H = self._rows(h, X)
        base = self.filter_
        old = self._rows(len(self._y), self._X)
        if old.ndim == 3:
            H = np.concatenate([old, H])
        long = np.concatenate([self._y, np.full((h, 1), np.nan)])
        seen = KalmanFilter(base.A, base.Q, H, base.R, None, base.P0, form="square_root").filter(long)
        means, covs = seen.means[-h:], seen.covariances[-h:]
        rows = H if H.ndim == 2 else H[-h:, 0]
        rows = np.broadcast_to(rows, means.shape)
        outs = np.einsum("ts,ts->t", rows, means)[:, None]
        spread = np.einsum("ts,tsr,tr->t", rows, covs, rows)[:, None, None] + base.R
        half = ndtri(0.5 + 0.5 * level) * np.sqrt(spread[:, 0])
        return Forecast(outs, spread, outs - half, outs + half, level, means, covs)
