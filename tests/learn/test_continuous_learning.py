"""Parameters of Gaussian and mixed networks from data: closed forms, priors, EM, agreement with least squares."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import gramgraph as gg
from gramgraph.learn.continuous_em import expected_statistics
from gramgraph.learn.linear import LinearGaussianPrior, moments, regress
from tests.engines.mixed.drawing import gaussian_network, mixed_network


def _blank(net):
    return gg.BayesianNetwork.from_parts(net.vars, [None] * len(net), parents=net.parent_positions)


def test_maximum_likelihood_is_least_squares(rng):
    net = gaussian_network(rng, 5, vectors=0.3)
    data = net.sample(300, random_state=1)
    fitted = _blank(net).fit(data)
    for name in net.variables:

        def columns(var):
            return [c for c in data if c == var.name or c.startswith(f"{var.name}[")]

        c = fitted.conditional(name)
        Y = data[columns(c.child)].to_numpy()
        Z = np.column_stack([np.ones(len(Y)), *(data[columns(p)].to_numpy() for p in c.parents)])
        B, *_ = np.linalg.lstsq(Z, Y, rcond=None)
        np.testing.assert_allclose(c.intercept, B[0], atol=1e-8)
        np.testing.assert_allclose(c.coefficients, B[1:].T, atol=1e-8)
        R = Y - Z @ B
        np.testing.assert_allclose(c.covariance, R.T @ R / len(R), atol=1e-8)


def test_likelihood_is_highest_at_the_estimate(rng):
    net = mixed_network(rng, 2, 3, vectors=0.0, zeros=0.0)
    data = net.sample(200, random_state=1)
    fitted = _blank(net).fit(data)
    best = fitted.log_likelihood(data).sum()
    assert best > net.log_likelihood(data).sum()
    weights = rng.random(200)
    heavy = _blank(net).fit(data, weights=weights)
    assert weights @ heavy.log_likelihood(data) > weights @ fitted.log_likelihood(data)
    twice = _blank(net).fit(pd.concat([data, data]))
    for name in net.variables:
        for what in ("coefficients", "intercept", "covariance", "values"):
            if hasattr(fitted.conditional(name), what):
                np.testing.assert_allclose(
                    getattr(fitted.conditional(name), what), getattr(twice.conditional(name), what), atol=1e-8
                )


def test_conjugate_prior_against_the_textbook(rng):
    """Posterior of (w, σ²) with a proper prior on the intercept, written out with the full design matrix."""
    n, prior = 12, LinearGaussianPrior(precision=2.0, shape=3.0, scale=1.5, intercept_precision=0.5)
    X, y = rng.normal(size=(n, 2)) + 1.0, rng.normal(size=n)
    Z = np.column_stack([np.ones(n), X])
    L0 = np.diag([0.5, 2.0, 2.0])
    Ln = L0 + Z.T @ Z
    m = np.linalg.solve(Ln, Z.T @ y)
    a, b = 3.0 + n / 2, 1.5 + 0.5 * (y @ y - m @ Ln @ m)
    W, c, S = regress(*moments(np.column_stack([X, y])), 1, prior)
    np.testing.assert_allclose([c[0], *W[0]], m, atol=1e-10)
    assert S[0, 0] == pytest.approx(b / (a - 1), abs=1e-10)


def test_flat_intercept_prior_is_the_limit(rng):
    X = rng.normal(size=(15, 3)) + 4.0
    near = regress(*moments(X), 1, LinearGaussianPrior(intercept_precision=1e-12, shape=2.5))
    flat = regress(*moments(X), 1, LinearGaussianPrior(shape=3.0))  # the flat one counts half a row less
    np.testing.assert_allclose(near[0], flat[0], atol=1e-6)
    np.testing.assert_allclose(near[1], flat[1], atol=1e-6)
    np.testing.assert_allclose(near[2], flat[2], atol=1e-6)


def test_prior_makes_sparse_configurations_usable(rng):
    data = pd.DataFrame({"d": ["a"] * 20 + ["b"], "x": rng.normal(size=21), "y": rng.normal(size=21)})
    start = gg.BayesianNetwork("d{a|b|c} -> y{real} <- x{real}")
    plain = start.fit(data).conditional("y")
    assert (plain.covariance > 0).all() and np.isfinite(plain.coefficients).all()  # b and c borrow from all rows
    np.testing.assert_allclose(plain.coefficients[1], plain.coefficients[2])
    shy = start.fit(data, prior={"y": gg.learn.LinearGaussianPrior(), "d": 1.0})
    assert (shy.conditional("y").covariance > 0).all()
    assert shy.cpt["d"].values.tolist() == [21 / 24, 2 / 24, 1 / 24]


def test_fractions_make_a_variable_real(shared_data):
    data = pd.read_csv(shared_data / "bn_data" / "gaussian.test.csv.gz")
    net = gg.BayesianNetwork("A -> F; B -> D; E -> F; D -> F; G -> F; A -> C; B -> C").fit(data)
    assert all(not net.var(name).is_discrete for name in net.variables)
    Z = np.column_stack([np.ones(len(data)), data[list(net.parents("F"))]])
    B, *_ = np.linalg.lstsq(Z, data["F"], rcond=None)
    np.testing.assert_allclose(net.conditional("F").coefficients[0], B[1:], atol=1e-7)
    mixed = pd.read_csv(shared_data / "bn_data" / "clgaussian.test.csv.gz")
    fitted = gg.BayesianNetwork("A -> D; B -> D; C -> D; B -> E; D -> F; G -> F; D -> H").fit(mixed)
    kinds = {name: fitted.var(name).is_discrete for name in fitted.variables}
    assert kinds["A"] and not kinds["D"] and np.isfinite(fitted.log_likelihood(mixed.head(50))).all()


def test_discrete_child_of_real_parents(rng):
    x = rng.normal(size=2000)
    p = 1 / (1 + np.exp(-(2 * x - 1)))
    data = pd.DataFrame({"x": x, "s": np.where(rng.random(2000) < p, "yes", "no")})
    net = gg.BayesianNetwork("x{real} -> s{no|yes}").fit(data)
    c = net.conditional("s")
    slope = c.weights[1, 0] - c.weights[0, 0]
    assert slope == pytest.approx(2.0, abs=0.3) and c.bias[1] - c.bias[0] == pytest.approx(-1.0, abs=0.25)
    answer = net.query("x", {"s": "yes"}, random_state=0)
    assert answer["x"].mean() == pytest.approx(x[data["s"] == "yes"].mean(), abs=0.1)
    with pytest.raises(gg.ModelError, match="EM needs these"):
        net.fit(data.mask(rng.random(data.shape) < 0.1))


# ---------------------------------------------------------------------------------------------- missing cells


def test_em_on_a_bivariate_gaussian_has_the_known_solution(rng):
    """x is complete and y misses at random: the estimate is the regression of complete rows on all x."""
    n = 500
    x = rng.normal(size=n)
    y = 1.0 + 2.0 * x + 0.5 * rng.normal(size=n)
    gone = rng.random(n) < 0.4
    data = pd.DataFrame({"x": x, "y": np.where(gone, np.nan, y)})
    net = gg.BayesianNetwork("y{real} -> x{real}").fit(data, tol=1e-12, max_iter=500, random_state=0)
    Z = np.column_stack([np.ones((~gone).sum()), x[~gone]])
    (a, b), *_ = np.linalg.lstsq(Z, y[~gone], rcond=None)
    s2 = np.mean((y[~gone] - a - b * x[~gone]) ** 2)
    cov = net.to_gaussian()
    at = [net.variables.index("x"), net.variables.index("y")]
    S = cov.cov[np.ix_(at, at)]
    assert cov.mean[at[1]] == pytest.approx(a + b * x.mean(), abs=1e-4)
    np.testing.assert_allclose(S, [[x.var(), b * x.var()], [b * x.var(), b * b * x.var() + s2]], atol=1e-3)
    trace = np.array(net.fit_report.trace)
    assert net.fit_report.converged and (np.diff(trace) > -1e-8).all()
    assert net.fit_report.log_likelihood == pytest.approx(net.log_likelihood(data).sum(), abs=1e-6)


def test_em_on_mixed_networks_climbs_and_recovers(rng):
    cpds = {"g": 0.3, "h": {"no": [0.2, 0.8], "yes": [0.7, 0.3]}}
    cpds["x"] = {"no": {"intercept": 0.0, "sd": 1.0}, "yes": {"intercept": 3.0, "sd": 0.5}}
    cpds["y"] = {
        "no": {"coefficients": {"x": 1.0}, "sd": 0.5},
        "yes": {"intercept": 2.0, "coefficients": {"x": -1.0}, "sd": 0.5},
    }
    truth = gg.BayesianNetwork("g -> h; g -> x{real} -> y{real} <- h", cpds=cpds)
    data = truth.sample(800, random_state=2)
    for name in data:
        data.loc[rng.random(800) < 0.15, name] = None
    net = _blank(truth).fit(data, random_state=0)
    assert (np.diff(net.fit_report.trace) > -1e-6).all()
    assert net.fit_report.log_likelihood == pytest.approx(net.log_likelihood(data).sum(), rel=1e-4)
    assert net.fit_report.log_likelihood > truth.log_likelihood(data).sum()
    np.testing.assert_allclose(net.conditional("y").coefficients.ravel(), [1.0, -1.0], atol=0.15)
    np.testing.assert_allclose(net.conditional("x").intercept.ravel(), [0.0, 3.0], atol=0.2)


def test_hidden_classes_are_a_mixture_model(rng):
    data = pd.DataFrame({"y": np.concatenate([rng.normal(-2, 1, 400), rng.normal(3, 0.5, 600)])})
    net = gg.BayesianNetwork("c{0|1} -> y{real}").fit(data, random_state=0, restarts=3, tol=1e-8)
    found = sorted(zip(net.conditional("y").intercept.ravel(), net.cpt["c"].values, strict=True))
    assert found[0][0] == pytest.approx(-2.0, abs=0.2) and found[0][1] == pytest.approx(0.4, abs=0.05)
    assert found[1][0] == pytest.approx(3.0, abs=0.2)
    from sklearn.mixture import GaussianMixture

    peer = GaussianMixture(2, random_state=0, tol=1e-8, n_init=3, max_iter=500).fit(data)
    assert net.fit_report.log_likelihood / 1000 == pytest.approx(peer.score(data), abs=1e-3)


@pytest.mark.parametrize("seed", range(3))
def test_expected_statistics_agree_between_engines(seed, monkeypatch):
    """The sums of EM from the mixture engine and from the strong tree."""
    from gramgraph.engines.mixed import mixture
    from gramgraph.learn import continuous
    from gramgraph.learn.real_rows import read_real

    rng = np.random.default_rng(seed)
    net = mixed_network(rng, 3, 3, zeros=0.0)
    data = net.sample(15, random_state=0)
    for name in net.variables:
        columns = [c for c in data if c == name or c.startswith(f"{name}[")]
        data.loc[rng.random(15) < 0.4, columns] = None
    question = read_real(net, data)
    learner = continuous.Learner(net, question, np.ones(15), None, 10.0, data)
    a, log_a = expected_statistics(learner, net)
    monkeypatch.setattr(mixture.MixtureEngine, "is_small", lambda *_: False)
    b, log_b = expected_statistics(learner, net)
    assert log_a == pytest.approx(log_b, abs=1e-8)
    for s, t in zip(a, b, strict=True):
        np.testing.assert_allclose(s.n, t.n, atol=1e-8)
        live = s.n > 1e-6
        if s.mean.size and live.any():
            np.testing.assert_allclose(s.mean[live], t.mean[live], atol=1e-7)
            np.testing.assert_allclose(s.S[live], t.S[live], atol=1e-6)


def test_streams_of_rows_equal_all_rows(rng):
    """Sequential updating: moments add up."""
    X = rng.normal(size=(40, 3))
    n, mean, S = moments(X)
    parts = [moments(X[:25]), moments(X[25:])]
    total = sum(p[0] for p in parts)
    center = sum(p[0] * p[1] for p in parts) / total
    spread = sum(p[2] + p[0] * np.outer(p[1] - center, p[1] - center) for p in parts)
    np.testing.assert_allclose(regress(n, mean, S, 1)[0], regress(total, center, spread, 1)[0], atol=1e-12)


@pytest.mark.parametrize("suffix", ["csv", "csv.gz", "parquet"])
def test_files_of_rows_equal_frames(rng, tmp_path, suffix):
    """A path in the place of a frame: labels stay labels, cells of real variables become numbers."""
    a = rng.integers(0, 2, 300)
    frame = pd.DataFrame({"a": a, "x": rng.normal(size=300) + 2 * a, "w": rng.random(300), "note": "not read"})
    path = tmp_path / f"rows.{suffix}"
    frame.to_parquet(path) if suffix == "parquet" else frame.to_csv(path, index=False)
    net = gg.BayesianNetwork("a{0|1} -> x{real}")
    here, there = net.fit(frame, weights="w"), net.fit(path, weights="w")
    np.testing.assert_allclose(there.conditional("x").intercept, here.conditional("x").intercept, rtol=1e-12)
    np.testing.assert_allclose(there.conditional("x").covariance, here.conditional("x").covariance, rtol=1e-12)
    np.testing.assert_allclose(there.conditional("a").table(), here.conditional("a").table(), rtol=1e-12)
    assert gg.BayesianNetwork("a -> x{real}").fit(str(path)).states("a") == ("0", "1")
    frame.loc[7, "x"] = np.nan
    frame.to_parquet(path) if suffix == "parquet" else frame.to_csv(path, index=False)
    assert net.fit(path, random_state=0).fit_report is not None  # EM, because of the gap
    with pytest.raises(gg.StateError, match="row 0: note is real-valued: a number expected, not 'not read'"):
        gg.BayesianNetwork("a{0|1} -> note{real}").fit(path)
    with pytest.raises(gg.VariableError, match="no column of the table"):
        gg.BayesianNetwork("b -> y{real}").fit(path)
