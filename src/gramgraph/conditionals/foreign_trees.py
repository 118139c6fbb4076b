"""Trees of other libraries as sums of trees: LightGBM, XGBoost, scikit-learn, by their numbers and never by pickles."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gramgraph.exceptions import ModelError
from gramgraph.tree_sum import Node, TreeSum
from gramgraph.typing import FloatArray

#: Objectives of XGBoost whose predictions, or logits, are the scores themselves.
_PLAIN_SCORES = (
    "reg:squarederror", "reg:absoluteerror", "reg:pseudohuber", "reg:quantile", "multi:soft", "binary:logitraw",
)  # fmt: skip


def trees_of(model: Any) -> TreeSum:
    """The scores of a trained model (numbers, log odds, or one per class) as a sum of trees."""
    if isinstance(model, TreeSum):
        return model
    if isinstance(model, (str, bytes)):
        try:
            model = json.loads(model)
        except ValueError as error:
            raise ModelError(f"the dump of a model must be JSON: {error}") from None
    try:
        return _from(model)
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        if isinstance(error, ModelError):
            raise
        raise ModelError(f"the trees of {type(model).__name__} cannot be read: {error!r}") from None


def _from(model: Any) -> TreeSum:
    if isinstance(model, Mapping):
        if "tree_info" in model:
            return _lightgbm(model)
        if "learner" in model:
            return _xgboost(model)
        raise ModelError("neither a dump of LightGBM (tree_info) nor a model of XGBoost (learner)")
    package = type(model).__module__.partition(".")[0]
    if package == "lightgbm":
        return _lightgbm(getattr(model, "booster_", model).dump_model())
    if package == "xgboost":
        booster = model.get_booster() if hasattr(model, "get_booster") else model
        return _xgboost(json.loads(booster.save_raw("json")))
    if package == "gramgraph":
        return _ours(model)
    if package == "sklearn":
        return _scikit_learn(model)
    raise ModelError(f"{type(model).__name__} is not a model of LightGBM, XGBoost, scikit-learn or this library")


def _ours(model: Any) -> TreeSum:
    found = getattr(model, "ensemble_", None)
    if not isinstance(found, TreeSum):
        raise ModelError(f"{type(model).__name__} holds no trees: fit it first, without another weak learner")
    name = type(model).__name__
    if name == "GentleBoostClassifier" and len(found.base) == 1:
        return found.scaled(2.0)  # F is half the log odds
    if getattr(model, "_kind", "Log") == "Hinge":
        raise ModelError("scores of the hinge loss are not log odds: use the log loss instead")
    if name == "AdaBoostClassifier" and len(found.base) > 1:
        return found.scaled((len(found.base) - 1.0) / len(found.base))
    if len(found.base) > 1 and name != "LogitBoostClassifier" and getattr(model, "_kind", "") != "Log":
        raise ModelError("classes one against the rest have no joint scores: use the log loss instead")
    return found


# ---------------------------------------------------------------------------------------------------- LightGBM


def _lightgbm(dump: Mapping[str, Any]) -> TreeSum:
    words = str(dump.get("objective", "regression")).split()
    options = dict(word.split(":", 1) for word in words[1:] if ":" in word)
    known = ("binary", "multiclass", "regression", "regression_l1", "huber", "quantile", "mape", "fair")
    if words[0] not in known:
        raise ModelError(f"the objective {words[0]!r} of LightGBM has a link of its own; known: {', '.join(known)}")
    if words[0] == "regression" and "sqrt" in words:
        raise ModelError("reg_sqrt of LightGBM squares its scores, which a sum of trees cannot do")
    trees = [_lightgbm_tree(one["tree_structure"]) for one in dump["tree_info"]]
    per_round = int(dump.get("num_tree_per_iteration", 1))
    found = TreeSum.of(
        trees,
        outputs=[t % per_round for t in range(len(trees))],
        base=np.zeros(per_round),
        n_features=int(dump["max_feature_idx"]) + 1,
    )
    factor = float(options.get("sigmoid", 1.0)) if words[0] == "binary" else 1.0
    if dump.get("average_output"):
        factor *= per_round / max(len(trees), 1)
    return found if factor == 1.0 else found.scaled(factor)


def _lightgbm_tree(root: Mapping[str, Any]) -> list[Node]:
    nodes: list[Node] = []
    todo: list[tuple[Mapping[str, Any], int, str]] = [(root, -1, "")]
    while todo:
        here, parent, side = todo.pop()
        at = len(nodes)
        if parent >= 0:
            nodes[parent] = replace(nodes[parent], left=at) if side == "left" else replace(nodes[parent], right=at)
        if "split_feature" not in here:
            if here.get("leaf_features"):
                raise ModelError("leaves of LightGBM's linear_tree are not constant: train without it")
            nodes.append(Node(value=float(here["leaf_value"])))
            continue
        nodes.append(_lightgbm_split(here))
        todo += [(here["right_child"], at, "right"), (here["left_child"], at, "left")]
    return nodes


def _lightgbm_split(here: Mapping[str, Any]) -> Node:
    missing, feature = here.get("missing_type", "None"), int(here["split_feature"])
    if here["decision_type"] == "==":
        members = [int(word) for word in str(here["threshold"]).split("||")]
        if max(members) > 100_000 or min(members) < 0:
            raise ModelError("a category of LightGBM is outside 0 … 100000")
        flags = [code in set(members) for code in range(max(members) + 1)]
        return Node(feature, goes_left=flags)  # gaps and categories beyond the set go right, as LightGBM 4 has it
    if missing == "Zero":
        raise ModelError("LightGBM's zero_as_missing has no place in a sum of trees")
    threshold = float(here["threshold"])
    to_left = bool(here["default_left"]) if missing == "NaN" else threshold >= 0.0  # else NaN counts as 0
    return Node(feature, threshold, missing_left=to_left)


# ----------------------------------------------------------------------------------------------------- XGBoost


def _xgboost(saved: Mapping[str, Any]) -> TreeSum:
    learner = saved["learner"]
    name = learner["objective"]["name"]
    booster = learner["gradient_booster"]
    if booster.get("name") != "gbtree":
        raise ModelError(f"the booster {booster.get('name')!r} of XGBoost is not a sum of trees: only gbtree is")
    parameters = learner["learner_model_param"]
    classes = max(int(parameters.get("num_class", 0)), 1)
    base = np.array(np.atleast_1d(np.asarray(json.loads(str(parameters["base_score"])), dtype=np.float32)))
    if name in ("binary:logistic", "reg:logistic"):
        odds = np.float32(1.0) / base - np.float32(1.0)  # in singles as there; their logarithm is rounded correctly
        base = (-np.log(odds.astype(np.float64))).astype(np.float32)
    elif not name.startswith(_PLAIN_SCORES):
        raise ModelError(f"the objective {name!r} of XGBoost has a link of its own")
    model = booster["model"]
    trees = [_xgboost_tree(tree) for tree in model["trees"]]
    return TreeSum.of(
        trees, outputs=[int(k) for k in model["tree_info"]], base=np.broadcast_to(base, (classes,)).astype(np.float64),
        n_features=int(parameters["num_feature"]), single=True,
    )  # fmt: skip


def _xgboost_tree(tree: Mapping[str, Any]) -> list[Node]:
    if any(tree.get("split_type", ())):
        raise ModelError("XGBoost's splits of categories are not known here: encode them as numbers")
    left, right = tree["left_children"], tree["right_children"]
    values = np.asarray(tree["split_conditions"], dtype=np.float32)
    order = [0]
    for node in order:  # children after their parents
        if left[node] >= 0:
            order += [left[node], right[node]]
    at = {node: i for i, node in enumerate(order)}
    below = np.nextafter(values, np.float32(-np.inf))  # x < t is x ≤ the single before t
    return [
        Node(int(tree["split_indices"][n]), float(below[n]), at[left[n]], at[right[n]], bool(tree["default_left"][n]))
        if left[n] >= 0
        else Node(value=float(values[n]))
        for n in order
    ]


# ------------------------------------------------------------------------------------------------ scikit-learn


def _scikit_learn(model: Any) -> TreeSum:
    name = type(model).__name__
    if name.startswith("HistGradientBoosting"):
        return _hist_gradient(model)
    if name in ("GradientBoostingClassifier", "GradientBoostingRegressor"):
        return _gradient(model)
    if name in ("DecisionTreeRegressor", "ExtraTreeRegressor"):
        return _scikit_trees([[model]], 1.0, np.zeros(1), model.n_features_in_)
    if name in ("RandomForestRegressor", "ExtraTreesRegressor"):
        members = model.estimators_
        return _scikit_trees([[one] for one in members], 1.0 / len(members), np.zeros(1), model.n_features_in_)
    raise ModelError(
        f"{name} does not add up scores: use gg.conditionals.Predictor for it, or a boosted model for Boosted.of"
    )


def _gradient(model: Any) -> TreeSum:
    if not hasattr(model, "estimators_"):
        raise ModelError(f"this {type(model).__name__} has not been fitted")
    zero = np.zeros((2, model.n_features_in_), dtype=np.float32)
    zero[1] = 1.0
    base = np.asarray(model._raw_predict_init(zero), dtype=np.float64)
    if model.init_ != "zero" and "Dummy" not in type(model.init_).__name__:
        raise ModelError("an init estimator of GradientBoosting is not a constant: use init=None")
    if model.loss == "exponential":
        found = _scikit_trees(model.estimators_, model.learning_rate, base[0], model.n_features_in_)
        return found.scaled(2.0)  # half the log odds
    return _scikit_trees(model.estimators_, model.learning_rate, base[0], model.n_features_in_)


def _scikit_trees(rounds: Sequence[Sequence[Any]], factor: float, base: FloatArray, d: int) -> TreeSum:
    """CART trees of scikit-learn, whose inputs are singles; one per output and round."""
    trees, outputs = [], []
    for members in rounds:
        for k, one in enumerate(members):
            t = one.tree_
            gaps = getattr(t, "missing_go_to_left", np.zeros(t.node_count))
            trees.append([_cart_node(t, n, bool(gaps[n]), factor) for n in range(t.node_count)])
            outputs.append(k)
    return TreeSum.of(trees, outputs=outputs, base=base, n_features=d, single_inputs=True)


def _cart_node(t: Any, n: int, missing_left: bool, factor: float) -> Node:
    left, right = int(t.children_left[n]), int(t.children_right[n])
    if left < 0:
        return Node(value=factor * float(t.value[n, 0, 0]))
    return Node(int(t.feature[n]), _finite(t.threshold[n]), left, right, missing_left)  # ∞: only gaps go right


def _hist_node(n: Any) -> Node:
    if n["is_leaf"]:
        return Node(value=float(n["value"]))
    threshold = _finite(n["num_threshold"])
    return Node(int(n["feature_idx"]), threshold, int(n["left"]), int(n["right"]), bool(n["missing_go_to_left"]))


def _hist_gradient(model: Any) -> TreeSum:
    if not hasattr(model, "_predictors"):
        raise ModelError(f"this {type(model).__name__} has not been fitted")
    if getattr(model, "is_categorical_", None) is not None and np.any(model.is_categorical_):
        raise ModelError("categories of HistGradientBoosting are recoded inside it: encode them as numbers")
    if getattr(model, "loss", "") in ("poisson", "gamma"):
        raise ModelError(f"the loss {model.loss!r} of HistGradientBoosting has a link of its own")
    trees, outputs = [], []
    for members in model._predictors:
        for k, predictor in enumerate(members):
            trees.append([_hist_node(n) for n in predictor.nodes])
            outputs.append(k)
    base = np.asarray(model._baseline_prediction, dtype=np.float64).ravel()
    return TreeSum.of(trees, outputs=outputs, base=base, n_features=model.n_features_in_)


def _finite(threshold: Any) -> float:
    return float(np.clip(threshold, -np.finfo(np.float64).max, np.finfo(np.float64).max))
