"""The native container: every model there and back bit by bit, and nothing but a ParseError for a damaged file."""

from __future__ import annotations

import hashlib
import inspect
import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gramgraph as gg
from fuzz.saved import EXAMPLES, example, probe
from gramgraph import _container, embeddings, estimators, sequences
from gramgraph._container import pack, unpack
from gramgraph._numerics import compiling
from gramgraph.embeddings.network import files
from gramgraph.exceptions import ModelError, ParseError
from gramgraph.io import container, sequence_files, values

#: Public classes without a saved form, and why.
WITHOUT = {
    "BayesFilter": "the belief of a stream: its `state` is plain values",
    "CubatureKalmanFilter": "made of functions",
    "ExtendedKalmanFilter": "made of functions",
    "HMMFilter": "the belief of a stream: its `state` is plain values",
    "ParticleFilter": "made of functions",
    "UnscentedKalmanFilter": "made of functions",
    "Posteriors": "an answer",
    "StateChoice": "an answer",
    "Level": "a piece, saved with its model",
    "Regression": "a piece, saved with its model",
    "Season": "a piece, saved with its model",
    "Trend": "a piece, saved with its model",
    "Anchors": "a step on the way to an embedding",
    "ConditionalOperator": "saved with ConditionalEmbedding",
    "CovarianceOperator": "an answer",
    "Dependence": "an answer",
    "DensityRatio": "an answer",
    "FeatureCovariance": "the state of a stream",
    "GridAnswer": "an answer",
    "JointBelief": "an answer",
    "KernelPotential": "a piece of its network",
    "KernelTest": "an answer",
    "LineBelief": "an answer",
    "Operator": "an answer",
    "OperatorTree": "made of samples",
    "PrunedTree": "a tree of scikit-learn; gg.Boosted.of and TreeTable.fit hold trees as numbers",
    "PrunedTreeRegressor": "a tree of scikit-learn",
    "TensorOperator": "an answer",
}


def public() -> dict[str, type]:
    """Public classes of the packages that learn."""
    found = {name: getattr(m, name) for m in (estimators, sequences, embeddings) for name in m.__all__}
    return {name: value for name, value in found.items() if inspect.isclass(value)}


def test_every_public_model_has_a_saved_form() -> None:
    """A new estimator or model of sequences needs a line in a table of classes, or a reason above."""
    held = {name for name, cls in public().items() if values.names(cls)}
    held |= {*sequence_files.CLASSES, "DynamicBayesianNetwork", "LinearChainCRF", *files.CLASSES}
    assert set(public()) - held <= set(WITHOUT)


@pytest.mark.slow
def test_every_public_model_has_an_example() -> None:
    assert set(public()) - {type(example(name)).__name__ for name in EXAMPLES} == set(WITHOUT)


@pytest.mark.parametrize("name", EXAMPLES)
def test_there_and_back(name: str, tmp_path: Path) -> None:
    model = example(name)
    _damaged(name, container.dumps(model))
    for suffix in (".gg", ".gg.gz", ".json"):
        gg.write(model, tmp_path / f"model{suffix}")
        again = gg.read(tmp_path / f"model{suffix}")
        assert type(again).__name__ in (type(model).__name__, "BayesianNetwork")
        with compiling.tier("plain"):  # bits are compared: both by the same loops
            assert probe(again) == probe(model)


def _damaged(name: str, data: bytes) -> None:
    """Any flipped byte, any cut is noticed."""
    rng = random.Random(name)
    for _ in range(20):
        at, bit = rng.randrange(len(data)), 1 << rng.randrange(8)
        with pytest.raises(ParseError):
            container.loads(data[:at] + bytes([data[at] ^ bit]) + data[at + 1 :])
    for cut in (0, 1, len(data) // 2, len(data) - 1):
        with pytest.raises(ParseError):
            container.loads(data[:cut])
    with pytest.raises(ParseError, match="something was added"):
        container.loads(data + b"\0")


def test_estimators_keep_their_parameters_and_attributes() -> None:
    model = gg.SVC(C=2.0, kernel=gg.kernels.RBF(0.5), random_state=np.random.default_rng(0))
    rng = np.random.default_rng(1)
    X = rng.normal(size=(20, 2))
    model.fit(X, X[:, 0] > 0)
    again = container.loads(container.dumps(model))
    assert again.get_params()["C"] == 2.0 and again.kernel == model.kernel and again.random_state is None
    assert set(vars(again)) == set(vars(model))
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    assert not np.shares_memory(again.support_vectors_, model.support_vectors_)


def test_what_has_no_place_in_a_file_is_said() -> None:
    X = np.arange(6.0)[:, None]
    with pytest.raises(ModelError, match="function, which has no place in a file"):
        container.dumps(gg.KernelRidge(kernel=lambda A, B: A @ B.T).fit(X, X[:, 0]))
    with pytest.raises(ModelError, match="no place in a file"):
        container.dumps(object())
    model = gg.estimators.PCA().fit(np.random.default_rng(0).normal(size=(10, 2)))
    model.mean_[0] = np.nan
    with pytest.raises(ModelError, match="mean_ of PCA holds NaN"):
        container.dumps(model)


def sealed(data: bytes, change: Any) -> bytes:
    """The container after a change of its tree or arrays, under a new checksum: only the content is wrong."""
    content = unpack(data)
    tree, arrays = json.loads(json.dumps(content.value)), dict(content.arrays)
    change(tree, arrays)
    return pack(content.kind, tree, arrays)


def _named(tree: Any, name: str) -> str:
    """The array of an attribute."""
    return str(tree["fields"][name]["array"])


def _set(name: str, change: Any) -> Any:
    def changed(tree: Any, arrays: Any) -> None:
        key = _named(tree, name)
        arrays[key] = change(arrays[key])

    return changed


def _nan(array: Any) -> Any:
    out = array.copy()
    out.flat[0] = np.nan
    return out


def _skewed(array: Any) -> Any:
    out = array.copy()
    out[0, 1] += 1.0
    return out


@pytest.mark.parametrize(
    "name, change",
    [
        ("estimator-pca", _set("mean_", _nan)),
        ("estimator-pca", _set("components_", lambda a: a[:, :1])),
        ("estimator-pca", _set("components_", lambda a: a.ravel())),
        ("estimator-graphical_lasso", _set("precision_", _skewed)),
        ("estimator-graphical_lasso", _set("covariance_", lambda a: -a)),
        ("estimator-kernel_neighbors", _set("_codes", lambda a: a + 5)),
        ("estimator-kernel_ridge", _set("dual_coef_", lambda a: a[1:])),
        ("estimator-kernel_pca", _set("X_fit_", lambda a: a[:, :1])),
        ("estimator-svc", _set("support_vectors_", lambda a: a[1:])),
        ("estimator-svr", _set("_weights", _nan)),
        ("estimator-pca", lambda tree, arrays: tree.update({"is": "os.system"})),
        ("estimator-pca", lambda tree, arrays: tree.update({"is": "estimators.pca.np"})),
        ("estimator-pca", lambda tree, arrays: tree["fields"].update({"fit": 3})),
        ("estimator-pca", lambda tree, arrays: tree["fields"].update({"__class__": 3})),
        ("estimator-pca", lambda tree, arrays: tree["parameters"].update({"components": 3})),
        ("estimator-pca", lambda tree, arrays: arrays.pop(_named(tree, "mean_"))),
        ("kernel-sum", lambda tree, arrays: tree["fields"].update({"fixed": 3})),
        ("kernel_tree", lambda tree, arrays: tree.update({"rows": "many"})),
        ("linear_chain_crf", lambda tree, arrays: tree.update({"labels": ["D"]})),
        ("linear_chain_crf", lambda tree, arrays: arrays.update({"transitions": arrays["transitions"] * np.nan})),
        ("linear_chain_crf", lambda tree, arrays: tree.update({"plain": {"cat": 10**9}})),
    ],
)
def test_a_file_under_a_good_checksum_is_looked_at_all_the_same(name: str, change: Any) -> None:
    data = container.dumps(example(name))
    with pytest.raises(ParseError):
        container.loads(sealed(data, change))


def test_sizes_are_compared_before_anything_is_made() -> None:
    tree = b'{"arrays":[{"name":"x","dtype":"<f8","shape":[1000000000,1000],"order":"C"}],"value":null}'
    start = b"gramgraph-container 1 value %d 0 " % len(tree)
    data = start + hashlib.sha256(start + tree).hexdigest().encode() + b"\n" + tree
    with pytest.raises(ParseError, match="claims 8000000000000 bytes"):
        container.loads(data)
    with pytest.raises(ParseError, match="cut off"):
        container.loads(b"gramgraph-container 1 value 999999999999999 0 " + b"0" * 64 + b"\n")
    with pytest.raises(ParseError, match="version 2"):
        container.loads(b"gramgraph-container 2 value 0 0 " + b"0" * 64 + b"\n")
    with pytest.raises(ParseError, match="not a model of gramgraph"):
        container.loads(b"PK\3\4")
    with pytest.raises(ParseError, match="kind 'valeu' is not known.*Did you mean 'value'"):
        container.loads(pack("valeu", None, {}))


def test_arrays_keep_type_order_and_bits() -> None:
    arrays = {
        "f": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        "s": np.array(["ä", "bc"]),
        "b": np.array([True, False]),
        "big": np.arange(3, dtype=">i4"),
        "none": np.empty((0, 3), dtype=np.float32),
        "one": np.array(2.5),
    }
    found = _container.unpack(pack("example", {"x": [1, None, "ü"]}, arrays)).arrays
    for name, array in arrays.items():
        np.testing.assert_array_equal(found[name], array)
        assert found[name].dtype == array.dtype.newbyteorder("=") and found[name].flags.writeable
    assert found["f"].flags.f_contiguous
    with pytest.raises(ModelError, match="type object"):
        pack("example", None, {"o": np.array([None])})


def test_classes_are_looked_up_never_imported() -> None:
    assert values.find_class("kernels.stationary.RBF", "<test>") is gg.kernels.RBF
    for name in (
        "os.path",
        "kernels.stationary.np",
        "kernels.base.Kernel",
        "estimators.svm.choose_kernel",
        3,
        None,
        "",
        "RBF",
    ):
        with pytest.raises(ParseError, match="not a class of saved models"):
            values.find_class(name, "<test>")
