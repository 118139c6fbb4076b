"""Whether the effect of an action follows from observations, and by which formula."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gramgraph._asking import learners
from gramgraph._show import Listing, Shown
from gramgraph.exceptions import OptionError, listing
from gramgraph.graphs import Digraph, adjustment_set, descendants, front_door_set
from gramgraph.graphs.do_calculus import (
    Formula,
    Hedge,
    Probability,
    Product,
    Quotient,
    Sum,
    all_variables,
    identify_effect,
)

if TYPE_CHECKING:
    from gramgraph.learn.causal import Effect
    from gramgraph.models.directed import DirectedModel


@dataclass(frozen=True)
class Identification(Shown):
    """How p(outcome | do(treatment)) follows from observations.

    `kind` is "none" (no effect), "back door", "front door", "formula" (a way beyond the two doors) or "not
    identifiable"; `through` are the variables that the formula needs. If there is no way, `hedge` shows why: two sets
    of variables, one inside the other, whose unobserved causes make the effect ambiguous. The search is complete: what
    is not found does not exist without further assumptions.

    Parameters
    ----------
    treatment : what is set.
    outcome : what is asked about.
    kind : "none", "back door", "front door", "formula" or "not identifiable".
    through : variables that the formula needs.
    formula : in letters.
    hedge : the two sets of variables, where there is no way.
    expression : the formula as a tree of sums, products and probabilities.
    names : the variables that the tree speaks of, by position.

    Examples
    --------
    >>> import gramgraph as gg
    >>> found = identify(gg.BayesianNetwork("c -> x -> y; c -> y"), "x", "y")
    >>> found.kind, found.through
    ('back door', ('c',))
    """

    treatment: str
    outcome: str
    kind: str
    through: tuple[str, ...]
    formula: str
    hedge: tuple[tuple[str, ...], tuple[str, ...]] | None = None
    expression: Formula | None = field(default=None, repr=False, compare=False)  # the formula on positions in `names`
    names: tuple[str, ...] = field(default=(), repr=False, compare=False)

    @property
    def identifiable(self) -> bool:
        """Whether observations tell the effect."""
        return self.expression is not None

    def evaluate(self, source: Any, *, pseudo_count: float = 0.0) -> Effect:
        """The effect by the formula, with its probabilities from data (a frame, a file) or from a network.

        Parameters
        ----------
        source : a frame, a file or a stream of cases with the variables of the formula; or a network that has them.
        pseudo_count : added to every count, so that strata without a case have an estimate.

        Returns
        -------
        Effect
            p(outcome | do(treatment)) for every treatment.

        Examples
        --------
        >>> import gramgraph as gg
        >>> net = gg.datasets.asia()
        >>> effect = net.identify("lung", do="smoke").evaluate(net)
        >>> round(effect.difference("yes", "yes", "no"), 2)
        0.09
        """
        found: Effect = learners().evaluate_effect(self, source, pseudo_count=pseudo_count)
        return found

    def __repr__(self) -> str:
        return f"Identification({self.kind}: {self.formula})"

    def _shown(self) -> Listing:
        rows = [("way", self.kind), ("through", ", ".join(self.through) or "nothing"), ("formula", self.formula)]
        if self.hedge is not None:
            rows.append(("hedge", " inside ".join(f"{{{', '.join(names)}}}" for names in reversed(self.hedge))))
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

    Parameters
    ----------
    net : the network.
    treatment : what would be set.
    outcome : what is asked about.
    hidden : names of variables that are not observed.
    confounded : pairs with an unobserved common cause.

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
    kind, found = _find(graph, x, y, unseen)
    if isinstance(found, Hedge):
        whole, part = net.names_of(found.whole), net.names_of(found.part)
        text = f"{head} does not follow from what is observed: unobserved causes tie {listing(whole)} together"
        return Identification(treatment, outcome, "not identifiable", (), text, (whole, part))
    used = sorted(all_variables(found) - {x, y})
    text = f"{head} = {_text(found, net.variables, frozenset((x, y)))}"
    return Identification(treatment, outcome, kind, net.names_of(used), text, None, found, net.variables)


def _find(graph: Digraph, x: int, y: int, unseen: tuple[int, ...]) -> tuple[str, Formula | Hedge]:
    """The simplest way that is open, and its formula."""
    if y not in descendants(graph, x):
        return "none", Probability((y,))
    z = adjustment_set(graph, x, y, hidden=unseen)
    if z is not None:
        inner = Probability((y,), (x, *z))
        return "back door", Sum(z, Product((inner, Probability(z)))) if z else inner
    m = front_door_set(graph, x, y, hidden=unseen)
    if m is not None:
        inner_sum = Sum((x,), Product((Probability((y,), (x, *m)), Probability((x,)))))
        return "front door", Sum(m, Product((Probability(m, (x,)), inner_sum)))
    return "formula", identify_effect(graph, x, y, hidden=unseen)


def _text(formula: Formula, names: Sequence[str], marked: frozenset[int], primed: frozenset[int] = frozenset()) -> str:
    """A formula in letters; a treatment or outcome that is summed over has a prime."""

    def listed(positions: Iterable[int]) -> str:
        return ", ".join(names[v] + ("'" if v in primed else "") for v in positions)

    if isinstance(formula, Probability):
        return f"p({listed(formula.what)}{' | ' if formula.given else ''}{listed(formula.given)})"
    if isinstance(formula, Sum):
        primed |= marked.intersection(formula.over)
        return f"Σ_{{{listed(formula.over)}}} {_text(formula.inner, names, marked, primed)}"
    if isinstance(formula, Quotient):
        above, below = (_text(part, names, marked, primed) for part in (formula.above, formula.below))
        return f"[{above}] / [{below}]"
    texts = [_text(part, names, marked, primed) for part in formula.parts]
    # A sum reaches to the end of the line: it stands in brackets unless it is last.
    pieces = [f"[{text}]" if text.startswith("Σ") and i < len(texts) - 1 else text for i, text in enumerate(texts)]
    return " ".join(pieces) or "1"
