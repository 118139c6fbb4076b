"""Dynamic Bayesian networks: two slices of time as a template, unrolled, filtered, smoothed and learned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from gramgraph._drawn import Drawn
from gramgraph._validation import check_count
from gramgraph.answers import Answer
from gramgraph.conditionals import Kind, Table, from_fields
from gramgraph.data.frames import read_frame
from gramgraph.exceptions import ModelError, did_you_mean
from gramgraph.models import BayesianNetwork
from gramgraph.models.notation import read_structure
from gramgraph.sequences._dynamic_em import fit_tables
from gramgraph.sequences._interface import Chain
from gramgraph.typing import FloatArray, RandomState
from gramgraph.variables import Var

if TYPE_CHECKING:
    from gramgraph.sequences._dynamic_stream import DynamicStream


class DynamicBayesianNetwork(Drawn):
    """p(first slice) Π_t p(slice_t | slice_{t−1}): a network whose variables repeat at every step of time.

    The structure is that of one slice; `x'` stands for x one step before: `"rain' -> rain -> umbrella"`.

    Parameters
    ----------
    structure : text, dict or pairs as for `BayesianNetwork`; variables with a ' have no parents
    cpds : conditionals of the variables of a slice, of any kind that a static network takes; or kinds to be fitted, as
        in {"x": gg.KernelConditional()}
    first : conditionals of the first slice for the variables with parents in the slice before, given their other
        parents; a variable that is not named has no information: uniform
    states : labels of the variables; those of x' are those of x
    name : a title.

    Notes
    -----
    Rows are a data frame (or a list of dicts), one row per step; missing cells and columns were not observed. Discrete
    networks are asked by the interface algorithm, exactly, in O(T K²) for K joint states of the variables that have a
    primed copy. With real-valued variables ask `unroll(T)`; `fit` learns these from complete rows, kinds that are not
    named by left-out likelihood with `conditional="auto"`.

    Examples
    --------
    >>> rain = DynamicBayesianNetwork(
    ...     "rain' -> rain{no|yes} -> umbrella{no|yes}",
    ...     cpds={"rain": [[0.7, 0.3], [0.3, 0.7]], "umbrella": [[0.8, 0.2], [0.1, 0.9]]},
    ... )
    >>> rows = [{"umbrella": "yes"}, {"umbrella": "yes"}]
    >>> rain.filter(rows)["rain"].prob("yes").round(3).tolist()
    [0.818, 0.883]
    >>> rain.smooth(rows)["rain"].prob("yes").round(3).tolist()
    [0.883, 0.883]
    >>> stream = rain.stream()
    >>> [round(stream.update(row)["rain"].prob("yes"), 3) for row in rows]
    [0.818, 0.883]
    """

    def __init__(
        self,
        structure: Any,
        cpds: Mapping[str, Any] | None = None,
        *,
        first: Mapping[str, Any] | None = None,
        states: Mapping[str, Any] | None = None,
        name: str = "",
    ) -> None:
        written = read_structure(structure)
        given = {**written.states, **(states or {})}
        primed = {label: label[:-1] for label in written.names if label.endswith("'")}
        given.update({label: given[plain] for label, plain in primed.items() if plain in given})
        draft = BayesianNetwork(structure, cpds=cpds, states=given or None, check=False)
        plain = {label: primed[label] if primed.get(label) in draft else label for label in draft.variables}
        variables = {label: draft.var(other) for label, other in plain.items()}
        full = dict(cpds or {})
        if cpds and not any(
            isinstance(c, Kind) for c in full.values()
        ):  # the slice before has its own beliefs when the network is asked; these numbers are never used
            full.update({label: _any_numbers(variables[label]) for label in primed if label not in full})
        domains = {label: var.domain for label, var in variables.items()}
        step = BayesianNetwork(structure, cpds=full or None, states=domains, name=name)
        if step.kinds and first:
            raise ModelError("first takes conditionals with numbers, and those of the slices are to be fitted")
        self._fill(_first_slice(step, first or {}), step)

    @classmethod
    def from_networks(cls, first: BayesianNetwork, step: BayesianNetwork) -> DynamicBayesianNetwork:
        """From the network of the first slice and that of a later one, whose roots x' are the slice before."""
        net = cls.__new__(cls)
        net._fill(first, step)
        return net

    def _fill(self, first: BayesianNetwork, step: BayesianNetwork) -> None:
        own = [name for name in step.variables if not name.endswith("'")]
        primed = [name[:-1] for name in step.variables if name.endswith("'")]
        faults = [
            f"{name}' stands for {name} one step before, but there is no {name}.{did_you_mean(name, own)}"
            for name in primed
            if name not in own
        ]
        faults += [
            f"{name}' belongs to the slice before: it cannot have parents."
            for name in primed
            if step.parents(f"{name}'")
        ]
        if sorted(first.variables) != sorted(own):
            faults.append(f"the first slice has the variables {first.variables}, a later one {tuple(own)}")
        if not primed:
            faults.append("no variable depends on the slice before: write x' for x one step before.")
        if faults:
            raise ModelError(faults)
        self.first, self.step = first, step
        self.interface: tuple[str, ...] = tuple(name for name in first.variables if name in primed)
        self.history: FloatArray = np.empty(0)

    @property
    def variables(self) -> tuple[str, ...]:
        """Names of one slice."""
        return self.first.variables

    @cached_property
    def _chain(self) -> Chain:
        real = [name for name in self.variables if not self.first.var(name).is_discrete]
        if real:
            raise ModelError(
                f"{', '.join(real)} {'is' if len(real) == 1 else 'are'} real-valued: ask unroll(T), or a KalmanFilter."
            )
        return Chain(self.first, self.step, self.interface)

    # ------------------------------------------------------------------------------------------- questions

    def unroll(self, n_steps: int) -> BayesianNetwork:
        """The static network of steps 0 … n_steps − 1, with variables x_0, x_1, ….

        >>> walk = DynamicBayesianNetwork("x' -> x", cpds={"x": [[0.9, 0.1], [0.2, 0.8]]}, first={"x": [1.0, 0.0]})
        >>> round(walk.unroll(3).query("x_2")["x_2"].prob("yes"), 3)
        0.17
        """
        T = check_count("n_steps", n_steps)
        variables: list[Var] = []
        conditionals: list[Any] = []
        before: dict[str, Var] = {}
        for t in range(T):
            now = {name: Var(f"{name}_{t}", self.first.var(name).domain) for name in self.variables}
            known = {**now, **{f"{name}'": var for name, var in before.items()}}
            net = self.first if t == 0 else self.step
            for name in self.variables:
                variables.append(now[name])
                conditionals.append(from_fields(net.conditional(name).to_fields(), known))
            before = now
        return BayesianNetwork.from_parts(variables, conditionals, name=self.step.name)

    def filter(self, rows: Any) -> Answer:
        """p(variable_t | rows up to t) of every variable; `log_evidence` is log p(row_t | rows before)."""
        return self._asked(rows, backward=False)

    def smooth(self, rows: Any) -> Answer:
        """p(variable_t | all rows) of every variable; `log_evidence` is log p(row_t | rows before)."""
        return self._asked(rows, backward=True)

    def _asked(self, rows: Any, *, backward: bool) -> Answer:
        chain = self._chain
        codes = self._codes(rows)
        messages = chain.messages(codes, backward=backward)
        return self._answer(chain.marginals(codes, messages), messages.logs)

    def _answer(self, tables: Sequence[FloatArray], logs: FloatArray) -> Answer:
        return Answer(self._columns, np.concatenate(tables, axis=1), logs, engine="interface")

    @cached_property
    def _columns(self) -> dict[str, tuple[Var, int, int]]:
        """Where the states of every variable stand in an answer."""
        variables = [self.first.var(name) for name in self.variables]
        ends = np.cumsum([var.size for var in variables]).tolist()
        return {var.name: (var, end - var.size, end) for var, end in zip(variables, ends, strict=True)}

    def _codes(self, rows: Any) -> Any:
        if isinstance(rows, Mapping) and any(np.ndim(cells) == 0 for cells in rows.values()):
            raise ModelError("rows must be a data frame or a list of dicts, one per step. Use [row] for one row.")
        codes = self._chain.codes(read_frame(rows, what="rows").table)
        if not len(codes):
            raise ModelError(
                "there are no rows; a sequence has at least one (with missing cells, if nothing was seen)."
            )
        return codes

    def log_likelihood(self, sequences: Any, *, by: str | None = None) -> float:
        """log p of one sequence of rows, or of several: a list of frames, or one frame with a column `by`."""
        return float(
            sum(self._chain.messages(self._codes(rows), backward=False).logs.sum() for rows in _several(sequences, by))
        )

    def predict(self, rows: Any, steps: int = 1) -> Answer:
        """p(variable | rows) of each of the `steps` steps after the last row."""
        n = check_count("steps", steps)
        codes = self._codes(rows)
        later = np.concatenate([codes, np.full((n, codes.shape[1]), -1, np.int64)])
        messages = self._chain.messages(later, backward=False)
        tables = [table[-n:] for table in self._chain.marginals(later, messages)]
        return self._answer(tables, messages.logs[-n:])

    def decode(self, rows: Any) -> tuple[Any, float]:
        """The most probable states of all variables at all steps, as a frame, and log p(states, rows)."""
        import pandas as pd

        codes = self._codes(rows)
        labels = [self.first.states(name) for name in self.variables]
        seen = {
            f"{name}_{t}": labels[j][codes[t, j]]
            for j, name in enumerate(self.variables)
            for t in np.flatnonzero(codes[:, j] >= 0).tolist()
        }
        best = self.unroll(len(codes)).map_query(seen)
        states = {**seen, **best.assignment}
        frame = pd.DataFrame({name: [states[f"{name}_{t}"] for t in range(len(codes))] for name in self.variables})
        return frame, float(best.log_prob)

    def stream(self, *, state: dict[str, Any] | None = None) -> DynamicStream:
        """Take rows one at a time, in constant memory; `state` continues an earlier stream."""
        from gramgraph.sequences._dynamic_stream import DynamicStream

        return DynamicStream(self, state)

    def sample(self, n_steps: int, n_sequences: int = 1, *, random_state: RandomState = None) -> Any:
        """A frame of n_sequences · n_steps rows; with several sequences a first column `sequence` numbers them."""
        import pandas as pd

        T, n = check_count("n_steps", n_steps), check_count("n_sequences", n_sequences)
        drawn = self.unroll(T).sample(n, random_state=random_state)
        parts = {
            name: pd.concat([drawn[f"{name}_{t}"] for t in range(T)], axis=1).to_numpy().ravel()
            for name in self.variables
        }
        frame = pd.DataFrame(parts)
        if n > 1:
            frame.insert(0, "sequence", np.repeat(np.arange(n), T))
        return frame

    # -------------------------------------------------------------------------------------------- learning

    def fit(
        self,
        sequences: Any,
        *,
        by: str | None = None,
        prior: float = 0.0,
        max_iter: int = 100,
        tol: float = 1e-4,
        random_state: RandomState = None,
        conditional: Any = None,
    ) -> DynamicBayesianNetwork:
        """The network with tables learned from sequences: counting, or EM where cells are missing.

        `sequences` is a frame, a list of frames, or one frame whose column `by` tells the sequences apart. EM begins
        with the tables that there are, else with random ones, and ends when an iteration gains less than `tol` per
        sequence in log-likelihood; `history` of the result holds the log-likelihoods, which never fall (with a `prior`
        of that many pseudo-counts a cell, the posterior does not). Rows that no sequence reaches keep their numbers.

        >>> truth = DynamicBayesianNetwork("x' -> x", cpds={"x": [[0.9, 0.1], [0.4, 0.6]]})
        >>> rows = truth.sample(50, 200, random_state=0)
        >>> learned = DynamicBayesianNetwork("x' -> x{no|yes}").fit(rows, by="sequence")
        >>> learned.step.conditional("x").table().round(1).tolist()
        [[0.9, 0.1], [0.4, 0.6]]
        """
        several = _several(sequences, by)
        if self.step.kinds or conditional is not None or not self.step.is_discrete:
            return self._fit_families(several, conditional, random_state)
        return fit_tables(self, several, prior, max_iter, tol, random_state)

    def _fit_families(self, sequences: list[Any], conditional: Any, random_state: RandomState) -> Any:
        """Every conditional from the pairs of successive rows that know its family; the first slice from first rows
        where there are at least 30, else from all."""
        import pandas as pd

        frames = [read_frame(rows, what="sequences").table.reset_index(drop=True) for rows in sequences]
        pairs = []
        for frame in frames:
            before = frame[[name for name in self.interface if name in frame]].iloc[:-1].reset_index(drop=True)
            pairs.append(pd.concat([before.add_suffix("'"), frame.iloc[1:].reset_index(drop=True)], axis=1))
        step = self.step.fit(pd.concat(pairs, ignore_index=True), conditional=conditional, random_state=random_state)
        starts = pd.concat([frame.iloc[:1] for frame in frames], ignore_index=True)
        starts = starts if len(starts) >= 30 else pd.concat(frames, ignore_index=True)
        known = {name: kind for name, kind in self.step.kinds.items() if name in self.first.variables}
        bare = BayesianNetwork(
            {name: list(self.first.parents(name)) for name in self.first.variables},
            cpds=known or None,
            states={name: self.first.var(name).domain for name in self.first.variables},
        )
        return DynamicBayesianNetwork.from_networks(
            bare.fit(starts, conditional=conditional, random_state=random_state), step
        )

    def with_tables(self, first: Mapping[str, Any], step: Mapping[str, Any]) -> DynamicBayesianNetwork:
        """The same network with these tables: name → numbers."""
        parts = []
        for part, tables in ((self.first, first), (self.step, step)):
            made = []
            for i, var in enumerate(part.vars):
                parents = tuple(part.vars[p] for p in part.parent_positions[i])
                values = tables[var.name] if var.name in tables else np.full(var.size, 1.0 / var.size)
                made.append(Table(var, parents, values))
            parts.append(BayesianNetwork.from_parts(part.vars, made, name=part.name))
        return DynamicBayesianNetwork.from_networks(*parts)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, DynamicBayesianNetwork):
            return NotImplemented
        return self.first == other.first and self.step == other.step

    __hash__ = None  # type: ignore[assignment]

    def _picture(self) -> BayesianNetwork:
        """A slice, with what it depends on in the slice before."""
        return self.step

    def __repr__(self) -> str:
        return (
            f"DynamicBayesianNetwork({len(self.variables)} variables a slice, {len(self.step.edges)} edges, "
            f"interface {', '.join(self.interface)})"
        )


def _any_numbers(var: Var) -> Any:
    """Some distribution of a variable without parents."""
    if var.is_discrete:
        return np.full(var.size, 1.0 / var.size)
    return (0.0, 1.0) if var.dimension == 1 else (np.zeros(var.dimension), np.eye(var.dimension))


def _first_slice(step: BayesianNetwork, first: Mapping[str, Any]) -> BayesianNetwork:
    """The network of step 0: given conditionals, those without a part in the slice before, uniform ones."""
    own = [name for name in step.variables if not name.endswith("'")]
    for name in first:
        if name not in own:
            raise ModelError(f"first names {name!r}, which is not a variable of a slice.{did_you_mean(name, own)}")
    parents = {name: [p for p in step.parents(name) if not p.endswith("'")] for name in own}
    domains = {name: step.var(name).domain for name in own}
    if not step.has_tables and not first:
        return BayesianNetwork(parents, states=domains)
    cpds: dict[str, Any] = {}
    for name in own:
        if name in first:
            cpds[name] = first[name]
        elif len(parents[name]) == len(step.parents(name)):
            cpds[name] = step.conditional(name)
        elif step.var(name).is_discrete:
            shape = [step.var(p).size for p in (*parents[name], name)]
            cpds[name] = np.full(shape, 1.0 / shape[-1])
        else:
            raise ModelError(f"first must have the conditional of {name} in the first slice: it is real-valued.")
    return BayesianNetwork(parents, cpds=cpds, states=domains)


def _several(sequences: Any, by: str | None) -> list[Any]:
    """A list of sequences."""
    if by is not None:
        frame = read_frame(sequences, what="sequences")
        if by not in frame:
            known = [str(name) for name in frame.names]
            raise ModelError(f"there is no column {by!r} that tells the sequences apart.{did_you_mean(by, known)}")
        return [part.drop(columns=by) for _, part in frame.table.groupby(by, sort=False)]
    if isinstance(sequences, (list, tuple)) and sequences and not isinstance(sequences[0], Mapping):
        return list(sequences)
    return [sequences]
