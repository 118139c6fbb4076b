"""A smaller model that answers the same question of one case: what the zeros of the tables leave of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np

from gramgraph.answers import Answer
from gramgraph.compile.cache import remember
from gramgraph.compile.lower import Lowered, lower
from gramgraph.compile.tree import TreePlan, plan_tree
from gramgraph.compile.width import is_too_wide
from gramgraph.compile.zeros import Group, Rewritten, group_factors, rewrite
from gramgraph.engines.exact.outputs import Outputs
from gramgraph.factors import SharedTables
from gramgraph.models.markov_network import MarkovNetwork
from gramgraph.questions.question import Question
from gramgraph.typing import Array, FloatArray, IntArray
from gramgraph.variables import discrete

if TYPE_CHECKING:
    from gramgraph.models.base import GraphicalModel

#: Tables with a smaller share of zeros than this are taken as they are, as long as their tree fits.
FEW_ZEROS = 0.01
#: Models with more places for states than this are left as they are.
MOST_PLACES = 50_000_000
NO_CODES = np.zeros((1, 0), np.int64)
#: What zeros leave, while the question lives that was asked: several engines may want it, one after the other.
_MADE: WeakKeyDictionary[Question, dict[tuple[Lowered, bool], Smaller | None]] = WeakKeyDictionary()


@dataclass(frozen=True, eq=False)
class Smaller:
    """A Markov network over what is left, and the way back to the states of the whole model."""

    model: MarkovNetwork
    rewritten: Rewritten
    left: IntArray  # variables of the whole model that the smaller one has
    number: IntArray  # (variables,) place in the smaller model of the variable it is told by; -1 = no choice is left
    log_scale: float

    def question(self, question: Question) -> Question:
        """The same question about the smaller model: nothing is observed there any more."""
        asked = self.number[self._wanted(question)]
        joints = dict.fromkeys(self._members(joint) for joint in question.joints)
        targets = tuple(sorted({*asked[asked >= 0].tolist(), *(v for joint in joints for v in joint)}))
        return Question(targets, tuple(joint for joint in joints if len(joint) > 1), (), NO_CODES)

    def marginals(self, question: Question, found: Answer) -> FloatArray:
        """The beliefs of all targets, one after the other."""
        told = {v: found[self.model.vars[v].name].probabilities for v in self.question(question).targets}
        return self._spread(question, told, 1.0)

    def _spread(self, question: Question, told: Mapping[int, FloatArray], certain: float) -> FloatArray:
        """Numbers of the states of all targets, from those of the smaller model; of those without a choice `certain`,
        and zero where a state is impossible."""
        wanted, most = self._wanted(question), self.rewritten.place.shape[1]
        beliefs = np.zeros((len(self.model.vars) + 1, most))
        beliefs[-1, 0] = certain
        for v, numbers in told.items():
            beliefs[v, : len(numbers)] = numbers
        place = self.rewritten.place[wanted]
        each = np.take_along_axis(beliefs[self.number[wanted]], place.clip(0), axis=1)
        sizes = self._sizes[wanted]
        return np.asarray(np.where(place >= 0, each, 0.0)[np.arange(most) < sizes[:, None]])

    def joint(self, members: tuple[int, ...], found: Answer) -> FloatArray:
        """The joint belief of several variables of the whole model."""
        inside = self._members(members)
        names = tuple(self.model.vars[v].name for v in inside)
        table = np.ones(()) if not names else found[names if len(names) > 1 else names[0]].probabilities
        shape = tuple(int(self._sizes[v]) for v in members)
        possible = np.ones(shape, np.bool_)
        index: dict[int, IntArray] = {}
        for axis, v in enumerate(members):
            place = self.rewritten.place[v, : shape[axis]].reshape([-1 if a == axis else 1 for a in range(len(shape))])
            possible &= place >= 0
            told = int(self.number[v])
            if told >= 0:
                possible &= index.setdefault(told, place) == place
        return np.asarray(np.where(possible, table[tuple(index[v].clip(0) for v in inside)], 0.0))

    def whole(self, model: GraphicalModel, question: Question, found: Answer) -> Answer:
        """An approximate answer to a question of one case without joints, with its standard errors."""
        details = {key: value for key, value in found.details.items() if not isinstance(value, Mapping)}
        details["tried"] = found.details.get("tried", {})
        errors = found.details.get("standard_error")
        if errors is not None:
            told = {v: errors[self.model.vars[v].name] for v in self.question(question).targets}
            each, ends = self._spread(question, told, 0.0), np.cumsum(self._sizes[self._wanted(question)])
            names = [model.vars[v].name for v in question.targets]
            details["standard_error"] = dict(zip(names, np.split(each, ends[:-1]), strict=True))
        if interval := details.get("log_evidence_interval"):
            details["log_evidence_interval"] = tuple(bound + self.log_scale for bound in interval)
        answer = whole_answer(model, question, [(self, found)], engine=found.engine)
        return answer.replace(exact=False, details=details)

    def states(self, found: IntArray) -> IntArray:
        """(rows, variables) states of the whole model where the smaller one has these."""
        told = np.zeros((len(found), len(self.number)), np.int64)
        told[:, self.left] = found
        return self.rewritten.whole_states(told)

    @property
    def nothing_seen(self) -> Question:
        """The question about the smaller model that wants nothing but its best states."""
        return Question((), (), (), NO_CODES)

    @property
    def _sizes(self) -> IntArray:
        return self.rewritten.whole_sizes

    @staticmethod
    def _wanted(question: Question) -> IntArray:
        return np.asarray(question.targets, np.int64)

    def _members(self, joint: Sequence[int]) -> tuple[int, ...]:
        """The variables of the smaller model that tell those of a joint, each once."""
        return tuple(sorted({int(self.number[v]) for v in joint} - {-1}))


def smaller_case(low: Lowered, question: Question, *, complete: bool = False) -> Smaller | None:
    """The `smaller_model` of a question of one case; made once for all who try to answer it."""
    made = _MADE.setdefault(question, {})
    key = (low, complete)
    if key not in made:
        made[key] = smaller_model(low, question, complete=complete)
    return made[key]


def smaller_cases(low: Lowered, question: Question, *, complete: bool = False) -> Iterator[Smaller | None]:
    """What zeros leave of each case; of several cases nothing is kept."""
    if question.n_cases == 1:
        yield smaller_case(low, question, complete=complete)
        return
    for one in by_cases(question):
        yield smaller_model(low, one, complete=complete)


def rough_tree(model: GraphicalModel, *, maximum: bool = False, memory: float | None = None) -> TreePlan | None:
    """The tree of a model in which nothing is observed, without a search for a better one; None where none could fit.
    Made once."""
    low = lower(model, maximum=maximum)
    key = rough_key(low)
    if key not in model.plans:
        remember(model, key, None if is_too_wide(low) else plan_tree(low, cases=0, memory=memory))
    found: TreePlan | None = model.plans.get(key)
    return found


def rough_key(low: Lowered) -> tuple[object, ...]:
    """Where a model keeps the tree of `rough_tree`."""
    return ("rough tree", low.form)


def smaller_model(low: Lowered, question: Question, *, complete: bool = False) -> Smaller | None:
    """What the zeros of the tables leave of a model for one case; None when its evidence is impossible.

    States are ruled out where every row of some table that agrees with them is zero, again and again; variables that
    are copies of others, and dependences that are gone, leave the tables. Unless the model must be `complete` (an
    explanation wants every variable), barren nodes of a Bayesian network are left out before.
    """
    use, active = _in_use(low, question, complete)
    groups = group_factors(low.scope_ptr, low.scope_idx, low.value_ptr, low.values, low.sizes, use)
    n, most = len(low.sizes), int(low.sizes.max(initial=1))
    possible = np.ones((n, most), np.bool_)
    for v, code in question.hard_evidence(0).items():
        possible[v] = np.arange(most) == code
    for v, w in question.soft_weights(0).items():
        possible[v, : len(w)] &= w > 0
        if not possible[v, : len(w)].any():
            return None
        groups.append(Group(np.array([[v]]), w[None]))
    found = rewrite(groups, low.sizes, possible)
    if found is None or low.log_scale == -np.inf:
        return None
    left = np.flatnonzero((found.sizes > 1) & active)
    place = np.full(n, -1, np.int64)
    place[left] = np.arange(len(left))
    parts = [_shared(group, place) for group in found.groups]
    net = MarkovNetwork.from_shared([discrete(str(v), int(found.sizes[v])) for v in left.tolist()], parts)
    return Smaller(net, found, left, place[found.stands_for], found.log_scale + low.log_scale)


def _shared(group: Group, place: IntArray) -> SharedTables:
    n = len(group.scopes)
    return SharedTables(place[group.scopes], group.tables, np.zeros(n), np.arange(n))


def _in_use(low: Lowered, question: Question, complete: bool) -> tuple[Array, Array]:
    """Which factors, and which variables, take part."""
    use, active = np.ones(low.n_factors, np.bool_), np.ones(len(low.sizes), np.bool_)
    if low.parents is None or complete:
        return use, active
    touched = {*question.targets, *question.hard_evidence(0), *(v for v, _ in question.likelihoods)}
    ancestral = low.ancestors(touched.union(*question.joints)) > 0
    use = ancestral[low.owner]
    active = np.zeros(len(low.sizes), np.bool_)
    active[low.scope_idx[np.repeat(use, np.diff(low.scope_ptr))]] = True
    return use, active


def may_shrink(low: Lowered, question: Question, *, hopeless: bool = False) -> bool:
    """Whether zeros could leave something smaller: there are enough of them, and likelihoods are within the range of
    doubles. Where it is `hopeless` without them, a single one is enough, in tables or likelihoods."""
    if question.log_likelihoods or len(low.sizes) * int(low.sizes.max(initial=1)) > MOST_PLACES:
        return False
    if not hopeless:
        return low.zeros >= FEW_ZEROS
    return low.zeros > 0.0 or any((weights == 0.0).any() for _, weights in question.likelihoods)


def by_cases(question: Question) -> Iterator[Question]:
    """A question for each case."""
    for case in range(question.n_cases):
        one = question.of_rows(np.array([case])) if question.n_cases > 1 else question
        weights = tuple((v, w if w.ndim == 1 else w[0]) for v, w in one.likelihoods)
        yield replace(one, batched=False, likelihoods=weights, index=None, keep=None)


def whole_answer(
    model: GraphicalModel, question: Question, each: Sequence[tuple[Smaller, Answer] | None], *, engine: str
) -> Answer:
    """The answer about the whole model from those about the smaller ones of its cases; NaN and -inf for None, where
    nothing is possible."""
    outputs = Outputs.of(model, question.targets, question.joints, ())
    out, log_z = np.full((len(each), outputs.width), np.nan), np.full(len(each), -np.inf)
    blocks = {
        number: np.full((len(each), *(model.vars[v].size for v in members)), np.nan)
        for number, members in enumerate(question.joints)
    }
    for case, found in enumerate(each):
        if found is not None:
            small, answer = found
            out[case, : outputs.n_marginals] = small.marginals(question, answer)
            log_z[case] = answer.log_evidence + small.log_scale
            for number, members in enumerate(question.joints):
                blocks[number][case] = small.joint(members, answer)
    return outputs.answer(model, question, out, log_z, blocks, engine=engine)
