"""How strongly all columns of a frame depend on each other, of whatever kinds they are; the tree that follows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from gramgraph._validation import check_positive, generator
from gramgraph.data.frames import read_frame
from gramgraph.embeddings.ratio import Whitening
from gramgraph.exceptions import ModelError, VariableError
from gramgraph.kernels.domains import default_kernel, sample_of
from gramgraph.typing import FloatArray, RandomState


@dataclass(frozen=True, eq=False)
class Dependence:
    """Squared-loss mutual information ½ (E r − 1), r = p(x, y) / (p(x) p(y)), of every pair of columns.

    It is zero for independent columns (estimates scatter around zero, so they may be slightly negative), and grows
    without bound as columns determine each other.

    Parameters
    ----------
    names : of the columns.
    smi : (d, d) information of every pair.

    Examples
    --------
    >>> found = pairwise_dependence({"a": list("xxyy") * 50, "b": list("uuvv") * 50, "c": list("mnmn") * 50}, reg=1e-6)
    >>> round(found["a", "b"], 1), found.tree()[0]
    (0.5, ('a', 'b'))
    """

    names: tuple[str, ...]
    smi: FloatArray  # (v, v), symmetric, zeros on the diagonal

    def __repr__(self) -> str:
        return f"Dependence({len(self.names)} columns)"

    def __getitem__(self, pair: tuple[str, str]) -> float:
        """The value of two columns, by name."""
        for name in pair:
            if name not in self.names:
                raise VariableError.unknown(name, self.names)
        return float(self.smi[self.names.index(pair[0]), self.names.index(pair[1])])

    def tree(self, root: str | None = None) -> list[tuple[str, str]]:
        """Edges (parent, child) of the heaviest spanning tree (Chow–Liu), away from the root, parents first."""
        from gramgraph.graphs.spanning import spanning_tree

        root = self.names[0] if root is None else root
        if root not in self.names:
            raise VariableError.unknown(root, self.names)
        found = spanning_tree(self.smi, list(range(len(self.names))), self.names.index(root))
        return [(self.names[parent], self.names[child]) for child, parent in found.items()]


def pairwise_dependence(
    frame: Any,
    *,
    domains: Mapping[str, str] | None = None,
    factor: float = 0.5,
    reg: float = 1e-3,
    random_state: RandomState = 0,
) -> Dependence:
    """Squared-loss mutual information of all pairs of columns, for structure learning without a parametric family.

    Each column is mapped to whitened features u of its domain's kernel (bandwidth `factor` × median distance, ridge
    `reg`), once. With M₁, M₂ = mean u(x)u(y)ᵀ over two random halves of the rows, ½ ⟨M₁, M₂⟩ estimates the information
    without the upward bias of ½ ‖M‖². All pairs come from two matrix products, O(n R²), R features in all.

    Parameters
    ----------
    frame : a data frame or a dict of columns.
    domains : kinds of the columns by name; None guesses.
    factor : bandwidth as a multiple of the median distance.
    reg : the penalty λ of the regression.
    random_state : seed, or a generator.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> a = rng.normal(size=500)
    >>> b = a**2 + 0.3 * rng.normal(size=500)
    >>> found = pairwise_dependence({"c": np.sin(b) + 0.3 * rng.normal(size=500), "a": a, "b": b})
    >>> found.tree(root="a")
    [('a', 'b'), ('b', 'c')]
    """
    columns = _columns(frame)
    domains = dict(domains or {})
    for name in domains:
        if name not in columns:
            raise VariableError.unknown(name, tuple(columns))
    check_positive("reg", reg)
    blocks, starts, rows = [], [0], None
    for name, values in columns.items():
        sample_of(values, None, domains.get(name), name=name, least=4)
        kernel = default_kernel(values, domains.get(name), factor=factor)
        points = kernel.prepare(values)
        w = Whitening.of(kernel, points)
        U = w.rotated(points)
        if rows is not None and len(U) != rows:
            raise ModelError(f"columns must have equally many rows; {name!r} has {len(U)}, those before it {rows}.")
        rows = len(U)
        keep = w.values > 0.05 * reg  # what the ridge takes away whole needs no product
        blocks.append((U * w.scales(reg))[:, keep])
        starts.append(starts[-1] + int(keep.sum()))
    if len(blocks) < 2:
        raise ModelError(f"pairs need at least 2 columns; there are {len(blocks)}.")
    return Dependence(tuple(columns), _informations(np.hstack(blocks), starts, random_state))


def _informations(U: FloatArray, starts: list[int], random_state: RandomState) -> FloatArray:
    """½ ⟨M₁, M₂⟩ of every pair of blocks of columns."""
    n = len(U)
    order = generator(random_state).permutation(n)
    halves = [U[order[: n // 2]], U[order[n // 2 :]]]
    products = [half.T @ half / len(half) for half in halves]
    both = products[0] * products[1]
    v = len(starts) - 1
    part = np.repeat(np.arange(v), np.diff(starts))
    out = np.zeros((v, both.shape[1]))
    np.add.at(out, part, both)
    found = np.zeros((v, v))
    np.add.at(found.T, part, out.T)
    found *= 0.5
    np.fill_diagonal(found, 0.0)
    return 0.5 * (found + found.T)


def _columns(frame: Any) -> dict[str, Any]:
    """Columns by name, of a frame or a mapping."""
    if isinstance(frame, Mapping):
        return {str(name): values for name, values in frame.items()}
    read = read_frame(frame)
    return {str(name): read.array(name) for name in read.names}
