"""How strong the couplings of a field may be: what held-out labels choose, the classifier of single nodes included.

Where neighbors nearly always agree, pseudo-likelihood overrates the couplings: given the labels around it, a pixel is
hardly ever wrong, and the best labeling of all pixels together becomes constant. What counts is how probable the right
label of each node is when no label is given: log p(y_i | x), by the inference that answers later, on graphs that were
held out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
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
#: Standard errors by which couplings must make more held-out labels right than the classifier of single nodes does.
SURELY = 2.0
_FOLDS, _MANY = 3, 4096  # folds of few nodes; of more there are two

Learn = Callable[[Sequence[Field], Sequence[IntArray]], FieldWeights]
Infer = Callable[[Field, FloatArray, list[FloatArray]], FloatArray]


@dataclass(frozen=True)
class _Judged:
    """Labels that were held out: their loss in all, and which were found."""

    loss: float
    right: Array

    def surely_beats(self, other: _Judged) -> bool:
        """Whether labels are more probable, and more are right by more than the luck of those that differ (McNemar)."""
        won, lost = int((self.right & ~other.right).sum()), int((other.right & ~self.right).sum())
        return self.loss < other.loss and won - lost > SURELY * (won + lost) ** 0.5


def _judge(weights: FieldWeights, fields: Sequence[Field], labels: Sequence[IntArray], infer: Infer) -> list[_Judged]:
    found = []
    for field, y in zip(fields, labels, strict=True):
        beliefs = infer(field, *weights.tables(field))
        found.append(_Judged(float(label_loss(beliefs, y)[0].sum()), beliefs.argmax(axis=1) == y))
    return found


def folds(sizes: Sequence[int]) -> list[tuple[list[int], list[int]]]:
    """(graphs to learn from, graphs to judge by); one graph alone is both."""
    n = len(sizes)
    if n == 1:
        return [([0], [0])]
    k = min(_FOLDS if sum(sizes) <= _MANY else 2, n)
    fold = [i * k // n for i in range(n)]  # neighbors together: what is held out shall be far from what is learned
    return [([i for i in range(n) if fold[i] != f], [i for i in range(n) if fold[i] == f]) for f in range(k)]


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
    fields: Sequence[Field], labels: Sequence[IntArray], *, learn: Learn, alone: Learn, infer: Infer, scaled: bool,
    trusted: bool,
) -> tuple[Mixture, FieldWeights]:  # fmt: skip
    """(how to mix what `learn` gives with the nodes `alone`, the mean of what was learned on the way).

    Candidates are: nodes alone; where weights are `trusted`, steps from there to the learned ones; where couplings may
    be `scaled`, shares of them over the nodes alone. On held-out graphs the one with the least label loss wins, of
    those that surely find more labels than the nodes alone. `infer` gives the beliefs by which labels are found later.
    """
    parts = []
    for train, test in folds([len(y) for y in labels]):
        given = [fields[i] for i in train], [labels[i] for i in train]
        parts.append((learn(*given), alone(*given), [fields[i] for i in test], [labels[i] for i in test]))
    priors = _priors(fields, labels, parts[0][1].nodes.shape)
    known: dict[Mixture, _Judged] = {}  # by identity

    def score(mix: Mixture) -> _Judged:
        if mix not in known:
            every = [one for pair in parts for one in _judge(mix(*pair[:2]), *pair[2:], infer)]
            known[mix] = _Judged(sum(one.loss for one in every), np.concatenate([one.right for one in every]))
        return known[mix]

    def best_of(mixtures: Iterable[Mixture]) -> Mixture:
        sure = [mix for mix in mixtures if score(mix).surely_beats(score(single))]
        return min(sure, key=lambda mix: score(mix).loss, default=single)

    single = Mixture(0.0, 0.0)
    best = best_of([Mixture(s) for s in LINE] if trusted else [])
    if scaled:
        shifts = (0.0,) if priors is None else SHIFTS
        best = best_of([best, *(Mixture(s, r, priors) for s in SCALES for r in shifts)])
        if best.shift is not None and best.scale > 0:
            near = [Mixture(best.scale * f, best.shift, priors) for f in (0.75, 1.33)]
            near += [Mixture(best.scale, best.shift + d, priors) for d in (-0.25, 0.25) if priors is not None]
            best = best_of([best, *near])
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
