"""How well a way to learn does on rows that it has not seen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gramgraph._progress import Progress, reporting
from gramgraph._show import Listing, Shown
from gramgraph._validation import check_choice, check_count, generator
from gramgraph.data.frames import missing_cells, read_frame
from gramgraph.exceptions import OptionError
from gramgraph.models.base import GraphicalModel
from gramgraph.typing import FloatArray, IntArray, RandomState

#: Loss → whether it is about one target.
LOSSES = {"log": False, "error": True, "brier": True, "squared": True}


@dataclass(frozen=True, eq=False, repr=False)
class CrossValidation(Shown):
    """The loss of every row, from the model that was learned without it; lower is better.

    Two results from the same frame, `cv` and `random_state` have the same folds: `minus` compares them row by row.

    Parameters
    ----------
    loss : its name.
    target : the variable that is predicted, or None for all.
    losses : one per row; NaN where the target is missing.
    folds : the fold in which a row was left out.
    models : one for each fold.

    Examples
    --------
    >>> import gramgraph as gg
    >>> net = gg.datasets.sprinkler()
    >>> found = gg.cross_validate(net, net.sample(100, random_state=0), prior="bdeu")
    >>> len(found.losses), len(found.models) == len(found.by_fold)
    (100, True)
    """

    loss: str
    target: str | None
    losses: FloatArray  # one per row; NaN where the target is missing
    folds: IntArray  # the fold in which a row was left out
    models: tuple[Any, ...]

    @property
    def mean(self) -> float:
        """The average loss of a row."""
        return float(np.nanmean(self.losses))

    @property
    def standard_error(self) -> float:
        """Of the mean, as if rows were independent."""
        n = int(np.isfinite(self.losses).sum())
        return float(np.nanstd(self.losses) / np.sqrt(max(n, 1)))

    @property
    def by_fold(self) -> FloatArray:
        """The average loss in each fold."""
        return np.array([np.nanmean(self.losses[self.folds == k]) for k in range(int(self.folds.max()) + 1)])

    def minus(self, other: CrossValidation) -> tuple[float, float]:
        """(difference of the means, its standard error) on the same folds; negative where this one is better."""
        if not np.array_equal(self.folds, other.folds) or self.loss != other.loss:
            raise OptionError("only results with the same loss and the same folds are compared row by row")
        with np.errstate(invalid="ignore"):  # rows that neither can explain
            apart = self.losses - other.losses
        n = int(np.isfinite(apart).sum())
        return float(np.nanmean(apart)), float(np.nanstd(apart) / np.sqrt(max(n, 1)))

    def _shown(self) -> Listing:
        of = f" of {self.target}" if self.target else ""
        rows = [(k, f"{value:.6g}") for k, value in enumerate(self.by_fold.tolist())]
        return Listing(f"{self.loss} loss{of}: {self.mean:.6g} ± {self.standard_error:.2g}", ("fold", "loss"), rows)


def cross_validate(
    learner: Any,
    data: Any,
    *,
    cv: int = 5,
    loss: str = "log",
    target: str | None = None,
    random_state: RandomState = 0,
    progress: Progress = False,
    **options: Any,
) -> CrossValidation:
    """How well a way to learn does on rows that it has not seen: k-fold cross-validation.

    Parameters
    ----------
    learner : a network, whose graph is kept and whose numbers are learned; a function from a frame to a model; or the
        name of a method of `learn_structure`, such as "hill_climb".
    data : a frame.
    cv : number of folds.
    loss : "log" is −log p(row), or −log p(target | the other columns) with a `target`; "error" whether the most
        probable state is wrong, "brier" the squared distance of the probabilities, "squared" that of the mean of a
        number; these need a `target`.
    target : the column that is predicted from the others.
    random_state : decides which rows are left out together; the same number gives the same folds.
    progress : True shows a bar on a terminal; a function is called with (done, total).
    **options : of `fit` or `learn_structure`.

    Returns
    -------
    CrossValidation
        `mean`, `standard_error`, `losses` by row, and `minus(other)` for a paired comparison.

    Examples
    --------
    >>> import gramgraph as gg
    >>> net = gg.datasets.asia()
    >>> frame = net.sample(500, random_state=0)
    >>> right = gg.cross_validate(net, frame, prior="bdeu")
    >>> apart = gg.cross_validate(gg.BayesianNetwork("; ".join(net.variables)), frame, prior="bdeu")
    >>> right.mean < apart.mean, apart.minus(right)[0] > 0
    (True, True)
    """
    check_choice("loss", loss, list(LOSSES))
    frame = _with_categories(read_frame(data).table.reset_index(drop=True))
    n = len(frame)
    check_count("cv", cv, least=2)
    if cv > n:
        raise OptionError(f"{n} rows cannot be parted into cv={cv} folds; use fewer folds")
    if LOSSES[loss] and target is None:
        raise OptionError(f"loss={loss!r} is about one variable: say which with target=…")
    if target is not None:
        read_frame(data).column(target)
    learn = _learner(learner, options)
    folds = np.empty(n, dtype=np.int64)
    folds[generator(random_state).permutation(n)] = np.arange(n) % cv
    losses, models = np.empty(n), []
    with reporting(progress, cv, "folds") as report:
        for k in range(cv):
            models.append(learn(frame[folds != k].reset_index(drop=True)))
            out = folds == k
            losses[out] = _losses(models[-1], frame[out].reset_index(drop=True), loss, target)
            if report is not None:
                report(k + 1)
    return CrossValidation(loss, target, losses, folds, tuple(models))


def _with_categories(frame: Any) -> Any:
    """The frame with its texts as categories, so that a state that is rare is known in every fold."""
    kinds = {name: frame[name].dtype for name in frame.columns}
    texts = [name for name, kind in kinds.items() if kind.kind in "OUb" or str(kind) in ("str", "string")]
    return frame.astype(dict.fromkeys(texts, "category")) if texts else frame


def _learner(given: Any, options: dict[str, Any]) -> Callable[[Any], Any]:
    if isinstance(given, GraphicalModel):
        return lambda frame: given.fit(frame, **options)  # type: ignore[attr-defined]
    if isinstance(given, str):
        from gramgraph.learn.structure import learn_structure

        return lambda frame: learn_structure(frame, method=given, **options)
    if callable(given):
        return lambda frame: given(frame, **options)
    raise OptionError(f"learner is a network, a function of a frame, or the name of a method, not {given!r:.60}")


def _losses(model: GraphicalModel, rows: Any, loss: str, target: str | None) -> FloatArray:
    known = [name for name in rows.columns if name in model]
    if target is None:
        return -np.asarray(model.log_likelihood(rows[known]))
    others = [name for name in known if name != target]
    if loss == "log":
        return np.asarray(model.log_likelihood(rows[others]) - model.log_likelihood(rows[known]))
    seen = ~missing_cells(rows[target])
    out = np.full(len(rows), np.nan)
    if seen.any():
        out[seen] = _of_target(model, rows[seen], others, loss, target)
    return out


def _of_target(model: GraphicalModel, rows: Any, others: list[str], loss: str, target: str) -> FloatArray:
    belief = model.query([target], rows[others])[target]
    if loss == "squared":
        return (np.asarray(belief.mean(), dtype=np.float64).reshape(-1) - rows[target].to_numpy(np.float64)) ** 2
    var = model.var(target)
    if not var.is_discrete:
        raise OptionError(f'{target} is a number: use loss="squared" or loss="log" instead of {loss!r}')
    p = belief.probabilities
    right = np.array([var.index(value) for value in rows[target]])
    if loss == "error":
        return np.asarray(p.argmax(axis=1) != right, dtype=np.float64)
    return np.asarray(((p - np.eye(var.size)[right]) ** 2).sum(axis=1))
