"""Conditional random fields on any graph, and on the grid of an image."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from gramgraph._validation import check_choice
from gramgraph.exceptions import ModelError, ModelWarning, OptionError
from gramgraph.sequences.crf.field_objective import FieldObjective
from gramgraph.sequences.crf.fields import Cliques, Field, joined_fields, loopy_beliefs, network_of, read_field
from gramgraph.sequences.crf.optimize import minimize
from gramgraph.sequences.crf.penalty import best_penalty, calibrated
from gramgraph.typing import Array, FloatArray, IntArray

if TYPE_CHECKING:
    from gramgraph.models import MarkovNetwork

__all__ = ["GraphCRF", "GridCRF"]

_METHODS, _INFERENCE = ("pseudo", "exact", "loopy"), ("auto", "exact", "loopy")
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
    penalty c2 ‖w‖², which is a Gaussian prior of variance 1/(2 c2); c2="auto" takes the one whose weights make
    the labels of held-out graphs most probable. With `calibrate`, couplings are scaled down (to `scale_` of them) over
    a classifier of single nodes, wherever that makes held-out labels more probable. `inference` "auto" answers exactly
    where the
    junction tree is small, else by propagation. With `node_classifier`, any scikit-learn classifier with probabilities
    learns the labels from the node features alone, and its log-probabilities (held out by `cv` folds while learning)
    take the place of them.

    Parameters
    ----------
    method : "pseudo", "exact" or "loopy": what is maximized.
    inference : "auto", or how an answer is found: exactly or by propagation.
    c2 : weight of the penalty ‖w‖², or "auto".
    symmetric : whether weights of pairs do not depend on the direction.
    node_classifier : a classifier whose log-probabilities take the place of the node features, or None.
    cv : folds by which these are held out while learning.
    max_iterations : most steps of learning.
    epsilon : below which a change counts as none.
    calibrate : whether couplings are scaled down where held-out labels become more probable.
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

    def _vectors(self, y: Sequence[Any]) -> list[Array]:
        return [np.asarray(labels).ravel() for labels in y]

    def fit(self, X: Sequence[Any], y: Sequence[Any]) -> Self:
        """Learn the weights (after the classifier of nodes, where there is one)."""
        for name, known in (("method", _METHODS), ("inference", _INFERENCE)):
            check_choice(name, getattr(self, name), known)
        if isinstance(self.c2, str) and self.c2 != "auto":
            raise OptionError(f"c2 must be a number of at least 0 or 'auto', not {self.c2!r}")
        fields, labels = self._fields(X), self._vectors(y)
        if not fields or len(fields) != len(labels):
            raise ModelError(f"X has {len(fields)} graphs, but y has {len(labels)}; at least 1 is needed.")
        for s, (one, vector) in enumerate(zip(fields, labels, strict=True)):
            if len(vector) != len(one.nodes):
                raise ModelError(f"X[{s}] has {len(one.nodes)} nodes, but y[{s}] has {len(vector)} labels.")
        field, starts = joined_fields(fields)
        self.classes_, codes = np.unique(np.concatenate(labels), return_inverse=True)
        if self.node_classifier is not None:
            nodes = self._learn_nodes(field.nodes, codes)
            ends = zip(fields, starts[:-1], starts[1:], strict=True)
            fields = [Field(nodes[a:b], one.cliques) for one, a, b in ends]
        parts = [codes[a:b] for a, b in pairwise(starts.tolist())]
        self.c2_ = best_penalty(fields, parts, self._learned) if self.c2 == "auto" else float(self.c2)
        self.weights_ = self._learned(fields, parts, self.c2_, keep=True)
        self.scale_ = 1.0
        if self.calibrate and len(self.classes_) > 1:
            self.weights_, self.scale_ = calibrated(
                self.weights_, fields, parts, self._objective, trusted=self.method != "pseudo"
            )
        return self

    def _objective(self, field: Field, codes: IntArray, method: str, c2: float | None = None) -> FieldObjective:
        return FieldObjective(
            field, codes, len(self.classes_), method=method, c2=self.c2_ if c2 is None else c2,
            symmetric=self.symmetric, states=[str(c) for c in self.classes_],
        )  # fmt: skip

    def _learned(self, fields: Sequence[Field], labels: Sequence[IntArray], c2: float, keep: bool = False) -> Any:
        """Weights for one penalty; with `keep` the descent is reported in attributes."""
        objective = self._objective(joined_fields(fields)[0], np.concatenate(labels), self.method, c2)
        found = minimize(
            objective,
            np.zeros(objective.size),
            memory=10,
            max_iter=self.max_iterations,
            epsilon=self.epsilon,
            delta=1e-7,
        )
        if keep:
            self.objective_, self.n_iter_, self.converged_ = found.value, len(found.history) - 1, found.converged
        return objective.weights(found.w)

    def _learn_nodes(self, nodes: FloatArray, codes: IntArray) -> FloatArray:
        from sklearn.model_selection import cross_val_predict

        self.node_classifier_ = clone(self.node_classifier).fit(nodes, codes)
        if self.cv is None:
            return self._log_proba(nodes)
        held_out = cross_val_predict(clone(self.node_classifier), nodes, codes, cv=self.cv, method="predict_proba")
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

    def _is_small(self, net: MarkovNetwork) -> bool:
        if self.inference != "auto":
            return self.inference == "exact"
        from gramgraph.questions.ask import plan

        return bool(plan(net).bytes <= _EXACT_BYTES)

    def predict(self, X: Sequence[Any]) -> list[Array]:
        """A most probable labeling of every graph: exact, or by max-product messages."""
        found = []
        for s, x in enumerate(X):
            field, local, tables = self._tables(x, s)
            net = network_of(field, local, tables, [str(i) for i in range(len(self.classes_))])
            best = net.map_query() if self._is_small(net) else net.map_query(engine="bp")
            labels = np.array([int(best.assignment[name]) for name in net.variables])
            self._warn_if_constant(labels, s)
            found.append(self.classes_[labels])
        return found

    def _warn_if_constant(self, labels: IntArray, s: int) -> None:
        """One label everywhere: most often couplings that are too strong."""
        if len(labels) > _FEW and len(self.classes_) > 1 and (labels == labels[0]).all():
            warnings.warn(
                f"the best labeling of X[{s}] is {self.classes_[labels[0]]} everywhere: where that "
                'is not so, the couplings are too strong. Use a larger c2, c2="auto", calibrate=True or '
                'method="loopy" instead',
                ModelWarning,
                stacklevel=4,
            )

    def predict_proba(self, X: Sequence[Any]) -> list[FloatArray]:
        """p(label | x) of every node, (n, K) a graph."""
        found = []
        for s, x in enumerate(X):
            field, local, tables = self._tables(x, s)
            net = network_of(field, local, tables, [str(i) for i in range(len(self.classes_))])
            if self._is_small(net):
                answer = net.query()
                found.append(np.array([answer[name].probabilities for name in net.variables]))
            else:
                found.append(loopy_beliefs(field, local, tables)[1])
        return found

    def score(self, X: Sequence[Any], y: Sequence[Any]) -> float:
        """The share of nodes whose label is right."""
        found, wanted = self._vectors(self.predict(X)), self._vectors(y)
        return float((np.concatenate(found) == np.concatenate(wanted)).mean())


@dataclass(eq=False, repr=False)
class GridCRF(GraphCRF):
    """A field on the pixels of images: each linked to its right and lower neighbor, with the contrast as a feature.

    An element of X is an image (h, w) or (h, w, d), one of y its labels (h, w). Node features are the channels and 1;
    pairs have the features 1 and exp(−contrast · ‖difference of channels‖²), with weights of their own across and down.
    Other parameters are those of `GraphCRF`; predictions are images. Here `method` is "loopy", and
    couplings are calibrated: where neighbors nearly always agree, pseudo-likelihood makes the pairs too strong, and the
    best labeling would be constant (`predict` warns where it is).

    Parameters
    ----------
    method : "pseudo", "exact" or "loopy": what is maximized.
    inference : "auto", or how an answer is found: exactly or by propagation.
    c2 : weight of the penalty ‖w‖², or "auto".
    symmetric : whether weights of pairs do not depend on the direction.
    node_classifier : a classifier whose log-probabilities take the place of the node features, or None.
    cv : folds by which these are held out while learning.
    max_iterations : most steps of learning.
    epsilon : below which a change counts as none.
    calibrate : whether couplings are scaled down where held-out labels become more probable.
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
    method: str = "loopy"
    calibrate: bool = True

    def _fields(self, X: Sequence[Any]) -> list[Field]:
        return [self._grid(image, s) for s, image in enumerate(X)]

    def _grid(self, image: Any, s: int) -> Field:
        pixels = np.asarray(image, dtype=np.float64)
        if pixels.ndim not in (2, 3) or pixels.size == 0 or not np.isfinite(pixels).all():
            raise ModelError(f"X[{s}] must be an image (h, w) or (h, w, d) of finite numbers; shape {pixels.shape}.")
        h, w = pixels.shape[:2]
        flat = pixels.reshape(h * w, -1)
        at = np.arange(h * w).reshape(h, w)
        pairs = [(at[:, :-1], at[:, 1:]), (at[:-1], at[1:])]
        cliques = []
        for a, b in pairs:
            members = np.stack([a.ravel(), b.ravel()], axis=1)
            apart = ((flat[members[:, 0]] - flat[members[:, 1]]) ** 2).sum(axis=1)
            features = np.stack([np.ones(len(members)), np.exp(-self.contrast * apart)], axis=1)
            cliques.append(Cliques(members, features))
        bias = np.ones((h * w, int(self.node_classifier is None)))  # log-probabilities bring their own
        return Field(np.concatenate([flat, bias], axis=1), tuple(cliques))

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
