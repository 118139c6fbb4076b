"""Messages between samples, as the text writes them: Gram matrices in the place of tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gramgraph._validation import check_positive
from gramgraph.answers import Belief, RealAnswer
from gramgraph.answers.sampled import SampledBelief
from gramgraph.cells.axes import Axis, LineAxis, StateAxis
from gramgraph.cells.points import PointAxis
from gramgraph.engines.base import PLAIN, Engine, Run
from gramgraph.engines.cells.evidence import Seen
from gramgraph.exceptions import ModelError, OptionError
from gramgraph.questions.question import Question
from gramgraph.typing import Array, FloatArray


class Gram(Engine):
    """Belief propagation in function space on a tree, with the Gram matrices K of a sample of N rows.

    An observed node t at x* tells its neighbor s the function of weights β = N (K_s + λN)⁻¹ (K_t + λN)⁻¹ k_t(x*); any
    other β = (K_s + λN)⁻¹ ⊙ (K_t β_ut) over its other neighbors u. The belief of r is the weight (1/N) ⊙ (K_r β_tr) of
    every row. Weights may be negative: beliefs leave these out, and `details["negative_mass"]` tells how much that was.
    With categories (delta kernels) and `reg=0`, a pseudo-inverse, this is sum-product on tables. O(N³) a variable once,
    O(N²) a message. A tree of up to 2,000 rows keeps them for this; `engine="cells"` does not grow with N.

    >>> import gramgraph as gg
    >>> net = gg.learn_tree({"a": list("xxyy") * 20, "b": list("uuvu") * 20}, "table", floor=0.0)
    >>> answer = net.query("b", {"a": "y"}, engine="gram", reg=0.0)
    >>> round(answer["b"].prob("v"), 10), round(float(np.exp(answer.log_evidence)), 10)
    (0.5, 0.5)
    """

    name = "gram"
    kinds = ("cells",)
    options = ("reg",)

    def __init__(self, *, reg: float = 1e-3) -> None:
        check_positive("reg", reg, zero=True)
        self.reg = float(reg)

    def answer(self, model: Any, question: Question, run: Run = PLAIN) -> RealAnswer:
        """Weights of the sample's rows, and log p(evidence)."""
        rows = getattr(model, "kept_rows", None)
        if not rows:
            raise ModelError(
                'engine "gram" needs the sample of a tree, of which up to 2,000 rows are kept. Use engine="cells"'
            )
        if question.joints or question.likelihoods:
            raise OptionError(
                'engine "gram" tells beliefs of single variables given values. Use engine="cells" instead'
            )
        seen = Seen.of(model, question)
        matrices = _Matrices(model, rows, self.reg)
        cases = [_Messages(matrices, seen, case) for case in range(seen.n_cases)]
        log_p = np.array([case.log_p() for case in cases])
        weights = {v: np.stack([case.belief(v) for case in cases]) for v in question.wanted}
        lost = {model.vars[v].name: _negative(w) for v, w in weights.items()}
        one = not question.batched
        details = {
            "negative_mass": {name: float(x[0]) if one else x for name, x in lost.items()},
            "support": {model.cell_axes[v].name: p.near for v, p in seen.placed.items()},
            "index": question.index,
        }
        return RealAnswer(
            question.keys(model),
            lambda key: _belief(model, model.index(key), weights[model.index(key)], rows, question),
            float(log_p[0]) if one else log_p,
            engine=self.name,
            exact=False,
            batched=question.batched,
            details=details,
        )


class _Matrices:
    """Gram matrices of all variables on the rows that know everything, and their regularized inverses."""

    def __init__(self, model: Any, rows: Mapping[str, Array], reg: float) -> None:
        self.model, self.axes, self.reg = model, model.cell_axes, reg
        self.rows = rows
        self.n = len(next(iter(rows.values())))
        self.K = [_gram(axis, rows[axis.name], rows[axis.name]) for axis in self.axes]
        self.inverse = [
            np.linalg.pinv(K, rcond=1e-10, hermitian=True)
            if reg == 0.0
            else np.linalg.inv(K + reg * self.n * np.eye(self.n))
            for K in self.K
        ]
        self.near: list[list[int]] = [[] for _ in self.axes]
        for (a, b), _ in model.ratios:
            self.near[a].append(b)
            self.near[b].append(a)


class _Messages:
    """All messages of one case, each made when it is first asked for."""

    def __init__(self, matrices: _Matrices, seen: Seen, case: int) -> None:
        self.at, self.seen, self.case = matrices, seen, case
        self._found: dict[tuple[int, int], FloatArray] = {}

    def _column(self, t: int) -> FloatArray | None:
        """k_t(x*) where t was observed."""
        if not self.seen.known(t)[self.case]:
            return None
        value = self.seen.values[t][self.case : self.case + 1]
        axis = self.at.axes[t]
        return _gram(axis, self.at.rows[axis.name], value)[:, 0]

    def beta(self, t: int, s: int) -> FloatArray:
        """Weights of the message from t to s."""
        if (t, s) not in self._found:
            k = self._column(t)
            if k is not None:
                found = self.at.n * (self.at.inverse[s] @ (self.at.inverse[t] @ k))
            else:
                found = self.at.inverse[s] @ self.inward(t, s)
            self._found[t, s] = found
        return self._found[t, s]

    def inward(self, t: int, but: int) -> FloatArray:
        """Product of the messages to t at the rows, without that of one neighbor."""
        out = np.ones(self.at.n)
        for u in self.at.near[t]:
            if u != but:
                out = out * (self.at.K[t] @ self.beta(u, t))
        return out

    def belief(self, r: int) -> FloatArray:
        """Weights of the rows for a variable, not normalized."""
        k = self._column(r)
        return self.inward(r, -1) / self.at.n if k is None else self.at.inverse[r] @ k

    def log_p(self) -> float:
        """log p(evidence): its parts that observed variables cut from each other, and p of each value by itself."""
        total = float(self.seen.log_base[self.case])
        done: set[int] = set()
        for root in range(len(self.at.axes)):
            if root in done:
                continue
            stack, part = [root], []
            while stack:
                v = stack.pop()
                if v not in part:
                    part.append(v)
                    stack += self.at.near[v]
            done.update(part)
            total += self._log_part(part)
        return total

    def _log_part(self, part: list[int]) -> float:
        """log of p(evidence) / Π p(each value) in one tree."""
        hidden = [v for v in part if self._column(v) is None]
        start = hidden[0] if hidden else part[0]
        with np.errstate(divide="ignore", invalid="ignore"):
            return float(self._upward(start, -1))

    def _upward(self, v: int, above: int) -> float:
        """log of the sum below v, and of what hangs on observed variables beyond it."""
        total = 0.0
        k = self._column(v)
        if k is None and (above < 0 or self._column(above) is not None):
            total += np.log(max(float(self.inward(v, above) @ self._prior(v, above)), 1e-300))
        for u in self.at.near[v]:
            if u == above:
                continue
            if k is not None and self._column(u) is not None:
                total += np.log(max(float(k @ self.beta(u, v)), 1e-300))
            total += self._upward(u, v)
        return total

    def _prior(self, v: int, above: int) -> FloatArray:
        """Weights of the rows: all the same, or those that an observed variable above tells."""
        if above < 0:
            return np.full(self.at.n, 1.0 / self.at.n)
        k = self._column(above)
        assert k is not None
        return (self.at.K[v] @ self.beta(above, v)) / self.at.n


def _gram(axis: Axis, X: Any, Y: Any) -> FloatArray:
    """The kernel of a variable: Gaussian in its coordinate, on the circle around it; equality of states."""
    if isinstance(axis, LineAxis):
        t, u = (axis.density.coordinate.forward(axis.read(z)) for z in (X, Y))
        d = np.abs(t[:, None] - u)
        d = np.minimum(d, 2.0 * np.pi - d) if axis.circle else d
        return np.asarray(np.exp(-0.5 * (d / axis.widths[1]) ** 2))
    if isinstance(axis, StateAxis):
        return (axis.place(X).a[:, None] == axis.place(Y).a).astype(np.float64)
    assert isinstance(axis, PointAxis)
    return axis.between(X, Y)


def _negative(W: FloatArray) -> FloatArray:
    """Mass of negative weights by the sum of all."""
    total = np.maximum(np.abs(W.sum(axis=1)), 1e-300)
    return np.asarray(-np.minimum(W, 0.0).sum(axis=1) / total)


def _belief(model: Any, v: int, W: FloatArray, rows: Mapping[str, Array], question: Question) -> Any:
    axis = model.cell_axes[v]
    W = np.maximum(W, 0.0)
    total = W.sum(axis=1, keepdims=True)
    W = np.where(total > 0.0, W / np.maximum(total, 1e-300), 1.0 / W.shape[1])
    if isinstance(axis, LineAxis):
        x = axis.read(rows[axis.name])[:, None]
        if not question.batched:
            return SampledBelief((axis.var,), x, W[0])
        from gramgraph.answers import MixtureBelief

        parts = [SampledBelief((axis.var,), x, w)._moments() for w in W]
        mean, cov = np.concatenate([m for m, _ in parts]), np.concatenate([c for _, c in parts])
        return MixtureBelief((axis.var,), np.ones((len(W), 1)), mean[:, None], cov[:, None], batched=True)
    at = axis.place(rows[axis.name])
    p = np.stack([np.bincount(at.a, w * (1.0 - at.f), axis.m) + np.bincount(at.b, w * at.f, axis.m) for w in W])
    how: dict[str, Any] = {"points": axis.points} if isinstance(axis, PointAxis) else {}
    return Belief((axis.cell_var,), p if question.batched else p[0], batched=question.batched, **how)
