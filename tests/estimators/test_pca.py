"""Principal components, plain and in a kernel's space."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn import decomposition
from sklearn.datasets import load_digits, make_circles
from sklearn.linear_model import LogisticRegression

from gramgraph import kernels
from gramgraph.estimators import PCA, KernelPCA
from gramgraph.exceptions import ModelError
from gramgraph.machines.kernels import resolve_kernel
from gramgraph.machines.spectrum import HalfGram, smallest_ritz_value, top_eigenpairs


@pytest.mark.parametrize("shape", [(60, 5), (8, 30)])
@pytest.mark.parametrize("whiten", [False, True])
def test_pca_agrees_with_scikit_learn(rng: np.random.Generator, shape: tuple[int, int], whiten: bool) -> None:
    X = rng.normal(size=shape) @ np.diag(rng.uniform(0.5, 3.0, size=shape[1]))
    ours, theirs = PCA(4, whiten=whiten).fit(X), decomposition.PCA(4, whiten=whiten, svd_solver="full").fit(X)
    np.testing.assert_allclose(ours.explained_variance_, theirs.explained_variance_, rtol=1e-10)
    np.testing.assert_allclose(ours.explained_variance_ratio_, theirs.explained_variance_ratio_, rtol=1e-10)
    np.testing.assert_allclose(ours.singular_values_, theirs.singular_values_, rtol=1e-10)
    assert ours.noise_variance_ == pytest.approx(theirs.noise_variance_, rel=1e-9)
    np.testing.assert_allclose(ours.transform(X), theirs.transform(X), atol=1e-9)
    np.testing.assert_allclose(ours.inverse_transform(ours.transform(X)), theirs.inverse_transform(theirs.transform(X)))


def test_digits_as_eigenimages() -> None:
    """64 pixels: few components explain most of the variance, and reconstruction gets better with each."""
    X = load_digits().data
    model = PCA(0.9).fit(X)
    assert model.n_components_ == decomposition.PCA(0.9, svd_solver="full").fit(X).n_components_
    assert model.explained_variance_ratio_.sum() >= 0.9
    errors = []
    for k in (2, 10, 30):
        part = PCA(k).fit(X)
        errors.append(((X - part.inverse_transform(part.transform(X))) ** 2).sum() / (len(X) - 1))
        # what is lost is the variance of the components left out
        assert errors[-1] == pytest.approx(PCA().fit(X).explained_variance_[k:].sum(), rel=1e-8)
    assert errors[0] > 2 * errors[1] > 4 * errors[2]


def test_linear_kernel_pca_is_pca(rng: np.random.Generator) -> None:
    X, new = rng.normal(size=(50, 4)) + 3.0, rng.normal(size=(6, 4))
    plain, dual = PCA(3).fit(X), KernelPCA(3, kernel="linear").fit(X)
    np.testing.assert_allclose(np.abs(dual.transform(new)), np.abs(plain.transform(new)), atol=1e-9)
    np.testing.assert_allclose(dual.explained_variance_, plain.explained_variance_, rtol=1e-9)
    np.testing.assert_allclose(dual.explained_variance_ratio_, plain.explained_variance_ratio_, rtol=1e-9)


@pytest.mark.parametrize("solver", ["dense", "lanczos"])
def test_agrees_with_scikit_learn(rng: np.random.Generator, solver: str) -> None:
    X, new = rng.normal(size=(120, 3)), rng.normal(size=(7, 3))
    ours = KernelPCA(5, gamma=0.4, solver=solver, random_state=0).fit(X)
    theirs = decomposition.KernelPCA(5, kernel="rbf", gamma=0.4, eigen_solver="dense").fit(X)
    np.testing.assert_allclose(ours.eigenvalues_, theirs.eigenvalues_, rtol=1e-9)
    np.testing.assert_allclose(ours.transform(new), theirs.transform(new), atol=1e-7)
    np.testing.assert_allclose(ours.fit_transform(X), theirs.fit_transform(X), atol=1e-7)
    np.testing.assert_allclose(ours.transform(X), ours.fit_transform(X), atol=1e-9)


def test_new_points_are_centered_with_the_mean_of_the_training_features(rng: np.random.Generator) -> None:
    """(xᵀx′ + 1)² has features that can be written down: projections are those of plain PCA on them."""

    def phi(X: np.ndarray) -> np.ndarray:
        a, b = X.T
        return np.stack([np.ones_like(a), 2**0.5 * a, 2**0.5 * b, a * a, b * b, 2**0.5 * a * b], axis=1)

    X, new = rng.normal(size=(40, 2)), rng.normal(size=(5, 2))
    model = KernelPCA(3, kernel="poly", gamma=1.0, degree=2, coef0=1.0).fit(X)
    plain = PCA(3).fit(phi(X))
    np.testing.assert_allclose(np.abs(model.transform(new)), np.abs(plain.transform(phi(new))), atol=1e-8)


def test_rings_come_apart() -> None:
    X, y = make_circles(300, factor=0.3, noise=0.05, random_state=0)
    flat = LogisticRegression().fit(PCA(2).fit_transform(X), y).score(X, y)
    Z = KernelPCA(2, gamma=10.0 / 4).fit_transform(X)
    assert flat < 0.7
    assert LogisticRegression(C=100.0).fit(Z, y).score(Z, y) == 1.0


def test_lanczos_finds_the_top(rng: np.random.Generator) -> None:
    Q = np.linalg.qr(rng.normal(size=(300, 300)))[0]
    values = 1.0 / np.arange(1, 301) ** 1.5
    A = (Q * values) @ Q.T
    found = top_eigenpairs(lambda v: A @ v, 300, 6, random_state=0)
    assert found is not None
    np.testing.assert_allclose(found[0], values[:6], rtol=1e-12)
    np.testing.assert_allclose(np.abs(found[1].T @ Q[:, :6]), np.eye(6), atol=1e-8)


def test_the_smallest_ritz_value_bounds_from_above_and_finds_what_is_far(rng: np.random.Generator) -> None:
    Q = np.linalg.qr(rng.normal(size=(300, 300)))[0]
    values = np.concatenate([[-0.2], 1.0 / np.arange(1, 300)])
    A = (Q * values) @ Q.T
    found = smallest_ritz_value(lambda v: A @ v, 300, random_state=0)
    assert -0.2 - 1e-12 <= found < -0.19
    assert smallest_ritz_value(lambda v: 0.0 * v, 5) == pytest.approx(0.0)
    assert smallest_ritz_value(lambda v: 2.0 * v, 1) == pytest.approx(2.0)


def test_half_a_gram_matrix_is_enough_and_noise_stays_on_its_diagonal(rng: np.random.Generator) -> None:
    X = rng.normal(size=(300, 2))  # more than one block of rows
    k = kernels.RBF(0.7) + kernels.White(0.3)
    half = HalfGram.of(resolve_kernel(k), X)
    v = rng.normal(size=300)
    np.testing.assert_allclose(half.matvec(v), k.gram(X) @ v, atol=1e-9)
    bound = 7.3e-12 * (np.abs(k.gram(X)) @ np.abs(v)) + 1e-13  # six bytes an entry
    assert (np.abs(half.matvec(v) - k.gram(X) @ v) <= bound).all()
    assert half.trace() == pytest.approx(np.trace(k.gram(X)))
    assert half.high.nbytes + half.low.nbytes == 6 * 300 * 301 // 2
    few, all_ = (KernelPCA(4, kernel=k, solver=solver, random_state=0).fit(X) for solver in ("lanczos", "dense"))
    np.testing.assert_allclose(few.eigenvalues_, all_.eigenvalues_, rtol=1e-10)
    np.testing.assert_allclose(few.explained_variance_ratio_, all_.explained_variance_ratio_, rtol=1e-10)


def test_components_of_features_for_large_n(rng: np.random.Generator) -> None:
    X, new = rng.normal(size=(200, 3)), rng.normal(size=(9, 3))
    exact = KernelPCA(4, gamma=0.2).fit(X)
    full = KernelPCA(4, gamma=0.2, approx="nystrom", n_features=200, random_state=0).fit(X)
    np.testing.assert_allclose(full.eigenvalues_, exact.eigenvalues_, rtol=1e-8)
    np.testing.assert_allclose(np.abs(full.transform(new)), np.abs(exact.transform(new)), atol=1e-6)
    np.testing.assert_allclose(full.explained_variance_ratio_, exact.explained_variance_ratio_, rtol=1e-8)
    few = KernelPCA(4, gamma=0.2, approx="nystrom", n_features=80, random_state=0, n_jobs=2)
    assert np.abs(few.fit_transform(X)).shape == (200, 4)
    assert (few.eigenvalues_ <= exact.eigenvalues_ * (1 + 1e-12)).all()  # the approximation stays below the kernel
    assert (few.eigenvalues_ > 0.98 * exact.eigenvalues_).all()
    blocks = KernelPCA(4, gamma=0.2, approx="nystrom", landmarks=few.features_.landmarks)
    for i in range(0, 200, 60):
        blocks.partial_fit(X[i : i + 60])
    np.testing.assert_allclose(blocks.transform(new), few.transform(new), atol=1e-8)
    random = KernelPCA(2, gamma=0.2, approx="features", n_features=2000, random_state=0).fit(X)
    np.testing.assert_allclose(random.eigenvalues_, exact.eigenvalues_[:2], rtol=0.1)
    with pytest.raises(AttributeError, match="partial_fit"):
        KernelPCA(2).partial_fit(X)
    with pytest.raises(ModelError, match="pre_image='ridge' needs the training points"):
        KernelPCA(2, approx="nystrom", pre_image="ridge").fit(X)


def test_ridge_pre_images_lead_new_points_back(rng: np.random.Generator) -> None:
    X, new = rng.uniform(-1, 1, size=(200, 2)), rng.uniform(-0.9, 0.9, size=(30, 2))
    model = KernelPCA(8, gamma=0.5, pre_image="ridge").fit(X)
    assert np.abs(model.inverse_transform(model.transform(new)) - new).max() < 0.02


def test_fixed_point_pre_images_take_noise_away(rng: np.random.Generator) -> None:
    angle = rng.uniform(0, 2 * np.pi, size=200)
    clean = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    noisy = clean + 0.1 * rng.normal(size=clean.shape)
    model = KernelPCA(4, gamma=0.5, pre_image="fixed_point").fit(noisy)
    back = model.inverse_transform(model.transform(noisy))

    def off(P: np.ndarray) -> float:
        return float(np.abs(np.linalg.norm(P, axis=1) - 1.0).mean())

    assert off(back) < 0.6 * off(noisy)
    assert np.linalg.norm(back - clean, axis=1).mean() < 0.15


def test_fixed_point_with_all_components_gives_the_points_back(rng: np.random.Generator) -> None:
    X = rng.normal(size=(20, 2))
    model = KernelPCA(gamma=0.5, pre_image="fixed_point").fit(X)
    np.testing.assert_allclose(model.inverse_transform(model.transform(X)), X, atol=1e-4)


def test_names_and_frames(rng: np.random.Generator) -> None:
    frame = pd.DataFrame(rng.normal(size=(30, 3)), columns=["a", "b", "c"])
    out = KernelPCA(2).set_output(transform="pandas").fit_transform(frame)
    assert list(out.columns) == ["kernelpca0", "kernelpca1"]
    assert list(PCA(2).fit(frame).get_feature_names_out()) == ["pca0", "pca1"]


def test_memory_precomputed_is_left_alone(rng: np.random.Generator) -> None:
    K = kernels.RBF(1.0).gram(rng.normal(size=(30, 2)))
    kept = K.copy()
    for solver in ("dense", "lanczos"):
        KernelPCA(3, kernel="precomputed", solver=solver).fit(K)
        assert np.array_equal(K, kept)


def test_bad_input() -> None:
    with pytest.raises(ValueError, match="NaN"):
        KernelPCA(2).fit([[np.nan], [1.0]])
    with pytest.raises(ValueError, match="1 sample"):
        KernelPCA(2).fit([[1.0]])
    with pytest.raises(ValueError, match="1 sample"):
        PCA().fit([[1.0]])
    with pytest.raises(ModelError, match="from 1 to 2"):
        PCA(5).fit([[1.0, 2.0], [2.0, 3.0], [0.0, 9.0]])
    with pytest.raises(ModelError, match="not positive semidefinite"):
        KernelPCA(kernel="precomputed").fit([[0.0, 2.0, 0.0], [2.0, 0.0, 2.0], [0.0, 2.0, 0.0]])
    with pytest.raises(ModelError, match="RBF kernels"):
        KernelPCA(2, kernel="linear", pre_image="fixed_point").fit([[1.0], [2.0], [4.0]])
    with pytest.raises(ModelError, match="pre_image="):
        KernelPCA(1).fit([[1.0], [2.0]]).inverse_transform([[0.0]])
    with pytest.raises(ModelError, match="Did you mean 'lanczos'"):
        KernelPCA(solver="lanzcos").fit([[1.0], [2.0]])
    for model in (PCA(1), KernelPCA(1), KernelPCA(1, kernel="linear"), KernelPCA(1, solver="lanczos")):
        Z = model.fit_transform(np.ones((5, 2)))
        np.testing.assert_allclose(Z, np.zeros((5, 1)), atol=1e-12)
        assert model.explained_variance_ratio_[0] == 0.0


def test_duplicate_points_share_their_coordinates(rng: np.random.Generator) -> None:
    X = np.repeat(rng.normal(size=(15, 2)), 2, axis=0)
    Z = KernelPCA(gamma=1.0).fit_transform(X)
    assert Z.shape[1] <= 14
    np.testing.assert_allclose(Z[::2], Z[1::2], atol=1e-7)
