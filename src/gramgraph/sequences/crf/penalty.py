"""How strong the couplings of a field may be: what held-out labels choose, the classifier of single nodes included.

Where neighbors nearly always agree, pseudo-likelihood overrates the couplings: given the labels around it, a pixel is
hardly ever wrong, and the best labeling of all pixels together becomes constant. What counts is how probable the right
label of each node is when no label is given: log p(y_i | x), by the inference that answers later, on graphs that were
held out.

Couplings must not label worse than single nodes do, also on an image that is not quite like those learned from: one
with more of the texture that they blur. Parts of the held-out images show how much the gain depends on where one looks.
If it is positive in the worse half of them, it is so in expectation for every mixture of such parts in which none is
more than twice as frequent (that mean is the least expectation under all such changes). And it must exceed chance: what
neighboring pixels gain is no independent evidence, so parts are counted and not pixels, and the next image has a chance
of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import numpy as np

from gramgraph.sequences.crf.field_objective import FieldWeights, label_loss
from gramgraph.sequences.crf.fields import Field
from gramgraph.typing import Array, FloatArray, IntArray

#: Steps from single nodes to the learned weights that are tried.
LINE = (0.25, 0.5, 0.75, 1.0)
#: Shares of the couplings that are tried over the classifier of single nodes.
SCALES = (0.1, 0.2, 0.4, 0.8, 1.6)
#: Shares of the classes' log frequencies that are taken off the nodes: couplings bring a part of them again.
SHIFTS = (0.0, 0.5, 1.0)
#: Penalties that c2="auto" tries.
PENALTIES = (0.1, 1.0, 10.0, 100.0)
#: Standard errors by which a gain must exceed chance, that of another image of this size included.
SURELY = 2.0
#: The share of the parts, the worst ones, in which couplings must not lose.
WORSE = 0.5
_SMALL = 256  # nodes: parts begin anew after so many
_FOLDS, _MANY = 6, 4096  # folds of few nodes; of more there are two

Learn = Callable[[Sequence[Field], Sequence[IntArray]], FieldWeights]
Infer = Callable[[Field, FloatArray, list[FloatArray]], FloatArray]


@dataclass(frozen=True)
class _Judged:
    """One held-out part: the loss of its labels, and which were found."""

    loss: float
    right: Array


def _judge(weights: FieldWeights, fields: Sequence[Field], labels: Sequence[IntArray], infer: Infer) -> list[_Judged]:
    found = []
    for field, y in zip(fields, labels, strict=True):
        beliefs = infer(field, *weights.tables(field))
        found.append(_Judged(float(label_loss(beliefs, y)[0].sum()), beliefs.argmax(axis=1) == y))
    return found


def assured_gain(won: Array, lost: Array, sizes: Array) -> float:
    """Labels gained per node in the worse half of parts (of `sizes` nodes); 0 where that is a loss, or may be chance.

    Chance is judged by how the parts differ, and at least as if all nodes were independent (McNemar). Small parts are
    joined with their neighbors: which of them are the worse ones would be chance itself.

    >>> assured_gain(np.array([18, 16, 14, 18]), np.array([0, 0, 1, 3]), np.full(4, 500))
    0.028
    >>> assured_gain(np.array([9, 80, 1, 1]), np.array([1, 0, 3, 3]), np.full(4, 500))
    0.0
    """
    group = np.unique((np.cumsum(sizes) - sizes) // _SMALL, return_inverse=True)[1]
    won, lost, sizes = (np.bincount(group, weights=values) for values in (won, lost, sizes))
    gains, rates, parts = won - lost, (won - lost) / np.maximum(sizes, 1.0), len(sizes)
    apart = gains - gains.sum() / sizes.sum() * sizes
    variance = max(float(apart @ apart) * parts / max(parts - 1, 1), float(won.sum() + lost.sum()))
    if gains.sum() <= SURELY * (2.0 * variance) ** 0.5:  # twice: that of the parts seen, and of as many others
        return 0.0
    worst = np.argsort(rates, kind="stable")
    room = WORSE * sizes.sum()
    taken = np.diff(np.minimum(np.cumsum(sizes[worst]), room), prepend=0.0)
    return max(0.0, float(rates[worst] @ taken / room))


def folds(sizes: Sequence[int]) -> list[tuple[list[int], list[int]]]:
    """(graphs to learn from, graphs to judge by); one graph alone is both."""
    n = len(sizes)
    if n == 1:
        return [([0], [0])]
    k = min(_FOLDS if sum(sizes) <= _MANY else 2, n)
    fold = [i * k // n for i in range(n)]  # neighbors together: what is held out shall be far from what is learned
    return [([i for i in range(n) if fold[i] != f], [i for i in range(n) if fold[i] == f]) for f in range(k)]


def spread(sizes: Sequence[int], nodes: int) -> list[int]:
    """Graphs, evenly spread over all, that have about so many nodes; at least two."""
    wanted = min(len(sizes), max(2, round(len(sizes) * nodes / max(1, sum(sizes)))))
    return [int(i) for i in np.unique(np.linspace(0, len(sizes) - 1, wanted).round())]


@dataclass(frozen=True, eq=False)
class Mixture:
    """Weights between those of single nodes (scale 0) and the learned ones (scale 1).

    Without a shift all move together; with one, only couplings are scaled, and a part of the bias is taken off the
    single nodes: `priors` has what a shift of 1 takes off.
    """

    scale: float
    shift: float | None = None
    priors: FloatArray | None = None

    def __call__(self, learned: FieldWeights, single: FieldWeights) -> FieldWeights:
        """The mixed weights."""
        if self.shift is None:
            nodes = single.nodes + self.scale * (learned.nodes - single.nodes)
        else:
            nodes = single.nodes if self.priors is None else single.nodes - self.shift * self.priors
        return FieldWeights(nodes, tuple(self.scale * w for w in learned.cliques))


def best_mixture(
    fields: Sequence[Field], labels: Sequence[IntArray], few: Collection[int], *, learn: Learn, alone: Learn,
    infer: Infer, scaled: bool, trusted: bool,
) -> tuple[Mixture, FieldWeights]:  # fmt: skip
    """(how to mix what `learn` gives with the nodes `alone`, the mean of what was learned on the way).

    Candidates are: nodes alone; where weights are `trusted`, steps from there to the learned ones; where couplings may
    be `scaled`, shares of them over the nodes alone. Of those under which held-out labels are more probable than by
    nodes alone, the one with the largest assured gain wins; nodes alone where there is none. The `few` are learned
    from where they are not held out, all are judged by; `infer` gives the beliefs by which labels are found later.
    """
    sizes, parts = [len(y) for y in labels], []
    for train, test in folds(sizes):
        given = [i for i in train if i in few] or train
        data = [fields[i] for i in given], [labels[i] for i in given]
        parts.append((learn(*data), alone(*data), [fields[i] for i in test], [labels[i] for i in test]))
    priors = _priors(fields, labels, parts[0][1].nodes.shape)

    def judged(mix: Mixture) -> list[_Judged]:
        return [one for pair in parts for one in _judge(mix(*pair[:2]), *pair[2:], infer)]

    single = Mixture(0.0, 0.0)
    before = judged(single)
    known: dict[Mixture, float] = {single: 0.0}  # by identity

    def gain(mix: Mixture) -> float:
        if mix not in known:
            after = judged(mix)
            won = np.array([(b.right & ~a.right).sum() for a, b in zip(before, after, strict=True)])
            lost = np.array([(a.right & ~b.right).sum() for a, b in zip(before, after, strict=True)])
            likelier = sum(one.loss for one in after) < sum(one.loss for one in before)
            known[mix] = assured_gain(won, lost, np.array([len(one.right) for one in after])) if likelier else 0.0
        return known[mix]

    best = max([single, *(Mixture(s) for s in LINE)] if trusted else [single], key=gain)
    if scaled:
        shifts = (0.0,) if priors is None else SHIFTS
        best = max([best, *(Mixture(s, r, priors) for s in SCALES for r in shifts)], key=gain)
        if best.shift is not None and best.scale > 0:
            near = [Mixture(best.scale * f, best.shift, priors) for f in (0.75, 1.33)]
            near += [Mixture(best.scale, best.shift + d, priors) for d in (-0.25, 0.25) if priors is not None]
            best = max([best, *near], key=gain)
    means = [np.mean(same, axis=0) for same in zip(*([w.nodes, *w.cliques] for w, *_ in parts), strict=True)]
    return best, FieldWeights(means[0], tuple(means[1:]))


def _priors(fields: Sequence[Field], labels: Sequence[IntArray], shape: tuple[int, ...]) -> FloatArray | None:
    """Log frequencies of the classes, centered, at the feature of nodes that is always 1; None without such."""
    constant = [j for j in range(shape[0]) if all((f.nodes[:, j] == 1.0).all() for f in fields)]
    if not constant:
        return None
    shares = np.bincount(np.concatenate(labels), minlength=shape[1]) + 0.5
    logs = np.log(shares / shares.sum())
    priors = np.zeros(shape)
    priors[constant[-1]] = logs - logs.mean()
    return priors


def best_penalty(
    fields: Sequence[Field], labels: Sequence[IntArray], learn: Callable[..., FieldWeights], infer: Infer
) -> float:
    """The c2 of `PENALTIES` whose weights make held-out labels most probable; 1 where there is one graph."""
    if len(fields) == 1:
        return 1.0
    train, test = folds([len(y) for y in labels])[0]

    def loss(c2: float) -> float:
        weights = learn([fields[i] for i in train], [labels[i] for i in train], c2)
        return sum(one.loss for one in _judge(weights, [fields[i] for i in test], [labels[i] for i in test], infer))

    return min(PENALTIES, key=loss)


def splits_by_graph(codes: IntArray, starts: IntArray, k: int) -> list[tuple[IntArray, IntArray]] | None:
    """(nodes to learn from, nodes to predict): whole graphs are held out, if the others have labels of every kind."""
    graph = np.repeat(np.arange(len(starts) - 1), np.diff(starts)) % k
    splits = [(np.flatnonzero(graph != f), np.flatnonzero(graph == f)) for f in range(min(k, len(starts) - 1))]
    full = len(np.unique(codes))
    return splits if all(len(np.unique(codes[train])) == full for train, _ in splits) else None
