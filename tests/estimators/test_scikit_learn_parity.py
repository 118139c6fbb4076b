"""What users of scikit-learn's kernel machines expect: the same names and numbers, kernels in grids and clones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn import svm as peer
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris, load_wine, make_classification
from sklearn.decomposition import KernelPCA as PeerPCA
from sklearn.kernel_ridge import KernelRidge as PeerRidge
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale

from gramgraph.estimators import (
    PCA,
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
from gramgraph.exceptions import ModelError
from gramgraph.kernels import RBF, Constant, KernelError, Linear, Matern, Polynomial, White
from tests.portions import first


def data(rng: np.random.Generator, n: int = 80) -> tuple[Any, Any]:
    X = rng.normal(size=(n, 4)) * [1.0, 3.0, 0.2, 1.0] + 2.0
    return X, (X[:, 0] + 0.3 * X[:, 1] > 2.6).astype(int)


# --- support vector machines --------------------------------------------------------------------------------------


@pytest.mark.parametrize("gamma", ["scale", "auto", 0.2])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix])
def test_gamma_is_theirs(rng: np.random.Generator, gamma: Any, weighted: bool, make: Any) -> None:
    """Also with weights, of which some are zero: their variance knows nothing of them."""
    X, y = data(rng)
    weight = rng.integers(0, 3, size=80).astype(float) if weighted else None
    for ours, theirs in ((SVC, peer.SVC), (SVR, peer.SVR)):
        mine = ours(gamma=gamma, tol=1e-8).fit(make(X), y, sample_weight=weight)
        other = theirs(gamma=gamma, tol=1e-8).fit(make(X), y, sample_weight=weight)
        assert mine.kernel_.gamma == pytest.approx(other._gamma, rel=1e-12)
        answer = "decision_function" if ours is SVC else "predict"
        np.testing.assert_allclose(getattr(mine, answer)(X), getattr(other, answer)(make(X)), atol=1e-5)


def test_constant_columns_have_a_gamma() -> None:
    X = np.full((6, 2), 0.1)  # whose variance in floating point is not 0
    assert SVC().fit(X, [0, 1] * 3).kernel_.gamma == 1.0


@pytest.mark.filterwarnings("ignore:.*not positive semi-definite")
@pytest.mark.parametrize("coef0", [0.0, -0.5])
def test_sigmoid_kernel_is_theirs(rng: np.random.Generator, coef0: float) -> None:
    X, y = data(rng)
    X = scale(X)
    options: dict[str, Any] = {"gamma": 0.05, "coef0": coef0, "tol": 1e-8}
    a = SVC("sigmoid", **options).fit(X, y).decision_function(X)
    np.testing.assert_allclose(a, peer.SVC(kernel="sigmoid", **options).fit(X, y).decision_function(X), atol=1e-5)
    b = SVR("sigmoid", **options).fit(X, X[:, 0]).predict(X)
    np.testing.assert_allclose(b, peer.SVR(kernel="sigmoid", **options).fit(X, X[:, 0]).predict(X), atol=1e-5)
    c = OneClassSVM("sigmoid", nu=0.3, **options).fit(X).decision_function(X)
    np.testing.assert_allclose(
        c, peer.OneClassSVM(kernel="sigmoid", nu=0.3, **options).fit(X).decision_function(X), atol=1e-5
    )
    with pytest.raises(ModelError, match="needs a positive definite kernel, which 'sigmoid' is not"):
        SVC("sigmoid", approx="nystrom").fit(X, y)
    with pytest.raises(ModelError, match="Did you mean 'sigmoid'"):
        SVC("sigmoidal").fit(X, y)


@pytest.mark.parametrize("break_ties", [False, True])
def test_ties_are_broken_as_theirs(break_ties: bool) -> None:
    """At a small C many votes are tied, and the two rules give different predictions."""
    X, y = load_digits(return_X_y=True)
    train, X = X[:400], X[400:]
    y = y[:400]
    options: dict[str, Any] = {"C": 0.2, "gamma": 1.0 / (64 * 10 * train.var()), "tol": 1e-6}
    mine = SVC(break_ties=break_ties, **options).fit(train, y)
    other = peer.SVC(break_ties=break_ties, **options).fit(train, y)
    assert np.count_nonzero(mine.predict(X) != other.predict(X)) <= 1
    tied = SVC(break_ties=not break_ties, **options).fit(train, y)
    assert np.count_nonzero(mine.predict(X) != tied.predict(X)) > 5
    if break_ties:
        np.testing.assert_array_equal(mine.predict(X), mine.classes_[mine.decision_function(X).argmax(axis=1)])
    with pytest.raises(ModelError, match="break_ties must be False"):
        SVC(break_ties=True, decision_function_shape="ovo").fit(train, y)


def same_scores(X: Any, y: Any, path: Any, search: Any, cv: Any, gammas: Any) -> None:
    sizes = np.array([len(test) for _, test in cv.split(X, y)])
    theirs = np.array([search.cv_results_[f"split{s}_test_score"] for s in range(len(sizes))]).T
    theirs = theirs.reshape(len(path.Cs), len(gammas), -1).transpose(1, 0, 2)
    flips = np.rint((path.scores - theirs) * sizes)
    assert np.abs(flips).max() <= 1 and np.count_nonzero(flips) <= 0.02 * flips.size
    assert path.best_score == pytest.approx(search.best_score_, abs=1e-12)
    assert path.best_C == search.best_params_["C"]


@pytest.mark.parametrize("name", ["wine", "iris", "digits", "mixed"])
def test_grids_have_their_scores(name: str) -> None:
    load = {"wine": load_wine, "iris": load_iris, "digits": load_digits}
    X, y = (
        make_classification(300, 20, n_informative=6, random_state=0)
        if name == "mixed"
        else load[name](return_X_y=True)
    )
    X, y = (X[:300], y[:300]) if name == "digits" else (scale(X), y)
    Cs, cv = np.logspace(-2, 3, 5), StratifiedKFold(4)
    gammas = list(np.logspace(-1.5, 1.0, 3) / (X.shape[1] * X.var()))
    search = GridSearchCV(peer.SVC(), {"C": Cs, "gamma": gammas}, cv=cv, refit=False).fit(X, y)
    same_scores(X, y, svc_path(X, y, None, Cs, cv, gamma=gammas), search, cv, gammas)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["digits", "mixed"])
def test_whole_grids_have_their_scores(name: str) -> None:
    """5 folds, 10 C, 5 γ: 250 machines, in which at most a few predictions on the very border differ."""
    mixed = name == "mixed"
    X, y = make_classification(2000, 20, n_informative=8, random_state=0) if mixed else load_digits(return_X_y=True)
    Cs, cv = np.logspace(-2, 3, 10), StratifiedKFold(5)
    gammas = list(np.logspace(-1.5, 1.0, 5) / (X.shape[1] * X.var()))
    search = GridSearchCV(peer.SVC(), {"C": Cs, "gamma": gammas}, cv=cv, refit=False).fit(X, y)
    path = svc_path(X, y, None, Cs, cv, gamma=gammas)
    same_scores(X, y, path, search, cv, gammas)
    assert path.best_gamma == search.best_params_["gamma"]


@pytest.mark.parametrize("class_weight", [None, "balanced"])
def test_what_depends_on_the_fold_is_taken_from_the_fold(class_weight: Any) -> None:
    """gamma="scale" and balanced class weights know nothing of held-out points."""
    X, y = make_classification(200, 8, weights=[0.7], shift=None, random_state=1)
    X[y == 1] *= 1.5
    Cs, cv = [0.1, 1.0, 10.0], StratifiedKFold(5)
    search = GridSearchCV(peer.SVC(class_weight=class_weight), {"C": Cs}, cv=cv, refit=False).fit(X, y)
    path = svc_path(X, y, None, Cs, cv, class_weight=class_weight)
    same_scores(X, y, path, search, cv, ["scale"])
    assert path.gammas[0] == pytest.approx(1.0 / (8 * X.var()))


# --- kernels as functions, in clones and in grids -----------------------------------------------------------------


def test_our_kernels_in_their_machines(rng: np.random.Generator) -> None:
    X, y = data(rng)
    k = 2.0 * RBF(1.5) + 0.5
    np.testing.assert_array_equal(k(X), k.gram(X))
    np.testing.assert_array_equal(k(X[:3], X), k.gram(X[:3], X))
    theirs = peer.SVC(kernel=k, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(theirs.decision_function(X), SVC(k, tol=1e-8).fit(X, y).decision_function(X), atol=1e-5)
    assert clone(theirs).kernel is k
    search = GridSearchCV(peer.SVC(), {"kernel": [RBF(0.1), RBF(3.0)]}, cv=3).fit(X, y)
    assert search.best_params_["kernel"] in (RBF(0.1), RBF(3.0))
    with pytest.raises(KernelError, match="is a value and does not change. Try:"):
        peer.SVC(kernel=k).set_params(kernel__terms__0__base__length_scale=3.0)


MACHINES = [
    KernelRidge(), NadarayaWatson(), KernelNeighborsRegressor(), KernelNeighborsClassifier(), KernelPCA(2),
    KernelKMeans(2, random_state=0), SVC(), SVR(), OneClassSVM(), RVR(), RVC(),
]  # fmt: skip


@pytest.mark.parametrize("machine", MACHINES, ids=repr)
def test_kernel_parameters_by_name(rng: np.random.Generator, machine: Any) -> None:
    X, y = data(rng)
    k = 2.0 * Matern(nu=1.5, length_scale=0.8) + White(0.1)
    model = clone(machine).set_params(kernel=k)
    assert model.get_params()["kernel__terms__0__base__length_scale"] == 0.8
    other = clone(model)
    assert other.kernel is k
    other.set_params(kernel__terms__0__base__length_scale=3.0, kernel__terms__1__variance=0.5)
    assert other.kernel == 2.0 * Matern(nu=1.5, length_scale=3.0) + White(0.5)
    assert k == model.kernel and k.terms[0].base.length_scale == 0.8  # the value that others hold is what it was
    assert other.set_params(kernel=RBF(), kernel__length_scale=7.0).kernel == RBF(7.0)
    with pytest.raises(ValueError, match="Did you mean 'length_scale'"):
        other.set_params(kernel__lengthscale=2.0)
    with pytest.raises(ValueError, match="names a field of a kernel value"):
        clone(machine).set_params(kernel="linear", kernel__length_scale=2.0)
    assert "RBF" in repr(other) and other._repr_html_()
    scoring = (
        None if hasattr(machine, "score") else (lambda fitted, Z, t=None: float(np.ptp(fitted.fit(Z).n_features_in_)))
    )
    grid = {"step__kernel__length_scale": [0.5, 2.0]}
    pipeline = make_pipeline(StandardScaler(), other).set_params()
    grid = {f"{pipeline.steps[-1][0]}__kernel__length_scale": [0.5, 2.0]}
    search = GridSearchCV(pipeline, grid, cv=3, scoring=scoring, error_score="raise").fit(X, y)
    chosen = next(iter(search.best_params_.values()))
    assert search.best_estimator_[-1].kernel == RBF(chosen)


def test_params_of_values() -> None:
    k = (RBF(2.0).on("a") * Linear().on("b") + 3.0) ** 2
    for name, value in k.get_params().items():
        assert k.with_params(**{name: value}) == k
    assert set(RBF().get_params(deep=False)) == {"length_scale", "fixed", "limits"}
    assert (RBF() + Constant(2.0)).with_params(terms__1=White(0.1)) == RBF() + White(0.1)
    assert clone(k) is k and RBF().set_params() == RBF()
    with pytest.raises(ModelError, match="is not a parameter of the kernel"):
        k.with_params(width=2.0)


# --- sparse rows --------------------------------------------------------------------------------------------------

NAMES: list[Any] = [
    "rbf", "linear", "poly", "sigmoid", RBF(1.3), RBF([0.5, 1.0, 2.0, 3.0]), Linear(), Polynomial(2), Matern(nu=1.5),
    RBF() + Linear(), RBF(0.7).on([0, 2]), lambda A, B: A @ B.T,
]  # fmt: skip


def sparse_data(rng: np.random.Generator) -> tuple[Any, Any]:
    X = rng.normal(size=(50, 4))
    X[np.abs(X) < 0.6] = 0.0
    return X, X[:, 0] - X[:, 1] ** 2


@pytest.mark.parametrize("kernel", NAMES, ids=lambda kernel: getattr(kernel, "__name__", str(kernel)))
@pytest.mark.parametrize("make", first(1, [sparse.csr_matrix, sparse.csc_array]))
def test_sparse_rows_are_their_dense_ones(rng: np.random.Generator, kernel: Any, make: Any) -> None:
    X, y = sparse_data(rng)
    label = (y > np.median(y)).astype(int)
    machines = [KernelRidge(5.0), KernelNeighborsRegressor(3), KernelNeighborsClassifier(3), RVR(), RVC()]
    if kernel != "sigmoid":
        machines += [KernelPCA(2), KernelPCA(2, solver="lanczos", random_state=0), KernelKMeans(2, random_state=0)]
    else:
        machines = machines[1:3]  # negative eigenvalues: the others say so
    for machine in machines:
        t = label if hasattr(machine, "predict_proba") else y
        ask = "transform" if isinstance(machine, KernelPCA) else "predict"
        plain = clone(machine).set_params(kernel=kernel).fit(X, t)
        thin = clone(machine).set_params(kernel=kernel).fit(make(X), t)
        expected = getattr(plain, ask)(X)
        np.testing.assert_allclose(getattr(thin, ask)(make(X)), expected, rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(getattr(thin, ask)(X), expected, rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(getattr(plain, ask)(make(X)), expected, rtol=1e-6, atol=1e-8)


def test_sparse_rows_agree_with_theirs(rng: np.random.Generator) -> None:
    X, y = sparse_data(rng)
    S = sparse.csr_matrix(X)
    theirs = PeerRidge(alpha=0.3, kernel="poly", degree=2, gamma=0.5, coef0=1).fit(S, y).predict(S)
    ours = KernelRidge(0.3, kernel="poly", degree=2, gamma=0.5, coef0=1.0).fit(S, y)
    np.testing.assert_allclose(ours.predict(S), theirs, rtol=1e-8)
    assert sparse.issparse(ours.X_fit_)
    pca = PeerPCA(2, kernel="rbf", gamma=0.2).fit_transform(S)
    np.testing.assert_allclose(np.abs(KernelPCA(2, gamma=0.2).fit_transform(S)), np.abs(pca), atol=1e-7)


@pytest.mark.parametrize("approx", ["nystrom", "features"])
def test_sparse_rows_with_features_and_blocks(rng: np.random.Generator, approx: str) -> None:
    X, y = sparse_data(rng)
    S = sparse.csr_matrix(X)
    for machine, ask in (
        (KernelRidge(0.1, approx=approx, n_components=20, random_state=0), "predict"),
        (KernelPCA(2, approx=approx, n_features=20, random_state=0), "transform"),
    ):
        a, b = clone(machine).fit(X, y), clone(machine).fit(S, y)
        np.testing.assert_allclose(getattr(b, ask)(S), getattr(a, ask)(X), atol=1e-9)
        blocks = clone(machine).partial_fit(S, y).partial_fit(S, y)
        assert np.isfinite(getattr(blocks, ask)(S)).all()


def test_wide_sparse_rows_stay_sparse(rng: np.random.Generator) -> None:
    """300 rows of 200,000 columns are 480 MB as a dense matrix: kernels of products read them as they are."""
    import tracemalloc

    at = np.repeat(np.arange(300), 20), rng.integers(200_000, size=6000)
    S = sparse.csr_matrix((rng.normal(size=6000), at), shape=(300, 200_000))
    y = np.asarray(S[:, :100].sum(axis=1)).ravel()
    KernelPCA(2).fit(np.eye(5)), KernelRidge().fit(np.eye(5), np.ones(5))  # what is loaded once does not count
    tracemalloc.start()
    for kernel in ("rbf", "linear", "poly"):
        assert np.isfinite(KernelRidge(1.0, kernel=kernel).fit(S, y).predict(S)).all()
        assert KernelPCA(2, kernel=kernel).fit_transform(S).shape == (300, 2)
        assert KernelNeighborsRegressor(3, kernel=kernel).fit(S, y).predict(S).shape == (300,)
        assert KernelKMeans(2, kernel=kernel, random_state=0).fit(S).labels_.shape == (300,)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100e6


def test_sparse_pca_and_who_refuses(rng: np.random.Generator) -> None:
    X, y = sparse_data(rng)
    S = sparse.csr_matrix(X)
    np.testing.assert_allclose(PCA(2).fit(S).transform(S), PCA(2).fit(X).transform(X))
    with pytest.raises(TypeError, match="[Ss]parse"):
        NadarayaWatson().fit(S, y)
    assert KernelPCA(2, pre_image="ridge").fit(S).inverse_transform(KernelPCA(2).fit_transform(S)).shape == X.shape


def test_the_cosine_kernel():
    """Angles between rows, also of sparse matrices."""
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(40, 3)), rng.normal(size=(5, 3))
    y = X[:, 0]
    theirs = PeerRidge(alpha=0.1, kernel="cosine").fit(X, y).predict(Z)
    for rows in (X, sparse.csr_array(X)):
        assert KernelRidge(alpha=0.1, kernel="cosine").fit(rows, y).predict(Z) == pytest.approx(theirs, abs=1e-10)
    found = KernelPCA(2, kernel="cosine").fit_transform(X)
    assert np.abs(found) == pytest.approx(np.abs(PeerPCA(2, kernel="cosine").fit_transform(X)), abs=1e-8)
