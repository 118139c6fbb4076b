"""The matrices of a linear-Gaussian state space, their check, and the two halves of EM."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gramgraph.exceptions import ModelError
from gramgraph.sequences._reading import LARGEST, numbers
from gramgraph.typing import FloatArray

if TYPE_CHECKING:
    from gramgraph.sequences.kalman import SmoothedStates


@dataclass(frozen=True)
class Stacks:
    """Checked matrices, one of each for every mode of switching dynamics."""

    transition: FloatArray  # (K, K)
    start: FloatArray  # (K,)
    A: FloatArray  # (K, s, s)
    Q: FloatArray
    H: FloatArray  # (K, o, s)
    R: FloatArray  # (K, o, o)
    m0: FloatArray  # (s,)
    P0: FloatArray  # (s, s)


@dataclass(frozen=True)
class Model:
    """x_t = A x_{t−1} + B u_{t−1} + N(0, Q), y_t = H x_t + D u_t + N(0, R), x_0 ~ N(m0, P0).

    A, Q, H, R may be stacks with one matrix per step (those of the first step of A and Q are not used).
    """

    A: FloatArray  # (s, s) or (T, s, s)
    Q: FloatArray
    H: FloatArray  # (o, s) or (T, o, s)
    R: FloatArray  # (o, o) or (T, o, o)
    m0: FloatArray  # (s,)
    P0: FloatArray  # (s, s)
    B: FloatArray | None = None  # (s, c)
    D: FloatArray | None = None  # (o, c)
    flat: FloatArray | None = None  # (s, q) directions in which the first state is unknown, on top of P0; None: none

    @property
    def n_states(self) -> int:
        """s."""
        return len(self.m0)

    @property
    def n_outputs(self) -> int:
        """o."""
        return int(self.H.shape[-2])

    @property
    def varying(self) -> tuple[str, ...]:
        """Names of the matrices that come one per step."""
        return tuple(name for name in ("A", "Q", "H", "R") if getattr(self, name).ndim == 3)

    @classmethod
    def of(cls, A: Any, Q: Any, H: Any, R: Any, m0: Any, P0: Any, B: Any = None, D: Any = None) -> Model:
        """From what a user gave, checked; all faults at once."""
        A, Q, R = (matrix(name, value, stack=True) for name, value in (("A", A), ("Q", Q), ("R", R)))
        H = matrix("H", H, row=True, stack=True)
        s, o = A.shape[-1], H.shape[-2]
        wanted = {"A": (A, (s, s)), "Q": (Q, (s, s)), "H": (H, (o, s)), "R": (R, (o, o))}
        B, D = (None if value is None else matrix(name, value) for name, value in (("B", B), ("D", D)))
        faults = [
            f"{name} must have shape {shape}; its shape is {value.shape}."
            for name, (value, shape) in wanted.items()
            if value.shape[-2:] != shape
        ]
        steps = {len(value) for value, _ in wanted.values() if value.ndim == 3}
        if len(steps) > 1:
            faults.append(f"stacks must have one matrix per step; there are stacks of {sorted(steps)} matrices.")
        for name, value, rows in (("B", B, s), ("D", D, o)):
            if value is not None and len(value) != rows:
                faults.append(f"{name} must have {rows} rows; its shape is {value.shape}.")
        if B is not None and D is not None and B.shape[1] != D.shape[1]:
            faults.append(
                f"B and D must have a column each for every control; they have {B.shape[1]} and {D.shape[1]}."
            )
        if faults:
            raise ModelError(faults)
        m0 = np.zeros(s) if m0 is None else np.array(m0, dtype=np.float64).reshape(-1)
        if P0 is None and (A.ndim == 3 or Q.ndim == 3):
            raise ModelError("P0 is needed where A or Q change from step to step.")
        P0, flat = (_stationary(A, Q), None) if P0 is None else start_of(P0, s)
        if m0.shape != (s,) or P0.shape != (s, s) or not np.isfinite(m0).all():
            raise ModelError(f"m0 and P0 must have shapes {(s,)} and {(s, s)}; they are {m0.shape} and {P0.shape}.")
        return cls(A, covariance("Q", Q), H, covariance("R", R), m0=m0, P0=covariance("P0", P0), B=B, D=D, flat=flat)

    @property
    def given_P0(self) -> FloatArray | str:
        """P0 as a user gives it: "diffuse", or with infinite variance where the first state is unknown."""
        if self.flat is None:
            return self.P0
        if self.flat.shape[1] == self.n_states:
            return "diffuse"
        return np.where(np.eye(self.n_states, dtype=bool) & self.flat.any(axis=1), np.inf, self.P0)


def start_of(P0: Any, s: int) -> tuple[FloatArray, FloatArray | None]:
    """(finite part, directions without any knowledge) of "diffuse", or of a covariance with infinite variances."""
    if isinstance(P0, str) and P0 == "diffuse":
        return np.zeros((s, s)), np.eye(s)
    if isinstance(P0, str):
        raise ModelError(f'P0 must be a matrix of numbers, or "diffuse"; it is {P0!r}.')
    P = np.array(P0, dtype=np.float64, ndmin=2)
    if P.ndim != 2 or P.shape[0] != P.shape[1] or not (np.diagonal(P) == np.inf).any():
        return matrix("P0", P0), None
    unknown = np.diagonal(P) == np.inf
    P[unknown, unknown] = 0.0
    if P[unknown].any() or P[:, unknown].any():
        raise ModelError("P0 has an infinite variance: the covariances in its row and column must be 0.")
    return matrix("P0", P), np.ascontiguousarray(np.eye(len(P))[:, unknown])


def matrix(name: str, value: Any, *, row: bool = False, stack: bool = False) -> FloatArray:
    """A finite matrix; a number is 1 × 1, a vector (where `row`) one row; where `stack`, also one matrix per step."""
    if isinstance(value, str):
        raise ModelError(f"{name} must be a matrix of numbers; it is {value!r}.")
    M = np.array(value, dtype=np.float64, order="C")
    if M.ndim == 0 or (M.ndim == 1 and row):
        M = M.reshape(1, -1)
    if M.ndim not in ((2, 3) if stack else (2,)) or M.size == 0:
        raise ModelError(f"{name} must be a matrix; its shape is {M.shape}.")
    if not np.isfinite(M).all():
        raise ModelError(f"{name} holds NaN or infinity.")
    return M


def covariance(name: str, S: FloatArray) -> FloatArray:
    """S, or every matrix of a stack, made symmetric to the last bit; an error where it is not a covariance."""
    if S.ndim == 3:
        return np.array([covariance(f"{name}[{t}]", part) for t, part in enumerate(S)])
    scale = max(float(np.abs(S).max()), 1e-300)
    if np.abs(S - S.T).max() > 1e-8 * scale:
        raise ModelError(f"{name} must be symmetric, as covariances are.")
    S = 0.5 * (S + S.T)
    lowest = float(np.linalg.eigvalsh(S)[0])
    if lowest < -1e-8 * scale:
        raise ModelError(f"{name} must have no negative eigenvalue; its lowest is {lowest:.3g}.")
    return S


def _stationary(A: FloatArray, Q: FloatArray) -> FloatArray:
    """P = A P Aᵀ + Q."""
    from scipy.linalg import solve_discrete_lyapunov

    radius = float(np.abs(np.linalg.eigvals(A)).max())
    if radius >= 1.0 - 1e-10:
        raise ModelError(
            f"P0 is needed: the process has no stationary covariance, as an eigenvalue of A has size {radius:.6g}. "
            f"Try: P0=1e6 * np.eye({len(A)}) for a state that is hardly known at first."
        )
    P = solve_discrete_lyapunov(A, Q)
    return np.ascontiguousarray(0.5 * (P + P.T))


def series_of(y: Any, n_outputs: int) -> FloatArray:
    """y as (T, o) floats, NaN where nothing was observed."""
    values = numbers("y", y)
    if values.ndim == 1 and n_outputs == 1:
        values = values[:, None]
    if values.ndim != 2 or values.shape[1] != n_outputs:
        raise ModelError(f"y must have shape (T, {n_outputs}), one row per time; its shape is {values.shape}.")
    if len(values) == 0:
        raise ModelError("y is empty; a series needs at least one row (NaN where nothing was observed).")
    wrong = np.abs(values) > LARGEST
    if wrong.any():
        row = int(np.argwhere(wrong)[0][0])
        raise ModelError(
            f"y holds {'infinity' if np.isinf(values[row]).any() else 'a number whose square overflows'} at row {row}; "
            f"NaN marks missing values."
        )
    return values


# --- EM -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Moments:
    """Expected sums over the steps of all series, given the observations."""

    steps: int
    before: FloatArray  # Σ E[x_{t−1} x_{t−1}ᵀ]
    after: FloatArray  # Σ E[x_t x_tᵀ], t ≥ 1
    across: FloatArray  # Σ E[x_t x_{t−1}ᵀ]
    seen: int  # rows with an observation
    states: FloatArray  # Σ E[x_t x_tᵀ] over them
    outputs: FloatArray  # Σ E[y_t y_tᵀ]
    mixed: FloatArray  # Σ E[y_t x_tᵀ]
    first_means: FloatArray  # (series, s)
    first_covs: FloatArray  # (series, s, s)


def moments_of(model: Model, series: Sequence[FloatArray], found: Sequence[SmoothedStates]) -> Moments:
    """The expectations that the next matrices are made of; O(T s²)."""
    s, o = model.n_states, model.n_outputs
    before, after, across, states = (np.zeros((s, s)) for _ in range(4))
    outputs, mixed = np.zeros((o, o)), np.zeros((o, s))
    seen = steps = 0
    for y, x in zip(series, found, strict=True):
        m, P = x.means, x.covariances
        before += m[:-1].T @ m[:-1] + P[:-1].sum(axis=0)
        after += m[1:].T @ m[1:] + P[1:].sum(axis=0)
        across += m[1:].T @ m[:-1] + x.cross_covariances.sum(axis=0).T
        steps += len(y) - 1
        for rows, shown in _patterns(y):
            xx = m[rows].T @ m[rows] + P[rows].sum(axis=0)
            B, b, rest = _completed(model, y[rows], shown)
            bx = b.T @ m[rows]
            outputs += B @ xx @ B.T + B @ bx.T + bx @ B.T + b.T @ b + len(b) * rest
            mixed += B @ xx + bx
            states += xx
            seen += len(b)
    firsts = np.array([x.means[0] for x in found]), np.array([x.covariances[0] for x in found])
    return Moments(
        steps, before, after, across, seen=seen, states=states, outputs=outputs, mixed=mixed, first_means=firsts[0],
        first_covs=firsts[1],
    )  # fmt: skip


def _patterns(y: FloatArray) -> list[tuple[Any, Any]]:
    """(rows, observed columns) for every pattern of gaps but the empty one."""
    shown = ~np.isnan(y)
    kinds, which = np.unique(shown, axis=0, return_inverse=True)
    return [(np.flatnonzero(which.ravel() == i), kind) for i, kind in enumerate(kinds) if kind.any()]


def _completed(model: Model, y: FloatArray, shown: Any) -> tuple[FloatArray, FloatArray, FloatArray]:
    """E[y | x, observed] = B x + b (a row each), and Cov(y | x, observed): observed entries are themselves."""
    B, rest = np.zeros_like(model.H), np.zeros_like(model.R)
    if shown.all():
        return B, y, rest
    gone = ~shown
    gain = solved(model.R[np.ix_(shown, shown)], model.R[np.ix_(gone, shown)])
    b = np.zeros_like(y)
    b[:, shown] = y[:, shown]
    b[:, gone] = y[:, shown] @ gain.T
    B[gone] = model.H[gone] - gain @ model.H[shown]
    rest[np.ix_(gone, gone)] = model.R[np.ix_(gone, gone)] - gain @ model.R[np.ix_(shown, gone)]
    return B, b, rest


def maximized(model: Model, e: Moments, learn: tuple[str, ...]) -> Model:
    """The matrices of highest expected log-likelihood; those that are not learned stay, and the others allow for it."""
    if e.steps:
        if "A" in learn:
            model = replace(model, A=np.ascontiguousarray(solved(e.before, e.across)))
        if "Q" in learn:
            A = model.A
            model = replace(model, Q=even((e.after - A @ e.across.T - e.across @ A.T + A @ e.before @ A.T) / e.steps))
    if "H" in learn:
        model = replace(model, H=np.ascontiguousarray(solved(e.states, e.mixed)))
    if "R" in learn:
        H = model.H
        model = replace(model, R=even((e.outputs - H @ e.mixed.T - e.mixed @ H.T + H @ e.states @ H.T) / e.seen))
    if "m0" in learn:
        model = replace(model, m0=e.first_means.mean(axis=0))
    if "P0" in learn:
        gap = e.first_means - model.m0
        model = replace(model, P0=even(e.first_covs.mean(axis=0) + gap.T @ gap / len(gap)))
    return model


def gradient_of(model: Model, e: Moments) -> dict[str, FloatArray]:
    """∂ log p(y) / ∂ the matrices: the expected gradient of the complete data (Fisher's identity).

    A start that is unknown has no m0 and P0.
    """
    A, H = model.A, model.H
    inverse = {}
    for name in ("Q", "R") if model.flat is not None else ("Q", "R", "P0"):
        try:
            inverse[name] = np.linalg.inv(np.linalg.cholesky(getattr(model, name)))
        except np.linalg.LinAlgError:
            raise ModelError(f"gradients need an invertible {name}.") from None
    iQ, iR, *start = (L.T @ L for L in inverse.values())
    moved = e.after - A @ e.across.T - e.across @ A.T + A @ e.before @ A.T
    seen = e.outputs - H @ e.mixed.T - e.mixed @ H.T + H @ e.states @ H.T
    out = {
        "A": iQ @ (e.across - A @ e.before),
        "Q": even(0.5 * (iQ @ moved @ iQ - e.steps * iQ)),
        "H": iR @ (e.mixed - H @ e.states),
        "R": even(0.5 * (iR @ seen @ iR - e.seen * iR)),
    }
    for iP in start:
        gap = e.first_means - model.m0
        first = e.first_covs.sum(axis=0) + gap.T @ gap
        out |= {"m0": iP @ gap.sum(axis=0), "P0": even(0.5 * (iP @ first @ iP - len(gap) * iP))}
    return out


def solved(S: FloatArray, C: FloatArray) -> FloatArray:
    """C S⁻¹ for a symmetric S; the smallest solution where S is singular."""
    try:
        found: FloatArray = np.linalg.solve(S, C.T).T.astype(np.float64)
    except np.linalg.LinAlgError:
        found = np.linalg.lstsq(S, C.T, rcond=None)[0].T.astype(np.float64)
    return found


def even(S: FloatArray) -> FloatArray:
    """S made symmetric to the last bit."""
    return np.ascontiguousarray(0.5 * (S + S.T))


def network_of(model: Model, length: int, prefixes: tuple[str, str]) -> Any:
    """x1 -> x2 -> …, x_t -> y_t as a linear-Gaussian network; matrices may change with time."""
    from gramgraph.conditionals import LinearGaussian
    from gramgraph.models import BayesianNetwork
    from gramgraph.variables import real

    if model.B is not None or model.D is not None or model.flat is not None:
        raise ModelError("to_network takes models without controls and with a given P0.")
    at = [[M if M.ndim == 2 else M[t] for M in (model.A, model.Q, model.H, model.R)] for t in range(length)]
    xs = [real(f"{prefixes[0]}{t}", model.n_states) for t in range(1, length + 1)]
    ys = [real(f"{prefixes[1]}{t}", model.n_outputs) for t in range(1, length + 1)]
    parts: list[Any] = [LinearGaussian(xs[0], (), intercept=model.m0, covariance=model.P0)]
    parts += [LinearGaussian(xs[t], (xs[t - 1],), at[t][0], covariance=at[t][1]) for t in range(1, length)]
    parts += [LinearGaussian(ys[t], (xs[t],), at[t][2], covariance=at[t][3]) for t in range(length)]
    return BayesianNetwork.from_parts([*xs, *ys], parts, name="linear-Gaussian state space")
