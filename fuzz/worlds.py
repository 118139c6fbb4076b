"""Small random models made to be awkward, each with its brute-force joint.

Every kind of conditional that the library registers as a table has a maker here, which also writes down the logarithms
of the table by itself; a kind without a maker stops the run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from fuzz.truth import Joint, log
from gramgraph.conditionals import KINDS, Boosted, Conditional, Deterministic, Gate, NoisyMax, NoisyOr, Table, TreeTable
from gramgraph.factors import TableFactor
from gramgraph.models import BayesianNetwork, FactorGraph, MarkovNetwork
from gramgraph.variables import Var, discrete

__all__ = ["MAKERS", "Numbers", "World", "draw_world"]

Made = tuple[Conditional, np.ndarray]  # a conditional, and the logarithms of its table


@dataclass(frozen=True)
class Numbers:
    """Which numbers occur: the share of zeros, of rows with a single entry, and the power of ten of the smallest."""

    zeros: float = 0.0
    certain: float = 0.0
    smallest: float = 0.0  # entries go down to 10^smallest; 0 for ordinary numbers

    def positive(self, rng: np.random.Generator, shape: tuple[int, ...], smallest: float | None = None) -> np.ndarray:
        """Positive numbers, the ordinary ones around 1."""
        values = rng.gamma(0.7, size=shape) + 1e-3
        depth = self.smallest if smallest is None else max(smallest, self.smallest)
        if depth < 0.0:
            tiny = rng.random(shape) < 0.5
            values = np.where(tiny, 10.0 ** rng.uniform(depth, 0.0, shape), values)
        return values

    def rows(self, rng: np.random.Generator, shape: tuple[int, ...], smallest: float | None = None) -> np.ndarray:
        """Rows that sum to one; in every row one entry is of ordinary size."""
        values = self.positive(rng, shape, smallest)
        keep = rng.integers(0, shape[-1], size=shape[:-1])[..., None]
        np.put_along_axis(values, keep, rng.gamma(2.0, size=keep.shape) + 0.05, axis=-1)
        drop = rng.random(shape) < self.zeros
        drop |= rng.random((*shape[:-1], 1)) < self.certain
        np.put_along_axis(drop, keep, False, axis=-1)
        values[drop] = 0.0
        return values / values.sum(axis=-1, keepdims=True)


def _table(rng: np.random.Generator, child: Var, parents: tuple[Var, ...], numbers: Numbers) -> Made:
    values = numbers.rows(rng, (*(var.size for var in parents), child.size))
    return Table(child, parents, values), log(values)


def _noisy_max(rng: np.random.Generator, child: Var, parents: tuple[Var, ...], numbers: Numbers) -> Made:
    # Products of links must stay above the smallest double: such a table could not be written down.
    depth = -280.0 / (len(parents) + 1)
    links = [numbers.rows(rng, (var.size, child.size), depth) for var in parents]
    leak = numbers.rows(rng, (child.size,), depth) if rng.random() < 0.6 else None
    made = NoisyMax(child, parents, links, leak)
    return made, _log_maximum(links, np.eye(1, child.size)[0] if leak is None else leak)


def _noisy_or(rng: np.random.Generator, child: Var, parents: tuple[Var, ...], numbers: Numbers) -> Made | None:
    if child.size != 2:
        return None
    depth = -280.0 / (len(parents) + 1)
    q: list[Any] = []
    for var in parents:
        on = np.minimum(numbers.rows(rng, (var.size, 2), depth)[:, 1], 1.0)
        q.append(float(on[-1]) if rng.random() < 0.5 else on)
    leak = float(numbers.rows(rng, (2,), depth)[1]) if rng.random() < 0.5 else 0.0
    full = [
        np.append(np.zeros(var.size - 1), on) if np.ndim(on) == 0 else on for var, on in zip(parents, q, strict=True)
    ]
    links = [np.column_stack([1.0 - on, on]) for on in full]
    return NoisyOr(child, parents, q, leak=leak), _log_maximum(links, np.array([1.0 - leak, leak]))


def _log_maximum(links: Sequence[np.ndarray], leak: np.ndarray) -> np.ndarray:
    """log p(max of independent effects = y | x), from positive terms only.

    Π C_i(y) − Π C_i(y − 1) telescopes into Σ_j Π_{i<j} C_i(y − 1) · p_j(y) · Π_{i>j} C_i(y).
    """
    n, k = len(links), len(leak)
    spread = [leak.reshape([1] * n + [k])]
    for i, link in enumerate(links):
        shape = [1] * n + [k]
        shape[i] = link.shape[0]
        spread.append(link.reshape(shape))
    upto = [log(np.cumsum(p, axis=-1)) for p in spread]
    below = [np.concatenate([np.full_like(c[..., :1], -np.inf), c[..., :-1]], axis=-1) for c in upto]
    total = np.full([*(link.shape[0] for link in links), k], -np.inf)
    for j, p in enumerate(spread):
        total = np.logaddexp(total, sum(below[:j], log(p)) + sum(upto[j + 1 :], np.zeros([1] * (n + 1))))
    return total


def _deterministic(rng: np.random.Generator, child: Var, parents: tuple[Var, ...], numbers: Numbers) -> Made:
    outcomes = rng.integers(0, child.size, size=tuple(var.size for var in parents))
    return Deterministic(child, parents, outcomes), log(np.eye(child.size)[outcomes])


def _gate(rng: np.random.Generator, child: Var, parents: tuple[Var, ...], numbers: Numbers) -> Made | None:
    rule = str(rng.choice(["xor", "or", "and", "count"]))
    if not parents or (rule != "count" and child.size != 2):
        return None
    shape = tuple(var.size for var in parents)
    on = sum(at == var.size - 1 for at, var in zip(np.indices(shape), parents, strict=True))
    found = {"xor": on % 2, "or": on > 0, "and": on == len(parents), "count": on}[rule]
    return Gate(child, parents, rule), log(np.eye(child.size)[np.minimum(found, child.size - 1).astype(int)])


def _tree(rng: np.random.Generator, child: Var, parents: tuple[Var, ...], numbers: Numbers) -> Made:
    logs = np.empty([*(var.size for var in parents), child.size])

    def grow(left: list[int], block: list[Any]) -> Any:
        if not left or rng.random() < 0.25:
            row = numbers.rows(rng, (child.size,))
            logs[np.ix_(*block, range(child.size))] = log(row)
            return row.tolist()
        i = left[int(rng.integers(len(left)))]
        var, rest = parents[i], [j for j in left if j != i]
        branch_of = rng.integers(0, 2 if rng.random() < 0.5 else var.size, size=var.size)
        branches: dict[Any, Any] = {}
        for b in np.unique(branch_of):
            states = np.flatnonzero(branch_of == b)
            below = grow(rest, [states if j == i else part for j, part in enumerate(block)])
            branches[tuple(var.states[s] for s in states)] = below
        return {var.name: branches}

    tree = grow(list(range(len(parents))), [np.arange(var.size) for var in parents])
    return TreeTable(child, parents, tree), logs


def _boosted(rng: np.random.Generator, child: Var, parents: tuple[Var, ...], numbers: Numbers) -> Made | None:
    """A few trees learned from random rows; their own table is the truth, as its entries have no other formula."""
    if child.size < 2 or not parents or len(parents) > 3:
        return None
    frame = {var.name: rng.choice(var.states, size=30) for var in (child, *parents)}
    frame[child.name][: child.size] = child.states[:30]
    made = Boosted(n_estimators=2, min_samples_leaf=1).fit(child, parents, frame)
    return made, np.log(made.table())


#: Kind of conditional → how one is drawn; None where child and parents do not fit.
MAKERS: dict[str, Callable[[np.random.Generator, Var, tuple[Var, ...], Numbers], Made | None]] = {
    "table": _table,
    "noisy_or": _noisy_or,
    "noisy_max": _noisy_max,
    "deterministic": _deterministic,
    "gate": _gate,
    "tree": _tree,
    "boosted": _boosted,
}


def check_makers() -> None:
    """Stop where the library knows a kind of table that is never drawn here."""
    missing = [kind for kind, cls in KINDS.items() if cls.tabular and kind not in MAKERS]
    if missing:
        raise NotImplementedError(f"fuzz/worlds.py has no maker for conditionals of the kind {', '.join(missing)}")


@dataclass(frozen=True)
class World:
    """A model and the truth about it: for each conditional or factor its variables and logarithms."""

    model: Any
    variables: tuple[Var, ...]
    parts: tuple[tuple[tuple[int, ...], np.ndarray], ...]

    @cached_property
    def joint(self) -> Joint:
        """The brute-force joint."""
        return Joint([var.size for var in self.variables], self.parts)

    @property
    def directed(self) -> bool:
        """Whether the model is a Bayesian network."""
        return isinstance(self.model, BayesianNetwork)

    def about(self) -> str:
        """The model as code, short enough to be read."""
        lines = ["variables: " + ", ".join(f"{var.name}[{var.size}]" for var in self.variables)]
        if not self.directed:
            for factor in self.model.factors():
                names = ", ".join(var.name for var in factor.scope)
                lines.append(f"factor({names}) exp({factor.log_scale:g}) · {np.asarray(factor.values).tolist()}")
            return f"{type(self.model).__name__}\n" + "\n".join(lines)
        for var in self.variables:
            fields = dict(self.model.conditional(var.name).to_fields())
            head = f"{fields.pop('kind')}({fields.pop('child')} | {', '.join(fields.pop('parents'))})"
            lines.append(f"{head} {fields}")
        return "\n".join(lines)


def _variables(rng: np.random.Generator, cells: int) -> tuple[Var, ...]:
    """Variables whose joint has at most `cells` cells; now and then one with a single state."""
    binary, n = rng.random() < 0.4, int(rng.integers(1, 12))
    found: list[Var] = []
    left = cells
    for i in range(n):
        size = 1 if rng.random() < 0.06 else 2 if binary else int(rng.integers(2, 6))
        if size > left:
            break
        left //= size
        found.append(discrete(f"v{i}", [f"s{j}" for j in range(size)]))
    return tuple(found)


def _network(rng: np.random.Generator, numbers: Numbers, cells: int) -> World:
    variables = _variables(rng, cells)
    n = len(variables)
    rank, most = rng.permutation(n), int(rng.integers(0, 6))
    density, plain = rng.uniform(0.3, 1.0), rng.choice([0.0, 0.5, 1.0])
    made: list[Any] = [None] * n
    for place, i in enumerate(rank.tolist()):
        before = rng.permutation(rank[:place])[:most].tolist()
        mine = [j for j in before if rng.random() < density]
        child, parents = variables[i], tuple(variables[j] for j in mine)
        kind = "table" if rng.random() < plain else str(rng.choice(list(MAKERS)))
        drawn = MAKERS[kind](rng, child, parents, numbers) or _table(rng, child, parents, numbers)
        made[i] = (drawn[0], ((*mine, i), drawn[1]))
    model = BayesianNetwork.from_parts(variables, [c for c, _ in made])
    return World(model, variables, tuple(part for _, part in made))


def _factors(rng: np.random.Generator, numbers: Numbers, cells: int) -> World:
    variables = _variables(rng, cells)
    n = len(variables)
    factors, parts = [], []
    for _ in range(int(rng.integers(0, 2 * n + 1))):
        scope = rng.permutation(n)[: int(rng.choice([0, 1, 2, 3], p=[0.03, 0.27, 0.4, 0.3]))].tolist()
        shape = tuple(variables[i].size for i in scope)
        values = numbers.positive(rng, shape)
        values = np.where(rng.random(shape) < numbers.zeros, 0.0, values)
        scale = float(rng.choice([0.0, 0.0, 2.5, -700.0]))
        factors.append(TableFactor(tuple(variables[i] for i in scope), values, scale))
        parts.append((tuple(scope), log(values) + scale))
    make = MarkovNetwork if rng.random() < 0.6 else FactorGraph
    return World(make.from_parts(variables, factors), variables, tuple(parts))


def draw_world(rng: np.random.Generator, *, smallest: float = 0.0, cells: int = 3000) -> World:
    """A network (two in three) or a product of factors, with at most `cells` joint states (now and then 20 × more)."""
    check_makers()
    zeros = float(rng.choice([0.0, 0.0, 0.2, 0.5]))
    numbers = Numbers(zeros, float(rng.choice([0.0, 0.1])) if zeros else 0.0, smallest)
    cells = 20 * cells if rng.random() < 0.01 else cells
    return (_network if rng.random() < 0.67 else _factors)(rng, numbers, cells)
