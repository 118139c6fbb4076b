"""Conditional random fields on any graph, and on the grid of an image."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from itertools import pairwise
from math import prod
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from gramgraph._validation import check_choice, check_positive
from gramgraph.exceptions import ModelError, ModelWarning
from gramgraph.sequences.crf.field_objective import FieldObjective, FieldWeights
from gramgraph.sequences.crf.fields import (
    Cliques,
    Field,
    induced,
    joined_fields,
    loopy_beliefs,
    network_of,
    read_field,
)
from gramgraph.sequences.crf.optimize import minimize
from gramgraph.sequences.crf.penalty import Mixture, best_mixture, best_penalty, splits_by_graph, spread
from gramgraph.sequences.crf.rounds import Rounds
from gramgraph.typing import Array, FloatArray, IntArray

if TYPE_CHECKING:
    from gramgraph.models import MarkovNetwork

_METHODS, _INFERENCE = ("pseudo", "exact", "loopy", "marginal"), ("auto", "exact", "loopy")
_DECODE = ("joint", "nodes")
_ENOUGH = 16384  # nodes to learn couplings from: a few dozen weights need no more
_JUDGED = 65536  # nodes by which they are judged: of more parts, more is known of how these differ
_SIDE = 32  # of the parts of a large image
_PART = 1024  # nodes in a part of a large graph
_LEAST_PART = 32  # nodes below which a graph is not taken apart
_EXACT_BYTES = 2e7  # tables of a junction tree that "auto" will still build
_FEW = 8  # nodes of which it is no wonder that they all have one label
_LEAST_LOG = -20.0  # log-probabilities of a classifier below this count as this


@dataclass(eq=False, repr=False)
class GraphCRF(BaseEstimator):
    """p(y | x) ∝ exp(Σ_i w·f_i(x, y_i) + Σ_c w·f_c(x, y_c)): labels of the nodes of graphs, with features per clique.

    An element of X is (node features (n, d), edges (m, 2)), with edge features (m, f) as a third part, or a `Field`
    with several kinds of cliques of any size. An element of y is a vector with one label per node. Weights are (d, K)
    for nodes and (f, K, …, K) for each kind of clique; those of pairs are `symmetric` unless directions matter.

    `method` "pseudo" maximizes the pseudo-likelihood (fast; too trusting where neighbors nearly always agree), "exact"
    the likelihood through the junction tree, "loopy" with beliefs of loopy propagation (exact on trees); all with the
    penalty c2 ‖w‖², which is a Gaussian prior of variance 1/(2 c2). "marginal" (for pairs) maximizes Σ_i log b_i(y_i)
    through the few sweeps of propagation by which it also answers; it learns couplings alone, over the classifier of
    single nodes as that is. c2="auto" takes the penalty whose weights make the labels of held-out graphs most probable.

    With `calibrate`, the classifier of single nodes stays unless couplings are better on held-out graphs, or parts of
    a large one: all of them, or a share `scale_` over that classifier, must find more labels in the worse half of
    these parts, and more in all by two standard errors of the difference to as many other parts (parts are counted,
    since the nodes of one are alike). The share that finds most in the worse half is taken; `scale_` 0 is that
    classifier itself. So a graph is labeled no worse than by single nodes, but for chance, even if parts of one kind
    are twice as frequent in it. Parts with about 65,000 nodes are judged by; "marginal" learns from 16,000 of these.

    `inference` "auto" answers exactly where the junction tree is small, else by propagation. `decode` "joint" predicts
    the labels that are most probable together, "nodes" the most probable label of each, which makes the expected number
    of right labels largest. With `node_classifier`, any scikit-learn classifier with probabilities learns the labels
    from the node features alone, and its log-probabilities take the place of them; while learning, those of a
    classifier that has not seen the node (`cv` folds), since it is too sure of what it learned from.

    Parameters
    ----------
    method : "pseudo", "exact", "loopy" or "marginal": what is maximized.
    inference : "auto", or how an answer is found: exactly or by propagation.
    c2 : weight of the penalty ‖w‖², or "auto".
    decode : "joint" or "nodes": which labels are predicted.
    symmetric : whether weights of pairs do not depend on the direction.
    node_classifier : a classifier whose log-probabilities take the place of the node features, or None.
    cv : folds by which these are held out while learning.
    max_iterations : most steps of learning.
    epsilon : below which a change counts as none.
    calibrate : whether held-out labels decide how strong couplings are, if there are any.
    random_state : seed, or a generator.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y = [np.repeat(rng.integers(0, 2, 4), 5) for _ in range(30)]
    >>> chain = [(i, i + 1) for i in range(19)]
    >>> X = [(np.c_[labels + rng.normal(scale=0.6, size=20), np.ones(20)], chain) for labels in y]
    >>> crf = GraphCRF(method="loopy", c2=0.01).fit(X[:20], y[:20])
    >>> alone = np.mean([((x[0][:, 0] > 0.5) == labels).mean() for x, labels in zip(X[20:], y[20:])])
    >>> bool(crf.score(X[20:], y[20:]) > alone + 0.05)
    True
    """

    _: KW_ONLY
    method: str = "pseudo"
    inference: str = "auto"
    c2: float | str = 1.0
    decode: str = "joint"
    symmetric: bool = True
    node_classifier: Any = None
    cv: int | None = 3
    max_iterations: int | None = 200
    epsilon: float = 1e-5
    calibrate: bool = False
    random_state: Any = None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.target_tags.required = True
        return tags

    def _fields(self, X: Sequence[Any]) -> list[Field]:
        return [read_field(x, s) for s, x in enumerate(X)]

    def _shape(self, x: Any, field: Field) -> tuple[int, ...]:
        """The shape of the labels of a graph."""
        return (len(field.nodes),)

    def _vectors(self, y: Sequence[Any], shapes: Sequence[tuple[int, ...]]) -> list[Array]:
        """Labels of graphs of these shapes, a vector each: as many as there are nodes, and none missing."""
        if not shapes or len(shapes) != len(y):
            raise ModelError(f"X has {len(shapes)} graphs, but y has {len(y)}; at least 1 is needed.")
        vectors = [np.asarray(labels) for labels in y]
        for s, (found, shape) in enumerate(zip(vectors, shapes, strict=True)):
            if found.size != prod(shape):
                raise ModelError(f"X[{s}] has {prod(shape)} nodes, but y[{s}] has {found.size} labels.")
            if len(shape) == 2 and found.ndim > 1 and found.shape != shape:
                raise ModelError(f"X[{s}] has {shape} pixels, but the labels y[{s}] have the shape {found.shape}.")
            if found.dtype.kind == "f" and np.isnan(found).any():
                raise ModelError(f"y[{s}] holds NaN: every node needs a label.")
        return [found.ravel() for found in vectors]

    def fit(self, X: Sequence[Any], y: Sequence[Any]) -> Self:
        """Learn the weights (after the classifier of nodes, where there is one)."""
        for name, known in (("method", _METHODS), ("inference", _INFERENCE), ("decode", _DECODE)):
            check_choice(name, getattr(self, name), known)
        if self.c2 != "auto":
            check_positive("unless 'auto', c2", self.c2, zero=True)
        fields = self._fields(X)
        labels = self._vectors(y, [self._shape(x, field) for x, field in zip(X, fields, strict=True)])
        field, starts = joined_fields(fields)
        self.classes_, codes = np.unique(np.concatenate(labels), return_inverse=True)
        if self.node_classifier is not None:
            nodes = self._learn_nodes(field.nodes, codes, starts)
            ends = zip(fields, starts[:-1], starts[1:], strict=True)
            fields = [Field(nodes[a:b], one.cliques) for one, a, b in ends]
        whole = fields, [codes[a:b] for a, b in pairwise(starts.tolist())]
        some = self._parts(X, *whole) if self.calibrate or self.method == "marginal" else whole
        few = spread([len(labels) for labels in some[1]], _ENOUGH)
        data = ([some[0][i] for i in few], [some[1][i] for i in few]) if self.method == "marginal" else whole
        self.c2_ = best_penalty(*data, self._learned, self._propagated) if self.c2 == "auto" else float(self.c2)
        single, mix, begin = self._alone(*whole, self.c2_), Mixture(1.0), None
        if self.calibrate and len(self.classes_) > 1:
            mix, begin = best_mixture(
                *some, few, learn=lambda f, y: self._learned(f, y, self.c2_),
                alone=lambda f, y: self._alone(f, y, self.c2_), infer=self._propagated,
                scaled=self.method != "marginal", trusted=self.method != "pseudo",
            )  # fmt: skip
        learned = self._learned(*data, self.c2_, single, begin)
        self.weights_, self.scale_ = mix(learned, single), mix.scale
        return self

    def _parts(
        self, X: Sequence[Any], fields: Sequence[Field], labels: Sequence[IntArray]
    ) -> tuple[list[Field], list[IntArray]]:
        """Parts of the graphs, evenly spread, with as many nodes as are judged by; large graphs are cut."""
        cuts = [
            (field, y, at)
            for x, field, y in zip(X, fields, labels, strict=True)
            for at in self._cut(x, len(y), alone=len(fields) == 1)
        ]
        chosen = [cuts[i] for i in spread([len(at) for _, _, at in cuts], _JUDGED)]
        return [induced(field, at) for field, _, at in chosen], [y[at] for _, y, at in chosen]

    def _cut(self, x: Any, n: int, *, alone: bool) -> list[IntArray]:
        """The nodes of each part of a graph."""
        least = 3 if alone and n >= _LEAST_PART else 1
        return list(np.array_split(np.arange(n), max(least, -(-n // _PART))))

    def _objective(
        self, field: Field, codes: IntArray, method: str, c2: float, nodes: FloatArray | None = None
    ) -> FieldObjective:
        return FieldObjective(
            field, codes, len(self.classes_), method=method, c2=c2, symmetric=self.symmetric,
            states=[str(c) for c in self.classes_], nodes=nodes,
        )  # fmt: skip

    def _alone(self, fields: Sequence[Field], labels: Sequence[IntArray], c2: float) -> FieldWeights:
        """Weights of the classifier of single nodes: those that leave the given one as it is, or a logistic one's."""
        field, K = joined_fields(fields)[0], len(self.classes_)
        none = [np.zeros((c.features.shape[1], *(K,) * c.members.shape[1])) for c in field.cliques]
        if self.node_classifier is not None:
            return FieldWeights(np.eye(K + 1, K), tuple(none))
        nodes = self._objective(Field(field.nodes, ()), np.concatenate(labels), "pseudo", c2)
        found = minimize(nodes, np.zeros(nodes.size), memory=10, max_iter=100, delta=1e-7)
        return FieldWeights(nodes.weights(found.w).nodes, tuple(none))

    def _learned(
        self,
        fields: Sequence[Field],
        labels: Sequence[IntArray],
        c2: float,
        single: FieldWeights | None = None,
        begin: FieldWeights | None = None,
    ) -> FieldWeights:
        """Weights for one penalty; where all data are learned from, `single` is known, and the descent is reported."""
        short = self.method == "marginal"  # from single nodes towards couplings, while that helps much
        nodes = (single or self._alone(fields, labels, c2)).nodes if short else None
        objective = self._objective(joined_fields(fields)[0], np.concatenate(labels), self.method, c2, nodes)
        found = minimize(
            objective,
            begin.couplings() if begin is not None and short else np.zeros(objective.size),
            memory=10,
            max_iter=self.max_iterations,
            epsilon=self.epsilon,
            period=5 if short else 10,
            delta=2e-3 if short else 1e-7,
        )
        if single is not None:
            self.objective_, self.n_iter_, self.converged_ = found.value, len(found.history) - 1, found.converged
        return objective.weights(found.w)

    def _learn_nodes(self, nodes: FloatArray, codes: IntArray, starts: IntArray) -> FloatArray:
        from sklearn.model_selection import cross_val_predict

        self.node_classifier_ = clone(self.node_classifier).fit(nodes, codes)
        if self.cv is None:
            return self._log_proba(nodes)
        cv = splits_by_graph(codes, starts, self.cv) or self.cv
        held_out = cross_val_predict(clone(self.node_classifier), nodes, codes, cv=cv, method="predict_proba")
        return _with_bias(held_out)

    def _log_proba(self, nodes: FloatArray) -> FloatArray:
        return _with_bias(self.node_classifier_.predict_proba(nodes))

    # ------------------------------------------------------------------------------------------ questions

    def _tables(self, x: Any, s: int) -> tuple[Field, FloatArray, list[FloatArray]]:
        check_is_fitted(self, "weights_")
        (field,) = self._fields([x])
        if hasattr(self, "node_classifier_"):
            field = Field(self._log_proba(field.nodes), field.cliques)
        shapes = [(field.nodes.shape[1], 2), *((c.features.shape[1], c.members.shape[1] + 1) for c in field.cliques)]
        wanted = [(w.shape[0], w.ndim) for w in (self.weights_.nodes, *self.weights_.cliques)]
        if shapes != wanted:
            raise ModelError(f"X[{s}] has other features or cliques than the graphs that the model learned from.")
        return field, *self.weights_.tables(field)

    def to_network(self, x: Any) -> MarkovNetwork:
        """The field of one graph as a Markov network over n0, n1, …"""
        return network_of(*self._tables(x, 0), [str(c) for c in self.classes_])

    def _exactly(self, x: Any, parts: tuple[Field, FloatArray, list[FloatArray]]) -> MarkovNetwork | None:
        """The network whose junction tree answers; None where propagation does."""
        if self.inference == "loopy" or (self.inference == "auto" and self.method == "marginal"):
            return None
        from gramgraph.questions.ask import plan

        net = network_of(*parts, [str(i) for i in range(len(self.classes_))])
        return net if self.inference == "exact" or plan(net).bytes <= _EXACT_BYTES else None

    def predict(self, X: Sequence[Any]) -> list[Array]:
        """The labels of every graph: those most probable together, or each by itself (`decode`)."""
        found = []
        for s, x in enumerate(X):
            parts = self._tables(x, s)
            labels = self._together(x, parts) if self.decode == "joint" else self._beliefs(x, parts).argmax(axis=1)
            self._warn_if_constant(labels, s)
            found.append(self.classes_[labels])
        return found

    def _together(self, x: Any, parts: tuple[Field, FloatArray, list[FloatArray]]) -> IntArray:
        """A labeling that is most probable as a whole: exact, or by max-product messages."""
        net = self._exactly(x, parts)
        if net is None:
            net = network_of(*parts, [str(i) for i in range(len(self.classes_))])
            best = net.map_query(engine="bp")
        else:
            best = net.map_query()
        return np.array([int(best.assignment[name]) for name in net.variables])

    def _beliefs(self, x: Any, parts: tuple[Field, FloatArray, list[FloatArray]]) -> FloatArray:
        """p(label | x) of every node."""
        if (net := self._exactly(x, parts)) is None:
            return self._propagated(*parts)
        answer = net.query()
        return np.array([answer[name].probabilities for name in net.variables])

    def _propagated(self, field: Field, local: FloatArray, tables: list[FloatArray]) -> FloatArray:
        """Beliefs by propagation: the sweeps that weights were learned for, or until messages settle."""
        if self.method == "marginal":
            return Rounds(field, local, tables).beliefs
        return loopy_beliefs(field, local, tables).nodes

    def _warn_if_constant(self, labels: IntArray, s: int) -> None:
        """One label everywhere: most often couplings that are too strong."""
        if len(labels) > _FEW and len(self.classes_) > 1 and (labels == labels[0]).all():
            warnings.warn(
                f"the best labeling of X[{s}] is {self.classes_[labels[0]]} everywhere: where that "
                'is not so, the couplings are too strong. Use a larger c2, c2="auto", calibrate=True or '
                'method="marginal" instead',
                ModelWarning,
                stacklevel=4,
            )

    def predict_proba(self, X: Sequence[Any]) -> list[FloatArray]:
        """p(label | x) of every node, (n, K) a graph."""
        return [self._beliefs(x, self._tables(x, s)) for s, x in enumerate(X)]

    def score(self, X: Sequence[Any], y: Sequence[Any]) -> float:
        """The share of nodes whose label is right."""
        found = self.predict(X)
        wanted = self._vectors(y, [labels.shape for labels in found])
        return float((np.concatenate([labels.ravel() for labels in found]) == np.concatenate(wanted)).mean())


@dataclass(eq=False, repr=False)
class GridCRF(GraphCRF):
    """A field on the pixels of images: each linked to its right and lower neighbor, with the contrast as a feature.

    An element of X is an image (h, w) or (h, w, d), one of y its labels (h, w). Node features are the channels and 1;
    pairs have the features 1 and exp(−contrast · ‖difference of channels‖²), with weights of their own across and down.
    Other parameters are those of `GraphCRF`; predictions are images. Here `method` is "marginal", pixels are decoded
    one by one, and couplings are calibrated: where neighbors nearly always agree, pseudo-likelihood makes the pairs too
    strong, and the best labeling would be constant (`predict` warns where it is). c2 is four times that of graphs, as
    a pixel has four neighbors whose losses repeat what it says.

    Parameters
    ----------
    method : "pseudo", "exact", "loopy" or "marginal": what is maximized.
    inference : "auto", or how an answer is found: exactly or by propagation.
    c2 : weight of the penalty ‖w‖², or "auto".
    decode : "joint" or "nodes": which labels are predicted.
    symmetric : whether weights of pairs do not depend on the direction.
    node_classifier : a classifier whose log-probabilities take the place of the node features, or None.
    cv : folds by which these are held out while learning.
    max_iterations : most steps of learning.
    epsilon : below which a change counts as none.
    calibrate : whether held-out labels decide how strong couplings are, if there are any.
    random_state : seed, or a generator.
    contrast : factor of the squared difference of neighbors.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> truth = np.zeros((8, 8), dtype=int)
    >>> truth[2:6, 2:6] = 1
    >>> X = [truth + rng.normal(scale=0.7, size=truth.shape) for _ in range(4)]
    >>> crf = GridCRF().fit(X[:3], [truth] * 3)
    >>> bool(crf.score(X[3:], [truth]) > ((X[3] > 0.5) == truth).mean())
    True
    """

    _: KW_ONLY
    contrast: float = 1.0
    method: str = "marginal"
    c2: float | str = 4.0
    decode: str = "nodes"
    calibrate: bool = True

    def _fields(self, X: Sequence[Any]) -> list[Field]:
        return [self._grid(image, s) for s, image in enumerate(X)]

    def _shape(self, x: Any, field: Field) -> tuple[int, ...]:
        h, w = np.shape(x)[:2]
        return h, w

    def _grid(self, image: Any, s: int) -> Field:
        pixels = np.asarray(image, dtype=np.float64)
        if pixels.ndim not in (2, 3) or pixels.size == 0 or not np.isfinite(pixels).all():
            raise ModelError(f"X[{s}] must be an image (h, w) or (h, w, d) of finite numbers; shape {pixels.shape}.")
        h, w = pixels.shape[:2]
        flat = pixels.reshape(h * w, -1)
        at = np.arange(h * w).reshape(h, w)
        pairs = [(at[:, :-1].T, at[:, 1:].T), (at[:-1], at[1:])]  # pairs in a row of this order do not wait for another
        cliques = []
        for a, b in pairs:
            members = np.stack([a.ravel(), b.ravel()], axis=1)
            apart = ((flat[members[:, 0]] - flat[members[:, 1]]) ** 2).sum(axis=1)
            features = np.stack([np.ones(len(members)), np.exp(-self.contrast * apart)], axis=1)
            cliques.append(Cliques(members, features))
        bias = np.ones((h * w, int(self.node_classifier is None)))  # log-probabilities bring their own
        return Field(np.concatenate([flat, bias], axis=1), tuple(cliques))

    def _cut(self, x: Any, n: int, *, alone: bool) -> list[IntArray]:
        """The pixels of squares; of bands, where a small image is alone."""
        h, w = np.shape(x)[:2]
        across, down = -(-w // _SIDE), -(-h // _SIDE)
        if alone and across * down == 1 and n >= _LEAST_PART:
            down = 3
        rows = np.array_split(np.arange(n).reshape(h, w), down, axis=0)
        return [part.ravel() for row in rows for part in np.array_split(row, across, axis=1)]

    def _exactly(self, x: Any, parts: tuple[Field, FloatArray, list[FloatArray]]) -> MarkovNetwork | None:
        h, w = np.shape(x)[:2]
        if self.inference == "auto" and 8.0 * h * w * len(self.classes_) ** (min(h, w) + 1.0) > _EXACT_BYTES:
            return None
        return super()._exactly(x, parts)

    def predict(self, X: Sequence[Any]) -> list[Array]:
        """Images of labels."""
        return [labels.reshape(np.shape(x)[:2]) for labels, x in zip(super().predict(X), X, strict=True)]

    def predict_proba(self, X: Sequence[Any]) -> list[FloatArray]:
        """p(label | image) of every pixel, (h, w, K)."""
        found = super().predict_proba(X)
        return [p.reshape((*np.shape(x)[:2], -1)) for p, x in zip(found, X, strict=True)]


def _with_bias(proba: Any) -> FloatArray:
    with np.errstate(divide="ignore"):
        logs = np.maximum(np.log(np.asarray(proba, dtype=np.float64)), _LEAST_LOG)
    return np.concatenate([logs, np.ones((len(logs), 1))], axis=1)
