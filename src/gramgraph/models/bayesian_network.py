"""Bayesian networks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from math import prod
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from gramgraph._asking import learners
from gramgraph._progress import Progress
from gramgraph._show import counted, shorten
from gramgraph.conditionals import Conditional
from gramgraph.conditionals.base import Kind
from gramgraph.exceptions import ModelError, did_you_mean, listing
from gramgraph.factors import TableFactor
from gramgraph.models import checking
from gramgraph.models.cpt import Cpts
from gramgraph.models.directed import DirectedModel
from gramgraph.models.draft import Draft
from gramgraph.models.notation import Structure
from gramgraph.models.plated.notation import is_plated
from gramgraph.models.writing import read_parts
from gramgraph.typing import RandomState
from gramgraph.variables import Var

if TYPE_CHECKING:
    from gramgraph.learn.posterior import ParameterPosterior
    from gramgraph.models.factor_graph import FactorGraph
    from gramgraph.models.markov_network import MarkovNetwork

#: Keywords of the constructor; all others are values of hyper-parameters.
_WORDS = frozenset(("edges", "states", "name", "check"))


class _DraftDoor:
    """`BayesianNetwork.draft("A -> B")` starts a new draft, `net.draft()` one that continues a network."""

    def __get__(self, net: BayesianNetwork | None, owner: type[BayesianNetwork]) -> Any:
        def draft(structure: Any = None, *, edges: Any = None, states: Any = None, name: str = "") -> Draft:
            """A mutable draft of a network; `build()` makes the network."""
            return Draft.start(owner, structure, edges=edges, states=states, name=name)

        return draft if net is None else partial(Draft.continuing, net)


class BayesianNetwork(DirectedModel):
    """A directed acyclic graph with p(x | parents) at every node: p(x) = Π p(x_i | parents of x_i).

    `structure` is a text (`"A -> B <- C; C -> D{low|mid|high}; E[3]"`), a dict {child: [parents]}, or left out
    for `edges=[(parent, child), …]` or for conditionals that bring their parents. `states` maps names to labels
    (or their number); undeclared states are those that `cpds` uses, else no and yes.

    `cpds` is a list of conditionals, or a dict from names to tables: numbers of shape (*parent sizes, child
    size), rows by context (`{"S=yes, R=no": [0.1, 0.9], …}`, `{("yes", "no"): …}`), a function of the parents'
    labels, or a conditional. A row is numbers, `{state: p}`, or p(last state) for a child with two states.
    Parents stand in the order in which the structure shows them. Without `cpds` the network is a structure:
    questions about the graph work, those about numbers say what is missing.

    A text with plates (`plate words in documents: z, w`) or families by name make a `gg.models.PlateModel`, which says
    more about them.

    Parameters
    ----------
    structure : text, dict {child: [parents]}, or None.
    edges : pairs (parent, child).
    cpds : conditionals by name, or a list of them.
    states : labels by name, or their number.
    name : a title.
    check : whether faults of the tables are an error at once; `faults()` lists them later.

    Examples
    --------
    >>> wet = {("no", "no"): 0, ("no", "yes"): 0.9, ("yes", "no"): 0.9, ("yes", "yes"): 0.99}
    >>> net = BayesianNetwork("sprinkler -> wet <- rain", cpds={"sprinkler": 0.3, "rain": 0.2, "wet": wet})
    >>> net
    BayesianNetwork(3 variables, 2 edges, 6 parameters)
    >>> round(float(np.exp(net.joint_log_prob({"sprinkler": "yes", "rain": "no", "wet": "yes"}))), 3)
    0.216
    >>> net.is_dconnected("sprinkler", "rain"), net.is_dconnected("sprinkler", "rain", given=["wet"])
    (False, True)
    """

    conditionals: tuple[Conditional | None, ...]
    _writing_faults: tuple[tuple[str, str], ...] = ()  # (variable or "", sentence): faults that the parts do not show
    interventions: Mapping[str, Any] = MappingProxyType({})  # what `do` set
    fit_report: Any = None  # how EM went, after a fit to data with missing cells; or how families were chosen
    kinds: Mapping[str, Kind] = MappingProxyType({})  # conditionals that are to be fitted, by variable

    draft = _DraftDoor()
    _plate_class: type[BayesianNetwork] | None = None  # what a text with plates makes

    def __init_subclass__(cls, *, plated: bool = False, **options: Any) -> None:
        super().__init_subclass__(**options)
        if plated:
            BayesianNetwork._plate_class = cls

    def __new__(cls, structure: Any = None, *, cpds: Any = None, plates: Any = None, **others: Any) -> Any:
        """A network; a `PlateModel` where plates, hyper-parameters or families by name are written."""
        given = {key: value for key, value in others.items() if key not in _WORDS}
        if cls is BayesianNetwork and is_plated(structure, cpds, plates, given):
            return object.__new__(cls._plate_class or cls)
        return object.__new__(cls)

    def __init__(
        self,
        structure: Any = None,
        *,
        edges: Iterable[tuple[str, str]] | None = None,
        cpds: Mapping[str, Any] | Iterable[Conditional] | None = None,
        states: Mapping[str, Any] | None = None,
        name: str = "",
        check: bool = True,
    ) -> None:
        parts = read_parts(structure, edges, cpds, states)
        self._fill(parts.variables, parts.conditionals, parts.parents, name, None)
        self._writing_faults = tuple(parts.faults)
        self.kinds = dict(parts.kinds)
        if check:
            self._check(missing=bool(cpds) and not parts.kinds)

    @classmethod
    def from_parts(
        cls,
        variables: Iterable[Var],
        conditionals: Sequence[Conditional | None],
        *,
        parents: Sequence[Sequence[int]] | None = None,
        name: str = "",
        metadata: dict[str, Any] | None = None,
        check: bool = True,
    ) -> Self:
        """From variables and their conditionals in the same order; the quick way for readers and learners.

        `parents` is needed only where a conditional is absent (a structure without numbers).
        """
        net = cls.__new__(cls)
        net._fill(variables, conditionals, parents, name, metadata)
        if check:
            net._check(missing=False)
        return net

    def _fill(
        self,
        variables: Iterable[Var],
        conditionals: Sequence[Conditional | None],
        parents: Sequence[Sequence[int]] | None,
        name: str,
        metadata: dict[str, Any] | None,
    ) -> None:
        self._set_variables(variables)
        self.conditionals = tuple(conditionals)
        self.name, self.metadata = name, metadata or {}
        if parents is not None:
            self.parent_positions = tuple([tuple(row) for row in parents])
            return
        index = self.positions
        try:
            self.parent_positions = tuple(
                [tuple([index[p.name] for p in c.parents]) if c else () for c in self.conditionals]
            )
        except KeyError:
            self.parent_positions = tuple(self._known_parents(c) for c in self.conditionals)

    def _known_parents(self, c: Conditional | None) -> tuple[int, ...]:
        """Positions of the parents that are variables; the others are noted as faults."""
        unknown = [p.name for p in c.parents if p.name not in self.positions] if c else []
        for p in unknown:
            fault = f"{c.child.name} has the parent {p!r}, which is not a variable.{did_you_mean(p, self.positions)}"  # type: ignore[union-attr]
            self._writing_faults += (("", fault),)
        return tuple(self.positions[p.name] for p in c.parents if p.name in self.positions) if c else ()

    # ------------------------------------------------------------------------------------------ checks

    def faults(self) -> list[str]:
        """Everything that is wrong: states, families, cycles, rows that do not sum to one, missing tables."""
        return self._find_faults(missing=True)

    def _check(self, *, missing: bool) -> None:
        found = self._find_faults(missing=missing)
        if found:
            raise ModelError(found)

    def _find_faults(self, *, missing: bool) -> list[str]:
        found = [fault for _, fault in self._writing_faults]
        found += checking.domain_faults(self.vars)
        found += checking.cycle_faults(self.parent_positions, self.variables)
        if not any(name == "" for name, _ in self._writing_faults):
            found += checking.family_faults(self.vars, self.parent_positions, self.conditionals)
        found += checking.number_faults(self.conditionals)
        absent = self._without_table() if missing else []
        known = {name for name, _ in self._writing_faults}
        absent = [name for name in absent if name not in known]
        return [*found, self._say_missing(absent)] if absent else found

    def _without_table(self) -> list[str]:
        return [var.name for var, c in zip(self.vars, self.conditionals, strict=False) if c is None]

    def _say_missing(self, names: Sequence[str]) -> str:
        chosen = [f"{name} ({self.kinds[name]!r})" for name in names if name in self.kinds]
        if chosen:
            return f"not fitted yet: {listing(chosen)}; learn the network with fit(data) before it is asked"
        helps = "give it with cpds=…, draw one with random_tables(), or learn it with fit(data)"
        return f"no conditional yet for {listing(names)}: {helps}"

    # ------------------------------------------------------------------------------------------ numbers

    @property
    def has_tables(self) -> bool:
        """Whether every variable has its conditional; a structure alone has none."""
        return None not in self.conditionals

    def conditional(self, name: str) -> Conditional:
        """p(name | parents)."""
        found = self.conditionals[self.index(name)]
        if found is None:
            raise ModelError(self._say_missing([name]))
        return found

    @property
    def cpt(self) -> Cpts:
        """Tables to read, by name and context: `net.cpt["W"][{"S": "yes"}]`; use `draft()` to change them."""
        return Cpts(self)

    def factors(self, *, structured: bool = True) -> tuple[TableFactor, ...]:
        """One factor per conditional (or several, where a conditional offers a cheaper product)."""
        out: list[TableFactor] = []
        for c in self.conditionals:
            if c is None:
                raise ModelError(self._say_missing(self._without_table()))
            out.extend(c.factors() if structured or not c.tabular else (TableFactor(c.scope, c.table()),))
        return tuple(out)

    def joint_log_prob(self, assignment: Mapping[str, Any]) -> float:
        """log p(x) = Σ log p(x_i | parents) at a full assignment, in O(edges)."""
        if not self.has_tables:
            raise ModelError(self._say_missing(self._without_table()))
        if not self.is_discrete:
            return super().joint_log_prob(assignment)
        at = self._full(assignment)
        total = 0.0
        for i, (row, c) in enumerate(zip(self.parent_positions, self.conditionals, strict=True)):
            p = c.prob_at([*(at[j] for j in row), at[i]])  # type: ignore[union-attr]
            if p <= 0.0:
                return -np.inf
            total += float(np.log(p))
        return total

    @property
    def n_parameters(self) -> int:
        """Number of free parameters; a variable without a conditional counts as a table."""
        return sum(
            c.n_parameters if c is not None else self._count(self.vars[v], [self.vars[p] for p in row])
            for v, (row, c) in enumerate(zip(self.parent_positions, self.conditionals, strict=True))
        )

    @staticmethod
    def _count(child: Var, parents: Sequence[Var]) -> int:
        """Free parameters of a table; of a linear Gaussian (a softmax) where real variables take part."""
        m = 1 + sum(var.dimension if var.is_real else 1 for var in parents if not var.is_discrete)
        if not child.is_discrete and not child.is_real:
            return 0
        if child.is_discrete:
            own = (child.size - 1) * m
        else:
            own = child.dimension * m + child.dimension * (child.dimension + 1) // 2
        return own * prod(var.size for var in parents if var.is_discrete)

    # ------------------------------------------------------------------------------------------ other networks

    def do(self, interventions: Mapping[str, Any] | str, state: Any = None) -> Self:
        """The network after an intervention: edges into the set variables are cut, and they take their new value.

        Values are states, or distributions (`{state: p}` or numbers) for a random intervention.

        >>> import gramgraph as gg
        >>> net = gg.datasets.asia()
        >>> net.do({"lung": "yes"}).parents("lung")
        ()
        >>> round(net.do({"lung": "yes"}).query("smoke")["smoke"].prob("yes"), 4)  # forcing is no sign of smoking
        0.5
        """
        from gramgraph.models.variants import intervene

        return intervene(self, {interventions: state} if isinstance(interventions, str) else interventions)

    def random_tables(self, random_state: RandomState = None, *, concentration: float = 1.0) -> Self:
        """The same structure with every row drawn from a symmetric Dirichlet distribution."""
        from gramgraph.models.variants import with_random_tables

        return with_random_tables(self, random_state, concentration)

    def fit(
        self,
        data: Any,
        *,
        conditional: Any = None,
        method: str = "em",
        prior: Any = None,
        equivalent_sample_size: float = 10.0,
        weights: Any = None,
        hidden: Iterable[str] = (),
        max_iter: int = 200,
        tol: float = 1e-5,
        restarts: int = 1,
        random_state: RandomState = None,
        n_jobs: int = 1,
        client: Any = None,
        progress: Progress = False,
    ) -> Self:
        """A new network with the same graph and tables learned from a frame; EM where cells are missing.

        Parameters
        ----------
        data : a pandas, polars or Arrow frame, a dict of columns, the path of a CSV or Parquet file of any size, an
            Arrow stream (a DuckDB relation, say) or a Dask frame. `gg.describe(data)` shows what each column is taken
            for where the network does not say it.
        hidden : variables that have no column. Others without one are hidden, too, unless a column that is not a
            variable looks like a misspelling of the name, which is an error. A warning names unused columns.
        conditional : how each variable depends on its parents. A kind for all (`gg.KernelConditional()`) or by variable
            (`{"x": gg.KernelConditional(), "y": gg.Softmax()}`, with `...` for all others); "auto" mixes kinds (tables,
            linear Gaussians, copulas, softmax curves, kernels, boosted trees with kernel residuals) by the likelihood
            of left-out rows, and "choose" takes the simplest within one standard error of the best. None takes the
            kinds in `cpds`, else the plain ones below. Each family is then learned from the rows that know it, and
            `fit_report` holds kinds, weights and gains.
        prior : None is maximum likelihood (a row of a table that never occurs becomes uniform); "bdeu" spreads
            `equivalent_sample_size` rows over each table, "k2" adds one to every cell, a number adds that much, and a
            dict gives pseudo-counts per variable, shape (*parent sizes, child size), or for single contexts:
            `{"wet": {("yes", "no"): [1, 9], ...: 1}, ...: "bdeu"}`, where `...` stands for all others.
        method : how missing cells of discrete variables are taken into account: "em", or "mcem" (Monte Carlo EM: what
            is missing is drawn from p(missing | seen, tables), more often in every step, and full rows counted).
        weights : the name of a column, or one number for each row.
        max_iter, tol, restarts, random_state : of EM, which stops when a step gains less than `tol` a row.
        n_jobs : threads of EM for discrete variables, among which thousands of rows are shared out; the numbers do not
            depend on it.
        client : a `distributed.Client` (or its address) whose workers count partitions of a Dask frame or Parquet file.

        After EM `fit_report` holds the log-likelihood of every step. Conditionals of discrete variables become tables.
        Angles and positive numbers become kernel conditionals. Real-valued variables (declared as such, or whose
        columns hold fractions) become linear Gaussians, one for each configuration of their discrete parents; their
        prior is a `gg.learn.LinearGaussianPrior`. A discrete child of real parents becomes a `Softmax`; predictors,
        copulas and kernels are fitted again.

        >>> import gramgraph as gg
        >>> frame = gg.datasets.sprinkler().sample(1000, random_state=0)
        >>> net = gg.BayesianNetwork("rain -> wet <- sprinkler").fit(frame)
        >>> round(net.query("wet", {"rain": "yes", "sprinkler": "no"})["wet"].prob("yes"), 1)
        0.9
        """
        net, report = learners().fit_network(
            self, data, prior=prior, equivalent_sample_size=equivalent_sample_size, weights=weights, hidden=hidden,
            client=client, max_iter=max_iter, tol=tol, restarts=restarts, random_state=random_state, progress=progress,
            conditional=conditional, method=method, n_jobs=n_jobs,
        )  # fmt: skip
        net.fit_report = report
        return net  # type: ignore[return-value]

    def fit_posterior(
        self,
        data: Any,
        *,
        prior: Any = "bdeu",
        equivalent_sample_size: float = 10.0,
        weights: Any = None,
        client: Any = None,
        progress: Progress = False,
        hidden: Iterable[str] = (),
        method: str = "variational",
        max_iter: int = 500,
        tol: float = 1e-8,
        draws: int = 2000,
        random_state: RandomState = None,
    ) -> ParameterPosterior:
        """The Dirichlet posterior of the tables: `mean()` and `draw()` are networks, `query` gives answers with
        credible intervals, `update(more, forget=0.99)` goes on with new rows.

        Parameters are those of `fit`; the prior needs a positive number in every row of every table. Complete rows give
        the exact posterior. Where cells are missing it is a mixture with a part for every way to fill them: with
        `method="variational"` the nearest product of Dirichlet distributions (too sure of itself; `report["bounds"]`
        rise towards log p(data)), with "gibbs" Dirichlet distributions with the mixture's means and variances, from
        `draws` sweeps over gaps and tables.

        >>> import gramgraph as gg
        >>> frame = gg.datasets.sprinkler().sample(1000, random_state=0)
        >>> posterior = gg.BayesianNetwork("rain -> wet").fit_posterior(frame, prior="k2")
        >>> mean, low, high = posterior.query("wet", {"rain": "yes"}, draws=200, random_state=0)["wet"].prob("yes")
        >>> low < mean < high
        True
        """
        return learners().fit_posterior(  # type: ignore[no-any-return]
            self, data, prior=prior, equivalent_sample_size=equivalent_sample_size, weights=weights, client=client,
            progress=progress, hidden=hidden, method=method, max_iter=max_iter, tol=tol, draws=draws,
            random_state=random_state,
        )  # fmt: skip

    def impute(self, data: Any, *, method: str = "mpe", random_state: RandomState = None) -> Any:
        """A frame with its missing cells filled: by the most probable states of each row together ("mpe"), or by a
        draw of what is missing given the rest ("draw"; repeat it for multiple imputation).

        >>> import gramgraph as gg, pandas as pd
        >>> gg.datasets.asia().impute(pd.DataFrame({"smoke": ["yes", None], "lung": [None, "yes"]})).values.tolist()
        [['yes', 'no'], ['yes', 'yes']]
        """
        return learners().impute(self, data, method=method, random_state=random_state)

    def to_markov_network(self) -> MarkovNetwork:
        """The same distribution without directions: a factor p(x | parents) per family; the graph becomes moral."""
        from gramgraph.models.markov_network import MarkovNetwork

        return MarkovNetwork.from_parts(self.vars, self.factors(structured=False), name=self.name)

    def to_factor_graph(self) -> FactorGraph:
        """Variables and families as the two kinds of nodes; factors are named `p(child | parents)`."""
        from gramgraph.models.factor_graph import FactorGraph

        names = [f"p({' | '.join(filter(None, (name, ', '.join(self.parents(name)))))})" for name in self.variables]
        return FactorGraph.from_parts(self.vars, self.factors(structured=False), names=names, name=self.name)

    @classmethod
    def from_gaussian(
        cls, mean: Any, covariance: Any, structure: Any = None, *, names: Sequence[str] | None = None, name: str = ""
    ) -> Self:
        """A linear-Gaussian network from a joint Gaussian: each variable regressed on its parents.

        Without a structure each variable has all before it as parents, and the joint is kept exactly; `to_gaussian`
        goes the other way.

        >>> net = BayesianNetwork.from_gaussian([0, 0], [[1, 0.5], [0.5, 2]], "a -> b", names=["a", "b"])
        >>> net.conditional("b").coefficients.tolist(), net.conditional("b").covariance.tolist()
        ([[0.5]], [[1.75]])
        """
        from gramgraph.models.gaussian import network_parts

        return cls.from_parts(*network_parts(mean, covariance, structure, names), name=name)

    @classmethod
    def from_networkx(cls, graph: Any, *, cpds: Any = None, states: Mapping[str, Any] | None = None) -> Self:
        """From a networkx DiGraph; a node's attribute `states`, where there is one, gives its labels."""
        declared = {str(node): data["states"] for node, data in graph.nodes(data=True) if "states" in data}
        structure = Structure()
        for node in graph.nodes:
            structure.add_node(str(node))
        for a, b in graph.edges():
            structure.add_edge(str(a), str(b))
        net = cls(structure, cpds=cpds, states={**declared, **(states or {})})
        net.name = str(graph.graph.get("name", "") or "")
        return net

    # ------------------------------------------------------------------------------------------ value

    def __eq__(self, other: object) -> bool:
        """The same variables and states, parents and numbers, each in the same order; names of models do not count."""
        if self is other:
            return True
        if not isinstance(other, BayesianNetwork):
            return NotImplemented
        if self.vars != other.vars or self.parent_positions != other.parent_positions:
            return False
        pairs = zip(self.conditionals, other.conditionals, strict=True)
        return all(a is b or (a is not None and b is not None and a.equals(b)) for a, b in pairs)

    def __hash__(self) -> int:
        return hash((self.variables, self.parent_positions))

    def __repr__(self) -> str:
        title = f"{self.name!r}, " if self.name else ""
        numbers = counted(parameter=self.n_parameters) if self.has_tables else "structure without tables"
        n_edges = sum(map(len, self.parent_positions))
        return f"BayesianNetwork({title}{counted(variable=len(self), edge=n_edges)}, {numbers}{self._after_do()})"

    def _after_do(self) -> str:
        """What was set by `do`, in words."""
        done = ", ".join(f"{name}={value}" for name, value in self.interventions.items())
        return f", after do({shorten(done, 60)})" if done else ""
