"""Markov networks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from gramgraph._asking import learners
from gramgraph._progress import Progress
from gramgraph._validation import check_positive
from gramgraph.exceptions import ModelError
from gramgraph.factors import GaussianFactor, SharedTables, TableFactor
from gramgraph.models.notation import read_structure
from gramgraph.models.potentials import has_kernels, make_scopes, scoped, tabulate
from gramgraph.models.undirected import FactorModel
from gramgraph.typing import RandomState
from gramgraph.variables import Var

if TYPE_CHECKING:
    from gramgraph.models.factor_graph import FactorGraph


class MarkovNetwork(FactorModel):
    """A product of non-negative factors over an undirected graph: p(x) = (1/Z) Π_c ψ_c(x_c).

    `factors` are `TableFactor`s, pairs (names, numbers), or a dict {names: numbers}; numbers may be a function
    of one label per variable. Or give the graph as `edges` (pairs, or a text `"A - B - C; B - D{low|high}"`)
    and `potentials` as a dict {names: numbers}; an edge without a potential counts as constant. `states` maps
    names to labels; without it a table with two states means no and yes, another number k means "0", …, "k-1".
    With `KernelPotential`s among the factors, the network is one of numbers and angles on cells; with kinds such as
    `potentials={("a", "b"): gg.KernelPotential()}` it is a graph whose potentials `fit` learns.

    `joint_log_prob` is the logarithm of the product, not normalized: add −log Z for log p(x).

    Parameters
    ----------
    factors : factors, pairs (names, numbers), or a dict {names: numbers}.
    edges : text or pairs.
    potentials : numbers by names, with `edges`.
    states : labels by name.
    name : a title.
    check : whether faults of the tables are an error at once.

    Examples
    --------
    >>> net = MarkovNetwork(edges="A - B - C", potentials={("A", "B"): [[2, 1], [1, 2]], ("B", "C"): [[3, 1], [1, 3]]})
    >>> net.markov_blanket("B"), net.is_separated("A", "C", given="B")
    (('A', 'C'), True)
    >>> round(float(np.exp(net.joint_log_prob({"A": "yes", "B": "yes", "C": "no"}))), 6)
    2.0
    """

    fit_report: Any = None  # how the tables were learned, after `fit`

    def __new__(cls, factors: Any = None, *args: Any, **options: Any) -> Any:
        """A network on cells where kernel potentials are among the factors."""
        if cls is MarkovNetwork and (has_kernels(factors) or has_kernels(options.get("potentials"))):
            from gramgraph.models.of_potentials import KernelMarkovNetwork

            return object.__new__(KernelMarkovNetwork)
        return object.__new__(cls)

    def __init__(
        self,
        factors: Any = None,
        *,
        edges: str | Iterable[tuple[str, str]] | None = None,
        potentials: Mapping[Any, Any] | None = None,
        states: Mapping[str, Any] | None = None,
        name: str = "",
        check: bool = True,
    ) -> None:
        written = read_structure(edges, directed=False)
        pieces = [*scoped(factors), *scoped(potentials, "potentials")]
        faults: list[str] = []
        known = make_scopes(pieces, {**written.states, **(states or {})}, written.names, faults)
        made: list[Any] = []  # tables, or Gaussian factors
        for names, content in pieces:
            try:
                made.append(_as_factor(names, content, known))
            except ModelError as error:
                faults += error.faults
        self._set_variables(known.values())
        self.stored_factors = tuple(made)
        self.bare_links = tuple((self.positions[a], self.positions[b]) for a, b in written.links)
        self.name, self.metadata = name, {}
        self._writing_faults = (*_off_graph(pieces, written.links), *faults) if edges is not None else tuple(faults)
        if check:
            self.check_model()

    @classmethod
    def from_parts(
        cls,
        variables: Iterable[Var],
        factors: Sequence[Any],
        *,
        name: str = "",
        metadata: dict[str, Any] | None = None,
    ) -> Self:
        """From variables and factors; the quick way for readers and learners."""
        net = cls.__new__(cls)
        net._set_variables(variables)
        net.stored_factors = tuple(factors)
        net.name, net.metadata = name, metadata or {}
        return net

    @classmethod
    def from_shared(cls, variables: Iterable[Var], parts: Iterable[SharedTables], *, name: str = "") -> Self:
        """From variables and factors in arrays, of which scopes are positions in `variables`; nothing is checked.

        The way for grids and the like: no Python value is made for a factor until one is asked for.

        >>> from gramgraph.factors import SharedTables
        >>> from gramgraph.variables import binary
        >>> agree = SharedTables.from_log(np.array([[0, 1], [1, 2]]), np.array([0.5, 0.5]), np.eye(2))
        >>> net = MarkovNetwork.from_shared([binary(v) for v in "abc"], [agree])
        >>> net.edges, round(net.query("a", {"c": "yes"})["a"].prob("yes"), 4)
        ((('a', 'b'), ('b', 'c')), 0.53)
        """
        net = cls.__new__(cls)
        net._set_variables(variables)
        net._shared = tuple(part for part in parts if len(part.level))
        net.name, net.metadata = name, {}
        return net

    @classmethod
    def from_energies(
        cls,
        energies: Any,
        *,
        temperature: float = 1.0,
        states: Mapping[str, Any] | None = None,
        name: str = "",
    ) -> Self:
        """p(x) ∝ exp(−Σ_c E_c(x_c) / temperature); energies as `factors` are given, +inf for what cannot be.

        >>> net = MarkovNetwork.from_energies({("a", "b"): [[-1.0, 1.0], [1.0, -1.0]]})
        >>> net.joint_log_prob({"a": "yes", "b": "yes"})
        1.0
        """
        check_positive("temperature", temperature)
        pieces = scoped(energies, "energies")
        faults: list[str] = []
        known = make_scopes(pieces, states, faults=faults)
        made: list[TableFactor] = []
        for names, content in pieces:
            scope = tuple(known[n] for n in names)
            what = f"the energy over ({', '.join(names)})"
            given = tabulate(content, scope, what)
            if np.isnan(given).any() or (given == -np.inf).any():
                faults.append(f"{what} has entries that are not numbers (only +inf is allowed)")
            made.append(TableFactor.from_log(scope, -given / temperature))
        if faults:
            raise ModelError(faults)
        return cls.from_parts(known.values(), made, name=name)

    @classmethod
    def from_precision(
        cls,
        precision: Any,
        *,
        mean: Any = None,
        shift: Any = None,
        names: Sequence[str] | None = None,
        tolerance: float = 0.0,
        name: str = "",
    ) -> Self:
        """A Gaussian network: p(x) ∝ exp(−½ xᵀPx + hᵀx), an edge where |P_ij| > tolerance.

        The factors are scaled so that their product is the density itself: `log_evidence` is the logarithm of the
        density of what was observed (0 without evidence), `joint_log_prob` that of a full assignment.

        `precision` is an array, a data frame (its columns are the names) or a scipy sparse matrix; the `mean` or the
        `shift` h = P · mean may be given. Zeros of P are missing edges: independence given all other variables.

        >>> net = MarkovNetwork.from_precision([[2.0, -1.0, 0.0], [-1.0, 2.0, -1.0], [0.0, -1.0, 2.0]])
        >>> net.edges, net.is_separated("x0", "x2", given="x1")
        ((('x0', 'x1'), ('x1', 'x2')), True)
        >>> round(net.query("x0", {"x1": 1.0})["x0"].mean(), 6)
        0.5
        """
        from gramgraph.models.gaussian import factors_of_precision

        return cls.from_parts(*factors_of_precision(precision, mean, shift, names, tolerance), name=name)

    def fit(
        self,
        data: Any,
        *,
        method: str = "auto",
        l1: float = 0.0,
        l2: float = 0.0,
        equivalent_sample_size: float = 0.0,
        weights: Any = None,
        missing: str = "rows",
        max_iter: int | None = None,
        tol: float = 1e-6,
        random_state: RandomState = None,
        progress: Progress = False,
        **options: Any,
    ) -> MarkovNetwork:
        """A new network with a full table over every scope of this one (edges and variables that no factor covers
        get one too), learned from a frame; `fit_report` tells how.

        Parameters
        ----------
        data : a pandas, polars or Arrow frame, a dict of columns, or a file, with a column for every variable.
        method : "closed_form" (decomposable networks: clique margins over separator margins), "exact" (gradients of
            the log-likelihood through the junction tree, compiled once), "bp" (the same with loopy propagation and
            Bethe's log Z; options `damping`, `sweeps`), "contrastive_divergence" (Gibbs chains from the data; options
            `sweeps`, `chains`, `persistent`, `learning_rate`), "pseudo_likelihood" (Besag: any size), "ipf"
            (proportional fitting of all margins). "auto" is the closed form where there is one and no penalty, else
            exact while the tree is small, else pseudo-likelihood.
        l1, l2 : penalties l1 Σ|θ| + ½ l2 Σθ² against the average over the rows of the log-likelihood. θ are effects:
            one for each set of variables inside a scope and each product of contrasts, for two states -1 and +1, so
            that they are the fields and couplings of an Ising model. l1 spares effects of single variables.
        equivalent_sample_size : rows of the uniform distribution that are added to the data (likelihood methods).
        weights : the name of a column, or one number for each row.
        missing : "rows" leaves out rows with missing cells, with a warning; "error" refuses them.
        max_iter, tol : steps, and the largest entry of the gradient at which they stop.

        At the maximum without penalties the model's margins of every scope are those of the data. Zeros of the factors
        stay zeros. `gg.models.ising_parameters` reads fields and couplings off a network of two-state variables.

        >>> import gramgraph as gg
        >>> frame = gg.models.ising_grid(3, 3, coupling=0.4).sample(2000, random_state=0)
        >>> net = gg.models.ising_grid(3, 3).fit(frame, l2=1e-4)
        >>> net.fit_report.method, net.fit_report.converged
        ('exact', True)
        >>> both = net.query(("x0_0", "x0_1"))[("x0_0", "x0_1")].prob("+1", "+1")
        >>> bool(abs(both - (frame[["x0_0", "x0_1"]] == "+1").all(axis=1).mean()) < 0.001)
        True
        """
        made, report = learners().fit_markov_network(
            self, data, method=method, l1=l1, l2=l2, equivalent_sample_size=equivalent_sample_size, weights=weights,
            missing=missing, max_iter=max_iter, tol=tol, random_state=random_state, progress=progress, options=options,
        )  # fmt: skip
        made.fit_report = report
        return made

    def neighbors(self, name: str) -> tuple[str, ...]:
        """Variables that an edge joins to `name`."""
        return self.markov_blanket(name)

    def to_factor_graph(self) -> FactorGraph:
        """Variables and factors as the two kinds of nodes."""
        from gramgraph.models.factor_graph import FactorGraph

        return FactorGraph.from_parts(self.vars, self.stored_factors, name=self.name)

    def to_markov_network(self) -> Self:
        """Itself."""
        return self

    def to_networkx(self) -> Any:
        """A networkx Graph; nodes carry the attribute `states`."""
        import networkx as nx

        out = nx.Graph(name=self.name)
        out.add_nodes_from(
            (var.name, {"states": var.states} if var.is_discrete else {"real": var.dimension}) for var in self.vars
        )
        out.add_edges_from(self.edges)
        return out


def _as_factor(names: tuple[str, ...], content: Any, known: Mapping[str, Var]) -> TableFactor | GaussianFactor:
    if isinstance(content, TableFactor | GaussianFactor):
        return content
    scope = tuple(known[name] for name in names)
    return TableFactor(scope, tabulate(content, scope, f"the factor over ({', '.join(names)})"))


def _off_graph(pieces: Sequence[tuple[tuple[str, ...], Any]], links: Mapping[tuple[str, str], None]) -> list[str]:
    """Potentials over pairs that the given edges do not link."""
    found = []
    for names, _ in pieces:
        apart = [
            (a, b) for i, a in enumerate(names) for b in names[i + 1 :] if (a, b) not in links and (b, a) not in links
        ]
        if apart:
            a, b = apart[0]
            found.append(f"the potential over ({', '.join(names)}) joins {a} and {b}, which no edge links")
    return found
