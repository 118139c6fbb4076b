"""Models that are written so often that they have a function: grids, machines, chains, naive Bayes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any

import numpy as np

from gramgraph._validation import check_count, check_fraction
from gramgraph.conditionals import Conditional, Table
from gramgraph.exceptions import ModelError
from gramgraph.factors import SharedTables
from gramgraph.models.bayesian_network import BayesianNetwork
from gramgraph.models.markov_network import MarkovNetwork
from gramgraph.models.writing import as_states, make_conditional
from gramgraph.typing import FloatArray, IntArray
from gramgraph.variables import Discrete, Var, discrete

_SPINS = Discrete(("-1", "+1"))
_SPIN_PRODUCT = np.array([[1.0, -1.0], [-1.0, 1.0]])


# ------------------------------------------------------------------------------------------------- grids


def ising_grid(rows: int, cols: int, coupling: Any = 1.0, field: Any = 0.0, *, name: str = "ising") -> MarkovNetwork:
    """p(x) ∝ exp(Σ_st J_st x_s x_t + Σ_s h_s x_s) on a grid of spins x_s ∈ {-1, +1}, neighbors joined.

    `coupling` is one number, or a pair of arrays: (rows, cols−1) for the edges along rows, (rows−1, cols) for
    those along columns. `field` is one number or an array (rows, cols). Variables are named `x0_0`, `x0_1`, …

    Parameters
    ----------
    rows : number of rows.
    cols : number of columns.
    coupling : a number, or arrays for the edges along rows and along columns.
    field : a number, or (rows, cols).
    name : a title.

    Examples
    --------
    >>> net = ising_grid(1, 2, coupling=0.3)
    >>> round(net.joint_log_prob({"x0_0": "+1", "x0_1": "+1"}) - net.joint_log_prob({"x0_0": "-1", "x0_1": "+1"}), 12)
    0.6
    """
    cells = _grid_vars(rows, cols, _SPINS)
    fields = _over(field, (rows, cols), "field").reshape(-1)
    at = np.flatnonzero(fields)
    alone = SharedTables.from_log(at[:, None], fields[at], np.array([-1.0, 1.0]))
    pairs, J = _grid_edges(rows, cols, coupling)
    return MarkovNetwork.from_shared(cells, [alone, SharedTables.from_log(pairs, J, _SPIN_PRODUCT)], name=name)


def potts_grid(
    rows: int, cols: int, n_states: int, coupling: Any = 1.0, field: Any = 0.0, *, name: str = "potts"
) -> MarkovNetwork:
    """p(x) ∝ exp(Σ_st J_st [x_s = x_t] + Σ_s h_s(x_s)) on a grid of variables with states "0", …, "n_states−1".

    `coupling` as for `ising_grid`; `field` is one number, (n_states,), or (rows, cols, n_states).

    Parameters
    ----------
    rows : number of rows.
    cols : number of columns.
    n_states : number of states.
    coupling : as for `ising_grid`.
    field : a number, (n_states,), or (rows, cols, n_states).
    name : a title.

    Examples
    --------
    >>> potts_grid(2, 2, 3).states("x1_1")
    ('0', '1', '2')
    """
    check_count("n_states", n_states)
    cells = _grid_vars(rows, cols, discrete("", n_states).discrete)
    fields = _over(field, (rows, cols, n_states), "field").reshape(-1, n_states)
    at = np.flatnonzero(fields.any(axis=1))
    alone = SharedTables.from_logs(at[:, None], fields[at], np.arange(len(at)))
    pairs, J = _grid_edges(rows, cols, coupling)
    return MarkovNetwork.from_shared(cells, [alone, SharedTables.from_log(pairs, J, np.eye(n_states))], name=name)


def denoising_grid(image: Any, coupling: Any = 1.0, flip_probability: float = 0.1) -> MarkovNetwork:
    """The clean image behind a noisy binary one: p(x | y) ∝ exp(J Σ_st x_s x_t) Π_s p(y_s | x_s).

    Pixels of `image` are 0/1, true/false or -1/+1; each was flipped with `flip_probability`. Its most probable
    assignment is the denoised image, its marginals say how sure each pixel is.

    Parameters
    ----------
    image : (rows, cols) of 0/1, true/false or -1/+1.
    coupling : J.
    flip_probability : of each pixel.

    Examples
    --------
    >>> net = denoising_grid([[1, 1], [1, 0]], coupling=2.0, flip_probability=0.1)
    >>> clean, noisy = {v: "+1" for v in net.variables}, {v: "+1" for v in net.variables} | {"x1_1": "-1"}
    >>> net.joint_log_prob(clean) > net.joint_log_prob(noisy)
    True
    """
    pixels = np.asarray(image, dtype=np.float64)
    if pixels.ndim != 2 or not np.isin(pixels, (-1.0, 0.0, 1.0)).all() or ((pixels == 0).any() and (pixels < 0).any()):
        raise ModelError("a binary image is needed: two axes, and pixels 0/1, true/false or -1/+1")
    check_fraction("flip_probability", flip_probability)
    spins = np.where(pixels > 0, 1.0, -1.0)
    evidence = 0.5 * np.log((1.0 - flip_probability) / flip_probability)  # log p(y|x) = h·x·y + a constant
    rows, cols = pixels.shape
    return ising_grid(rows, cols, coupling, evidence * spins, name="denoising")


def _grid_vars(rows: int, cols: int, domain: Discrete) -> list[Var]:
    if not isinstance(rows, Integral) or not isinstance(cols, Integral) or rows < 1 or cols < 1:
        raise ModelError(f"a grid needs at least one row and one column, not {rows!r} by {cols!r}")
    return [Var(f"x{r}_{c}", domain) for r in range(rows) for c in range(cols)]


def _over(given: Any, shape: tuple[int, ...], what: str) -> FloatArray:
    try:
        return np.broadcast_to(np.asarray(given, dtype=np.float64), shape)
    except ValueError:
        raise ModelError(f"{what} must be one number or an array of shape {shape}, not {np.shape(given)}") from None


def _grid_edges(rows: int, cols: int, coupling: Any) -> tuple[IntArray, FloatArray]:
    """Neighbors with their coupling, cell by cell: first the one to the right, then the one below."""
    along, down = coupling if isinstance(coupling, tuple | list) else (coupling, coupling)
    J, there = np.zeros((rows, cols, 2)), np.zeros((rows, cols, 2), np.bool_)
    J[:, :-1, 0] = _over(along, (rows, cols - 1), "coupling along rows")
    J[:-1, :, 1] = _over(down, (rows - 1, cols), "coupling along columns")
    there[:, :-1, 0] = there[:-1, :, 1] = True
    cell = np.arange(rows * cols).reshape(rows, cols, 1)
    pairs = np.stack(np.broadcast_arrays(cell, cell + np.array([1, cols])), axis=-1)
    return pairs[there], J[there]


def boltzmann_machine(
    W: Any,  # (n, n) symmetric couplings, diagonal zero
    b: Any = 0.0,  # (n,) biases
    *,
    names: Sequence[str] | None = None,
    spins: bool = False,
    name: str = "boltzmann",
) -> MarkovNetwork:
    """p(x) ∝ exp(½ xᵀWx + bᵀx) with x_i ∈ {0, 1}, or {-1, +1} with `spins`; a zero in W is a missing edge.

    Parameters
    ----------
    W : (n, n) symmetric couplings, diagonal zero.
    b : (n,) biases.
    names : of the variables.
    spins : whether values are -1 and +1.
    name : a title.

    Examples
    --------
    >>> net = boltzmann_machine([[0, 2], [2, 0]], [-1, -1])
    >>> net.joint_log_prob({"x0": 1, "x1": 1})
    0.0
    """
    weights = np.asarray(W, dtype=np.float64)
    if weights.ndim != 2 or not np.array_equal(weights, weights.T) or np.diag(weights).any():
        raise ModelError("W must be a symmetric matrix with zeros on its diagonal")
    n = len(weights)
    labels = tuple(names or (f"x{i}" for i in range(n)))
    if len(labels) != n:
        raise ModelError(f"{n} names are needed, not {len(labels)}")
    biases = _over(b, (n,), "b")
    domain, values = (_SPINS, np.array([-1.0, 1.0])) if spins else (Discrete(("0", "1")), np.array([0.0, 1.0]))
    units = [Var(label, domain) for label in labels]
    at = np.flatnonzero(biases)
    alone = SharedTables.from_log(at[:, None], biases[at], values)
    pairs = np.argwhere(np.triu(weights))
    joint = SharedTables.from_log(pairs, weights[pairs[:, 0], pairs[:, 1]], np.outer(values, values))
    return MarkovNetwork.from_shared(units, [alone, joint], name=name)


# ------------------------------------------------------------------------------------------------- directed


def naive_bayes(
    class_name: str,
    states: Any,
    features: Mapping[str, Any] | Sequence[str],
    *,
    prior: Any = None,
    tables: Mapping[str, Any] | None = None,
    name: str = "naive Bayes",
) -> BayesianNetwork:
    """p(y, x_1, …, x_d) = p(y) Π p(x_i | y): the class points to every feature.

    `features` maps names to states (a list of names: no and yes); `prior` and `tables[feature]` are tables as
    `BayesianNetwork` takes them. Without them it is a structure, for `fit` or `random_tables`.

    Parameters
    ----------
    class_name : name of the class.
    states : of the class.
    features : states by name, or a list of names.
    prior : table of the class.
    tables : of the features, by name.
    name : a title.

    Examples
    --------
    >>> tables = {"offer": {"ham": 0.1, "spam": 0.7}, "link": {"ham": 0.2, "spam": 0.6}}
    >>> net = naive_bayes("mail", ["ham", "spam"], ["offer", "link"], prior=0.4, tables=tables)
    >>> net.n_parameters, net.cpt["offer"]["spam"].round(2).tolist()
    (5, [0.3, 0.7])
    """
    given = features if isinstance(features, Mapping) else dict.fromkeys(features, ("no", "yes"))
    declared = {class_name: as_states(states), **{f: as_states(s) for f, s in given.items()}}
    cpds = dict(tables or {}) if prior is None else {class_name: prior, **(tables or {})}
    structure = {class_name: [], **{feature: [class_name] for feature in given}}
    return BayesianNetwork(structure, states=declared, cpds=cpds or None, name=name)


def markov_chain(
    length: int,
    states: Any = ("no", "yes"),
    *,
    initial: Any = None,  # (K,)
    transition: Any = None,  # (K, K), rows sum to one; or (length − 1, K, K)
    prefix: str = "x",
    name: str = "Markov chain",
) -> BayesianNetwork:
    """x0 -> x1 -> … with p(x0) = initial and p(x_t | x_{t−1}) = transition; a structure when neither is given.

    Parameters
    ----------
    length : number of steps.
    states : labels, or their number.
    initial : (K,) p(first state).
    transition : (K, K) p(next state | state), rows sum to one; or (length − 1, K, K).
    prefix : of the names.
    name : a title.

    Examples
    --------
    >>> markov_chain(4, 3).n_parameters  # K − 1 + (M − 1) K (K − 1)
    20
    """
    chain = _chain(length, as_states(states), prefix)
    conditionals = _chain_conditionals(chain, initial, transition)
    parents = [_before(t) for t in range(length)]
    return BayesianNetwork.from_parts(chain, conditionals, parents=parents, name=name)


def hidden_markov_chain(
    length: int,
    hidden_states: Any,
    observed_states: Any,
    *,
    initial: Any,  # (K,)
    transition: Any,  # (K, K)
    emission: Any,  # (K, number of observed states)
    prefixes: tuple[str, str] = ("z", "x"),
    name: str = "hidden Markov chain",
) -> BayesianNetwork:
    """A hidden Markov model unrolled for `length` steps, counted from 1: z1 -> z2 -> …, and z_t -> x_t.

    Parameters
    ----------
    length : number of steps.
    hidden_states : labels of z, or their number.
    observed_states : labels of x, or their number.
    initial : (K,) p(first state).
    transition : (K, K) p(next state | state), rows sum to one.
    emission : (K, number of observed states) p(x | z).
    prefixes : of the names, "z" and "x".
    name : a title.

    Examples
    --------
    >>> net = hidden_markov_chain(2, 2, 2, initial=[0.5, 0.5], transition=np.eye(2), emission=np.eye(2))
    >>> net.edges
    (('z1', 'z2'), ('z1', 'x1'), ('z2', 'x2'))
    """
    hidden = _chain(length, as_states(hidden_states), prefixes[0], start=1)
    observed = _chain(length, as_states(observed_states), prefixes[1], start=1)
    conditionals = _chain_conditionals(hidden, initial, transition)
    emitted = [make_conditional(x, (z,), emission) for z, x in zip(hidden, observed, strict=True)]
    parents = [*(_before(t) for t in range(length)), *((t,) for t in range(length))]
    return BayesianNetwork.from_parts([*hidden, *observed], [*conditionals, *emitted], parents=parents, name=name)


def _before(t: int) -> tuple[int, ...]:
    return (t - 1,) if t else ()


def _chain(length: int, labels: tuple[str, ...], prefix: str, *, start: int = 0) -> list[Var]:
    if length < 1:
        raise ModelError(f"a chain needs at least one variable, not {length}")
    domain = Discrete(labels)
    return [Var(f"{prefix}{t}", domain) for t in range(start, start + length)]


def _chain_conditionals(chain: Sequence[Var], initial: Any, transition: Any) -> list[Conditional | None]:
    if initial is None and transition is None:
        return [None] * len(chain)
    if initial is None or (transition is None and len(chain) > 1):
        raise ModelError("initial and transition belong together: give both, or none for a structure")
    first = make_conditional(chain[0], (), initial)
    k = chain[0].size
    steps = _over(np.zeros((k, k)) if transition is None else transition, (len(chain) - 1, k, k), "transition")
    later = [Table(x, (before,), step) for before, x, step in zip(chain, chain[1:], steps, strict=False)]
    return [first, *later]
