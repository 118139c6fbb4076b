"""Whether the effect of an action follows from observations, and by which formula."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gramgraph._show import Listing, Shown
from gramgraph.exceptions import OptionError
from gramgraph.graphs import Digraph, adjustment_set, descendants, front_door_set

if TYPE_CHECKING:
    from gramgraph.models.directed import DirectedModel

__all__ = ["CausalQuestion", "Identification", "causal_question", "identify"]


@dataclass(frozen=True)
class Identification(Shown):
    """How p(outcome | do(treatment)) follows from observations.

    `kind` is "none" (no effect), "back door", "front door" or "unknown"; `through` are the variables that the formula
    needs. "unknown" means that neither door is open; the full theory knows further ways, which are not tried.
    """

    treatment: str
    outcome: str
    kind: str
    through: tuple[str, ...]
    formula: str

    def __repr__(self) -> str:
        return f"Identification({self.kind}: {self.formula})"

    def _shown(self) -> Listing:
        rows = [("way", self.kind), ("through", ", ".join(self.through) or "nothing"), ("formula", self.formula)]
        return Listing(f"p({self.outcome} | do({self.treatment}))", ("", "value"), rows)


@dataclass(frozen=True)
class CausalQuestion:
    """p(y | do(x)) on a graph in which every unobserved common cause is a node; positions of the model come first."""

    graph: Digraph
    x: int
    y: int
    unseen: tuple[int, ...]


def causal_question(
    net: DirectedModel, x: Any, y: Any, hidden: str | Iterable[str], confounded: Iterable[tuple[str, str]]
) -> CausalQuestion:
    """Reads the names: treatment, outcome, what is not observed, and pairs with an unobserved common cause."""
    start, stop = net.index(_one_name("treatment", x)), net.index(_one_name("outcome", y))
    if start == stop:
        raise OptionError(f"treatment and outcome are both {net.variables[start]!r}")
    unseen = {*net.positions_of(hidden), *net.positions_of(net.hidden_causes)}
    if unseen.intersection((start, stop)):
        raise OptionError("treatment and outcome must be observed")
    rows = [set(row) for row in net.graph.parents]
    pairs = [_pair(net, given) for given in confounded]
    for cause, pair in enumerate(pairs, len(rows)):
        for v in pair:
            rows[v].add(cause)
    n = len(rows) + len(pairs)
    graph = Digraph((*(tuple(sorted(row)) for row in rows), *[()] * len(pairs)))
    return CausalQuestion(graph, start, stop, tuple(sorted({*unseen, *range(len(rows), n)})))


def _pair(net: DirectedModel, given: Any) -> tuple[int, ...]:
    ends = () if isinstance(given, str) or not isinstance(given, Iterable) else tuple(given)
    if len(ends) != 2 or ends[0] == ends[1]:
        raise OptionError(f'confounded lists pairs of two variables, as in confounded=[("a", "b")]; got {given!r}')
    return net.positions_of(ends)


def _one_name(role: str, given: Any) -> str:
    """The name of one variable, also from a list that holds nothing else."""
    if isinstance(given, (list, tuple, set, frozenset)):
        if len(given) != 1:
            raise OptionError(f"{role} is one variable, not {list(given)!r}. Ask about one at a time")
        (given,) = given
    if not isinstance(given, str):
        raise OptionError(f"{role} is the name of a variable, not {given!r}")
    return given


def identify(
    net: DirectedModel,
    treatment: str,
    outcome: str,
    *,
    hidden: str | Iterable[str] = (),
    confounded: Iterable[tuple[str, str]] = (),
) -> Identification:
    """Whether and how the effect of setting `treatment` on `outcome` can be computed from what is observed.

    `hidden` lists the names of variables that are not observed; `confounded` lists pairs with an unobserved common
    cause, which the network can also hold as `a <-> b`.

    Examples
    --------
    >>> import gramgraph as gg
    >>> gg.learn.identify(gg.datasets.asia(), "lung", "dysp")
    Identification(back door: p(dysp | do(lung)) = Σ_{smoke} p(dysp | lung, smoke) p(smoke))
    >>> gg.learn.identify(gg.datasets.asia(), "lung", "dysp", confounded=[("lung", "dysp")]).kind
    'front door'
    """
    asked = causal_question(net, treatment, outcome, hidden, confounded)
    graph, x, y, unseen = asked.graph, asked.x, asked.y, asked.unseen
    treatment, outcome = net.names_of((x, y))
    head = f"p({outcome} | do({treatment}))"
    if y not in descendants(graph, x):
        return Identification(treatment, outcome, "none", (), f"{head} = p({outcome})")
    found = adjustment_set(graph, x, y, hidden=unseen)
    if found is not None:
        names = net.names_of(found)
        z = ", ".join(names)
        formula = f"Σ_{{{z}}} p({outcome} | {treatment}, {z}) p({z})" if names else f"p({outcome} | {treatment})"
        return Identification(treatment, outcome, "back door", names, f"{head} = {formula}")
    found = front_door_set(graph, x, y, hidden=unseen)
    if found is not None:
        names = net.names_of(found)
        m = ", ".join(names)
        inner = f"Σ_{{{treatment}'}} p({outcome} | {treatment}', {m}) p({treatment}')"
        return Identification(
            treatment, outcome, "front door", names, f"{head} = Σ_{{{m}}} p({m} | {treatment}) {inner}"
        )
    return Identification(treatment, outcome, "unknown", (), f"{head}: neither a back-door nor a front-door formula")
