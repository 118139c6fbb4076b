"""Hidden Markov models without hidden states: operators on embeddings of observations, learned by one decomposition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gramgraph._validation import check_choice
from gramgraph.answers import Belief
from gramgraph.answers.line_belief import LineBelief
from gramgraph.cells.axes import Axis, LineAxis, Placed
from gramgraph.embeddings.network.learn import KINDS, _axis, _guess
from gramgraph.exceptions import ModelError, OptionError
from gramgraph.typing import Array, FloatArray

_TINY = 1e-12


@dataclass(frozen=True, eq=False)
class SpectralHMM:
    """The predictive state b_t of a hidden Markov model, an n-vector that every observation x moves by B(x).

    b₁ = Uᵀμ₁, B(x) = Uᵀ C_{3,x,1} (Uᵀ C₂₁)⁺, prediction of the next observation b∞ b: with U the leading left
    singular functions of C₂₁, the covariance of consecutive observations. Observations are numbers, angles or
    categories on the cells of `axis`; with a category and exact moments it is the forward algorithm.

    Parameters
    ----------
    axis : the cells of the variable.
    start : the first state.
    readout : from the state to masses of the cells.
    operators : one (n, n) matrix for each cell.

    Examples
    --------
    >>> import gramgraph as gg
    >>> rng = np.random.default_rng(0)
    >>> state = np.cumsum(rng.random(3000) < 0.05) % 2
    >>> x = np.where(state, 2.0, -2.0) + 0.5 * rng.normal(size=3000)
    >>> model = gg.embeddings.learn_spectral_hmm(x, 2)
    >>> round(model.predict([2.1, 1.8, 2.2]).mean(), 1) > 1.2, round(model.predict([2.1, -2.0]).mean(), 1) < -1.2
    (True, True)
    """

    axis: Axis
    start: FloatArray  # b₁, (n,)
    readout: FloatArray  # b∞, (m, n): masses of the next observation
    operators: FloatArray  # (m, n, n), B at every cell

    @classmethod
    def from_moments(cls, axis: Axis, first: Any, pairs: Any, triples: Any, n_states: int) -> SpectralHMM:
        """From masses of cells: first (m,), pairs[x₂, x₁] (m, m), triples[x₂, x₃, x₁] (m, m, m)."""
        mu, C21, C3 = (np.asarray(a, dtype=np.float64) for a in (first, pairs, triples))
        root = np.sqrt(np.maximum(axis.q, _TINY))
        U = np.linalg.svd(C21 / np.outer(root, root))[0][:, :n_states] / root[:, None]
        inverse = np.linalg.pinv(U.T @ C21, rcond=1e-10)
        operators = np.einsum("an,xab,bk->xnk", U, C3, inverse, optimize=True)
        return cls(axis, U.T @ mu, C21 @ inverse, operators)

    def _moved(self, b: FloatArray, at: Placed, i: int) -> FloatArray:
        """The state after one more observation, scaled so that its prediction sums to one."""
        f = float(at.f[i])
        q = self.axis.q
        B = (1.0 - f) * self.operators[at.a[i]] / q[at.a[i]] + f * self.operators[at.b[i]] / q[at.b[i]]
        new = B @ b
        total = float((self.readout @ new).sum())
        usable = at.known[i] and at.near[i] > 0.5 and np.isfinite(total) and total > _TINY
        if not usable:  # not observed, or where the model has no mass: time passes
            new = np.einsum("xnk,k->n", self.operators, b)
            total = float((self.readout @ new).sum())
        return new / total if total > _TINY else self.start

    def _masses(self, b: FloatArray) -> FloatArray:
        p = np.maximum(self.readout @ b, 0.0)
        total = p.sum()
        return p / total if total > _TINY else np.asarray(self.axis.q)

    def filter(self, values: Any) -> FloatArray:
        """Masses of the cells of each observation given those before it, (len + 1, m); the last row is the next one."""
        at = self.axis.place(_column(values))
        b = self.start
        out = [self._masses(b)]
        for i in range(len(at.a)):
            b = self._moved(b, at, i)
            out.append(self._masses(b))
        return np.array(out)

    def predict(self, values: Any) -> Any:
        """The belief in the next observation, of numbers with `mean`, `density`, `interval`, …; else a `Belief`."""
        masses = self.filter(values)[-1:]
        if isinstance(self.axis, LineAxis):
            return LineBelief(self.axis, masses, batched=False)
        return Belief((self.axis.cell_var,), masses[0])

    def log_likelihood(self, values: Any) -> float:
        """Σ log p(x_t | x_1 … x_{t−1}), of numbers with their density."""
        column = _column(values)
        at = self.axis.place(column)
        masses = self.filter(column)[:-1]
        rows = np.arange(len(at.a))
        ratio = masses / self.axis.q
        value = ratio[rows, at.a] * (1.0 - at.f) + ratio[rows, at.b] * at.f
        logs = np.log(np.maximum(value, 1e-4)) + self.axis.log_base(column)
        return float(logs[at.known].sum())

    def save(self, path: Any) -> None:
        """Write a container with a checksum, as `gg.write(model, "model.gg")` does.

        >>> import os, tempfile
        >>> import gramgraph as gg
        >>> model = gg.embeddings.learn_spectral_hmm(list("aabb") * 20, 2)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     model.save(os.path.join(folder, "model.gg"))
        ...     type(gg.embeddings.SpectralHMM.load(os.path.join(folder, "model.gg"))).__name__
        'SpectralHMM'
        """
        from gramgraph.embeddings.network.files import save

        save(self, path)

    @staticmethod
    def load(path: Any) -> SpectralHMM:
        """The model in a file that `save` wrote, or in an .npz of version 0.1.0; a `ParseError` for anything else."""
        from gramgraph.embeddings.network.files import load

        return load(path, "spectral_hmm")  # type: ignore[no-any-return]


def _column(values: Any) -> Array:
    array = np.asarray(values.to_numpy() if hasattr(values, "to_numpy") else values)
    if array.dtype.kind in "US":
        array = np.asarray(list(values), dtype=object)
    if array.ndim != 1:
        raise ModelError(f"a sequence has one observation a step; this has shape {array.shape}.")
    return array


def learn_spectral_hmm(
    sequences: Any, n_states: int, *, domain: str | None = None, cells: int = 40, width: float = 0.03
) -> SpectralHMM:
    """Learn the operators from one sequence of observations, or a list of them; no iteration, no local optima.

    Moments of one, two and three consecutive observations on cells are smoothed over neighboring cells (`width`, as a
    share of their number; categories are not smoothed). O(length) and one decomposition of a (cells, cells) matrix.

    Parameters
    ----------
    sequences : one sequence, or a list of them.
    n_states : dimension n of the state.
    domain : what observations are; None guesses.
    cells : most cells of the axis.
    width : of the smoothing, as a share of the number of cells.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> z = np.repeat(rng.integers(0, 2, 100), 10)
    >>> x = np.where(rng.random(1000) < 0.9, z, 1 - z).astype(str)
    >>> model = learn_spectral_hmm(x, 2)
    >>> model.log_likelihood(["0"] * 6) > model.log_likelihood(["0", "1"] * 3)
    True
    """
    many = list(sequences) if _is_many(sequences) else [sequences]
    columns = [_column(s) for s in many]
    if sum(len(c) for c in columns) < 10 or max(len(c) for c in columns) < 3:
        raise ModelError("sequences must have at least three steps, and ten in all.")
    if domain is not None:
        check_choice("domain", domain, KINDS[:4])
    every = np.concatenate(columns)
    axis = _axis("x", every, _guess(every) if domain is None else domain, cells, "kernel", None)
    if isinstance(n_states, bool) or not isinstance(n_states, (int, np.integer)) or not 1 <= n_states <= axis.m:
        raise OptionError(f"n_states must be an integer from 1 to the number of cells, {axis.m}; it is {n_states!r}.")
    first, pairs, triples = _moments(axis, columns)
    if isinstance(axis, LineAxis):
        K = axis.q[:, None] * axis.gram(width, by_cell=True)
        G = K / K.sum(axis=0)
        first, pairs = G @ first, G @ pairs @ G.T
        triples = np.einsum("xi,aj,bk,ijk->xab", G, G, G, triples, optimize=True)
    return SpectralHMM.from_moments(axis, first, pairs, triples, int(n_states))


def _is_many(sequences: Any) -> bool:
    return isinstance(sequences, (list, tuple)) and len(sequences) > 0 and np.ndim(sequences[0]) == 1


def _moments(axis: Axis, columns: Sequence[Array]) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Masses of one, two (x₂, x₁) and three (x₂, x₃, x₁) consecutive observations; steps with gaps do not count."""
    m = axis.m
    first, pairs, triples = np.zeros(m), np.zeros((m, m)), np.zeros((m, m, m))
    for column in columns:
        at = axis.place(column)
        sides = ((at.a, 1.0 - at.f), (at.b, at.f))
        known = at.known.astype(np.float64)
        for c, w in sides:
            np.add.at(first, c, w * known)
            for d, v in sides:
                np.add.at(pairs, (d[1:], c[:-1]), v[1:] * w[:-1] * known[1:] * known[:-1])
                for e, u in sides:
                    weight = v[1:-1] * u[2:] * w[:-2] * known[1:-1] * known[2:] * known[:-2]
                    np.add.at(triples, (d[1:-1], e[2:], c[:-2]), weight)
    return first / first.sum(), pairs / max(pairs.sum(), 1.0), triples / max(triples.sum(), 1.0)
