"""Do the strengths of edges mean what they say? Shares of true edges at equal strength, and strengths made to fit."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gramgraph._progress import Progress, reporting
from gramgraph._validation import check_count
from gramgraph.data.columns import CodedTable, code_table
from gramgraph.data.counts import Counts
from gramgraph.data.processes import on_processes
from gramgraph.exceptions import ModelWarning, OptionError
from gramgraph.learn.mixed_table import MixedTable
from gramgraph.learn.resampling import one_graph, resampled
from gramgraph.learn.search import Constraints
from gramgraph.learn.strength_map import StrengthMap
from gramgraph.learn.structure import _constraints, _network, learn_structure
from gramgraph.models import BayesianNetwork
from gramgraph.typing import Array, FloatArray

if TYPE_CHECKING:
    from gramgraph.learn.bootstrap import EdgeStrengths

#: Graphs of one simulated data set.
GRAPHS = 50
#: Options of a search that also hold for the worlds.
SHARED = ("required", "forbidden", "tiers", "max_parents", "missing")


def reliability(
    strengths: EdgeStrengths | Sequence[EdgeStrengths],
    truth: BayesianNetwork | Sequence[BayesianNetwork],
    *,
    bins: int = 10,
) -> Any:
    """How often pairs with a strength in each interval are joined in the true graph, as a frame.

    Columns: `strength` (mean in the interval), `share` (of true edges), `pairs`, and `low`, `high`, a 95 % interval for
    the share (Wilson's). Strengths are calibrated where the interval covers the mean strength. Several bootstraps
    with their true networks are pooled.

    Parameters
    ----------
    strengths : one `EdgeStrengths`, or several.
    truth : the true network of each.
    bins : number of intervals, or their ends.

    Examples
    --------
    >>> import gramgraph as gg
    >>> net = gg.datasets.sprinkler()
    >>> strengths = gg.learn.bootstrap_edges(net.sample(500, random_state=0), 20, random_state=0)
    >>> list(gg.learn.reliability(strengths, net).columns)
    ['strength', 'share', 'pairs', 'low', 'high']
    """
    import pandas as pd

    check_count("bins", bins)
    found = list(strengths) if isinstance(strengths, Sequence) else [strengths]
    nets = [truth] if isinstance(truth, BayesianNetwork) else list(truth)
    if len(found) != len(nets):
        raise OptionError(f"each bootstrap needs its true network: there are {len(found)} and {len(nets)}")
    pairs = np.array([row for s, net in zip(found, nets, strict=True) for row in _pairs(s, net)]).reshape(-1, 2)
    at = np.minimum((pairs[:, 0] * bins).astype(np.int64), bins - 1)
    rows = []
    for b in np.unique(at):
        inside = pairs[at == b]
        rows.append((inside[:, 0].mean(), inside[:, 1].mean(), len(inside), *_wilson(inside[:, 1])))
    return pd.DataFrame(rows, columns=["strength", "share", "pairs", "low", "high"])


def _pairs(strengths: EdgeStrengths, net: BayesianNetwork) -> Iterable[tuple[float, float]]:
    """(strength, 1 where the true graph joins the pair)."""
    true = {frozenset(edge) for edge in net.edges}
    joined = strengths.forward + strengths.forward.T
    for i, a in enumerate(strengths.names):
        net.index(a)
        for j in range(i + 1, len(strengths.names)):
            yield min(float(joined[i, j]), 1.0), float(frozenset((a, strengths.names[j])) in true)


def _wilson(hits: FloatArray, z: float = 1.959964) -> tuple[float, float]:
    n, p = len(hits), float(hits.mean())
    middle = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z * float(np.sqrt(p * (1 - p) / n + z * z / (4 * n * n))) / (1 + z * z / n)
    return max(middle - half, 0.0), min(middle + half, 1.0)


def calibrate(
    strengths: EdgeStrengths,
    worlds: int,
    seed: np.random.SeedSequence,
    *,
    n_jobs: int = 1,
    client: Any = None,
    progress: Progress = False,
) -> EdgeStrengths:
    """The work of `EdgeStrengths.calibrated`."""
    check_count("worlds", worlds)
    if strengths.calibration is not None or strengths.n_graphs < 1:
        raise OptionError("strengths are calibrated once, as bootstrap_edges counted them on at least one graph")
    if strengths._options.get("hidden"):
        raise OptionError("strengths of edges at hidden variables cannot be calibrated: leave calibrate away")
    table, options, n = strengths._table, strengths._options, min(strengths.n_graphs, GRAPHS)
    decided = _decided(table, options)
    found, true = [], []
    tasks = on_processes(_one_world, seed.spawn(worlds), shared=(table, options, n), n_jobs=n_jobs, client=client)
    with reporting(progress, worlds, "simulated data sets") as report:
        try:
            for pairs in tasks:
                if pairs is None:
                    break
                found.append(pairs[0][~decided])
                true.append(pairs[1][~decided])
                if report is not None:
                    report(len(found))
        except KeyboardInterrupt:
            pass
        finally:
            tasks.close()
    if not found:
        warnings.warn("Ctrl-C came before the first simulated data set: not calibrated", ModelWarning, stacklevel=3)
        return strengths
    fitted = StrengthMap.fit(np.concatenate(found), np.concatenate(true), n)
    return replace(strengths, forward=_mapped(strengths, fitted, decided), calibration=fitted)


def _decided(table: CodedTable | MixedTable, options: dict[str, Any]) -> Array:
    """Pairs (upper triangle) that constraints join or keep apart."""
    known = _known(table, options)
    never = known.forbidden & known.forbidden.T
    return (known.required | known.required.T | never)[np.triu_indices(len(table.names), 1)]


def _known(table: CodedTable | MixedTable, options: dict[str, Any]) -> Constraints:
    given = [options.get(name) for name in ("required", "forbidden", "tiers", "max_parents")]
    whole = Counts(table) if isinstance(table, CodedTable) else table
    return _constraints(whole, given[0] or (), given[1] or (), given[2], given[3])


def _one_world(
    seed: np.random.SeedSequence, table: CodedTable | MixedTable, options: dict[str, Any], n: int
) -> tuple[FloatArray, Array] | None:
    """(strengths, whether true) of all pairs in data drawn from a network like that of the table."""
    graphs, draws = seed.spawn(2)
    rng = np.random.default_rng(draws)
    known = {name: options[name] for name in SHARED if name in options}
    if options.get("method") == "structural_em":
        known["missing"] = "families"
    net = learn_structure(resampled(rng, table, known), score="bic", **known)
    if net.report.interrupted:
        return None
    drawn = _like(table, net, rng)
    total = np.zeros((len(table.names),) * 2)
    for one in graphs.spawn(n):
        arrows = one_graph(one, drawn, options)
        if arrows is None:
            return None
        total += arrows
    true = np.zeros(total.shape, bool)
    for v, parents in enumerate(net.parent_positions):
        true[v, list(parents)] = True
    upper = np.triu_indices(len(true), 1)
    return np.minimum((total + total.T)[upper] / n, 1.0), (true | true.T)[upper]


def _like(table: CodedTable | MixedTable, net: BayesianNetwork, rng: np.random.Generator) -> CodedTable | MixedTable:
    """Rows drawn from the graph with conditionals fitted to the table, with the table's gaps and weights."""
    parents, seed = list(net.parent_positions), int(rng.integers(2**31))
    if isinstance(table, CodedTable):
        fitted = _network(Counts(table), parents, "bdeu", 1.0)
        coded = code_table(fitted.sample(len(table), random_state=seed), table.variables)
        cells = (np.where(old < 0, -1, new) for old, new in zip(table.columns, coded.columns, strict=True))
        return CodedTable(table.variables, tuple(c.astype(o.dtype) for c, o in zip(cells, table.columns, strict=True)),
                          table.weights)  # fmt: skip
    frame = _network(table.complete(), parents, None, 1.0).sample(len(table), random_state=seed)[list(table.names)]
    labels = [var for var in table.variables if var.is_discrete]
    codes = iter(code_table(frame, labels).columns)
    columns = []
    for var, old in zip(table.variables, table.columns, strict=True):
        new = next(codes) if var.is_discrete else frame[var.name].to_numpy(np.float64)
        gaps = old < 0 if var.is_discrete else np.isnan(old)
        columns.append(np.where(gaps, -1 if var.is_discrete else np.nan, new).astype(old.dtype))
        frame[var.name] = frame[var.name].where(~gaps)
    return MixedTable(table.variables, tuple(columns), table.weights, frame)


def _mapped(strengths: EdgeStrengths, fitted: StrengthMap, decided: Array) -> FloatArray:
    """Both directions scaled to the probability; pairs that were never joined get it in the directions allowed."""
    size = len(strengths.names)
    upper = np.triu_indices(size, 1)
    joined = strengths.forward + strengths.forward.T
    want = joined.copy()
    want[upper] = np.where(decided, joined[upper], fitted(np.minimum(joined[upper], 1.0), strengths.n_graphs))
    want = np.triu(want, 1) + np.triu(want, 1).T
    open_ = (~_known(strengths._table, strengths._options).forbidden).astype(np.float64)
    ways = np.where(joined > 0, strengths.forward, open_)
    both = ways + ways.T
    return np.divide(want * ways, both, out=np.zeros_like(want), where=both > 0)
