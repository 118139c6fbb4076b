"""Tables that are not known exactly: Dirichlet posteriors, updates with forgetting, intervals for answers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gramgraph._progress import Progress, reporting
from gramgraph._validation import check_fraction, generator
from gramgraph.answers import Key
from gramgraph.answers.credible import CredibleAnswer, tail_of
from gramgraph.data.frames import read_frame
from gramgraph.data.stream import is_stream
from gramgraph.exceptions import ModelError, OptionError, VariableError
from gramgraph.learn.matching import check_columns
from gramgraph.learn.normalized import draw_rows, tables_from
from gramgraph.learn.parameters import add_up, count_cases, family_counts, pseudo_counts
from gramgraph.learn.posterior_gaps import METHODS, gibbs_posterior, variational_posterior
from gramgraph.models import BayesianNetwork
from gramgraph.typing import FloatArray, RandomState


@dataclass(frozen=True, eq=False)
class ParameterPosterior:
    """What is known of a network's tables: row j of a table is Dirichlet(prior_j + counts_j), each independent.

    `prior` and `counts` hold one array per variable, shape (*parent sizes, child size). `mean()` is the network for
    predictions: p(x | data) is its joint. `query` asks how far the answers themselves are known.

    Parameters
    ----------
    network : the graph and its states.
    prior : one array of pseudo counts for each variable.
    counts : one array for each variable.
    report : how gaps were taken into account, or None.

    Examples
    --------
    >>> import gramgraph as gg
    >>> frame = gg.datasets.asia().sample(200, random_state=0)
    >>> posterior = gg.datasets.asia().fit_posterior(frame, prior="bdeu")
    >>> belief = posterior.query("lung", {"smoke": "yes"}, draws=200, random_state=0)["lung"]
    >>> low, high = belief.interval(0.9)
    >>> bool((low < belief.mean).all() and (belief.mean < high).all())
    True
    """

    network: BayesianNetwork
    prior: tuple[FloatArray, ...]
    counts: tuple[FloatArray, ...]
    report: Mapping[str, Any] | None = None  # how gaps were taken into account, where there were some

    @property
    def _alpha(self) -> list[FloatArray]:
        return add_up(list(self.counts), list(self.prior))

    def alpha(self, name: str) -> FloatArray:
        """The Dirichlet parameters of a variable's table."""
        return self._alpha[self.network.index(name)]

    def mean(self) -> BayesianNetwork:
        """The network whose tables are the posterior means."""
        return tables_from(self.network, self.network.vars, self._alpha)

    def draw(self, random_state: RandomState = None) -> BayesianNetwork:
        """A network whose tables are drawn from the posterior."""
        return _drawn(self.network, self._alpha, generator(random_state))

    def interval(self, name: str, level: float = 0.9) -> tuple[FloatArray, FloatArray]:
        """Bounds of every cell of a variable's table: quantiles of Beta(α, Σα − α), each cell for itself."""
        from scipy.stats import beta

        a = self.alpha(name)
        tail = tail_of(level)
        rest = a.sum(axis=-1, keepdims=True) - a
        with np.errstate(invalid="ignore"):
            low, high = beta.ppf(tail, a, rest), beta.ppf(1.0 - tail, a, rest)
        sure = (a > 0) & (rest <= 0)  # the only state that can be
        return (
            np.where(a > 0, np.where(sure, 1.0, low), 0.0),
            np.where(a > 0, np.where(sure, 1.0, high), 0.0),
        )

    def query(
        self,
        targets: Any = None,
        evidence: Any = None,
        *,
        draws: int = 500,
        level: float = 0.9,
        random_state: RandomState = None,
        progress: Progress = False,
        **options: Any,
    ) -> CredibleAnswer:
        """p(targets | evidence) with its uncertainty: the question is asked to `draws` networks from the posterior.

        `options` are those of `BayesianNetwork.query`. Cost: one query per draw.
        """
        if not isinstance(draws, (int, np.integer)) or draws < 2:
            raise OptionError(f"draws is a count from 2, not {draws!r}")
        tail_of(level)
        best = self.mean().query(targets, evidence, **options)
        rng = generator(random_state)
        alpha = self._alpha
        found: dict[Key, list[FloatArray]] = {key: [] for key in best}
        with reporting(progress, int(draws), "draws") as report:
            for i in range(draws):
                answer = _drawn(self.network, alpha, rng).query(targets, evidence, **options)
                for key, values in found.items():
                    values.append(answer[key].probabilities)
                if report is not None:
                    report(i + 1)
        return CredibleAnswer(best, {key: np.stack(values) for key, values in found.items()}, level)

    def update(
        self,
        data: Any,
        *,
        weights: Any = None,
        forget: float = 1.0,
        client: Any = None,
        progress: Progress = False,
    ) -> ParameterPosterior:
        """The posterior after more rows; with `forget` < 1 the rows before count that much less (the prior stays).

        Without forgetting any number of batches in any order gives the same. With it, batches of n rows weigh like
        n / (1 − forget) rows in the long run. Weights count like repetitions.

        >>> import gramgraph as gg
        >>> days = {"rain": ["no", "no", "yes"], "wet": ["no", "no", "yes"]}
        >>> posterior = gg.BayesianNetwork("rain -> wet").fit_posterior(days, prior="k2")
        >>> posterior.update(days, forget=0.5).alpha("rain").tolist()  # 1 + 0.5 * [2, 1] + [2, 1]
        [4.0, 2.5]
        """
        check_fraction("forget", forget, ends=True)
        new = _counted(self.network, data, weights, client, progress)
        counts = [forget * old + more for old, more in zip(self.counts, new, strict=True)]
        return replace(self, counts=_frozen(counts))

    def stream(self, batches: Iterable[Any], *, forget: float = 1.0) -> Iterator[ParameterPosterior]:
        """The posterior after each batch: the same as `update` batch by batch."""
        posterior = self
        for batch in batches:
            posterior = posterior.update(batch, forget=forget)
            yield posterior

    def __repr__(self) -> str:
        rows = max((float(found.sum()) for found in self.counts), default=0.0)
        return f"ParameterPosterior({len(self.network)} variables, {rows:g} rows)"


def fit_posterior(
    net: BayesianNetwork,
    data: Any,
    *,
    prior: Any = "bdeu",
    equivalent_sample_size: float = 10.0,
    weights: Any = None,
    client: Any = None,
    progress: Progress = False,
    hidden: Iterable[str] = (),
    method: str = "variational",
    max_iter: int = 500,
    tol: float = 1e-8,
    draws: int = 2000,
    random_state: RandomState = None,
) -> ParameterPosterior:
    """The posterior of a network's tables; see `BayesianNetwork.fit_posterior`."""
    if not net.is_discrete:
        raise ModelError("Dirichlet posteriors are for networks of discrete variables")
    data = data if is_stream(data) else read_frame(data)
    check_columns(net, data, hidden=hidden, weights=weights, stacklevel=4)
    if method not in METHODS:
        raise OptionError(f"method is 'variational' or 'gibbs', not {method!r}")
    found = count_cases(net, data, weights=weights, client=client, progress=progress)
    extra = pseudo_counts(net, found.variables, prior, equivalent_sample_size)
    for var, more in zip(found.variables, extra, strict=True):
        if not (more.sum(axis=-1) > 0).all():
            raise OptionError(
                f"a posterior needs a prior with a positive pseudo-count in every row of every table; {var.name} has a "
                "row without: use prior='bdeu', 'k2' or a number, or `...` for the other variables and contexts"
            )
    network = tables_from(net, found.variables, extra)
    if found.has_missing:
        made = (network, found.to_table(), extra)
        if method == METHODS[0]:
            counts, report = variational_posterior(*made, max_iter=max_iter, tol=tol, random_state=random_state)
        else:
            counts, report = gibbs_posterior(*made, draws=draws, random_state=random_state)
        return ParameterPosterior(network, _frozen(extra), _frozen(counts), report)
    return ParameterPosterior(network, _frozen(extra), _frozen(family_counts(net, found)))


def _counted(net: BayesianNetwork, data: Any, weights: Any, client: Any, progress: Progress) -> list[Any]:
    found = count_cases(net, data, weights=weights, client=client, progress=progress)
    _refuse_gaps(found)
    return family_counts(net, found)


def _refuse_gaps(found: Any) -> None:
    if found.has_missing:
        raise VariableError(
            "rows with missing cells cannot be added to a posterior: fit_posterior takes them all at once. Or leave "
            "them out (frame.dropna()), or fill them by draws (net.impute(frame, method='draw'))"
        )


def _frozen(arrays: Iterable[Any]) -> tuple[FloatArray, ...]:
    out = tuple(np.array(found, dtype=np.float64) for found in arrays)
    for found in out:
        found.flags.writeable = False
    return out


def _drawn(net: BayesianNetwork, alpha: list[FloatArray], rng: np.random.Generator) -> BayesianNetwork:
    return tables_from(net, net.vars, [draw_rows(a, rng) for a in alpha])
