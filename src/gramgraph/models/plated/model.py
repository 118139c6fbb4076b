"""Plate models: a Bayesian network whose nodes repeat, written once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NoReturn

import numpy as np

from gramgraph._show import counted
from gramgraph.distributions.by_name import ByName
from gramgraph.exceptions import ModelError, did_you_mean, listing
from gramgraph.models.bayesian_network import BayesianNetwork
from gramgraph.models.notation import Structure, read_structure
from gramgraph.models.plated.layout import PlateLayout
from gramgraph.models.plated.notation import Plate, read_plates, split_text
from gramgraph.models.plated.template import Template, TemplateBuilder
from gramgraph.models.plated.unrolling import unrolled
from gramgraph.models.writing import read_parts
from gramgraph.typing import FloatArray
from gramgraph.variables import Counts, Positive, Real, Unit, Var

#: The domain of a variable that nobody declared, by its family.
_DOMAINS: dict[str, Any] = {"Beta": Unit(), "Gamma": Positive(), "Normal": Real(), "Poisson": Counts()}


class PlateModel(BayesianNetwork, plated=True):
    """A network in which plates say what repeats; `gg.BayesianNetwork` makes one from a text with plates.

    `plate NAME [in OUTER]: members` repeats its members; the same by `plates={"words in documents": ["z", "w"]}`. A
    variable may stand in several plates that cross. `name*` is a hyper-parameter, whose value is the keyword of its
    name. `cpds` holds families by name, `gg.Dirichlet("alpha")` (of `gg.distributions`: Dirichlet, Beta, Gamma, Normal,
    Gaussian, Wishart, Poisson, Multinomial, Bernoulli); `gg.Index("phi", by="z")` chooses the member of a plate;
    `gg.Dot("w", "x")` is an inner product; `gg.Exp(…)` makes a rate or a precision of a real number, `gg.Logistic(…)` a
    probability; a discrete variable of a probability vector is drawn from it without being told. Tables stay tables. A
    variable without parents and without a conditional is an input, which must be observed.

    Questions take nested lists as evidence, `[[0, 0, 1], [2, 2]]`, whose lengths are the sizes of the plates; None is
    not observed. Conjugate parameters are integrated out. The same network without plates: `unroll`.

    Parameters
    ----------
    structure : a text with plates.
    edges : pairs (parent, child), in place of the text.
    cpds : conditionals by name.
    states : labels by name, or their number.
    plates : plates with their members, in place of the text.
    name : a title.
    check : whether faults are an error at once; `faults()` lists them later.
    **parameters : values of hyper-parameters by name.

    Examples
    --------
    >>> import gramgraph as gg
    >>> coin = gg.BayesianNetwork(
    ...     "a* -> bias <- b*; bias -> heads{no|yes}; plate tosses: heads",
    ...     cpds={"bias": gg.distributions.Beta("a", "b")},
    ...     a=1.0,
    ...     b=1.0,
    ... )
    >>> coin
    PlateModel(4 variables, 3 edges; plates tosses)
    >>> answer = coin.query("bias", {"heads": ["yes", "yes", "no"]})
    >>> round(float(answer["bias"].mean()), 3), answer.exact
    (0.6, True)
    """

    template: Template
    plates: Mapping[str, Plate]
    hyperparameters: Mapping[str, FloatArray | None]
    written: Mapping[str, Any]  # conditionals as they were given

    def __init__(
        self,
        structure: Any = None,
        *,
        edges: Iterable[tuple[str, str]] | None = None,
        cpds: Mapping[str, Any] | None = None,
        states: Mapping[str, Any] | None = None,
        plates: Any = None,
        name: str = "",
        check: bool = True,
        **parameters: Any,
    ) -> None:
        written: tuple[Plate, ...] = ()
        stars: tuple[str, ...] = ()
        if isinstance(structure, str):
            structure, written, stars = split_text(structure)
        written += read_plates(plates)
        if twice := [p.name for i, p in enumerate(written) if p.name in {q.name for q in written[:i]}]:
            raise ModelError(f"the plate {twice[0]} is written twice")
        if cpds is not None and not isinstance(cpds, Mapping):
            raise ModelError("cpds of a plate model is a dict {name: conditional}")
        specs = dict(cpds or {})
        graph = read_structure(structure, edges)
        parts = read_parts(graph, None, None, _declared(states, specs, stars, graph))
        hyper = dict.fromkeys((*stars, *(p for p in parameters if p in {v.name for v in parts.variables})))
        _check_parameters(parts, hyper, parameters, specs)
        faults = [fault for _, fault in parts.faults]
        if faults:
            raise ModelError(faults)
        values = {key: _numbers(key, value) for key, value in parameters.items()}
        self._build(parts.variables, parts.parents, written, specs, tuple(hyper), values, name)
        if check:
            self._check(missing=False)

    @classmethod
    def of_parts(
        cls,
        variables: Sequence[Var],
        parents: Mapping[str, Sequence[str]],
        plates: tuple[Plate, ...],
        cpds: Mapping[str, Any],
        values: Mapping[str, FloatArray | None],
        *,
        name: str = "",
    ) -> PlateModel:
        """A model from what was read already; `values` are those of the hyper-parameters, None where there is none."""
        made = object.__new__(cls)
        place = {var.name: i for i, var in enumerate(variables)}
        rows = [[place[p] for p in parents[var.name]] for var in variables]
        known = {key: _numbers(key, value) for key, value in values.items() if value is not None}
        made._build(variables, rows, plates, dict(cpds), tuple(values), known, name)
        made._check(missing=False)
        return made

    def _build(
        self,
        variables: Sequence[Var],
        parents: Sequence[Sequence[int]],
        plates: tuple[Plate, ...],
        specs: dict[str, Any],
        hyper: tuple[str, ...],
        values: dict[str, FloatArray],
        name: str,
    ) -> None:
        self._fill(variables, [None] * len(variables), parents, name, None)
        own = {n: self.parents(n) for n in self.variables}
        self.template = TemplateBuilder({v.name: v for v in self.vars}, own, plates, values, hyper).build(specs)
        self.plates = MappingProxyType(dict(self.template.plates))
        self.hyperparameters = MappingProxyType({key: values.get(key) for key in hyper})
        self.written = MappingProxyType(specs)

    # ------------------------------------------------------------------------------------------ what it is

    @property
    def kind(self) -> str:
        """ "plates": what decides about engines."""
        return "plates"

    @property
    def has_tables(self) -> bool:
        """Whether every hyper-parameter has its value."""
        return all(value is not None for value in self.hyperparameters.values())

    def plates_of(self, name: str) -> tuple[str, ...]:
        """The plates in which a variable stands, outer ones first.

        >>> import gramgraph as gg
        >>> text = "theta{simplex 2} -> z[2]; plate documents: theta, z; plate words in documents: z"
        >>> gg.BayesianNetwork(text, cpds={"theta": gg.Dirichlet([1.0, 1.0])}).plates_of("z")
        ('documents', 'words')
        """
        self.index(name)
        return self.template.nodes[name].plates if name in self.template.nodes else ()

    def layout(self, **sizes: Any) -> PlateLayout:
        """Members of all variables for given sizes of the plates."""
        return PlateLayout(self.template, sizes)

    def unroll(self, **sizes: Any) -> BayesianNetwork:
        """The ordinary network for given sizes: `lda.unroll(documents=2, words=[3, 3])`; members are named `z[0,2]`.

        A size is a number, or for a plate inside another one a list of lengths. Sizes that follow from a choice
        (`gg.Index`) need not be given. Cost: one conditional for every member of every variable.

        >>> import gramgraph as gg
        >>> text = "bias -> heads{no|yes}; plate tosses: heads"
        >>> net = gg.BayesianNetwork(text, cpds={"bias": gg.distributions.Beta(1.0, 1.0)})
        >>> net.unroll(tosses=2).variables
        ('bias', 'heads[0]', 'heads[1]')
        """
        self.need_values()
        return unrolled(self.template, self.layout(**sizes), self.topological_order(), name=self.name)

    def need_values(self) -> None:
        """A `ModelError` that names a hyper-parameter without a value."""
        missing = [key for key, value in self.hyperparameters.items() if value is None]
        if missing:
            raise ModelError(f"no value for the hyper-parameter {missing[0]}: give it as {missing[0]}=0.5")

    # ------------------------------------------------------------------------------------------ what needs members

    def sample(self, n: int = 1, evidence: Any = None, **options: Any) -> Any:
        """n draws of all members; the sizes of the plates are keywords: `sample(10, documents=2, words=3)`."""
        sizes = {key: options.pop(key) for key in list(options) if key in self.plates}
        return self.unroll(**sizes).sample(n, evidence, **options)

    def _unroll_first(self, what: str) -> NoReturn:
        sizes = ", ".join(f"{name}=…" for name in self.plates)
        raise ModelError(f"{what} is asked of an ordinary network: take model.unroll({sizes}) first")

    @property
    def n_parameters(self) -> int:
        """Of the network without plates."""
        self._unroll_first("the number of parameters")

    def factors(self, *, structured: bool = True) -> NoReturn:
        """Of the network without plates."""
        self._unroll_first("the product of factors")

    def joint_log_prob(self, assignment: Any) -> NoReturn:
        """Of the network without plates."""
        self._unroll_first("a joint probability")

    def map_query(self, *args: Any, **options: Any) -> NoReturn:
        """Of the network without plates."""
        self._unroll_first("the best assignment")

    def fit(self, *args: Any, **options: Any) -> NoReturn:
        """Parameters are variables here: ask for them with `query`."""
        raise ModelError("the parameters of a plate model are variables: ask for them with query(…, evidence=data)")

    fit_posterior = impute = fit

    def do(self, *args: Any, **options: Any) -> NoReturn:
        """Of the network without plates."""
        self._unroll_first("an intervention")

    def random_tables(self, *args: Any, **options: Any) -> NoReturn:
        """Of the network without plates."""
        self._unroll_first("a random table")

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self) -> str:
        title = f"{self.name!r}, " if self.name else ""
        plates = ", ".join(f"{n} in {p.outer}" if p.outer else n for n, p in self.plates.items())
        n_edges = sum(map(len, self.parent_positions))
        return f"PlateModel({title}{counted(variable=len(self), edge=n_edges)}{'; plates ' + plates if plates else ''})"


def _numbers(name: str, value: Any) -> FloatArray:
    try:
        found = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        found = np.array(np.nan)
    if not np.isfinite(found).all():
        raise ModelError(f"the hyper-parameter {name} is a number or an array of numbers, not {value!r:.60}")
    return found


def _declared(
    states: Mapping[str, Any] | None, specs: Mapping[str, Any], stars: tuple[str, ...], graph: Structure
) -> dict[str, Any]:
    """Domains that follow from families, and numbers for hyper-parameters, where nothing else is said."""
    out = dict(states or {})
    for name, spec in specs.items():
        family = spec.family.__name__ if isinstance(spec, ByName) else type(spec).__name__
        if name in graph.names and name not in out and name not in graph.states and family in _DOMAINS:
            out[name] = _DOMAINS[family]
    return out | {star: Real() for star in stars if star not in out and star not in graph.states}


def _check_parameters(
    parts: Any, hyper: Mapping[str, None], given: Mapping[str, Any], specs: Mapping[str, Any]
) -> None:
    names = [v.name for v in parts.variables]
    for key in given:
        if key not in names:
            raise ModelError(f"{key!r} is not a hyper-parameter. Written are: {listing(hyper) or 'none'} (as name*)")
    for key in specs:
        if key not in names:
            raise ModelError(f"cpds: {key!r} is not a variable ({listing(names)}).{did_you_mean(key, names)}")
        if key in hyper:
            raise ModelError(f"{key} is a hyper-parameter: give its value as {key}=…, not a conditional")
    for i, var in enumerate(parts.variables):
        if var.name in hyper and parts.parents[i]:
            raise ModelError(f"{var.name} is a hyper-parameter, but an arrow leads to it")
