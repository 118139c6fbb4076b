"""What the support vector machines are given: bad input, sparse matrices, frames, pipelines."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from gramgraph.estimators.svm import SVC, SVR, OneClassSVM
from gramgraph.exceptions import ModelError

MACHINES = [
    SVC(),
    SVC(nu=0.3),
    SVC(approx="nystrom", n_components=20, random_state=0),
    SVR(),
    SVR(nu=0.3),
    SVR(approx="features", n_components=40, random_state=0),
    OneClassSVM(),
    OneClassSVM(approx="nystrom", n_components=20, random_state=0),
]
every_machine = pytest.mark.parametrize("machine", MACHINES, ids=repr)


def target_of(machine: Any, X: Any) -> Any:
    first = np.asarray(X)[:, 0]
    return first**2 if isinstance(machine, SVR) else (first > np.median(first)).astype(int)


def answers(machine: Any, X: Any) -> Any:
    return machine.predict(X) if isinstance(machine, SVR) else machine.decision_function(X)


@pytest.fixture
def X(rng: np.random.Generator) -> Any:
    return rng.normal(size=(60, 3))


@every_machine
@pytest.mark.parametrize(("value", "word"), [(np.nan, "NaN"), (np.inf, "infinity")])
def test_holes_are_refused(machine: Any, X: Any, value: float, word: str) -> None:
    y, hole = target_of(machine, X), X.copy()
    hole[3, 1] = value
    with pytest.raises(ValueError, match=word):
        clone(machine).fit(hole, y)
    fitted = clone(machine).fit(X, y)
    with pytest.raises(ValueError, match=word):
        fitted.predict(hole)
    if isinstance(machine, SVR):
        y = y.copy()
        y[0] = value
        with pytest.raises(ValueError, match=word):
            clone(machine).fit(X, y)


@pytest.mark.parametrize("machine", MACHINES[:3], ids=repr)
def test_one_class_is_refused(machine: Any, X: Any) -> None:
    with pytest.raises(ModelError, match="at least two classes"):
        clone(machine).fit(X, np.ones(60))
    with pytest.raises(ModelError, match="at least two classes"):
        clone(machine).fit(X, target_of(machine, X), sample_weight=target_of(machine, X))
    with pytest.raises(ValueError, match="continuous"):
        clone(machine).fit(X, X[:, 0])


@every_machine
def test_constant_features(machine: Any, X: Any) -> None:
    y = target_of(machine, X)
    same = clone(machine).fit(np.ones((60, 3)), y)
    found = answers(same, np.ones((60, 3)))
    assert np.all(np.isfinite(found)) and np.ptp(found) < 1e-9  # equal points have equal answers
    # A constant column beside others moves nothing but the scale, and with a fixed gamma not even that.
    if getattr(machine, "approx", None) is None:
        plain, wide = clone(machine).set_params(gamma=0.5, tol=1e-8), clone(machine).set_params(gamma=0.5, tol=1e-8)
        a = answers(plain.fit(X, y), X)
        padded = np.column_stack([X, np.full(60, 7.0)])
        np.testing.assert_allclose(answers(wide.fit(padded, y), padded), a, atol=1e-5)


@every_machine
def test_one_point(machine: Any) -> None:
    if isinstance(machine, SVC):
        with pytest.raises(ModelError, match="at least two classes"):
            clone(machine).fit([[1.0, 2.0]], [1])
        return
    fitted = clone(machine).fit([[1.0, 2.0]], [2.5])
    found = fitted.predict([[1.0, 2.0], [30.0, 4.0]])
    if isinstance(machine, SVR):
        np.testing.assert_allclose(found, 2.5, atol=0.2)
    else:
        assert found[0] == 1


@every_machine
def test_two_points_and_no_points(machine: Any) -> None:
    fitted = clone(machine).fit([[0.0], [1.0]], [0, 1])
    assert np.all(np.isfinite(answers(fitted, [[0.0], [0.5], [1.0]])))
    with pytest.raises(ValueError, match="minimum of 1 is required"):
        clone(machine).fit(np.empty((0, 2)), [])
    with pytest.raises(ValueError, match="Reshape your data|2D"):
        clone(machine).fit(np.arange(4.0), [0, 1, 0, 1])


@every_machine
def test_duplicate_points(machine: Any, X: Any) -> None:
    doubled = np.repeat(X[:20], 3, axis=0)
    y = np.repeat(target_of(machine, X)[:20], 3)
    if isinstance(machine, SVC):
        y = np.repeat(np.arange(20) % 2, 3)
    found = answers(clone(machine).fit(doubled, y), doubled)
    assert np.all(np.isfinite(found))
    np.testing.assert_allclose(found[::3], found[1::3], atol=1e-12)
    if isinstance(machine, SVC):  # the same point on both sides: nobody can be right, nothing breaks
        both = np.concatenate([X, X])
        odd = clone(machine).fit(both, np.repeat([0, 1], 60))
        assert np.all(np.isfinite(odd.decision_function(X)))


@pytest.mark.parametrize("machine", [SVC("precomputed"), SVR("precomputed"), OneClassSVM("precomputed")], ids=repr)
def test_matrices_that_are_no_gram_matrix(machine: Any, X: Any) -> None:
    K, y = rbf_kernel(X), target_of(machine, X)
    with pytest.raises(ModelError, match=r"not positive semi-definite: an eigenvalue is .*Try:"):
        clone(machine).fit(K - 0.5 * np.eye(60), y)
    with pytest.raises(ModelError, match="square"):
        clone(machine).fit(K[:, :10], y)
    lopsided = K.copy()
    lopsided[0, 1] += 0.1
    with pytest.raises(ModelError, match="symmetric"):
        clone(machine).fit(lopsided, y)
    fitted = clone(machine).fit(K, y)
    with pytest.raises(ValueError, match="features"):
        fitted.predict(K[:, :10])
    direct = type(machine)("rbf", gamma=1 / 3).fit(X, y)
    np.testing.assert_allclose(answers(fitted, K), answers(direct, X), atol=2e-2)


@every_machine
def test_weights_that_cannot_be(machine: Any, X: Any) -> None:
    y = target_of(machine, X)
    for weight, word in ((np.zeros(60), "zero"), (-np.ones(60), "[Nn]egative"), (np.ones(7), "shape")):
        with pytest.raises(ValueError, match=word):
            clone(machine).fit(X, y, sample_weight=weight)


@every_machine
@pytest.mark.parametrize("make", [sparse.csr_matrix, sparse.csc_array, sparse.coo_array])
def test_sparse_matrices_are_their_dense_ones(machine: Any, X: Any, make: Any) -> None:
    X = np.where(np.abs(X) > 0.7, X, 0.0)
    y = target_of(machine, X)
    y = np.arange(60) % 2 if isinstance(machine, SVC) else y
    dense, thin = clone(machine).fit(X, y), clone(machine).fit(make(X), y)
    np.testing.assert_array_equal(answers(dense, X), answers(thin, make(X)))
    np.testing.assert_array_equal(answers(dense, X), answers(thin, X))
    if (machine.approx is not None and machine.nu is None) or (isinstance(machine, OneClassSVM) and machine.approx):
        parts = clone(machine).partial_fit(make(X), y).partial_fit(make(X), y)
        assert np.all(np.isfinite(answers(parts, make(X))))


@every_machine
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_are_their_matrices(machine: Any, X: Any, library: str) -> None:
    frames = pytest.importorskip(library)
    y = target_of(machine, X)
    frame, column = frames.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2]}), frames.Series(y)
    plain, framed = clone(machine).fit(X, y), clone(machine).fit(frame, column)
    np.testing.assert_array_equal(answers(plain, X), answers(framed, frame))
    assert list(framed.feature_names_in_) == ["a", "b", "c"]
    with pytest.raises(ValueError, match="feature names"):
        framed.predict(frame[["b", "a", "c"]])
    labels = frames.Series(["up" if v else "down" for v in target_of(SVC(), X)])
    if isinstance(machine, SVC):
        assert set(clone(machine).fit(frame, labels).predict(frame)) == {"up", "down"}


@pytest.mark.parametrize("machine", [SVC(), SVR(), OneClassSVM()], ids=repr)
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_pipelines_and_grids(machine: Any, X: Any, library: str) -> None:
    frames = pytest.importorskip(library)
    y = target_of(machine, X)
    frame = frames.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2]})
    pipeline = make_pipeline(StandardScaler().set_output(transform=library), clone(machine))
    name = type(machine).__name__.lower()
    grid = {f"{name}__gamma": [0.1, 0.5], f"{name}__approx": [None, "nystrom"]}
    scoring = (lambda model, Z, t=None: float(model.decision_function(Z).mean())) if name == "oneclasssvm" else None
    search = GridSearchCV(pipeline, grid, cv=3, scoring=scoring, error_score="raise").fit(frame, y)
    assert len(search.cv_results_["params"]) == 4 and np.isfinite(search.best_score_)
    np.testing.assert_array_equal(search.predict(frame), search.best_estimator_.predict(frame))
    if name != "oneclasssvm":
        assert len(cross_val_predict(pipeline, frame, y, cv=3)) == 60


@pytest.mark.parametrize("size", [1e12, 1e18, 1e150])
@pytest.mark.parametrize("nu", [None, 0.5])
def test_targets_of_any_size(size, nu):
    """In other units of y, C and ε the machine is the same; the tolerance never lies below rounding."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(40, 3))
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=40)
    small = SVR(C=10.0, epsilon=0.01, nu=nu, tol=1e-10).fit(X, y)
    large = SVR(C=10.0 * size, epsilon=0.01 * size, nu=nu, max_iter=1_000_000).fit(X, size * y)
    assert np.allclose(large.predict(X) / size, small.predict(X), atol=1e-8)
    assert np.array_equal(large.bound_support_, small.bound_support_)
    assert large.epsilon_ / size == pytest.approx(small.epsilon_, abs=1e-9)
    assert len(SVR(max_iter=1000).fit(X, size * y).bound_support_) == 40  # C = 1 is nothing beside y
