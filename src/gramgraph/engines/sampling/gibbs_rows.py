"""Rows drawn by Gibbs sampling, for models whose junction tree is too large for exact draws."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gramgraph.answers.rows import frame_of
from gramgraph.engines.approximate import Cases, whole
from gramgraph.engines.exact.one_case import one_case
from gramgraph.engines.sampling.blankets import compile_case
from gramgraph.engines.slices import slice_case
from gramgraph.exceptions import ModelError, OptionError
from gramgraph.typing import RandomState

if TYPE_CHECKING:
    from gramgraph.models.base import GraphicalModel

#: Uniform numbers that are drawn at a time.
NUMBERS = 1 << 20


def gibbs_rows(
    model: GraphicalModel,
    n: int,
    evidence: Mapping[str, Any] | None = None,
    *,
    chains: int = 200,
    burn_in: int = 200,
    thin: int = 1,
    random_state: RandomState = None,
) -> Any:
    """n rows of p(all variables | evidence) from `chains` Gibbs chains, `thin` sweeps apart, after `burn_in` sweeps.

    For models that are too large for `sample`; the rows, a data frame of categories, are neither exact nor independent:
    they are as good as the chains mix. `evidence` is a dict of states, and the tables must not have zeros.
    Cost: O((burn_in · chains + thin · n) · Σ_v factors of v).

    Parameters
    ----------
    model : the model.
    n : number of rows.
    evidence : what is known, as `query` takes it: values by variable, or None.
    chains : number of chains.
    burn_in : sweeps before the first row.
    thin : sweeps between rows of a chain.
    random_state : seed, or a generator.

    Examples
    --------
    >>> import gramgraph as gg
    >>> rows = gibbs_rows(gg.models.ising_grid(30, 30, coupling=0.2), 50, chains=10, burn_in=20, random_state=0)
    >>> rows.shape, sorted(rows["x3_4"].unique())
    ((50, 900), ['+1', '-1'])
    """
    from gramgraph._numerics.undirected.log_linear import sweep_columns

    n, chains = whole("n", n, 0), whole("chains", chains)
    burn_in, thin = whole("burn_in", burn_in, 0), whole("thin", thin)
    if not model.is_discrete:
        raise ModelError("gibbs_rows is for models of discrete variables; sample draws from real-valued ones")
    chains = max(min(chains, n), 1)
    rng = np.random.default_rng(random_state)
    question = one_case(model, evidence)
    if question.likelihoods:
        raise OptionError("gibbs_rows takes evidence as states, not as likelihoods or sets of states")
    case = Cases.of(model, replace(question, targets=tuple(range(len(model.vars)))), structured=False)
    part = slice_case(case, 0)
    if part.values.min(initial=1.0) <= 0:
        raise ModelError("zeros in the tables can lock a chain: gibbs_rows takes models with positive tables only")
    compiled = compile_case(case, part)
    sizes = case.low.sizes
    states = (rng.random((len(sizes), chains)) * sizes[:, None]).astype(np.int16)
    seen = case.states[0]
    states[seen >= 0] = seen[seen >= 0, None]
    logs, blankets = np.log(compiled.values), compiled[1:7]

    def sweep(times: int) -> None:
        width = len(compiled.variables)
        block = max(NUMBERS // max(width * chains, 1), 1)
        for first in range(0, times, block):
            uniforms = rng.random((min(block, times - first), width, chains))
            sweep_columns(compiled.variables, *blankets, logs, sizes, uniforms, states)

    out = np.empty((len(model.vars), n), np.int16)
    sweep(burn_in)
    for first in range(0, n, chains):
        sweep(thin)
        out[:, first : first + chains] = states[: len(out), : n - first]
    return frame_of(model, out.T)
