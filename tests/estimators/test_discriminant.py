"""Gaussian classifiers and Fisher's discriminant: scikit-learn's numbers, the text's weighting, gaps, the network."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.naive_bayes import GaussianNB

import gramgraph as gg
from gramgraph.estimators._classes import read_classes

CONTRACT = [
    *(gg.GaussianClassifier(kind) for kind in ("shared", "own", "diagonal")),
    gg.FisherDiscriminant(),
    gg.FisherDiscriminant(weighting="equal"),
]
IRIS = load_iris(as_frame=True)
X = IRIS.data.set_axis(["sl", "sw", "pl", "pw"], axis=1)
Y = IRIS.target.to_numpy()


@pytest.mark.parametrize("kind, peer", [
    ("shared", LinearDiscriminantAnalysis()),
    ("own", QuadraticDiscriminantAnalysis()),
    ("diagonal", GaussianNB(var_smoothing=0.0)),
])  # fmt: skip
@pytest.mark.parametrize("priors", [None, [0.2, 0.5, 0.3]])
def test_row_e3_equals_scikit_learn(kind: str, peer: object, priors: object) -> None:
    peer.set_params(priors=None if priors is None else np.array(priors)).fit(X, Y)
    both = [gg.GaussianClassifier(kind, priors=priors, unbiased=u).fit(X, Y) for u in (False, True)]
    # older versions of scikit-learn divide by n − 1 or n − classes
    ours = min(both, key=lambda model: np.abs(model.predict_proba(X) - peer.predict_proba(X)).max())
    np.testing.assert_allclose(ours.predict_proba(X), peer.predict_proba(X), atol=1e-9)
    np.testing.assert_allclose(ours.predict_log_proba(X), peer.predict_log_proba(X), atol=1e-6)
    assert (ours.predict(X) == peer.predict(X)).all()


@pytest.mark.parametrize("kind", ["shared", "own", "diagonal"])
@pytest.mark.parametrize("gaps", [False, True])
def test_the_network_says_the_same(kind: str, gaps: bool) -> None:
    frame = X.mask(np.random.default_rng(0).random(X.shape) < 0.3) if gaps else X
    model = gg.GaussianClassifier(kind).fit(frame, Y)
    asked = model.network_.query("class", evidence=frame)
    assert asked.exact
    np.testing.assert_allclose(asked["class"].probabilities, model.predict_proba(frame), atol=1e-8)
    np.testing.assert_allclose(model.network_.log_likelihood(frame), model.score_samples(frame), rtol=1e-8)
    assert len(model.network_.sample(3, random_state=0)) == 3
    assert gg.GaussianClassifier(kind).fit(X.to_numpy(), Y).network_.variables == ("class", "x")


def test_gaps_are_integrated_out() -> None:
    """p(class | one column) is that of the marginal Gaussians."""
    model = gg.GaussianClassifier("own").fit(X, Y)
    alone = X.assign(sl=np.nan, sw=np.nan, pw=np.nan)
    one = gg.GaussianClassifier("own").fit(X[["pl"]], Y)
    np.testing.assert_allclose(model.predict_proba(alone), one.predict_proba(X[["pl"]]), atol=1e-9)
    np.testing.assert_allclose(model.predict_proba(X.iloc[:1] * np.nan)[0], [1 / 3] * 3)


@pytest.mark.parametrize("kind", ["shared", "own"])
def test_a_prior_gives_posterior_means(kind: str) -> None:
    prior = gg.distributions.NormalInverseWishart([5.0, 3.0, 4.0, 1.0], 2.0, 8.0, 3.0 * np.eye(4))
    model = gg.GaussianClassifier(kind, prior=prior).fit(X, Y)
    for c in range(3):
        after = prior.update(X[c == Y].to_numpy())
        np.testing.assert_allclose(model.means_[c], after.mean)
        if kind == "own":
            np.testing.assert_allclose(model.covariances_[c], after.scale / (after.dof - 5.0))


def unequal(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """40 points of one class, 400 of another, with different covariances."""
    a = rng.multivariate_normal([0.0, 0.0], [[0.9, -0.95], [-0.95, 1.9]], size=40)
    b = rng.multivariate_normal([1.5, 1.2], [[1.1, -0.2], [-0.2, 0.7]], size=400)
    return np.concatenate([a, b]), np.repeat([0, 1], [40, 400])


def test_row_e3_fisher_has_both_weightings() -> None:
    """w ∝ S_W⁻¹ (m₂ − m₁), S_W pooled or with 1/N_k for each class: not the same direction."""
    Z, y = unequal(np.random.default_rng(0))
    m = [Z[y == c].mean(axis=0) for c in (0, 1)]
    S = [(Z[y == c] - m[c]).T @ (Z[y == c] - m[c]) for c in (0, 1)]
    true = {
        "pooled": np.linalg.solve(S[0] + S[1], m[1] - m[0]),
        "equal": np.linalg.solve(S[0] / 40 + S[1] / 400, m[1] - m[0]),
    }
    found = {}
    for weighting, w in true.items():
        model = gg.FisherDiscriminant(weighting=weighting).fit(Z, y)
        own = model.scalings_[:, 0]
        found[weighting] = own / np.linalg.norm(own)
        np.testing.assert_allclose(found[weighting], w / np.linalg.norm(w), rtol=1e-8)
    assert np.degrees(np.arccos(found["pooled"] @ found["equal"])) > 5.0
    peer = LinearDiscriminantAnalysis().fit(Z, y).scalings_[:, 0]
    assert abs(peer @ found["pooled"]) / np.linalg.norm(peer) == pytest.approx(1.0, abs=1e-9)


def test_row_e3_the_threshold_is_where_two_gaussians_cross() -> None:
    from scipy.stats import norm

    Z, y = unequal(np.random.default_rng(1))
    model = gg.FisherDiscriminant().fit(Z, y)
    p = model.transform(Z)[:, 0]
    t = model.threshold_
    density = [len(p[y == c]) * norm.pdf(t, p[y == c].mean(), p[y == c].std()) for c in (0, 1)]
    assert density[0] == pytest.approx(density[1], rel=1e-6)
    assert p[y == 0].mean() < t < p[y == 1].mean()


def test_fisher_projects_as_scikit_learn_does() -> None:
    ours = gg.FisherDiscriminant().fit(X, Y)
    peer = LinearDiscriminantAnalysis().fit(X, Y)
    a, b = ours.transform(X), peer.transform(X)
    for j in range(2):
        assert abs(np.corrcoef(a[:, j], b[:, j])[0, 1]) == pytest.approx(1.0, abs=1e-9)
    assert ours.score(X, Y) >= 0.97
    np.testing.assert_allclose(ours.predict_proba(X).sum(axis=1), 1.0)


def test_bad_input_has_an_answer() -> None:
    for model in (gg.GaussianClassifier(), gg.GaussianClassifier("own"), gg.FisherDiscriminant()):
        with pytest.raises(gg.ModelError, match="one class only"):
            model.fit(X, np.zeros(150))
        flat = X.assign(flat=3.0)
        assert np.isfinite(model.fit(flat, Y).predict_proba(flat)).all()
        assert model.score(flat, Y) > 0.9
        tiny = model.fit([[0.0, 1.0], [2.0, 1.5]], ["a", "b"])
        assert tiny.predict([[0.0, 1.0], [2.0, 1.5]]).tolist() == ["a", "b"]
        with pytest.raises(gg.ModelError, match="holds text"):
            model.fit(pd.DataFrame({"a": ["x", "y"]}), [0, 1])
        with pytest.raises(gg.ModelError, match="missing"):
            model.fit(X[:3], ["a", None, "b"])
    with pytest.raises(ValueError, match="NaN"):
        gg.FisherDiscriminant().fit([[np.nan], [1.0]], [0, 1])
    with pytest.raises(gg.OptionError, match="priors must be 3"):
        gg.GaussianClassifier(priors=[0.5, 0.5]).fit(X, Y)


def test_classifiers_serve_as_nodes_of_networks_and_fields() -> None:
    rng = np.random.default_rng(0)
    frame = X.assign(species=np.array(["a", "b", "c"])[Y])
    for model in (gg.GaussianClassifier(), gg.BayesianLogisticRegression(), gg.FisherDiscriminant()):
        node = gg.conditionals.Predictor.fit("species", ("pl", "pw"), model, frame)
        pw = gg.LinearGaussian("pw", ("pl",), 0.4, -0.3, 0.04)
        net = gg.BayesianNetwork.from_parts(
            (*node.parents, node.child), [gg.LinearGaussian("pl", (), 0.0, 3.7, 3.0), pw, node]
        )
        told = net.query("species", {"pl": 1.4, "pw": 0.2}, random_state=0)
        assert told["species"].prob("a") > 0.95
    grid = [rng.normal(size=(6, 2)) + np.array([0, 0, 0, 3, 3, 3])[:, None] for _ in range(8)]
    labels = [["low"] * 3 + ["high"] * 3] * 8
    edges = [[(i, i + 1) for i in range(5)]] * 8
    for model in (gg.GaussianClassifier(), gg.BayesianLogisticRegression(), gg.FisherDiscriminant()):
        crf = gg.sequences.GraphCRF(node_classifier=model).fit(list(zip(grid, edges, strict=True)), labels)
        assert crf.score(list(zip(grid, edges, strict=True)), labels) > 0.9


@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.uint64, np.float64])
@pytest.mark.parametrize("labels", [(3, 1, 2), (-100, 100, 7), (0, 5, 5)])
def test_classes_are_the_sorted_labels(dtype: object, labels: tuple[int, ...]) -> None:
    y = np.array([labels[i % 3] % 128 if dtype is np.uint64 else labels[i % 3] for i in range(500)], dtype=dtype)
    classes, codes = read_classes(y, y, name="a test")
    expected, own = np.unique(y, return_inverse=True)
    assert classes.dtype == expected.dtype
    assert classes.tolist() == expected.tolist()
    assert codes.tolist() == own.tolist()


@pytest.mark.parametrize("d", [3, 60])
@pytest.mark.parametrize("kind", ["shared", "own", "diagonal"])
def test_many_rows_are_answered_as_few_are(kind: str, d: int) -> None:
    rng = np.random.default_rng(0)
    y = np.arange(5000) % 2
    X = rng.normal(size=(5000, d)) + y[:, None]
    model = gg.GaussianClassifier(kind).fit(X, y)
    for answer in (model.predict_proba, model.score_samples):
        np.testing.assert_allclose(answer(X)[4990:], answer(X[4990:]), rtol=1e-9, atol=1e-12)
