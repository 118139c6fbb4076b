"""What models on cells share: variables of any kind, each with its axis, and the questions that every model answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gramgraph._progress import Progress
from gramgraph._validation import check_jobs
from gramgraph.embeddings.network.cell_axes import Axis, LineAxis, Placed
from gramgraph.embeddings.network.reading import Given, read, read_targets
from gramgraph.evidence import Likelihood
from gramgraph.exceptions import ModelError, OptionError, VariableError
from gramgraph.models.base import GraphicalModel
from gramgraph.questions.question import Question
from gramgraph.typing import Array, FloatArray, RandomState

__all__ = ["CellModel"]

_EVERY = slice(None)


class CellModel(GraphicalModel):
    """A graphical model whose variables are numbers, angles, categories or points, each on the cells of its axis.

    `cells` is the same model on its cells, a discrete network: observations become likelihoods of its states, and
    everything that discrete models answer is asked of it.
    """

    cell_axes: tuple[Axis, ...]
    rows: int = 0  # how many samples it was learned from

    @property
    def kind(self) -> str:
        """What engines ask: the variables stand on cells."""
        return "cells"

    @property
    def cells(self) -> Any:
        """The same model on its cells: a discrete network."""
        raise NotImplementedError

    @property
    def domains(self) -> dict[str, str]:
        """Name → kind of its values."""
        return {axis.name: axis.domain for axis in self.cell_axes}

    @property
    def negative_mass(self) -> float:
        """The largest mass of an estimate that had to be lifted from below zero."""
        return 0.0

    def axis(self, name: str) -> Axis:
        """The cells of a variable."""
        return self.cell_axes[self.index(name)]

    def factors(self, *, structured: bool = True) -> Any:
        """The tables on cells."""
        return self.cells.factors(structured=structured)

    def to_factor_graph(self) -> Any:
        """The factor graph of the tables on cells."""
        return self.cells.to_factor_graph()

    def to_networkx(self) -> Any:
        """A networkx graph; nodes carry the attribute `domain`."""
        import networkx as nx

        out = self.cells.to_networkx()
        nx.set_node_attributes(out, self.domains, "domain")
        return out

    def _sizes(self) -> list[int]:
        return [axis.m for axis in self.cell_axes]

    def _kinds(self) -> str:
        kinds: dict[str, int] = {}
        for axis in self.cell_axes:
            kinds[axis.domain] = kinds.get(axis.domain, 0) + 1
        return ", ".join(f"{count} {kind}" for kind, count in kinds.items())

    # ------------------------------------------------------------------------------------------ on the cells

    def cell_question(
        self,
        given: Given,
        rows: Any = _EVERY,
        targets: Sequence[int] = (),
        joints: tuple[tuple[int, ...], ...] = (),
        *,
        dense: Sequence[int] = (),
    ) -> Question:
        """One question about `cells`: observations are likelihoods. `dense` numbers count by density, not by mass."""
        found: dict[int, FloatArray] = {}
        for v, p in given.placed.items():
            at = p.take(rows)
            if at.known.any():
                found[v] = _likelihoods(self.cell_axes[v], at)
        for v, weights in given.weights.items():
            found[v] = found[v] * weights if v in found else weights
        for v in dense:
            axis = self.cell_axes[v]
            if isinstance(axis, LineAxis) and axis.fixed is None:
                height = np.exp(axis.log_base(axis.grid_values[axis.anchors])) / axis.q
                height = np.where(given.known(v)[rows][:, None], 1.0, height / height.max())
                found[v] = found[v] * height if v in found else height
        n = len(np.arange(given.n_cases)[rows])
        return Question(targets, joints, (), np.zeros((n, 0), np.int64), tuple(found.items()), batched=True)

    def _one_question(self, evidence: Any, names: Any = ()) -> Question:
        """One case for the analyses of discrete models; `names` must not be observed."""
        given = read(self, evidence).refuse_soft().one_case()
        for v in self.positions_of(names):
            if given.known(v).any():
                raise VariableError(f"{self.vars[v].name} is observed; ask about a variable that is not")
        return replace(self.cell_question(given), log_scale=given.log_scale)

    def _cell_case(self, evidence: Any) -> dict[str, Any]:
        """One case as evidence about `cells`, by name."""
        question = self._one_question(evidence)
        return {self.vars[v].name: Likelihood(np.atleast_2d(w)[0]) for v, w in question.likelihoods}

    def _state(self, name: str, value: Any) -> str:
        """The cell in which a value lies, as a state of `cells`."""
        axis = self.axis(name)
        _, share = Axis.fixed_at(axis, value)
        return axis.cell_var.states[int(share.argmax())]

    # ------------------------------------------------------------------------------------------ questions

    def query(
        self,
        targets: Any = None,
        evidence: Any = None,
        *,
        virtual_evidence: Any = None,
        soft_evidence: Any = None,
        engine: str = "auto",
        random_state: RandomState = None,
        budget: float | str | None = None,
        memory: float | None = None,
        n_jobs: int = 1,
        progress: Progress = False,
        keep: Any = None,
        **options: Any,
    ) -> Any:
        """p(x_v | evidence) of each target, as beliefs with `mean`, `density`, `quantile`, `interval`, `mode`, ….

        Arguments are those of `BayesianNetwork.query`. Observed numbers need not be near those of the sample: far from
        all of them an observation counts for nothing, and `diagnostics` says so. `virtual_evidence` of a number is a
        function of x, p(observation | x), or (value, sd). Engines for discrete models answer on the cells.

        >>> import gramgraph as gg
        >>> net = gg.learn_tree({"a": list("xxyy") * 20, "b": list("uuvv") * 20})
        >>> answer = net.query("b", [{"a": "x"}, {"a": None}])
        >>> answer["b"].probabilities.round(2)
        array([[1. , 0. ],
               [0.5, 0.5]])
        >>> round(net.query("b", virtual_evidence={"a": {"x": 0.8, "y": 0.2}})["b"].prob("u"), 2)
        0.8
        >>> net.query([("a", "b")])["a", "b"].probabilities.round(1)
        array([[0.5, 0. ],
               [0. , 0.5]])
        """
        from gramgraph.embeddings.network.answering import answer_of, by_engine

        check_jobs(n_jobs)
        given = read(self, evidence, virtual_evidence, soft_evidence, keep)
        wanted, groups = read_targets(self, targets, given)
        if engine in ("auto", "cells") and not given.soft and not options:
            return answer_of(self, given, self._masses(given, wanted, groups, memory=memory, n_jobs=n_jobs))
        how = {"random_state": random_state, "budget": budget, "memory": memory, "n_jobs": n_jobs}
        return answer_of(self, given, by_engine(self, given, wanted, groups, engine, **how, **options))

    def _masses(
        self, given: Given, wanted: list[int], groups: list[tuple[int, ...]], *, memory: float | None, n_jobs: int
    ) -> Any:
        """Posterior masses by the engine that serves this kind of model best."""
        from gramgraph.embeddings.network.answering import by_engine

        return by_engine(self, given, wanted, groups, memory=memory, n_jobs=n_jobs)

    def log_evidence(  # type: ignore[override]
        self, evidence: Any = None, *, virtual_evidence: Any = None, memory: float | None = None, n_jobs: int = 1
    ) -> float | FloatArray:
        """log p(evidence), the density of what was observed: a number, or one per case."""
        check_jobs(n_jobs)
        given = read(self, evidence, virtual_evidence).refuse_soft()
        found = self._log_p(given)
        return found if given.batched else float(found[0])

    def _log_p(self, given: Given) -> FloatArray:
        raise NotImplementedError

    def log_likelihood(self, data: Any, *, memory: float | None = None) -> FloatArray:
        """log p(row) of every row of a table of cases, in nats; cells that are missing are integrated out.

        >>> import gramgraph as gg
        >>> net = gg.learn_tree({"a": list("xxyy") * 20, "b": list("uuvv") * 20})
        >>> net.log_likelihood({"a": ["x", "x"], "b": ["u", None]}).round(2)
        array([-0.69, -0.69])
        """
        from gramgraph.data.frames import read_frame
        from gramgraph.embeddings.network.learn import _array

        if isinstance(data, Mapping):  # columns; those of vectors may have two axes
            data = {name: _array(values) for name, values in data.items()}
        return np.atleast_1d(self.log_evidence(read_frame(data), memory=memory))

    def joint_log_prob(self, assignment: Mapping[str, Any]) -> float:
        """log p(x), a density, at a full assignment."""
        self._check_full(assignment)
        return float(self.log_likelihood([dict(assignment)])[0])

    def map_query(  # type: ignore[override]
        self,
        evidence: Any = None,
        *,
        targets: str | Sequence[str] | None = None,
        k: int | None = None,
        virtual_evidence: Any = None,
        engine: str = "auto",
        memory: float | None = None,
        n_jobs: int = 1,
        progress: Progress = False,
        gap: float = 0.0,
        time_limit: float | None = None,
        keep: Any = None,
    ) -> Any:
        """The values of all unobserved variables with the largest joint density, with its logarithm.

        With `targets`, the best values of these when the others are integrated out; with `k`, a list of the k best
        combinations of cells. A table of cases gives a data frame.

        >>> import gramgraph as gg
        >>> x = np.random.default_rng(0).normal(size=1000)
        >>> net = gg.learn_tree({"x": x, "y": x**2})
        >>> abs(net.map_query({"x": 1.5}).assignment["y"] - 2.25) < 0.1
        True
        """
        from gramgraph.embeddings.network import best

        check_jobs(n_jobs)
        given = read(self, evidence, virtual_evidence, None, keep).refuse_soft()
        names = self.names_of(range(len(self)) if targets is None else self.positions_of(targets))
        rest = [v for v in range(len(self)) if self.vars[v].name not in names and not given.known(v).any()]
        if k is not None and (isinstance(k, bool) or not isinstance(k, (int, np.integer)) or k < 1):
            raise OptionError(f"k is how many assignments are wanted, a whole number from 1, not {k!r}")
        if rest:
            if k is not None:
                raise VariableError("k best assignments are available for all variables together: leave targets out")
            return best.marginal_best(self, given.one_case(), names, memory=memory, gap=gap, time_limit=time_limit)
        if k is not None:
            return best.best_combinations(self, given.one_case(), int(k))
        return best.best_frame(self, given, self._best(given))

    def _best(self, given: Given) -> list[dict[str, Any]]:
        raise NotImplementedError

    def sample(  # type: ignore[override]
        self,
        n: int = 1,
        evidence: Any = None,
        *,
        virtual_evidence: Any = None,
        random_state: RandomState = None,
        memory: float | None = None,
        n_jobs: int = 1,
    ) -> Any:
        """n independent draws of all variables given the evidence (a dict), as a data frame.

        >>> import gramgraph as gg
        >>> x = np.random.default_rng(0).normal(size=1000)
        >>> net = gg.learn_tree({"x": x, "y": x**2})
        >>> draws = net.sample(500, {"y": 1.0}, random_state=0)
        >>> bool((np.abs(np.abs(draws["x"]) - 1.0) < 0.2).mean() > 0.9), draws.shape
        (True, (500, 2))
        """
        import pandas as pd

        check_jobs(n_jobs)
        if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 0:
            raise OptionError(f"n is how many draws are wanted, a whole number from 0, not {n!r}")
        given = read(self, evidence, virtual_evidence).refuse_soft()
        if given.batched:
            raise VariableError("sample takes one case of evidence (a dict), not a table of cases")
        drawn = self._draw(int(n), given, np.random.default_rng(random_state))
        for v, column in given.values.items():
            if given.known(v)[0]:
                drawn[v] = [column[0]] * n
        return pd.DataFrame({axis.name: drawn[v] for v, axis in enumerate(self.cell_axes)})

    def _draw(self, n: int, given: Given, rng: np.random.Generator) -> dict[int, Any]:
        """Values of all variables, from the discrete network."""
        from gramgraph.embeddings.network.drawing import _inside
        from gramgraph.engines import Run, get_engine

        question = replace(self.cell_question(given), batched=False)
        states = get_engine("junction_tree").draw(self.cells, question, n, Run(random_state=rng)).states
        return {v: _inside(axis, states[:, v], rng)[0] for v, axis in enumerate(self.cell_axes)}

    def session(self, *, memory: float | None = None) -> Any:
        """A case whose observations come and go."""
        from gramgraph.embeddings.network.session import CellSession

        return CellSession(self, memory=memory)

    # ------------------------------------------------------------------------------------------ analyses

    def entropy(self, targets: str | Sequence[str], evidence: Any = None, *, base: float | None = None) -> float:
        """H(targets | evidence) in nats (`base=2`: bits); of numbers the differential entropy −E log p.

        >>> import gramgraph as gg
        >>> x = np.random.default_rng(0).normal(size=3000)
        >>> net = gg.learn_tree({"x": x})
        >>> round(net.entropy("x"), 1)  # of a standard normal variable: ½ log 2πe = 1.42
        1.4
        """
        group = self.positions_of(targets)
        given = read(self, evidence).refuse_soft().one_case()
        for v in group:
            if given.known(v).any():
                raise VariableError(f"{self.vars[v].name} is observed; ask about a variable that is not")
        found = self._masses(given, [], [tuple(dict.fromkeys(group))], memory=None, n_jobs=1)
        (masses,) = found.joint.values()
        return _entropy(masses[0], [self.cell_axes[v] for v in dict.fromkeys(group)]) / _unit(base)

    def mutual_information(
        self, a: str | Sequence[str], b: str | Sequence[str], evidence: Any = None, *, base: float | None = None
    ) -> float:
        """I(a; b | evidence) of the cells, in nats (`base=2`: bits)."""
        from gramgraph.analysis.information import mutual_information

        names = (*self.names_of(self.positions_of(a)), *self.names_of(self.positions_of(b)))
        return mutual_information(self.cells, a, b, self._one_question(evidence, names), base=base)

    def most_informative(
        self,
        target: str | Sequence[str],
        evidence: Any = None,
        *,
        candidates: Sequence[str] | None = None,
        base: float | None = None,
    ) -> Any:
        """Which observation would tell most about the target: a data frame, the most telling one first.

        Columns as for discrete models; entropies of numbers are differential, and may be negative.
        """
        from gramgraph.analysis.information import most_informative

        wanted = self.names_of(self.positions_of(target))
        given = read(self, evidence).refuse_soft().one_case()
        if candidates is None:
            candidates = [
                var.name for v, var in enumerate(self.vars) if var.name not in wanted and not given.known(v).any()
            ]
        question = self._one_question(given, (*wanted, *candidates))
        found = most_informative(self.cells, wanted, question, candidates=candidates, base=base)
        before = self.entropy(wanted, given, base=base)
        share = found["reduction"] / before if before > 0.0 else 0.0
        return found.assign(expected_entropy=before - found["reduction"], share=share)

    def sensitivity(
        self, target: str, state: Any = None, evidence: Any = None, *, parameters: Sequence[str] | None = None
    ) -> Any:
        """Derivative of p(target in the cell of a value | evidence) by every entry of the tables on cells."""
        from gramgraph.analysis.sensitivity import sensitivity

        if state is None:
            raise VariableError(f"give a value: the sensitivity is that of p({target} in the cell of the value)")
        question = self._one_question(evidence, target)
        return sensitivity(self.cells, target, self._state(target, state), question, parameters=parameters)

    def sensitivity_function(
        self, target: str, state: Any, evidence: Any = None, *, variable: str, value: Any, given: Any = None
    ) -> Any:
        """p(target in the cell of a value | evidence) as a function of one entry of the tables on cells."""
        from gramgraph.analysis.sensitivity import sensitivity_function

        question = self._one_question(evidence, target)
        above = {name: self._state(name, own) for name, own in (given or {}).items()}
        cell, own = self._state(target, state), self._state(variable, value)
        return sensitivity_function(self.cells, target, cell, question, variable=variable, value=own, given=above)

    def sum_product(self, evidence: Any = None, *, normalized: bool = True, root: str | None = None) -> Any:
        """The messages of sum-product on the cells, to be read one by one."""
        return self.cells.sum_product(self._cell_case(evidence), normalized=normalized, root=root)

    def max_sum(self, evidence: Any = None, *, normalized: bool = False, root: str | None = None) -> Any:
        """The messages of max-sum on the cells, with the best assignment."""
        return self.cells.max_sum(self._cell_case(evidence), normalized=normalized, root=root)

    def to_gaussian(self) -> Any:
        """Not defined: densities on cells are not Gaussian."""
        raise ModelError("this model is not linear-Gaussian: its densities are learned on cells")

    partial_correlations = to_gaussian


def _likelihoods(axis: Axis, p: Placed) -> FloatArray:
    """p(observation | cell) of every case, a_j(x) / q_j, (cases, m); one where nothing was observed."""
    from gramgraph.embeddings.network.joint import shares

    near = np.where(p.known, p.near, 0.0)[:, None]
    return np.asarray(near * shares(axis, p) / np.maximum(axis.q, 1e-300) + (1.0 - near))


def _entropy(masses: Array, axes: Sequence[Axis]) -> float:
    """−Σ P log(P / Πq) − Σ_v E log p_v: the ratio is taken as constant in a cell, the densities inside as they are."""
    P = np.asarray(masses, dtype=np.float64)
    q = np.ones(())
    for axis in axes:
        q = np.multiply.outer(q, axis.q)
    inside = P > 0.0
    total = -float((P[inside] * np.log(P[inside] / q[inside])).sum())
    for k, axis in enumerate(axes):
        own = P.sum(axis=tuple(j for j in range(len(axes)) if j != k))
        if isinstance(axis, LineAxis):
            total -= float(own @ (axis.average(axis.log_base(axis.grid_values))[1] / axis.q))
        else:
            total -= float(own @ np.log(np.maximum(axis.q, 1e-300)))
    return total


def _unit(base: float | None) -> float:
    if base is not None and not base > 1.0:
        raise OptionError(f"the base of the logarithm must be greater than 1 (2 gives bits), not {base!r}")
    return 1.0 if base is None else float(np.log(base))
