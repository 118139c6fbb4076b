"""Learning a tree of any kinds of columns from samples."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from gramgraph._threads import in_threads, one_thread
from gramgraph._validation import check_choice, check_jobs
from gramgraph.cells.axes import Axis, LineAxis, StateAxis
from gramgraph.cells.columns import is_absent, label_of, numbers_of
from gramgraph.cells.density import Coordinate, LineDensity
from gramgraph.cells.points import POINT_KINDS, PointAxis
from gramgraph.embeddings.network.candidates import Pair
from gramgraph.embeddings.network.edge_ends import End
from gramgraph.embeddings.network.edge_mixture import fit_edge
from gramgraph.embeddings.network.structure import best_tree
from gramgraph.embeddings.network.tree import KernelTree, check_forest
from gramgraph.exceptions import ModelError, OptionError, VariableError, did_you_mean, listing
from gramgraph.typing import Array, FloatArray, RandomState

#: Kinds of edges.
EDGES = ("auto", "kernel", "copula", "gaussian", "table")
#: Kinds of values.
KINDS = ("real", "positive", "circle", "category", *POINT_KINDS)
_KEPT = 2000  # rows that a tree keeps for messages between samples
_FEW = 10  # integers with at most so many different values are categories


def learn_tree(
    frame: Any,
    edge: str = "auto",
    *,
    edges: Iterable[tuple[str, str]] | None = None,
    domains: Mapping[str, str] | None = None,
    validation: Any = None,
    cells: int = 128,
    floor: float = 1e-3,
    n_jobs: int = 1,
    random_state: RandomState = 0,
) -> KernelTree:
    """Learn a tree-shaped model of numbers, angles and categories, without choosing a parametric family.

    Every variable has its marginal density (a mixture of kernel densities of several widths); every edge a density
    ratio p(x, y) / (p(x) p(y)) on cells: a mixture of least-squares ratios in feature space, kernel smoothing and
    kernel regressions with their noise. For angles, and pairs of them, mixtures of wrapped normal densities join in.
    All weights maximize the likelihood of left-out rows.

    Parameters
    ----------
    frame : a data frame or a dict of columns; cells may be missing (an edge uses the rows that know both ends).
    edge : "kernel"; "copula" (Gaussian copula of kernel marginals); "gaussian" (linear with Gaussian noise, Gaussian
        marginals); "table" (histograms with the best number of blocks); "auto" mixes kernel and copula estimates.
        Pairs of categories always have a table.
    edges : pairs of names that form a forest; None finds the tree by Chow–Liu: pairs are screened by squared-loss
        mutual information, and the best of each variable compared by the likelihood of left-out rows.
    domains : name → "real", "positive" (above 0, noise multiplies), "circle" (angles in radians), "category", or, with
        one point a row, "vector", "sphere" (directions), "set" or "string"; by default numbers are real, all else, and
        integers with at most 10 different values, categories.
    validation : rows, in the form of `frame`, that only help to choose the weights; or a share of the rows for this.
        None: leave-one-out alone.
    cells : at most so many cells a variable; a query costs their square an edge.
    floor : least weight of independence in every edge; with 0 a "table" of two categories is the plain table.
    n_jobs : threads that compare pairs and learn edges at the same time.
    random_state : seed of the share that `validation` takes; nothing else is random.

    Notes
    -----
    Cost: one pass over the rows an edge and estimate, the rest in the number of cells. 100 columns of 5,000 rows take
    a few seconds; an edge between two angles, which has mixtures to learn, about a twentieth of a second more.

    Examples
    --------
    >>> import gramgraph as gg
    >>> rng = np.random.default_rng(0)
    >>> angle = rng.vonmises(0.0, 1.0, size=1500)
    >>> height = np.cos(angle) + 0.1 * rng.normal(size=1500)
    >>> net = gg.learn_tree({"angle": angle, "height": height}, domains={"angle": "circle"})
    >>> belief = net.query("angle", {"height": 0.0})["angle"]
    >>> bool(belief.density(np.pi / 2) > 5 * belief.density(0.0))
    True
    """
    check_choice("edge", edge, EDGES)
    _check_numbers(cells, floor)
    jobs = check_jobs(n_jobs)
    orders = _orders(frame)
    columns = _checked(columns_of(frame))
    kinds = _kinds(columns, domains)
    columns, others = _parted(columns, validation, random_state, kinds)

    def end_of(name: str) -> End:
        axis = _axis(name, columns[name], kinds[name], cells, edge, others, orders.get(name))
        return End(axis, columns[name], None if others is None else others.get(name, _gap(others)))

    with one_thread():  # of BLAS: the matrices have a row a cell
        ends = in_threads(end_of, list(columns), jobs)
        links = best_tree(ends, edge, floor, jobs) if edges is None else _links(edges, tuple(columns))
        fitted = in_threads(lambda ij: fit_edge(Pair(ends[ij[0]], ends[ij[1]]), edge, floor=floor), links, jobs)
    axes = [end.axis for end in ends]
    made = KernelTree(axes, fitted, rows=len(ends[0].placed.a))
    whole = np.all([end.placed.known for end in ends], axis=0)
    if whole.sum() >= 2 and len(whole) <= _KEPT:
        made.kept_rows = {name: values[whole] for name, values in columns.items()}
    return made


def columns_of(frame: Any) -> dict[str, Any]:
    """Columns by name, of a frame or a mapping."""
    if isinstance(frame, Mapping):
        return {str(name): values for name, values in frame.items()}
    if hasattr(frame, "columns") and hasattr(frame, "__getitem__"):
        names = [str(name) for name in frame.columns]
        twice = sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else []
        if twice:
            raise ModelError(f"every column needs a name of its own; these occur twice: {listing(twice)}.")
        return {name: _plain_column(frame[key]) for name, key in zip(names, frame.columns, strict=True)}
    raise ModelError(f"expected a data frame or a mapping from names to columns; got {type(frame).__name__}.")


def _plain_column(column: Any) -> Any:
    """An array; integers with gaps stay integers."""
    dtype: Any = getattr(column, "dtype", None)
    if hasattr(column, "null_count"):
        gaps = dtype.is_integer() and column.null_count() > 0
        return np.array(column.to_list(), dtype=object) if gaps else column.to_numpy()
    if getattr(dtype, "kind", "") in "iu" and getattr(column, "hasnans", False):
        return column.astype(object).to_numpy()
    return column.to_numpy()


def _check_numbers(cells: Any, floor: Any) -> None:
    if isinstance(cells, bool) or not isinstance(cells, (int, np.integer)) or not 2 <= cells <= 512:
        raise OptionError(f"cells must be an integer from 2 to 512; it is {cells!r}.")
    if isinstance(floor, (bool, str)) or not 0.0 <= floor < 1.0:
        raise OptionError(f"floor must be a number from 0 to 1; it is {floor!r}.")


def _checked(columns: dict[str, Any]) -> dict[str, Any]:
    plain = {name: isinstance(values, np.ndarray) and values.ndim == 1 for name, values in columns.items()}
    out = {name: values if plain[name] else _array(values) for name, values in columns.items()}
    lengths = {name: len(values) for name, values in out.items()}
    if not out:
        raise ModelError("a tree needs at least one column.")
    if len(set(lengths.values())) > 1:
        raise ModelError(f"columns must have equally many rows; they have {lengths}.")
    if min(lengths.values()) < 2:
        raise ModelError(f"a tree is learned from at least 2 rows, better 300; there are {min(lengths.values())}.")
    return out


def _array(values: Any) -> Array:
    given = values.to_numpy() if hasattr(values, "to_numpy") else values
    if isinstance(given, (list, tuple)) and given and isinstance(given[0], (list, tuple, set, frozenset, np.ndarray)):
        array: Array = np.empty(len(given), dtype=object)  # points: one object a row
        array[:] = list(given) if isinstance(given[0], (set, frozenset)) else [np.asarray(v) for v in given]
        return array
    array = np.asarray(given)
    if array.dtype.kind in "US":  # a list of texts and None: texts were made of all
        array = np.asarray(list(values), dtype=object)
    if array.ndim == 2:
        rows: Array = np.empty(len(array), dtype=object)
        rows[:] = list(array)
        return rows
    if array.ndim != 1:
        raise ModelError(f"a column is one value a row; one of them has shape {array.shape}.")
    return array


def _orders(frame: Any) -> dict[str, list[str]]:
    """Names of columns that know the order of their states (categories of pandas, Enum of polars) → all of them."""
    names = frame if isinstance(frame, Mapping) else getattr(frame, "columns", ())
    found = {str(name): getattr(getattr(frame[name], "dtype", None), "categories", None) for name in names}
    return {name: [label_of(s) for s in states] for name, states in found.items() if states is not None}


def _parted(
    columns: dict[str, Any], validation: Any, random_state: RandomState, kinds: Mapping[str, str]
) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """Rows to learn from, and rows that choose."""
    if validation is None:
        return columns, None
    if isinstance(validation, (int, float)) and not isinstance(validation, bool):
        if not 0.0 < validation < 1.0:
            raise OptionError(f"validation is a frame, or a share of the rows between 0 and 1; it is {validation!r}.")
        n = len(next(iter(columns.values())))
        order = np.random.default_rng(random_state).permutation(n)
        choosing = np.zeros(n, dtype=bool)
        choosing[order[: max(round(n * validation), 1)]] = True
        for name in columns:
            if kinds[name] == "category":
                _keep_states(columns[name], choosing)
        return (
            {name: values[~choosing] for name, values in columns.items()},
            {name: values[choosing] for name, values in columns.items()},
        )
    others = _checked(columns_of(validation))
    for name in others:
        if name not in columns:
            raise VariableError.unknown(name, tuple(columns))
    return columns, others


def _keep_states(values: Array, choosing: Array) -> None:
    """Rows that choose and have a state that no other row has are learned from instead."""
    labels = np.array([None if is_absent(v) else label_of(v) for v in values.tolist()], dtype=object)
    kept = dict.fromkeys(labels[~choosing].tolist())
    for i in np.flatnonzero(choosing):
        if labels[i] is not None and labels[i] not in kept:
            choosing[i] = False
            kept[labels[i]] = None


def _gap(others: Mapping[str, Any]) -> Array:
    """A column of missing values."""
    return np.full(len(next(iter(others.values()))), None, dtype=object)


def _kinds(columns: Mapping[str, Any], domains: Mapping[str, str] | None) -> dict[str, str]:
    if domains is not None and not isinstance(domains, Mapping):
        raise OptionError(f"domains is a dict, as {{'angle': 'circle'}}; it is a {type(domains).__name__}.")
    given = dict(domains or {})
    for name, kind in given.items():
        if name not in columns:
            raise VariableError.unknown(name, tuple(columns))
        if kind not in KINDS:
            raise OptionError(
                f"{kind!r}, the domain of {name!r}, is none that trees know. Domains: {listing(KINDS)}."
                f"{did_you_mean(kind, KINDS)}"
            )
    for name, values in columns.items():
        if values.dtype.kind in "mM" and name not in given:
            raise ModelError(
                f"column {name!r} holds dates or times ({values.dtype}). Try: make it a number, as days since a "
                "first day, or an angle of the day or the year (domain 'circle')."
            )
    return {name: given.get(name) or _guess(values) for name, values in columns.items()}


def _guess(values: Array) -> str:
    if values.dtype.kind in "iu":
        return "category" if len(np.unique(values)) <= _FEW else "real"
    if values.dtype.kind == "f":
        return "real"
    known = [v for v in values.tolist() if not (np.ndim(v) == 0 and is_absent(v))]
    if known and isinstance(known[0], (set, frozenset)):
        return "set"
    if known and isinstance(known[0], (list, tuple, np.ndarray)):
        return "vector"
    if known and all(isinstance(v, (int, np.integer)) and not isinstance(v, bool) for v in known):
        return "category" if len(set(known)) <= _FEW else "real"
    numbers = all(isinstance(v, (int, float, np.number)) and not isinstance(v, (bool, np.bool_)) for v in known)
    return "real" if known and numbers else "category"


def _axis(
    name: str,
    values: Any,
    kind: str,
    cells: int,
    edge: str,
    others: Mapping[str, Any] | None,
    order: Sequence[str] | None = None,
) -> Axis:
    if kind == "category":
        found = StateAxis.of(name, values)
        return found if order is None else StateAxis.of(name, values, [s for s in order if s in found.states])
    if kind in POINT_KINDS:
        return PointAxis.of(name, values, kind, cells)
    x = numbers_of(values, name, positive=kind == "positive")
    x = x[~np.isnan(x)]
    if len(x) < 2:
        raise ModelError(f"column {name!r} has {len(x)} observed values; a density needs at least 2, better 300.")
    if edge == "gaussian" and kind == "real":
        return LineAxis.on(name, _gaussian(x), x, cells)
    more = None
    if others is not None and name in others:
        more = numbers_of(others[name], name, positive=kind == "positive")
        more = more[~np.isnan(more)]
    return LineAxis.of(name, x, kind, cells, others=more)


def _gaussian(x: FloatArray) -> LineDensity:
    """The normal density with the mean and the variance of the values."""
    sd = max(float(x.std()), 1e-6 * abs(float(x.mean())), 1e-12)
    coordinate = Coordinate("real", float(x.mean()), sd)
    first, size = float(np.arcsinh(-8.0)), 1024
    t = np.linspace(first, -first, size)
    z = np.sinh(t)
    values = np.maximum(np.exp(-0.5 * z**2) * np.cosh(t) / np.sqrt(2.0 * np.pi), 1e-30)
    step = float(t[1] - t[0])
    return LineDensity(coordinate, first, step, values / (values.sum() * step), 0.01)


def _links(edges: Iterable[tuple[str, str]], names: Sequence[str]) -> list[tuple[int, int]]:
    if not isinstance(edges, Iterable):
        raise OptionError(f"edges are pairs of names, as [('a', 'b'), ('b', 'c')]; they are {edges!r}.")
    pairs = []
    for pair in edges:
        if isinstance(pair, str) or not isinstance(pair, Iterable) or len(tuple(pair)) != 2:
            raise OptionError(f"edges are pairs of names, as [('a', 'b'), ('b', 'c')]; one of them is {pair!r}.")
        a, b = pair
        pairs.append((a, b))
    check_forest(pairs, names)
    at = {name: i for i, name in enumerate(names)}
    return [(at[a], at[b]) for a, b in pairs]
