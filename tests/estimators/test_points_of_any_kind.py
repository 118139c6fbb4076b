"""Mixed frames by column names, words, sets, graphs and tuples of parts as points, in every kernel machine."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score

import gramgraph as gg
from gramgraph.estimators import (
    RVC,
    RVR,
    SVC,
    SVR,
    KernelKMeans,
    KernelNeighborsClassifier,
    KernelNeighborsRegressor,
    KernelPCA,
    KernelRidge,
    NadarayaWatson,
    OneClassSVM,
    svc_path,
)
from gramgraph.estimators.conditional_embedding import ConditionalEmbedding
from gramgraph.kernels import RBF, Delta, SetKernel, Spectrum, White

NAMED = RBF(0.7).on("age") * Delta().on("town") + 0.5 * RBF(2.0).on(["age", "pay"])
BY_NUMBER = RBF(0.7).on(0) * Delta().on(1) + 0.5 * RBF(2.0).on([0, 2])
MACHINES = [
    KernelRidge(0.1),
    KernelRidge("loo"),
    KernelRidge(0.1, approx="nystrom", n_components=15, random_state=0),
    KernelRidge(0.1, approx="nystrom", n_components=15, landmarks="leverage", random_state=0),
    NadarayaWatson(),
    KernelNeighborsRegressor(3),
    KernelNeighborsRegressor(3, weights="distance"),
    KernelNeighborsClassifier(3),
    KernelPCA(2),
    KernelPCA(2, solver="lanczos", random_state=0),
    KernelPCA(2, approx="nystrom", n_features=20, random_state=0),
    KernelKMeans(3, random_state=0),
    KernelKMeans(3, approx="nystrom", n_components=12, random_state=0),
    SVC(),
    SVC(nu=0.3),
    SVC(probability=True, random_state=0),
    SVC(approx="nystrom", n_components=20, random_state=0),
    SVR(),
    OneClassSVM(),
    RVR(),
    RVC(),
]
every_machine = pytest.mark.parametrize("machine", MACHINES, ids=repr)


def fields(rng: np.random.Generator, n: int = 40) -> dict[str, Any]:
    return {
        "age": rng.normal(size=n),
        "town": rng.choice(["Bonn", "Köln", "Ulm"], size=n).tolist(),
        "pay": rng.normal(size=n),
        "note": ["seen"] * n,
    }


def target(machine: Any, columns: dict[str, Any]) -> Any:
    signal = columns["age"] + np.array([len(town) for town in columns["town"]])
    return (
        np.where(signal > np.median(signal), "high", "low")
        if hasattr(machine, "predict_proba") or isinstance(machine, SVC | KernelNeighborsClassifier)
        else signal
    )


def answer(machine: Any, X: Any) -> Any:
    for name in ("transform", "decision_function", "predict"):
        if hasattr(machine, name):
            return np.asarray(getattr(machine, name)(X))
    raise AssertionError(machine)


def same(a: Any, b: Any) -> None:
    if np.asarray(a).dtype.kind in "fiub":
        np.testing.assert_allclose(a, b, rtol=1e-7, atol=1e-7)
    else:
        np.testing.assert_array_equal(a, b)


@every_machine
@pytest.mark.parametrize("library", [pd, pl], ids=["pandas", "polars"])
def test_columns_by_name_whatever_their_order(rng: np.random.Generator, machine: Any, library: Any) -> None:
    columns = fields(rng)
    frame = library.DataFrame(columns)
    matrix = np.array(list(zip(*(columns[name] for name in ("age", "town", "pay")), strict=True)), dtype=object)
    y = target(machine, columns)
    model = clone(machine).set_params(kernel=NAMED).fit(frame, y)
    found = answer(model, frame)
    same(found, answer(clone(machine).set_params(kernel=BY_NUMBER).fit(matrix, y), matrix))
    same(answer(model, frame[["pay", "note", "town", "age"]]), found)
    same(answer(model, frame[["town", "pay", "age"]]), found)  # nobody asked for the note
    with pytest.raises(ValueError, match="'town' is not a column of the data. Columns: age, pay"):
        answer(model, frame[["age", "pay"]])
    with pytest.raises(ValueError, match="'town' is not a column"):
        clone(machine).set_params(kernel=NAMED).fit(frame[["age", "pay"]], y)
    with pytest.raises(ValueError, match="by name, which needs a data frame"):
        answer(model, matrix)
    assert list(model.feature_names_in_) == ["age", "town", "pay", "note"]


@every_machine
@pytest.mark.parametrize("library", [pd, pl], ids=["pandas", "polars"])
@pytest.mark.parametrize("column", ["age", "town"])
def test_holes_in_the_columns_that_are_read_are_named(
    rng: np.random.Generator, machine: Any, library: Any, column: str
) -> None:
    columns = fields(rng)
    y = target(machine, columns)
    broken = {**columns, column: [None if i == 7 else v for i, v in enumerate(columns[column])]}
    model = clone(machine).set_params(kernel=NAMED)
    with pytest.raises(ValueError, match=f"column '{column}' holds .* in row 7"):
        model.fit(library.DataFrame(broken), y)
    model.fit(library.DataFrame(columns), y)
    with pytest.raises(ValueError, match=f"column '{column}' holds .* in row 7"):
        answer(model, library.DataFrame(broken))
    unread = {**columns, "note": [None] * len(y)}  # a column that nobody reads may hold anything
    same(answer(model, library.DataFrame(unread)), answer(model, library.DataFrame(columns)))


@every_machine
def test_words_and_sets_are_points(machine: Any) -> None:
    words = ["abba", "baab", "aabb", "cdcd", "ddcc", "cddc", "abab", "dcdc", "bbaa", "ccdd"] * 3
    sets = [set(word) | {word[0] * 2} for word in words]
    y = np.array([word[0] in "ab" for word in words])
    y = np.where(y, "left", "right") if target(machine, fields(np.random.default_rng(0))).dtype.kind == "U" else y * 2.0
    for kernel, points in ((Spectrum(2), words), (Spectrum(2), pd.Series(words)), (SetKernel(), sets)):
        model = clone(machine).set_params(kernel=kernel)
        found = answer(model.fit(points, y), points)
        assert len(found) == 30
        by_matrix = clone(machine).set_params(kernel="precomputed")
        if getattr(machine, "approx", None) is None and getattr(machine, "weights", "uniform") == "uniform":
            K = kernel.gram(list(points))
            wanted = answer(by_matrix.fit(K, y), K)
            if isinstance(machine, KernelPCA):  # equal points: which of them decides the sign is a matter of rounding
                found, wanted = np.abs(found), np.abs(wanted)
            same(found, wanted)


@every_machine
def test_frames_of_labels_are_rows_of_labels(rng: np.random.Generator, machine: Any) -> None:
    """A kernel of labels without columns of its own reads whole rows, of one column or several."""
    columns = fields(rng)
    y = target(machine, columns)
    kernel = Delta() + White(0.2)
    one = clone(machine).set_params(kernel=kernel).fit(pd.DataFrame({"town": columns["town"]}), y)
    same(
        answer(one, pd.DataFrame({"town": columns["town"]})),
        answer(clone(machine).set_params(kernel=kernel).fit(columns["town"], y), columns["town"]),
    )


@pytest.mark.parametrize("machine", [KernelRidge(0.1), SVR(), RVR(), KernelPCA(2), KernelKMeans(2, random_state=0)])
def test_parts_of_a_tensor_product(rng: np.random.Generator, machine: Any) -> None:
    """A tuple holds the parts of points, also where both parts are numbers and NumPy would see a matrix."""
    a, b = rng.normal(size=20), rng.normal(size=20)
    kernel = RBF(0.5).tensor(RBF(2.0))
    model = clone(machine).set_params(kernel=kernel).fit((a, b), a)
    flat = clone(machine).set_params(kernel=RBF(0.5).on(0) * RBF(2.0).on(1)).fit(np.column_stack([a, b]), a)
    same(answer(model, (a, b)), answer(flat, np.column_stack([a, b])))


def test_graphs_are_points() -> None:
    from gramgraph.kernels import Graph, RandomWalk

    ring = np.roll(np.eye(4), 1, axis=0) + np.roll(np.eye(4), -1, axis=0)
    line = np.diag(np.ones(3), 1) + np.diag(np.ones(3), -1)
    graphs, y = [Graph(ring), Graph(line)] * 6, [0, 1] * 6
    for machine in (SVC(RandomWalk(0.1).normalized(), C=1e4), KernelNeighborsClassifier(1, kernel=RandomWalk(0.1))):
        assert machine.fit(graphs, y).predict(graphs[:2]).tolist() == [0, 1]
    assert svc_path(graphs, y, RandomWalk(0.1).normalized(), [1e4], 3).scores.min() == 1.0


def test_lists_of_mixed_rows(rng: np.random.Generator) -> None:
    """Rows of numbers and words in a plain list: numbers stay numbers."""
    columns = fields(rng)
    rows = [list(row) for row in zip(columns["age"].tolist(), columns["town"], columns["pay"].tolist(), strict=True)]
    y = target(KernelRidge(), columns)
    found = KernelRidge(0.1, kernel=BY_NUMBER).fit(rows, y).predict(rows)
    same(found, KernelRidge(0.1, kernel=NAMED).fit(pd.DataFrame(columns), y).predict(pd.DataFrame(columns)))


@pytest.mark.parametrize("library", [pd, pl], ids=["pandas", "polars"])
def test_searches_over_mixed_frames(rng: np.random.Generator, library: Any) -> None:
    columns = fields(rng, 60)
    frame = library.DataFrame(columns)
    y = target(SVC(), columns)
    assert cross_val_score(SVC(NAMED, C=10.0), frame, y, cv=3).mean() > 0.6
    grid = {"kernel__terms__0__kernels__0__base__length_scale": [0.3, 3.0], "C": [1.0, 10.0]}
    known = SVC(NAMED).get_params()
    name = next(key for key in known if key.endswith("base__length_scale"))
    grid = {name: [0.3, 3.0], "C": [1.0, 10.0]}
    search = GridSearchCV(SVC(NAMED), grid, cv=3).fit(frame, y)
    assert search.best_estimator_.get_params()[name] == search.best_params_[name]
    path = svc_path(frame, y, NAMED, [1.0, 10.0], 3)
    hand = [cross_val_score(SVC(NAMED, C=C), frame, y, cv=3) for C in (1.0, 10.0)]
    np.testing.assert_allclose(path.scores[0], hand, atol=1e-12)
    np.testing.assert_allclose(SVC(NAMED).path(frame, y, [1.0, 10.0], cv=3).scores, path.scores)


def test_paths_of_words_and_sparse_rows() -> None:
    from scipy import sparse

    words = ["abba", "baab", "aabb", "cdcd", "ddcc", "cddc"] * 4
    y = [word[0] in "ab" for word in words]
    assert svc_path(words, y, Spectrum(2), [0.1, 10.0], 3).scores[0, 1].min() == 1.0
    X = np.random.default_rng(0).normal(size=(60, 5))
    X[np.abs(X) < 0.5] = 0.0
    label = (X[:, 0] * X[:, 1] > 0).astype(int)
    np.testing.assert_array_equal(
        svc_path(sparse.csr_matrix(X), label, None, [1.0, 10.0], 3).scores,
        svc_path(X, label, None, [1.0, 10.0], 3).scores,
    )


@pytest.mark.parametrize("library", [pd, pl], ids=["pandas", "polars"])
def test_embeddings_and_processes_read_the_same_frames(rng: np.random.Generator, library: Any) -> None:
    columns = fields(rng)
    frame, y = library.DataFrame(columns), columns["age"]
    other = frame[["pay", "note", "town", "age"]]
    model = ConditionalEmbedding(kernel_x=NAMED, reg=1e-3).fit(frame, y)
    same(model.predict(other), model.predict(frame))
    process = gg.GaussianProcessRegressor(NAMED, alpha=0.1, optimizer=None).fit(frame, y)
    same(process.predict(other), process.predict(frame))


def test_blocks_of_mixed_rows(rng: np.random.Generator) -> None:
    columns = fields(rng)
    frame = pd.DataFrame(columns)
    y = target(SVC(), columns)
    machine = SVC(NAMED, approx="nystrom", n_components=30, random_state=0)
    machine.partial_fit(frame[:25], y[:25], classes=["high", "low"]).partial_fit(frame[25:], y[25:])
    assert (machine.predict(frame) == y).mean() > 0.6
