"""All-Gaussian models by the generic junction tree, through nothing but the factor algebra."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gramgraph.engines.exact.factor_tree import Calibrated, CliqueTree
from gramgraph.engines.gaussian.engine import GaussianEngine, Posterior
from gramgraph.factors.gaussian import GaussianFactor
from gramgraph.models.layout import layout_of
from gramgraph.typing import FloatArray, IntArray
from gramgraph.variables import Var

if TYPE_CHECKING:
    from gramgraph.models.base import GraphicalModel


class GaussianTree(GaussianEngine):
    """Messages on a tree of cliques with Gaussian factors: the same code as for tables, one case at a time.

    O(Σ clique³) a case. The readable reference of the dense and sparse engines; nodes without noise are refused.

    >>> import gramgraph as gg
    >>> net = gg.BayesianNetwork("x{real} -> y{real}", cpds={"x": (0.0, 1.0), "y": {"coefficients": 2.0, "sd": 1.0}})
    >>> answer = net.query("x", {"y": 2.0}, engine="junction_tree")
    >>> round(answer["x"].mean(), 6), answer.exact
    (0.8, True)
    """

    name = "junction_tree"
    exact = True

    def posterior(
        self, model: GraphicalModel, seen: IntArray, X: FloatArray, want: IntArray, blocks: list[IntArray]
    ) -> Posterior:
        """Moments of the components `want`, covariances of the sets `blocks`, log p(e) of every case."""
        layout = layout_of(model)
        factors: list[Any] = list(model.factors())
        observed = list(dict.fromkeys(layout.owner[seen].tolist()))
        variables = [model.vars[v] for v in observed]
        at = [np.flatnonzero(layout.owner[seen] == v) for v in observed]
        tree = CliqueTree.build([tuple(v for v in f.scope if v not in variables) for f in factors])
        mean, var, log_p = np.zeros((len(X), len(want))), np.zeros(len(want)), np.zeros(len(X))
        made: list[FloatArray] = []
        for case, x in enumerate(X):
            evidence = {var: x[where] for var, where in zip(variables, at, strict=True)}
            calibrated: Calibrated[Any] = Calibrated(
                tree, [f.condition(evidence) for f in factors], GaussianFactor.unit(), _integrate
            )
            log_p[case] = calibrated.up[0].normalize()[1]
            for v in dict.fromkeys(layout.owner[want].tolist()):
                mu, S = calibrated.marginal((model.vars[v],)).moments()
                here = np.flatnonzero(layout.owner[want] == v)
                inside = want[here] - layout.first[v]
                mean[case, here], var[here] = mu[inside], np.diagonal(S)[inside]
            if case == 0:
                made = [_covariance(calibrated, model, layout.owner[set_], variables) for set_ in blocks]
        return Posterior(lambda: mean, var, made, lambda: log_p)


def _integrate(factor: Any, out: tuple[Var, ...]) -> Any:
    return factor.marginalize(out)


def _covariance(calibrated: Calibrated[Any], model: GraphicalModel, owners: IntArray, seen: list[Var]) -> FloatArray:
    """Covariance of whole variables; those that are observed have none."""
    scope = [model.vars[v] for v in dict.fromkeys(owners.tolist())]
    free = tuple(var for var in scope if var not in seen)
    out = np.zeros((len(owners), len(owners)))
    known = np.array([model.vars[v] in seen for v in owners])
    if free:
        S = calibrated.marginal(free).reorder(free).moments()[1]
        out[np.ix_(~known, ~known)] = S
    return out
