"""Latent-variable kernels of a continuous cause: closed form, quadrature, features as transformers."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm, vonmises

import gramgraph as gg
from gramgraph.kernels import GaussianLatent, latent_integral
from gramgraph.kernels.inputs import KernelError


def test_closed_form_is_the_joint_density_of_two_readings():
    rng = np.random.default_rng(0)
    A, noise = rng.normal(size=(3, 2)), np.diag([0.4, 0.7, 1.1])
    k = GaussianLatent.of(A, noise, offset=[1.0, 0.0, 2.0], mean=[0.3, -0.2], cov=[[1.0, 0.2], [0.2, 0.5]])
    S = A @ np.array([[1.0, 0.2], [0.2, 0.5]]) @ A.T
    mu = A @ [0.3, -0.2] + [1.0, 0.0, 2.0]
    both = multivariate_normal(np.tile(mu, 2), np.block([[S + noise, S], [S, S + noise]]))
    X = rng.normal(size=(4, 3))
    truth = [[both.pdf(np.concatenate([x, y])) for y in X] for x in X]
    assert np.allclose(k.gram(X), truth, rtol=1e-10) and np.allclose(k.diag(X), np.diag(truth), rtol=1e-10)


@pytest.mark.parametrize("sd", [1.0, 0.2])
def test_quadrature_is_the_closed_form(sd):
    X = np.linspace(-2.0, 2.5, 7)[:, None]
    k = latent_integral(norm.pdf, lambda X, z: norm.pdf(np.ravel(X)[:, None], z, sd), -9.0, 9.0)
    assert np.abs(k.gram(X) - GaussianLatent(1.0, sd**2).gram(X)).max() < 1e-10


def test_a_cause_on_the_circle():
    k = latent_integral(
        lambda z: np.full(len(z), 0.5 / np.pi),
        lambda X, z: vonmises.pdf(np.ravel(X)[:, None] - z, 3.0),
        -np.pi,
        np.pi,
        nodes=64,
        circle=True,
    )
    K = k.gram(np.array([[0.0], [0.7], [0.7 + 2.0 * np.pi]]))
    assert np.allclose(K[1], K[2], atol=1e-12) and K[0, 0] > K[0, 1]
    assert K[0, 0] == pytest.approx(np.i0(6.0) / (2.0 * np.pi * np.i0(3.0)) ** 2, rel=1e-9)
    with pytest.raises(KernelError, match="integrates to"):
        latent_integral(norm.pdf, lambda X, z: X, -1.0, 1.0)


def test_feature_maps_in_a_pipeline():
    from sklearn.linear_model import Ridge
    from sklearn.pipeline import make_pipeline

    rng = np.random.default_rng(0)
    X = rng.uniform(-3.0, 3.0, size=(200, 1))
    y = np.sin(2.0 * X[:, 0])
    for features in (gg.estimators.NystromFeatures(40, gamma=1.0), gg.estimators.RandomFeatures(200, gamma=1.0)):
        model = make_pipeline(features.set_params(random_state=0), Ridge(1e-4)).fit(X, y)
        assert np.abs(model.predict(X) - y).mean() < 0.02
    assert gg.estimators.NystromFeatures(40, random_state=0).fit(X).get_feature_names_out()[0] == "nystromfeatures0"
