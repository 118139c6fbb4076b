"""Which features matter, exactly: the subset with the best score, by branch and bound over all of them."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import Any

import numpy as np

from gramgraph._progress import Progress, reporting
from gramgraph._validation import check_choice, check_count, check_positive
from gramgraph.learn.l1_path import METHODS, RIDGE, Walk
from gramgraph.learn.log_linear import make_problem, spread
from gramgraph.models import LogLinear, MarkovNetwork
from gramgraph.typing import Array, FloatArray


@dataclass(frozen=True, eq=False)
class FeatureSubset:
    """The features that were selected, with the model that is fitted to them alone.

    `score` is the extended BIC, smaller is better; `bound` is what no subset can be below: where both agree (`exact`),
    the subset is the best of all.

    Parameters
    ----------
    names : of the variables.
    weights : of the features that were selected.
    score : extended BIC, smaller is better.
    bound : what no subset can be below.
    n_fits : how many models were fitted.
    method : how the weights were fitted.
    model : with these features alone.

    Examples
    --------
    >>> import gramgraph as gg
    >>> net = gg.MarkovNetwork(edges=[("a", "b")], states={"a": 2, "b": 2})
    >>> data = {"a": ["0", "1"] * 50, "b": ["0", "1"] * 49 + ["1", "0"]}
    >>> found = best_subset(net, data)
    >>> found.score >= found.bound
    True
    """

    names: tuple[str, ...]
    weights: FloatArray
    score: float
    bound: float
    n_fits: int
    method: str
    model: Any

    @property
    def selected(self) -> tuple[str, ...]:
        """Features whose weights are free."""
        return tuple(name for name, w in zip(self.names, self.weights, strict=True) if w != 0)

    @property
    def exact(self) -> bool:
        """Whether it is known that no subset is better."""
        return self.bound >= self.score - 1e-9 * abs(self.score)

    def __repr__(self) -> str:
        known = "the best" if self.exact else f"within {self.score - self.bound:.3g} of the best"
        return (
            f"FeatureSubset({len(self.selected)} of {len(self.names)} weights, {self.method}; score {self.score:.6g}, "
            f"{known}, {self.n_fits} fits)"
        )


def best_subset(
    model: MarkovNetwork | LogLinear,
    data: Any,
    *,
    method: str = "auto",
    gamma: float = 0.5,
    max_fits: int = 500,
    l2: float = 0.0,
    tie: Any = None,
    weights: Any = None,
    missing: str = "rows",
    max_iter: int = 1000,
    tol: float = 1e-6,
    progress: Progress = False,
) -> FeatureSubset:
    """The subset of features with the least −2 L + k log N + 2 gamma k log K (gamma 0: BIC), k of K weights being free.

    Fewer features never fit better, so the fit without some features bounds all subsets that lack them: the search
    walks from all features downwards, most promising bound first, and drops what cannot win. Steps that add or take one
    feature come first. After `max_fits` fits the best so far is given, with the bound. Other arguments as
    `feature_path`, which follows L1 penalties instead.

    >>> import gramgraph as gg
    >>> frame = gg.models.ising_grid(1, 4, coupling=0.6).sample(2000, random_state=0)
    >>> every = {(a, b): np.ones((2, 2)) for a in frame for b in frame if a < b}
    >>> found = best_subset(gg.MarkovNetwork(every, states={v: ["-1", "+1"] for v in frame}), frame)
    >>> sorted(name for name in found.selected if "·" in name), found.exact
    (['x0_0·x0_1', 'x0_1·x0_2', 'x0_2·x0_3'], True)
    """
    check_choice("method", method, METHODS)
    check_positive("gamma", gamma, zero=True)
    check_count("max_fits", max_fits)
    problem = make_problem(model, data, method=method, l1=1.0, l2=l2, weights=weights, missing=missing, tie=tie)
    search = _Search(Walk(problem, None, float(gamma), True, max_iter, tol), int(max_fits))
    with reporting(progress, int(max_fits)) as report:
        search.run(report)
    design = problem.design
    found = search.best_weights
    made: Any
    if isinstance(model, LogLinear):
        made = model.with_weights(spread(model, tie, found))
    else:
        made = MarkovNetwork.from_parts(design.variables, design.factors(found), name=model.name)
    return FeatureSubset(design.names, found, search.best, search.bound, len(search.known), problem.method, made)


class _Search:
    """Fits by subset, the best one, and what is left to look at."""

    def __init__(self, walk: Walk, most: int) -> None:
        self.walk, self.most = walk, most
        self.known: dict[bytes, tuple[FloatArray, float]] = {}
        self.fixed = ~walk.held
        self.n = float(walk.problem.table.total)
        k = len(self.fixed)
        self.price = float(np.log(self.n) + 2.0 * walk.gamma * np.log(max(k, 1)))
        self.best, self.bound = np.inf, -np.inf
        self.best_weights = np.zeros(k)

    def fit(self, mask: Array, start: FloatArray) -> tuple[FloatArray, float]:
        """Weights on a mask and −2 L there; a better score is remembered."""
        key = mask.tobytes()
        if key not in self.known:
            w = self.walk.best_on(mask, start, np.maximum(self.walk.problem.l2, RIDGE))
            self.known[key] = w, -2.0 * self.n * self.walk.objective(w)[0]
            score = self.known[key][1] + self.price * int(mask.sum())
            if score < self.best - 1e-9:
                self.best, self.best_weights = score, w
        return self.known[key]

    def run(self, report: Any) -> None:
        """Steps of one feature first, then branch and bound."""
        whole = np.ones(len(self.fixed), dtype=bool)
        w, loss = self.fit(whole, np.zeros(len(whole)))
        self._steps(whole, w)
        heap: list[tuple[float, int, bytes, bytes]] = []
        count = 0

        def push(loss: float, mask: Array, kept: Array) -> None:
            nonlocal count
            low = loss + self.price * int(kept.sum())
            if low < self.best - 1e-9:
                count += 1
                heapq.heappush(heap, (low, count, mask.tobytes(), kept.tobytes()))

        push(loss, whole, self.fixed)
        while heap and heap[0][0] < self.best - 1e-9:
            if len(self.known) >= self.most:
                self.bound = heap[0][0]
                return
            _, _, a, b = heapq.heappop(heap)
            mask, kept = np.frombuffer(a, dtype=bool), np.frombuffer(b, dtype=bool)
            free = np.flatnonzero(mask & ~kept)
            if not len(free):
                continue
            w, loss = self.known[a]
            j = free[np.abs(w[free]).argmax()]  # without the strongest the bound rises most
            push(loss, mask, _with(kept, j, True))
            without = _with(mask, j, False)
            push(self.fit(without, w)[1], without, kept)
            if report is not None:
                report(min(len(self.known), self.most))
        self.bound = self.best

    def _steps(self, mask: Array, w: FloatArray) -> None:
        """From all features take the weakest away as long as the score falls, then exchange single ones."""
        while len(self.known) < self.most:
            before = self.best
            order = np.flatnonzero(mask & ~self.fixed)
            order = order[np.argsort(np.abs(w[order]))]
            for j in order[:3]:
                self.fit(_with(mask, j, False), w)
            if self.best >= before - 1e-9:
                return
            w = self.best_weights
            mask = (w != 0) | self.fixed


def _with(mask: Array, j: int, value: bool) -> Array:
    out = mask.copy()
    out[j] = value
    return out
