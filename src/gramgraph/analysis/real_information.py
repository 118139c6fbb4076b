"""Entropy and mutual information where real-valued variables take part: closed forms, else draws."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gramgraph.answers import Belief, MixtureBelief
from gramgraph.answers.joint_belief import JointBelief
from gramgraph.answers.line_belief import LineBelief
from gramgraph.engines.exact.one_case import one_case
from gramgraph.exceptions import OptionError, VariableError
from gramgraph.factors.gaussian import LOG_2PI
from gramgraph.factors.log_table import log_sum_exp
from gramgraph.questions.reading import read
from gramgraph.typing import FloatArray

if TYPE_CHECKING:
    import pandas as pd

    from gramgraph.models.base import GraphicalModel

#: Draws from which the entropy of a mixture is estimated.
DRAWS = 20_000


class Estimate(float):
    """A number that says whether it is `exact`; `error` is its standard error where it was found by draws."""

    exact: bool
    error: float

    def __new__(cls, value: float, error: float = 0.0, exact: bool = True) -> Estimate:
        """The number, with its standard error."""
        made = super().__new__(cls, value)
        made.exact, made.error = exact, error
        return made


def free_names(model: GraphicalModel, names: str | Sequence[str], evidence: Any) -> tuple[str, ...]:
    """The names once each; a `VariableError` for one that is observed, or that the model does not have."""
    found = tuple(dict.fromkeys(model.names_of(model.positions_of(names))))
    seen = set(model.names_of(one_case(model, evidence).seen))
    for name in found:
        if name in seen:
            raise VariableError(f"{name} is observed; ask about a variable that is not")
    return found


def real_entropy(model: GraphicalModel, names: tuple[str, ...], evidence: Any) -> Estimate:
    """H(names | e) in nats; the differential entropy where real-valued variables take part."""
    answer = model.query([names], evidence, random_state=0)
    found = _entropy(answer[names])
    return Estimate(found, found.error, found.exact and answer.exact)


def _entropy(belief: Any) -> Estimate:
    if isinstance(belief, Belief):
        table = belief.probabilities[belief.probabilities > 0.0]
        return Estimate(float(-(table * np.log(table)).sum()))
    if isinstance(belief, LineBelief):  # the ratio to the marginal density counts by cells, as in joints
        belief = JointBelief([belief.axis], belief.weights, batched=belief.batched)
    if isinstance(belief, JointBelief):
        return Estimate(float(belief.entropy()))
    if not isinstance(belief, MixtureBelief):  # draws: as of the Gaussian with their covariance
        cov = belief.cov()
        return Estimate(float(_gaussian_entropies(cov.reshape(-1, *cov.shape[-2:]))[0]), exact=False)
    keep = belief.weights[0] > 0.0
    w, means = belief.weights[0][keep], belief.means[0][keep]
    covs = np.broadcast_to(belief.covariances[0], (len(keep), *belief.covariances.shape[2:]))[keep]
    codes = np.zeros((len(w), 0), np.int64) if belief.codes is None else np.asarray(belief.codes)[keep]
    total, variance, exact = 0.0, 0.0, True
    for state in np.unique(codes, axis=0) if codes.shape[1] else [()]:
        here = (codes == state).all(axis=1)
        p = float(w[here].sum())
        part = _mixture_entropy(w[here] / p, means[here], covs[here])
        total += p * (float(part) - np.log(p))
        variance += (p * part.error) ** 2
        exact = exact and part.exact
    return Estimate(total, float(np.sqrt(variance)), exact)


def _gaussian_entropies(covs: FloatArray) -> FloatArray:
    """½ log |2πe Σ| of each; minus infinity without noise."""
    sign, log_det = np.linalg.slogdet(covs)
    return np.where(sign > 0, 0.5 * (log_det + covs.shape[-1] * (1.0 + LOG_2PI)), -np.inf)


def _mixture_entropy(w: FloatArray, means: FloatArray, covs: FloatArray) -> Estimate:
    """Of one Gaussian in closed form; of several −E log p over draws."""
    own = _gaussian_entropies(covs)
    same = bool((means == means[0]).all() and (covs == covs[0]).all())
    if len(w) == 1 or same or not np.isfinite(own).all():
        return Estimate(float(own.min()))
    rng = np.random.default_rng(0)
    L = np.linalg.cholesky(covs)
    pick = rng.choice(len(w), size=DRAWS, p=w)
    x = means[pick] + np.einsum("nij,nj->ni", L[pick], rng.standard_normal((DRAWS, means.shape[1])))
    off = np.linalg.solve(L[None], (x[:, None] - means[None])[..., None])[..., 0]
    logs = np.log(w) - 0.5 * (off**2).sum(axis=2) - np.log(np.diagonal(L, axis1=1, axis2=2)).sum(axis=1)
    values = -(log_sum_exp(logs, (1,)) - 0.5 * means.shape[1] * LOG_2PI)
    return Estimate(float(values.mean()), float(values.std() / np.sqrt(DRAWS)), exact=False)


def real_mutual_information(model: GraphicalModel, a: tuple[str, ...], b: tuple[str, ...], evidence: Any) -> Estimate:
    """I(a; b | e) = H(a) + H(b) − H(a, b), in nats."""
    parts = [real_entropy(model, names, evidence) for names in (a, b, (*a, *b))]
    error = float(np.sqrt(sum(part.error**2 for part in parts)))
    value = max(float(parts[0] + parts[1] - parts[2]), 0.0)
    return Estimate(value, error, all(part.exact for part in parts))


def real_ranking(
    model: GraphicalModel, target: tuple[str, ...], candidates: Sequence[str] | None, evidence: Any, unit: float
) -> pd.DataFrame:
    """What each candidate would tell about the target, I(target; candidate | e), the most telling one first."""
    import pandas as pd

    seen = set(model.names_of(read(model, [], evidence).seen))
    names = [v for v in model.variables if v not in seen and v not in target] if candidates is None else candidates
    tried = free_names(model, tuple(names), evidence)
    if overlap := [name for name in tried if name in target]:
        raise VariableError(f"{', '.join(overlap)} cannot be both target and candidate")
    before = float(real_entropy(model, target, evidence)) / unit
    if not np.isfinite(before):
        raise OptionError(f"{', '.join(target)} has no density given the evidence, hence no entropy to reduce")
    gains = [float(real_mutual_information(model, target, (name,), evidence)) / unit for name in tried]
    frame = pd.DataFrame(
        {
            "variable": list(tried),
            "expected_entropy": [before - gain for gain in gains],
            "reduction": gains,
            "share": [gain / before if before > 0 else np.nan for gain in gains],
        }
    )
    return frame.sort_values("reduction", ascending=False, kind="stable", ignore_index=True)
