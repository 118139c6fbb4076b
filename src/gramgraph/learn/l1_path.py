"""Which features matter: log-linear models along a path of L1 penalties, and the choice among them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gramgraph._interrupt import check_interrupt, interruptible
from gramgraph._progress import Progress, reporting
from gramgraph._validation import check_choice, check_count, check_fraction, check_positive, generator
from gramgraph.data.counts import Counts
from gramgraph.exceptions import OptionError
from gramgraph.learn.ascent import climb
from gramgraph.learn.log_linear import Likelihood, Problem, make_problem, spread
from gramgraph.models import LogLinear, MarkovNetwork
from gramgraph.typing import Array, FloatArray, IntArray, RandomState

METHODS = ("auto", "exact", "bp", "pseudo_likelihood")
SCORES = ("ebic", "held_out")
#: A pull that keeps refitted weights finite where the data part completely.
RIDGE = 1e-6
Objective = Callable[[FloatArray], tuple[float, FloatArray]]


@dataclass(frozen=True, eq=False)
class FeaturePath:
    """Weights at every penalty, from the largest (nothing but what is not penalized) to the smallest.

    `scores` are smaller-is-better: the extended BIC, or minus the objective of the rows held out, per row.

    Parameters
    ----------
    names : of the variables.
    penalties : (steps,) from large to small.
    weights : (steps, weights), penalized.
    values : (steps,) the objective summed over the rows.
    scores : (steps,), smaller is better.
    score_name : what they are.
    method : how the weights were fitted.
    best : the step with the smallest score.
    chosen : (weights,) of that step.
    model : the model with these weights.

    Examples
    --------
    >>> import gramgraph as gg
    >>> net = gg.datasets.sprinkler()
    >>> path = feature_path(net.to_markov_network(), net.sample(200, random_state=0), n_penalties=5)
    >>> len(path.penalties), path.weights.shape[0]
    (5, 5)
    """

    names: tuple[str, ...]
    penalties: FloatArray  # (steps,)
    weights: FloatArray  # (steps, weights), penalized
    values: FloatArray  # (steps,) the objective summed over the rows, of the refitted support where asked for
    scores: FloatArray  # (steps,)
    score_name: str
    method: str
    best: int  # the step with the smallest score
    chosen: FloatArray  # (weights,) of that step, refitted where asked for
    model: Any  # the network or log-linear model with these weights

    @property
    def n_active(self) -> IntArray:
        """How many weights are not zero at every step."""
        return np.asarray(np.count_nonzero(self.weights, axis=1))

    @property
    def selected(self) -> tuple[str, ...]:
        """Features of the best step."""
        return tuple(name for name, w in zip(self.names, self.chosen, strict=True) if w != 0)

    def to_frame(self) -> Any:
        """One row a penalty."""
        import pandas as pd

        return pd.DataFrame(
            {"penalty": self.penalties, "active": self.n_active, "value": self.values, self.score_name: self.scores}
        )

    def plot(self, ax: Any = None) -> Any:
        """Weights over the penalty, with the chosen one marked."""
        if ax is None:
            from matplotlib import pyplot as plt

            ax = plt.subplots()[1]
        ax.semilogx(self.penalties, self.weights)
        ax.axvline(self.penalties[self.best], color="0.5", linestyle=":")
        ax.invert_xaxis()
        ax.set_xlabel("L1 penalty")
        ax.set_ylabel("weight")
        return ax

    def __repr__(self) -> str:
        return (
            f"FeaturePath({len(self.penalties)} penalties, {self.method}; best by {self.score_name}: "
            f"{self.penalties[self.best]:.3g} with {np.count_nonzero(self.chosen)} of {len(self.names)} weights)"
        )


def feature_path(
    model: MarkovNetwork | LogLinear,
    data: Any,
    *,
    method: str = "auto",
    penalties: Sequence[float] | None = None,
    n_penalties: int = 20,
    ratio: float = 0.01,
    score: str = "ebic",
    gamma: float = 0.5,
    held_out: float = 0.2,
    refit: bool = True,
    l2: float = 0.0,
    tie: Any = None,
    weights: Any = None,
    missing: str = "rows",
    max_iter: int = 1000,
    tol: float = 1e-6,
    random_state: RandomState = None,
    progress: Progress = False,
) -> FeaturePath:
    """Fit with L1 penalties from the first that lets a feature in down to `ratio` of it, each from the last weights.

    Parameters
    ----------
    model : a `LogLinear` (its features compete) or a `MarkovNetwork` (the effects of its scopes; those of single
        variables are not penalized).
    method : "exact", "bp" or "pseudo_likelihood"; "auto" as in `MarkovNetwork.fit`.
    penalties : the path itself, if not `n_penalties` of equal ratio.
    score : "ebic": -2 L + k log N + 2 gamma k log K with k of K weights not zero; "held_out": minus the objective, per
        row, of a share `held_out` of the rows, drawn with `random_state`, which the path then does not see.
    refit : whether each support is fitted again without the L1 penalty before it is scored, and in the answer.
    data : a frame, a dict of columns, a path or a stream.
    n_penalties : how many.
    ratio : the last penalty as a share of the first.
    gamma : of the extended BIC.
    held_out : share of the rows that choose the penalty; None takes the extended BIC.
    l2 : a quadratic penalty beside.
    tie : groups of features that share a weight, or None.
    weights : of the rows; None for equal ones.
    missing : what to do with rows that have gaps.
    max_iter : most steps that are taken.
    tol : below which a change counts as none.
    random_state : seed, or a generator.
    progress : True shows how far it is, or a function of (done, total).

    Examples
    --------
    >>> import gramgraph as gg
    >>> frame = gg.models.ising_grid(2, 3, coupling=0.6).sample(2000, random_state=0)
    >>> every = {(a, b): np.ones((2, 2)) for a in frame for b in frame if a < b}
    >>> path = feature_path(gg.MarkovNetwork(every, states={v: ["-1", "+1"] for v in frame}), frame)
    >>> sorted(name for name in path.selected if "·" in name)
    ['x0_0·x0_1', 'x0_0·x1_0', 'x0_1·x0_2', 'x0_1·x1_1', 'x0_2·x1_2', 'x1_0·x1_1', 'x1_1·x1_2']
    """
    check_choice("method", method, METHODS)
    check_choice("score", score, SCORES)
    check_fraction("ratio", ratio)
    check_fraction("held_out", held_out)
    check_positive("gamma", gamma, zero=True)
    problem = make_problem(
        model, data, method=method, l1=1.0, l2=l2, weights=weights, missing=missing, tie=tie
    )  # fmt: skip
    rng = generator(random_state)
    seen, test = (problem, None) if score == "ebic" else _parted(problem, held_out, rng)
    walk = Walk(seen, test, float(gamma), refit, max_iter, tol)
    path = walk.penalties(penalties, n_penalties, ratio)
    with reporting(progress, len(path)) as report:
        walk.run(path, report)
    return walk.result(model, problem, tie, score)


def _parted(problem: Problem, share: float, rng: np.random.Generator) -> tuple[Problem, Objective]:
    """(the problem of the rows that are kept, the objective of the rows held out)."""
    n = len(problem.table)
    test = round(share * n)
    if not 1 <= test < n:
        raise OptionError(f"{share:g} of {n} rows cannot be held out: give more rows, or score='ebic'")
    order = rng.permutation(n)
    tables = [problem.table.take(np.sort(part)) for part in (order[test:], order[:test])]
    if min(table.total for table in tables) <= 0:
        raise OptionError("the rows held out, or those that are left, have no weight")
    kept, out = (replace(problem, table=table, counts=Counts(table)) for table in tables)
    return kept, out.objective()


class Walk:
    """One path: warm starts, refits by support, scores."""

    def __init__(
        self, problem: Problem, test: Objective | None, gamma: float, refit: bool, max_iter: int, tol: float
    ) -> None:
        self.problem, self.test, self.gamma, self.refit = problem, test, gamma, refit
        self.limits = {"max_iter": max_iter, "tol": tol}
        self.objective = problem.objective()
        if isinstance(self.objective, Likelihood):  # one compiled tree serves all
            self.problem = replace(problem, expectations=self.objective.expectations)
        self.held = problem.l1 > 0
        self.steps: list[tuple[float, FloatArray, FloatArray, float, float]] = []
        self._known: dict[bytes, tuple[FloatArray, float]] = {}
        self.start = self.best_on(~self.held, np.zeros(problem.design.n_weights), problem.l2)

    def best_on(self, mask: Array, start: FloatArray, l2: FloatArray) -> FloatArray:
        """The best weights that are zero outside the mask, without L1."""
        free = np.flatnonzero(mask)

        def part(w: FloatArray) -> tuple[float, FloatArray]:
            full = np.zeros(len(mask))
            full[free] = w
            value, gradient = self.objective(full)
            return value, gradient[free]

        found = climb(part, start[free], l1=np.zeros(len(free)), l2=l2[free], **self.limits)  # type: ignore[arg-type]
        if found.interrupted:
            raise KeyboardInterrupt
        out = np.zeros(len(mask))
        out[free] = found.weights
        return out

    def penalties(self, given: Sequence[float] | None, n: int, ratio: float) -> FloatArray:
        """From large to small."""
        if given is not None:
            path = np.sort(np.asarray(given, np.float64))[::-1]
            if path.ndim != 1 or not len(path) or not np.isfinite(path).all() or path[-1] <= 0:
                raise OptionError("penalties are positive numbers")
            return path
        check_count("n_penalties", n)
        gradient = self.objective(self.start)[1]
        top = float(np.abs(gradient[self.held]).max(initial=0.0))
        top = top if top > 0 else 1.0
        return np.geomspace(top, ratio * top, int(n))

    @interruptible()
    def run(self, path: FloatArray, report: Any) -> None:
        """Follow the path; Ctrl-C keeps the steps so far."""
        w = self.start
        try:
            for step, penalty in enumerate(path):
                check_interrupt()
                l1 = np.where(self.held, penalty, 0.0)
                found = climb(self.objective, w, l1=l1, l2=self.problem.l2, **self.limits)  # type: ignore[arg-type]
                if found.interrupted:
                    raise KeyboardInterrupt
                w = found.weights
                final, value = self._judged(w)
                self.steps.append((float(penalty), w, final, value, self._score(final, value)))
                if report is not None:
                    report(step + 1)
        except KeyboardInterrupt:
            if not self.steps:
                raise

    def _judged(self, w: FloatArray) -> tuple[FloatArray, float]:
        """(refitted weights, objective a row)."""
        if not self.refit:
            return w, self.objective(w)[0]
        mask = (w != 0) | ~self.held
        key = mask.tobytes()
        if key not in self._known:
            final = self.best_on(mask, w, np.maximum(self.problem.l2, RIDGE))
            self._known[key] = (final, self.objective(final)[0])
        return self._known[key]

    def _score(self, w: FloatArray, value: float) -> float:
        if self.test is not None:
            return -self.test(w)[0]
        total, k = self.problem.table.total, int(np.count_nonzero(w))
        return -2 * total * value + k * np.log(total) + 2 * self.gamma * k * np.log(max(len(w), 1))

    def result(self, model: MarkovNetwork | LogLinear, problem: Problem, tie: Any, score: str) -> FeaturePath:
        """The path with its best step; after a test on rows held out, the winner is fitted to all rows."""
        penalties, weights, finals, values, scores = (np.array(part) for part in zip(*self.steps, strict=True))
        best = int(np.argmin(scores))
        chosen = finals[best]
        if self.test is not None:
            whole = Walk(problem, None, self.gamma, self.refit, **self.limits)  # type: ignore[arg-type]
            whole.run(penalties[: best + 1], None)
            chosen = whole.steps[-1][2]
        design = problem.design
        made: MarkovNetwork | LogLinear
        if isinstance(model, LogLinear):
            made = model.with_weights(spread(model, tie, chosen))
        else:
            made = MarkovNetwork.from_parts(design.variables, design.factors(chosen), name=model.name)
        return FeaturePath(
            design.names,
            penalties,
            weights,
            values * self.problem.table.total,
            scores=scores,
            score_name=score,
            method=problem.method,
            best=best,
            chosen=chosen,
            model=made,
        )
