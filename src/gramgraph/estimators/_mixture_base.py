"""What mixtures share: EM from several starts, the number of components, densities, questions to the network."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from gramgraph._interrupt import interruptible
from gramgraph._numerics.mixtures.statistics import normalize_logs
from gramgraph._progress import reporting
from gramgraph._validation import check_choice, check_count, check_positive
from gramgraph.estimators._numbers import column_names, read_weights
from gramgraph.estimators._sound import SoundNumbers
from gramgraph.exceptions import ConvergenceWarning, ModelError, ModelWarning, OptionError
from gramgraph.learn.em import OBJECTIVES, EMReport
from gramgraph.machines.mixtures.choose import CHOICES, Candidate, folds
from gramgraph.machines.mixtures.em import Climb, best_climb, climb
from gramgraph.models import BayesianNetwork
from gramgraph.typing import FloatArray, IntArray

#: The hidden variable of `network_`.
LATENT = "z"


class MixtureEstimator(DensityMixin, SoundNumbers, BaseEstimator):  # type: ignore[misc]
    """Base of mixtures p(x) = Σ_k π_k p(x | k). Subclasses say how rows are read, where EM starts and what it finds."""

    n_components: Any
    choose: str | None
    cv: int
    concentration: float
    tol: float
    max_iter: int
    n_init: int
    random_state: Any
    progress: Any
    #: Criteria for the number of components that the family knows.
    _choices: ClassVar[tuple[str, ...]] = ("bic", "aic", "cv")

    # ------------------------------------------------------------------------------------------ of the family

    def _read(self, X: Any, *, reset: bool) -> Any:
        raise NotImplementedError

    def _prepare(self, X: Any, w: FloatArray | None) -> None:
        """Look at the training rows once, before any start."""

    def _rows(self, X: Any, w: FloatArray | None) -> Any:
        raise NotImplementedError

    def _start(self, rows: Any, X: Any, w: FloatArray | None, k: int, rng: Any) -> Any:
        raise NotImplementedError

    def _store(self, parameters: Any) -> None:
        raise NotImplementedError

    def _parameters(self) -> Any:
        raise NotImplementedError

    def _free(self, k: int) -> int:
        raise NotImplementedError

    def _network(self, latent: str) -> BayesianNetwork:
        raise NotImplementedError

    def _draw(self, z: IntArray, rng: np.random.Generator) -> Any:
        raise NotImplementedError

    def _log_volume(self, X: Any) -> Any:
        """What a row's log density gains when it comes back to the user's units."""
        return 0.0

    # ------------------------------------------------------------------------------------------ learning

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    @interruptible()
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn the components by EM; `sample_weight` counts a row several times."""
        self._check_options()
        X = self._read(X, reset=True)
        w = read_weights(sample_weight, X)
        if w is not None and (w == 0.0).any():
            X, w = X[w > 0.0], w[w > 0.0]
        self._forget()
        self._prepare(X, w)
        counts = self._counts(len(X))
        rng = check_random_state(self.random_state)
        total = len(counts) * self.n_init * (self.max_iter + 1)
        with reporting(self.progress, total, "steps of EM") as report:
            done = [0]

            def tell(step: int) -> None:
                done[0] += 1
                if report is not None:
                    report(min(done[0], total))

            found = self._candidates(X, w, counts, rng, tell)
            if report is not None:
                report(total)
        self._take(min(found, key=lambda one: one.criterion), found, float(len(X) if w is None else w.sum()))
        return self

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> IntArray:
        """Learn, and tell the most probable component of every row."""
        return self.fit(X, sample_weight=sample_weight).predict(X)

    def _check_options(self) -> None:
        check_positive("tol", self.tol, zero=True)
        check_positive("concentration", self.concentration)
        for name in ("max_iter", "n_init"):
            check_count(name, getattr(self, name))
        if self.choose is not None:
            known = [name for name in CHOICES if name in self._choices]
            check_choice("choose", self.choose, (None, *known))
        if self.choose == "cv":
            check_count("cv", self.cv, 2)

    def _forget(self) -> None:
        for name in ("network_", "_online"):
            self.__dict__.pop(name, None)

    def _counts(self, n: int) -> list[int]:
        """Numbers of components to compare."""
        given = self.n_components
        if isinstance(given, Iterable) and not isinstance(given, str):
            counts = sorted({check_count("n_components", k) for k in given})
            if not counts:
                raise OptionError("n_components holds no number to choose from")
        else:
            most = check_count("n_components", given)
            counts = list(range(1, most + 1)) if self.choose not in (None, "dirichlet") else [most]
        if counts[-1] > n and len(counts) > 1 and counts[0] <= n:
            counts = [k for k in counts if k <= n]
        if counts[-1] > n:
            raise ModelError(
                f"n_components is {counts[-1]}, but there are only n_samples={n} rows: each component needs one"
            )
        return counts

    def _candidates(
        self, X: Any, w: FloatArray | None, counts: list[int], rng: np.random.RandomState, tell: Any
    ) -> list[Candidate]:
        rows = self._rows(X, w)
        if len(counts) == 1:
            return [Candidate(counts[0], 0.0, self._runs(rows, X, w, counts[0], rng, tell))]
        found = []
        parts = folds(len(X), self.cv, rng) if self.choose == "cv" else []
        for k in counts:
            run = self._runs(rows, X, w, k, rng, tell)
            if parts:
                criterion = self._left_out(X, w, k, parts, rng)
            else:
                n = float(len(X) if w is None else w.sum())
                penalty = 2.0 if self.choose == "aic" else np.log(n)
                criterion = penalty * self._free(k) - 2.0 * (run.log_likelihood + self._total_volume(X, w))
            found.append(Candidate(k, float(criterion), run))
        return found

    def _runs(self, rows: Any, X: Any, w: Any, k: int, rng: Any, tell: Any) -> Climb[Any]:
        return best_climb(
            [
                climb(rows, self._start(rows, X, w, k, rng), self.max_iter, self.tol, tell)
                for _ in range(self.n_init if k > 1 else 1)
            ]
        )

    def _left_out(self, X: Any, w: Any, k: int, parts: Any, rng: Any) -> float:
        """Minus the mean log density of rows that were left out."""
        total = weight = 0.0
        for inside, outside in parts:
            if len(inside) < k:
                return np.inf
            own = None if w is None else w[inside]
            run = self._runs(self._rows(X[inside], own), X[inside], own, k, rng, lambda step: None)
            logs = self._rows(X[outside], None).logs(run.parameters).T.copy()
            found = normalize_logs(logs) + self._log_volume(X[outside])
            share = np.ones(len(outside)) if w is None else w[outside]
            total += float(share @ found)
            weight += float(share.sum())
        return -total / weight

    def _total_volume(self, X: Any, w: FloatArray | None) -> float:
        volume = np.broadcast_to(self._log_volume(X), len(X))
        return float(volume.sum() if w is None else w @ volume)

    def _take(self, best: Candidate, found: list[Candidate], total: float) -> None:
        run = best.run
        self.n_components_ = len(run.parameters.weights)
        self._store(run.parameters)
        # the objective in the user's units: a constant apart from ours
        shift = getattr(self, "_shift", 0.0)
        trace = tuple(value + shift for value in run.trace)
        self.converged_, self.n_iter_ = run.converged, max(len(run.trace) - 1, 1)
        self.lower_bound_ = trace[-1] / total
        self.report_ = EMReport(
            run.log_likelihood + shift, trace, run.converged, self.n_init, OBJECTIVES[self._has_prior()]
        )
        self.selection_ = [(one.n_components, one.criterion) for one in found] if len(found) > 1 else []
        if run.fell:
            warnings.warn(
                f"EM stopped before a step that would lower its objective by {run.fell:.3g}: the numbers are too "
                "extreme for it. Bring the columns to similar scales, or give a prior",
                ModelWarning,
                stacklevel=4,
            )
        elif not run.converged:
            warnings.warn(
                f"EM did not converge in {self.max_iter} steps. Raise max_iter, or tol; report_ shows the way",
                ConvergenceWarning,
                stacklevel=4,
            )

    def _has_prior(self) -> bool:
        return self.concentration != 1.0

    def selection_frame(self) -> Any:
        """What the criterion says of every number of components, a data frame; smaller is better."""
        import pandas as pd

        check_is_fitted(self)
        return pd.DataFrame(self.selection_, columns=["n_components", self.choose or "bic"])

    # ------------------------------------------------------------------------------------------ answers

    def _joint(self, X: Any) -> tuple[FloatArray, FloatArray]:
        """Responsibilities (k, n) and log densities (n,) of rows as `_read` gave them."""
        logs = np.ascontiguousarray(self._rows(X, None).logs(self._parameters()).T)
        found = normalize_logs(logs)
        return logs, found

    def predict_proba(self, X: Any) -> FloatArray:
        """Responsibilities p(component | row), (rows, components)."""
        check_is_fitted(self)
        return np.ascontiguousarray(self._joint(self._read(X, reset=False))[0].T)

    def predict(self, X: Any) -> IntArray:
        """The most probable component of each row."""
        check_is_fitted(self)
        return np.asarray(self._joint(self._read(X, reset=False))[0].argmax(axis=0))

    def score_samples(self, X: Any) -> FloatArray:
        """log p(row), missing cells integrated out."""
        check_is_fitted(self)
        X = self._read(X, reset=False)
        return np.asarray(self._joint(X)[1] + self._log_volume(X))

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Mean log density of the rows."""
        found = self.score_samples(X)
        return float(np.average(found, weights=sample_weight))

    def bic(self, X: Any) -> float:
        """−2 log-likelihood + log(n) · free parameters; smaller is better."""
        found = self.score_samples(X)
        return float(-2.0 * found.sum() + np.log(len(found)) * self._free(self.n_components_))

    def aic(self, X: Any) -> float:
        """−2 log-likelihood + 2 · free parameters; smaller is better."""
        return float(-2.0 * self.score_samples(X).sum() + 2.0 * self._free(self.n_components_))

    def sample(self, n_samples: int = 1, *, random_state: Any = None) -> tuple[Any, IntArray]:
        """Rows (a frame where the model learned from one) and the components they came from."""
        check_is_fitted(self)
        n = check_count("n_samples", n_samples)
        state = self.random_state if random_state is None else random_state
        rng = np.random.default_rng(check_random_state(state).randint(2**31 - 1))
        z = np.sort(rng.choice(self.n_components_, n, p=self.weights_))
        found = self._draw(z, rng)
        if hasattr(self, "feature_names_in_") and not hasattr(found, "columns"):
            import pandas as pd

            found = pd.DataFrame(found, columns=self.feature_names_in_)
        return found, z

    @cached_property
    def network_(self) -> BayesianNetwork:
        """The mixture as a Bayesian network: a hidden variable z with the components as states, and the columns."""
        check_is_fitted(self, "weights_")
        names = column_names(self, self.n_features_in_)
        latent = LATENT
        while latent in names:
            latent += "_"
        return self._network(latent)

    def query(self, targets: Any = None, evidence: Any = None, **options: Any) -> Any:
        """A question to `network_`; see `BayesianNetwork.query`."""
        return self.network_.query(targets, evidence=evidence, **options)

    def plot(self, ax: Any = None, **options: Any) -> Any:
        """Rows of `X=` and the components; see `gg.plot.plot_mixture`."""
        from gramgraph._pictures import pictures

        return pictures().plot_mixture(self, ax=ax, **options)
