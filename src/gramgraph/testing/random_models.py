"""Small random models and questions, made to be awkward: zeros, single states, loose parts, impossible evidence."""

from __future__ import annotations

import numpy as np

from gramgraph.conditionals import Conditional, NoisyMax, Table
from gramgraph.factors import TableFactor
from gramgraph.models import BayesianNetwork, MarkovNetwork
from gramgraph.models.base import GraphicalModel
from gramgraph.questions.question import Question
from gramgraph.typing import FloatArray
from gramgraph.variables import Var, discrete


def _variables(rng: np.random.Generator, n: int, max_states: int, single: float) -> list[Var]:
    sizes = rng.integers(2, max_states + 1, size=n)
    sizes[rng.random(n) < single] = 1
    return [discrete(f"v{i}", int(size)) for i, size in enumerate(sizes)]


def random_bayesian_network(
    rng: np.random.Generator,
    n: int = 7,
    *,
    max_states: int = 3,
    max_parents: int = 3,
    density: float = 0.5,
    zeros: float = 0.0,
    single: float = 0.0,
    noisy: float = 0.0,
) -> BayesianNetwork:
    """A network of `n` variables whose order is not topological.

    Each node draws up to `max_parents` parents, each kept with probability `density` (so that loose parts occur);
    a share `zeros` of the entries is zero, a share `single` of the variables has one state only, and a share `noisy` of
    the conditionals is a noisy-max, which engines may take apart with hidden variables.

    Parameters
    ----------
    rng : generator of random numbers.
    n : number of variables.
    max_states : most states of a variable.
    max_parents : most parents of a variable.
    density : probability that a parent is kept.
    zeros : share of the entries that are zero.
    single : share of the variables with one state.
    noisy : share of the conditionals that are noisy-max.

    Examples
    --------
    >>> random_bayesian_network(np.random.default_rng(0), 4).check_model()
    True
    """
    variables = _variables(rng, n, max_states, single)
    rank = rng.permutation(n)
    conditionals: list[Conditional | None] = [None] * n
    for place, i in enumerate(rank):
        before = rng.permutation(rank[:place])[:max_parents]
        parents = tuple(variables[int(j)] for j in before if rng.random() < density)
        child = variables[int(i)]
        if parents and rng.random() < noisy:
            links = [_rows(rng, (var.size, child.size), zeros) for var in parents]
            conditionals[int(i)] = NoisyMax(child, parents, links, _rows(rng, (child.size,), zeros))
        else:
            shape = (*(var.size for var in parents), child.size)
            conditionals[int(i)] = Table(child, parents, _rows(rng, shape, zeros))
    return BayesianNetwork.from_parts(variables, conditionals)


def _rows(rng: np.random.Generator, shape: tuple[int, ...], zeros: float) -> FloatArray:
    """Rows that sum to one, with a share of zeros and at least one entry that is not."""
    values = rng.gamma(0.7, size=shape) + 1e-3
    drop = rng.random(shape) < zeros
    keep = rng.integers(0, shape[-1], size=shape[:-1])
    np.put_along_axis(drop, keep[..., None], False, axis=-1)
    values[drop] = 0.0
    return np.asarray(values / values.sum(axis=-1, keepdims=True))


def random_markov_network(
    rng: np.random.Generator,
    n: int = 6,
    *,
    n_factors: int = 7,
    max_scope: int = 3,
    max_states: int = 3,
    zeros: float = 0.0,
    single: float = 0.0,
    log_range: float = 2.0,
) -> MarkovNetwork:
    """A product of `n_factors` random tables, some with a scale of their own; some variables may be in none.

    Entries are exp(log_range · normal), a share `zeros` of them zero.

    Parameters
    ----------
    rng : generator of random numbers.
    n : number of variables.
    n_factors : number of tables.
    max_scope : most variables of a table.
    max_states : most states of a variable.
    zeros : share of the entries that are zero.
    single : share of the variables with one state.
    log_range : standard deviation of the logarithms.

    Examples
    --------
    >>> net = random_markov_network(np.random.default_rng(0), 4)
    >>> len(net)
    4
    """
    variables = _variables(rng, n, max_states, single)
    factors = []
    for _ in range(n_factors):
        size = int(rng.integers(1, min(max_scope, n) + 1))
        scope = tuple(variables[int(i)] for i in rng.choice(n, size=size, replace=False))
        shape = tuple(var.size for var in scope)
        values = np.exp(log_range * rng.normal(size=shape))
        values[rng.random(shape) < zeros] = 0.0
        factors.append(TableFactor(scope, values, float(rng.choice([0.0, 3.0, -700.0]))))
    return MarkovNetwork.from_parts(variables, factors)


def random_question(
    rng: np.random.Generator,
    model: GraphicalModel,
    *,
    cases: int | None = 3,
    observe: float = 0.4,
    likelihood: float = 0.25,
    joints: int = 2,
) -> Question:
    """Targets, joints (also of observed variables), a table of cases with gaps, and likelihood weights.

    `cases=None` makes a question about one case. Nothing keeps the evidence from being impossible.

    Parameters
    ----------
    rng : generator of random numbers.
    model : the model.
    cases : number of cases; None for one.
    observe : probability that a variable is observed in a case.
    likelihood : probability that a variable has likelihood weights.
    joints : how many joints are asked for.

    Examples
    --------
    >>> net = random_markov_network(np.random.default_rng(0), 4)
    >>> random_question(np.random.default_rng(1), net, cases=3).n_cases
    3
    """
    n, rows = len(model), 1 if cases is None else cases
    observed = tuple(int(i) for i in rng.permutation(n) if rng.random() < observe)
    codes = np.array([[rng.integers(0, model.vars[i].size) for i in observed] for _ in range(rows)], dtype=np.int64)
    codes = codes.reshape(rows, len(observed))
    codes[rng.random(codes.shape) < 0.3] = -1
    targets = tuple(int(i) for i in rng.permutation(n)[: int(rng.integers(1, n + 1))])
    likelihoods: list[tuple[int, FloatArray]] = []
    for i, var in enumerate(model.vars):
        if rng.random() < likelihood:
            shape = (rows, var.size) if rng.random() < 0.5 else (var.size,)
            weights = rng.gamma(1.0, size=shape)
            weights[rng.random(shape) < 0.2] = 0.0
            likelihoods.append((i, weights))
    return Question(
        targets=targets,
        joints=tuple(tuple(int(i) for i in rng.permutation(n)[: int(rng.integers(1, 4))]) for _ in range(joints)),
        observed=observed,
        codes=codes,
        likelihoods=tuple(likelihoods),
        batched=cases is not None,
    )
