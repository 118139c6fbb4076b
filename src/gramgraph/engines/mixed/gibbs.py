"""Gibbs sampling on networks with real-valued variables: many chains side by side, with errors and R-hat."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from gramgraph.answers import Key, RealAnswer
from gramgraph.engines.approximate import whole
from gramgraph.engines.base import PLAIN, Run
from gramgraph.engines.mixed.blankets import PrecisionStep, States, steps_of
from gramgraph.engines.mixed.weighting import CaseByCase, LikelihoodWeighting, known_values
from gramgraph.engines.sampling.chains import HIGH_R_HAT, MixingWarning
from gramgraph.models.layout import layout_of
from gramgraph.questions.question import Group, Question
from gramgraph.typing import Array, FloatArray
from gramgraph.variables import Circle, Var

if TYPE_CHECKING:
    from gramgraph.models.base import GraphicalModel

CHAINS = 100
DRAWS, BATCH_DRAWS = 20_000, 4_000
FIRST_DRAWS = 10_000  # weighted draws from which the chains start
LEAST_BURN_IN = 50


class RealGibbs(CaseByCase):
    """Each unobserved variable in turn is drawn given all others, in `n_chains` chains side by side.

    Discrete and linear-Gaussian variables are drawn from their full conditional; others (parents of a softmax or of a
    predictor, copulas) move by slice sampling. Chains start from weighted draws, which also give log p(e) with its
    error. `budget` is the number of draws that are kept over all chains, `burn_in` the sweeps before (by default half
    of those that are kept, at least 50). O(sweeps × variables × families), all chains at once.

    `details` tell `standard_error` (from the means of the chains, which are independent), `r_hat` of halves of chains
    (1 is mixed; above 1.1 comes a `MixingWarning`) and the smallest number of effective draws.

    >>> import gramgraph as gg
    >>> from gramgraph.variables import binary, real
    >>> x, s = real("x"), binary("s")
    >>> net = gg.BayesianNetwork(cpds=[gg.LinearGaussian(x), gg.conditionals.Softmax.logistic(s, (x,), [2.0])])
    >>> answer = net.query("x", {"s": "yes"}, engine="gibbs", random_state=0)
    >>> round(answer["x"].mean(), 1), answer.exact, bool(answer.details["max_r_hat"] < 1.05)
    (0.6, False, True)
    """

    name = "gibbs"
    options = ("n_chains", "burn_in")
    default_draws = (DRAWS, BATCH_DRAWS)

    def __init__(self, *, n_chains: int = CHAINS, burn_in: int | None = None) -> None:
        self.n_chains = whole("n_chains", n_chains, 4)
        self.burn_in = None if burn_in is None else whole("burn_in", burn_in, 0)

    def answer(self, model: GraphicalModel, question: Question, run: Run = PLAIN) -> RealAnswer:
        """Beliefs from chains; one warning where those of some case disagree."""
        found = super().answer(model, question, run)
        worst = float(np.max(found.details.get("max_r_hat", 1.0), initial=1.0))
        if worst > HIGH_R_HAT:
            warnings.warn(
                f"the chains disagree (R-hat {worst:.3g}, should be near 1): the numbers are not to be trusted. More "
                "draws (budget=…) may help; modes that no single move connects need another engine",
                MixingWarning,
                stacklevel=6,
            )
        return found

    def one_case(
        self, model: GraphicalModel, question: Question, group: Group, n: int, rng: np.random.Generator
    ) -> tuple[dict[Key, Any], float, dict[str, Any]]:
        """Beliefs, log p(e) and details of one case."""
        kept = -(-n // self.n_chains)
        burn_in = max(kept // 2, LEAST_BURN_IN) if self.burn_in is None else self.burn_in
        scopes = self.scopes(model, question)
        wanted = tuple(dict.fromkeys(var for scope in scopes.values() for var in scope))
        details: dict[str, Any] = {"draws": kept * self.n_chains, "n_chains": self.n_chains, "burn_in": burn_in}
        if hasattr(model, "conditionals"):
            found, log_p = self._directed(model, group, wanted, kept, burn_in, rng, details)
        else:
            found, log_p = self._undirected(model, group, wanted, kept, burn_in, rng), float("nan")
        details |= {"standard_error": {}, "r_hat": {}}
        if found is None:
            details |= {"effective_draws": 0.0, "max_r_hat": 1.0}
            return self.no_beliefs(scopes, details), -np.inf, details
        beliefs, least, worst = {}, float(details["draws"]), 1.0
        w = np.full(kept * self.n_chains, 1.0 / (kept * self.n_chains))
        for key, scope in scopes.items():
            flat = {var: found[var].reshape(-1, *found[var].shape[2:]) for var in scope}
            error, r_hat, effective = _diagnose(scope, found)
            beliefs[key] = self.belief(key, scope, flat, w, details, error=error)
            details["standard_error"][key], details["r_hat"][key] = error, r_hat
            least = min(least, float(np.min(effective, initial=least)))
            worst = max(worst, float(np.max(r_hat, initial=worst)))
        details |= {"effective_draws": least, "max_r_hat": worst}
        return beliefs, log_p, details

    def _directed(
        self,
        model: Any,
        group: Group,
        wanted: tuple[Var, ...],
        kept: int,
        burn_in: int,
        rng: np.random.Generator,
        details: dict[str, Any],
    ) -> tuple[dict[Var, Array] | None, float]:
        """Values (sweeps, chains, …) of the wanted variables, and log p(e) by the first draws."""
        known = known_values(model, group, self.n_chains)
        hidden = [v for v, var in enumerate(model.vars) if var not in known]
        steps = steps_of(model, hidden)
        values, logs = LikelihoodWeighting().weigh(model, group, FIRST_DRAWS, rng)
        top = float(logs.max())
        if top == -np.inf:
            return None, -np.inf
        u = np.exp(logs - top)
        pick = rng.choice(FIRST_DRAWS, size=self.n_chains, p=u / u.sum())
        log_p = top + float(np.log(u.mean())) if known else 0.0
        details["log_evidence_error"] = float(u.std() / u.mean() / np.sqrt(FIRST_DRAWS))
        details["steps"] = {step.var.name: type(step).__name__ for step in steps if not step.exact}
        states: States = {var: np.array(x[pick]) for var, x in values.items()} | known
        for step in steps:
            step.adapt(states)
        out = {var: np.empty((kept, *np.shape(states[var])), np.asarray(states[var]).dtype) for var in wanted}
        for sweep in range(burn_in + kept):
            for step in steps:
                step.move(states, self.n_chains, rng)
                if sweep == burn_in // 2:
                    step.adapt(states)
            if sweep >= burn_in:
                for var in wanted:
                    out[var][sweep - burn_in] = states[var]
        return out, log_p

    def _undirected(
        self, model: Any, group: Group, wanted: tuple[Var, ...], kept: int, burn_in: int, rng: np.random.Generator
    ) -> dict[Var, Array]:
        from gramgraph.engines.gaussian.lower import sparse_precision

        low, layout = sparse_precision(model), layout_of(model)
        hidden = np.setdiff1d(np.arange(layout.size), group.seen)
        P = low.P.tocsr()
        P.sort_indices()
        steps = [PrecisionStep(int(row), P, low.mean) for row in hidden]
        scale = 2.0 / np.sqrt(P.diagonal())  # wider than any full conditional, so that R-hat can tell
        X = low.mean + scale * rng.standard_normal((self.n_chains, layout.size))
        X[:, group.seen] = group.X[0]
        places = {var: layout.components(model.positions[var.name]) for var in wanted}
        out = {var: np.empty((kept, self.n_chains, len(at))) for var, at in places.items()}
        for sweep in range(burn_in + kept):
            for step in steps:
                step.draw(X, rng)
            if sweep >= burn_in:
                for var, at in places.items():
                    out[var][sweep - burn_in] = X[:, at]
        return out


def _diagnose(scope: tuple[Var, ...], found: dict[Var, Array]) -> tuple[FloatArray, FloatArray, FloatArray]:
    """(standard error, R-hat, effective draws) of the means of components, or of the probabilities of states."""
    if all(var.is_discrete for var in scope):
        shape = tuple(var.size for var in scope)
        flat = np.ravel_multi_index(tuple(found[var] for var in scope), shape)
        parts = [chain_diagnostics((flat == cell)[..., None].astype(float)) for cell in range(int(np.prod(shape)))]
        error, r_hat, effective = (np.concatenate(part).reshape(shape) for part in zip(*parts, strict=True))
        return error, r_hat, effective
    real = [
        _around(found[var]) if isinstance(var.domain, Circle) else found[var] for var in scope if not var.is_discrete
    ]
    return chain_diagnostics(np.concatenate(real, axis=2))


def _around(angles: FloatArray) -> FloatArray:
    """Angles as distances from their mean direction, so that chains at both ends of a turn agree."""
    center = np.angle(np.exp(1j * angles).mean())
    return np.asarray(np.angle(np.exp(1j * (angles - center))))


def chain_diagnostics(x: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """(standard error of the mean, R-hat, effective draws) of each component; x: (sweeps, chains, components).

    The chains are independent, so that the spread of their means is the error of the mean, whatever the correlation
    inside a chain. R-hat compares halves of chains.

    >>> x = np.random.default_rng(0).standard_normal((100, 50, 1))
    >>> error, r_hat, effective = chain_diagnostics(x)
    >>> bool(0.01 < error[0] < 0.02), round(float(r_hat[0]), 2), bool(effective[0] > 2500)
    (True, 1.0, True)
    """
    sweeps, chains, _ = x.shape
    total = sweeps * chains
    error = x.mean(axis=0).std(axis=0, ddof=1) / np.sqrt(chains)
    spread = x.var(axis=(0, 1))
    half = max(sweeps // 2, 1)
    halves = np.concatenate([x[:half], x[-half:]], axis=1)
    between = halves.mean(axis=0).var(axis=0, ddof=1)
    within = halves.var(axis=0, ddof=1).mean(axis=0) if half > 1 else spread
    with np.errstate(divide="ignore", invalid="ignore"):
        r_hat = np.sqrt((half - 1) / half + between / within)
        r_hat = np.where(within > 0, r_hat, np.where(between > 1e-24, np.inf, 1.0))
        effective = np.where(error > 0, spread / error**2, total)
    return error, r_hat, np.clip(effective, 1.0, total)
