"""The conditional embedding operator: x ↦ E[ψ(Y) | x] as weights on the sample."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gramgraph.embeddings.composition import Composable, Operator, Side
from gramgraph.embeddings.features import FeatureMap, RidgeSpectrum, feature_map, principal_features
from gramgraph.embeddings.mean import MeanEmbedding
from gramgraph.exceptions import ModelError, OptionError
from gramgraph.kernels.base import Kernel
from gramgraph.kernels.domains import check_pairs, default_kernel, domain_of, sample_of
from gramgraph.kernels.inputs import count, take
from gramgraph.typing import FloatArray, RandomState

#: Penalties that reg="loo" chooses from, and bandwidths as multiples of the median distance.
REGS = np.logspace(-8, 0, 17)
FACTORS = (2.0, 1.0, 0.5, 0.25, 0.125)
_SCORED, _TARGETS = 2000, 40  # rows and components of Y that the leave-one-out error looks at
_EXACT = 500  # points up to which approx="auto" keeps every direction
_ROWS = 4096


@dataclass(frozen=True, eq=False, init=False)
class ConditionalOperator(Composable):
    """C_{Y|X}: E[ψ(Y) | x] = C φ(x) = Σ βᵢ(x) ψ(yᵢ), learned by ridge regression from features of x to ψ(Y).

    The constructor gives the operator of the text, Ψ(K + λN I)⁻¹Φᵀ with λ = `reg` (the pseudo-inverse at reg=0, which
    makes delta kernels tables); `.T`, `@` and C(y, x) compose and evaluate it, O(n³). `conditional_operator` chooses
    bandwidth and penalty, and is meant for prediction.
    Centered (the default there): β(x) = 1/n + Φ̃(Φ̃ᵀΦ̃ + nλ)⁻¹(φ(x) − mean), whose sum is 1 and
    which far from the data is the marginal. Not centered: β(x) = Φ(ΦᵀΦ + nλ)⁻¹φ(x). With all features Φ Φᵀ = K, these
    are the Gram forms 1/n + H(HKH + nλ)⁻¹H(k_x − K1/n) and (K + nλ)⁻¹k_x.

    Parameters
    ----------
    X : sample of the first variable.
    Y : sample of the second variable, paired with X.
    kernel_x : kernel of X; None for the default one of its domain.
    kernel_y : kernel of Y; None for the default one of its domain.
    reg : the penalty λ of the regression.
    centered : whether means are taken off.
    names : of the variables, for printing.
    features : the features of x that the regression uses; None makes them.
    spectrum : the decomposition of the regression, from which every penalty is cheap; None makes it.
    loo_error : leave-one-out error, mean squared, in the feature space of Y.

    Examples
    --------
    >>> C = ConditionalOperator(["a", "a", "b"], ["u", "v", "v"], reg=0.0)
    >>> C(["u", "v"], ["a", "b"]).round(6) + 0.0
    array([[0.5, 0. ],
           [0.5, 1. ]])
    >>> C.embedding(["a"])(["u", "v"]).round(6)
    array([0.5, 0.5])
    """

    kernel_x: Kernel
    kernel_y: Kernel
    X: Any  # n points
    Y: Any  # n points
    features: FeatureMap
    spectrum: RidgeSpectrum
    reg: float
    centered: bool
    loo_error: float | None  # mean squared, in the feature space of Y
    names: tuple[str, str]  # of x and y; checked where operators meet, when given

    def __init__(
        self,
        X: Any,
        Y: Any,
        *,
        kernel_x: Kernel | None = None,
        kernel_y: Kernel | None = None,
        reg: float | str = 1e-3,
        centered: bool = False,
        names: tuple[str, str] = ("", ""),
        features: FeatureMap | None = None,
        spectrum: RidgeSpectrum | None = None,
        loo_error: float | None = None,
    ) -> None:
        if features is None or spectrum is None:
            made = conditional_operator(
                X, Y, kernel_x=kernel_x, kernel_y=kernel_y, reg=reg, centered=centered, approx="exact"
            )
            kernel_x, kernel_y, X, Y = made.kernel_x, made.kernel_y, made.X, made.Y
            features, spectrum, reg, loo_error = made.features, made.spectrum, made.reg, made.loo_error
        found = {"kernel_x": kernel_x, "kernel_y": kernel_y, "X": X, "Y": Y, "features": features, "reg": reg}
        found |= {"spectrum": spectrum, "centered": centered, "loo_error": loo_error, "names": tuple(names)}
        for key, value in found.items():
            object.__setattr__(self, key, value)

    @property
    def operator(self) -> Operator:
        """Ψ W Φᵀ with W = (K + nλ)⁻¹ on the span of the sample; a centered one also takes the constant of x."""
        s = self.spectrum
        W = (s.U / (s.values + self.n * self.reg)) @ s.U.T
        if self.centered:
            constant = 1.0 / self.n - W @ (self.features.transform(self.X) @ s.mean)
            W = np.column_stack([W, constant])
        left = Side(self.kernel_y, self.Y, name=self.names[1])
        return Operator(left, W, Side(self.kernel_x, self.X, self.centered, self.names[0]))

    def __repr__(self) -> str:
        return f"ConditionalOperator({self.n} pairs, {self.kernel_x!r} -> {self.kernel_y!r}, reg={self.reg:.3g})"

    @property
    def n(self) -> int:
        """Number of pairs that were learned from."""
        return len(self.spectrum.U)

    def _coordinates(self, X: Any) -> FloatArray:
        """What multiplies Uᵀ (values of f at the sample): (m, q)."""
        s = self.spectrum
        return ((self.features.transform(X) - s.mean) @ s.V) * (np.sqrt(s.values) / (s.values + self.n * self.reg))

    def weights(self, X: Any, /) -> FloatArray:
        """β(x), one row of n weights a point; O(n q m)."""
        out = self._coordinates(self.kernel_x.prepare(X)) @ self.spectrum.U.T
        if self.centered:
            out += 1.0 / self.n
        return out

    def expect(self, values: Any, X: Any, /) -> FloatArray:
        """E[f(Y) | x] for every point, from f at the sample: `values` (n,) or (n, t); O(q t) a point."""
        values = np.asarray(values, dtype=np.float64)
        if values.shape[:1] != (self.n,):
            raise ModelError(f"f must have one value or row for each of {self.n} points; its shape is {values.shape}.")
        base = values.mean(axis=0) if self.centered else np.zeros(values.shape[1:])
        coef = self.spectrum.U.T @ (values - base)
        X = self.kernel_x.prepare(X)
        out = np.empty((count(X), *values.shape[1:]))
        for start in range(0, len(out), _ROWS):
            here = slice(start, start + _ROWS)
            out[here] = self._coordinates(take(X, here)) @ coef + base
        return out

    def embedding(self, x: Any, /) -> MeanEmbedding:
        """The distribution of Y given one point x, written as a list of one point: `embedding([[0.3, 1.0]])`."""
        beta = self.weights(x)
        if len(beta) != 1:
            raise ModelError(f"embedding takes one point, written as a list of one; got {len(beta)} points.")
        return MeanEmbedding(self.kernel_y, self.Y, beta[0])


def conditional_operator(
    X: Any,
    Y: Any,
    *,
    kernel_x: Kernel | None = None,
    kernel_y: Kernel | None = None,
    domain_x: str | None = None,
    domain_y: str | None = None,
    reg: float | str = "loo",
    regs: Sequence[float] | None = None,
    centered: bool = True,
    approx: str = "auto",
    n_components: int = 300,
    random_state: RandomState = None,
) -> ConditionalOperator:
    """Learn E[ψ(Y) | x] from pairs.

    reg="loo" takes the penalty λ (of `regs`) with the smallest leave-one-out error in the feature space of Y, in closed
    form; when x has its default kernel, also its bandwidth among 2, 1, ½, ¼, ⅛ × median distance (columns divided by
    their standard deviations). `approx`: "exact" keeps every direction up to rounding, O(n³); "cholesky" stops at 1e-9
    of the trace or `n_components`; "nystrom" takes that many landmarks; "features" random Fourier features; "auto" is
    exact up to 500 points and "cholesky" above. O(n r²) each bandwidth, r the number of features.

    Parameters
    ----------
    X : sample of the first variable.
    Y : sample of the second variable, paired with X.
    kernel_x : kernel of X; None for the default one of its domain.
    kernel_y : kernel of Y; None for the default one of its domain.
    domain_x : what the values of X are: "real", "circle", "category", …; None guesses.
    domain_y : what the values of Y are, likewise.
    reg : the penalty, or "loo".
    regs : penalties that "loo" chooses from.
    centered : whether means are taken off.
    approx : None for all rows, "nystrom", "cholesky" or "features" for a smaller basis.
    n_components : size of that basis.
    random_state : seed, or a generator.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(-3, 3, 300)
    >>> C = conditional_operator(x, np.sin(x) + 0.1 * rng.normal(size=300))
    >>> C.expect(C.Y[:, 0], [0.0, 1.0]).round(1) + 0.0
    array([0. , 0.8])
    >>> float(C.weights([0.5]).sum().round(10))
    1.0
    """
    candidates = _kernels(X, kernel_x, domain_x)
    points, n = sample_of(X, candidates[0], None, name="X")[1:]
    kernel_y, Y, m = sample_of(Y, kernel_y, domain_y, name="Y")
    check_pairs(n, m)
    penalties = _penalties(reg, regs)
    approx = ("exact" if n <= _EXACT else "cholesky") if approx == "auto" else approx
    if isinstance(reg, str):
        B = principal_features(kernel_y, Y, _TARGETS)
        rows = None if n <= _SCORED else np.linspace(0, n - 1, _SCORED).astype(np.int64)
    elif len(candidates) > 1:
        candidates = candidates[1:2]  # without a criterion: the median distance itself
    best: ConditionalOperator | None = None
    for kernel in candidates:
        features = feature_map(kernel, points, approx, n_components=n_components, random_state=random_state)
        spectrum = RidgeSpectrum.of(features.transform(points), center=centered)
        at, error = 0, None
        if isinstance(reg, str):
            errors = spectrum.loo_errors(B, penalties, center=centered, rows=rows)
            at = int(errors.argmin())
            error = float(errors[at])
        if best is None or (error is not None and best.loo_error is not None and error < best.loo_error):
            best = ConditionalOperator(
                points,
                Y,
                kernel_x=kernel,
                kernel_y=kernel_y,
                features=features,
                spectrum=spectrum,
                reg=float(penalties[at]),
                centered=centered,
                loo_error=error,
            )
    assert best is not None
    return best


def _kernels(X: Any, kernel: Kernel | None, domain: str | None) -> list[Kernel]:
    """The given kernel, or the default one with several bandwidths where it has one."""
    first = sample_of(X, kernel, domain, name="X")[0]
    if kernel is not None or (domain or domain_of(X)) in ("category", "set", "string"):
        return [first]
    return [default_kernel(X, domain, factor=f, scale_columns=True) for f in FACTORS]


def _penalties(reg: float | str, regs: Sequence[float] | None) -> FloatArray:
    if isinstance(reg, str):
        if reg != "loo":
            raise OptionError(f"reg must be a number that is not negative, or 'loo'; it is {reg!r}.")
        found = REGS if regs is None else np.atleast_1d(np.asarray(regs, dtype=np.float64))
        if found.ndim != 1 or not found.size or not np.isfinite(found).all() or (found < 0.0).any():
            raise OptionError(f"regs must be numbers that are not negative; they are {regs!r}.")
        return found
    if isinstance(reg, bool) or not isinstance(reg, (int, float, np.number)) or not 0.0 <= reg < np.inf:
        raise OptionError(f"reg must be a number that is not negative, or 'loo'; it is {reg!r}.")
    return np.array([float(reg)])
