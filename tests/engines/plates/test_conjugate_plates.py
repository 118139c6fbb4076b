"""Plate models against closed forms, and the variational bound against sums over all states."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.special import gammaln
from scipy.stats import multivariate_normal, nbinom, norm

import gramgraph as gg
from gramgraph import distributions as D
from gramgraph.exceptions import ModelError

MIXTURE = "pi{simplex 2} -> z[2] -> x{real^2} <- mu{real^2}; plate cases: z, x; plate clusters: mu"


def rises(bounds: np.ndarray) -> bool:
    return bool(np.all(np.diff(bounds) >= -1e-9 * (1.0 + np.abs(bounds[1:]))))


def mixture(pi: Any = (1.0, 1.0)) -> Any:
    cpds = {
        "pi": gg.Dirichlet(list(pi)),
        "mu": D.Normal(0.0, precision=0.2),
        "x": D.Normal(gg.Index("mu", by="z"), precision=1.0),
    }
    return gg.BayesianNetwork(MIXTURE, cpds=cpds)


def factor_analysis(k: int = 2) -> Any:
    text = f"f{{real^{k}}} -> x{{real}} <- load{{real^{k}}}; tau -> x; plate cases: f, x; plate features: load, x, tau"
    cpds = {
        "f": D.Normal(0.0, 1.0),
        "load": D.Normal(0.0, 1.0),
        "tau": D.Gamma(1.0, 1.0),
        "x": D.Normal(gg.Dot("load", "f"), precision="tau"),
    }
    return gg.BayesianNetwork(text, cpds=cpds)


def regression(noise: Any, d: int = 3) -> Any:
    text = f"alpha* -> w{{real^{d}}} -> y{{real}} <- x{{real^{d}}}; plate cases: x, y"
    text += "; beta* -> y" if noise == "beta" else "; tau -> y"
    cpds = {"w": D.Normal(0.0, precision="alpha"), "y": D.Normal(gg.Dot("w", "x"), precision=noise)}
    if noise == "beta":
        return gg.BayesianNetwork(text, cpds=cpds, alpha=2.0, beta=11.0)
    return gg.BayesianNetwork(text, cpds={**cpds, "tau": D.Gamma(2.0, 1.0)}, alpha=2.0)


# --------------------------------------------------------------------------------------------- closed forms


def test_bayesian_regression_is_the_closed_form() -> None:
    rng = np.random.default_rng(0)
    X, new = rng.normal(size=(20, 3)), np.array([1.0, -1.0, 0.5])
    y = X @ [1.0, -2.0, 0.5] + 0.3 * rng.normal(size=20)
    answer = regression("beta").query(["w", "y"], {"x": [*X.tolist(), new.tolist()], "y": [*y.tolist(), None]})
    S = np.linalg.inv(11.0 * X.T @ X + 2.0 * np.eye(3))
    m = 11.0 * S @ X.T @ y
    assert answer.exact and answer.engine == "conjugate"
    assert np.allclose(answer["w"].mean(), m, atol=1e-8) and np.allclose(answer["w"].sd() ** 2, np.diag(S), atol=1e-8)
    evidence = multivariate_normal.logpdf(y, np.zeros(20), np.eye(20) / 11.0 + X @ X.T / 2.0)
    assert answer.log_evidence == pytest.approx(evidence, abs=1e-8)
    assert answer["y"].mean()[-1] == pytest.approx(m @ new, abs=1e-8)
    assert answer["y"].sd()[-1] ** 2 == pytest.approx(1 / 11 + new @ S @ new, abs=1e-8)


def test_naive_bayes_is_the_closed_form() -> None:
    """Classes and features of the training cases are seen; the class of a new case is asked for."""
    rng = np.random.default_rng(1)
    classes, features = rng.integers(3, size=30), rng.integers(4, size=(30, 5))
    new = rng.integers(4, size=5)
    text = (
        "pi{simplex 3} -> c[3] -> x[4] <- phi{simplex 4}; plate kinds: phi; plate features: phi, x; plate cases: c, x"
    )
    cpds = {"pi": gg.Dirichlet([1.0, 2.0, 1.0]), "phi": gg.Dirichlet([0.5] * 4), "x": gg.Index("phi", by="c")}
    model = gg.BayesianNetwork(text, cpds=cpds)
    seen = {"c": [*classes.tolist(), None], "x": np.vstack([features, new]).T.tolist()}
    answer = model.query(["c", "phi"], seen)
    prior = np.bincount(classes, minlength=3) + np.array([1.0, 2.0, 1.0])
    p = prior / prior.sum()
    for k in range(3):
        for j in range(5):
            counts = np.bincount(features[classes == k, j], minlength=4) + 0.5
            p[k] *= counts[new[j]] / counts.sum()
    p /= p.sum()
    assert answer.exact and np.allclose(answer["c"].probabilities[-1], p, atol=1e-8)
    counts = np.bincount(features[classes == 1, 2], minlength=4) + 0.5
    known = model.query("phi", {"c": classes.tolist(), "x": features.T.tolist()})
    assert np.allclose(known["phi"].mean()[1, 2], counts / counts.sum(), atol=1e-8)


def test_conjugate_pairs_are_their_closed_forms() -> None:
    counts = [3, 4, 0, 2]
    rate = gg.BayesianNetwork(
        "rate -> n{count}; plate days: n", cpds={"rate": D.Gamma(2.0, 3.0), "n": D.Poisson("rate")}
    )
    answer = rate.query(["rate", "n"], {"n": [*counts, None]})
    pair = D.GammaPoisson(2.0, 3.0)
    assert answer.log_evidence == pytest.approx(pair.log_evidence(counts), abs=1e-10)
    after = pair.update(counts)
    assert answer["rate"].mean() == pytest.approx(after.posterior.mean, abs=1e-12)
    next_ = nbinom(after.shape, after.rate / (after.rate + 1.0))
    assert answer["n"].mean()[-1] == pytest.approx(next_.mean()) and answer["n"].sd()[-1] == pytest.approx(next_.std())

    level = gg.BayesianNetwork(
        "mu -> x{real}; plate cases: x", cpds={"mu": D.Normal(1.0, 4.0), "x": D.Normal("mu", 0.5)}
    )
    x = np.array([0.3, 1.9, 2.2])
    answer = level.query("mu", {"x": x.tolist()})
    v = 1.0 / (1.0 / 4.0 + 3 / 0.5)
    assert answer["mu"].mean() == pytest.approx(v * (1.0 / 4.0 + x.sum() / 0.5)) and answer[
        "mu"
    ].sd() ** 2 == pytest.approx(v)
    joint = multivariate_normal(np.ones(3), 0.5 * np.eye(3) + 4.0)
    assert answer.log_evidence == pytest.approx(joint.logpdf(x))


def test_a_precision_matrix_alone_is_a_wishart_posterior() -> None:
    rng = np.random.default_rng(2)
    x = rng.normal(size=(12, 2))
    V = np.array([[1.0, 0.2], [0.2, 0.5]])
    model = gg.BayesianNetwork(
        "L{matrix 2} -> x{real^2}; plate cases: x",
        cpds={"L": D.Wishart(4.0, V), "x": D.Gaussian([0.0, 0.0], precision="L")},
    )
    answer = model.query("L", {"x": x.tolist()})
    after = D.Wishart(16.0, np.linalg.inv(np.linalg.inv(V) + x.T @ x))
    assert answer.exact and np.allclose(answer["L"].mean().reshape(2, 2), after.mean)
    evidence = after.log_partition - D.Wishart(4.0, V).log_partition - 12 * np.log(2 * np.pi)
    assert answer.log_evidence == pytest.approx(evidence, abs=1e-9)


def test_beta_and_bernoulli() -> None:
    coins = gg.BayesianNetwork(
        "p -> heads; plate coins: p, heads; plate tosses in coins: heads", cpds={"p": D.Beta(2.0, 1.0)}
    )
    answer = coins.query(["p", "heads"], {"heads": [["yes", "yes", "no"], ["no", None]]})
    assert np.allclose(answer["p"].mean(), [4 / 6, 2 / 4])
    assert answer["heads"].prob("yes")[1][1] == pytest.approx(0.5)
    parts = [D.BetaBernoulli(2.0, 1.0).log_evidence(data) for data in ([1, 1, 0], [0])]
    assert answer.log_evidence == pytest.approx(sum(parts))


# --------------------------------------------------------------------------------------------- mixtures by hand


def by_hand(x: np.ndarray, pi: np.ndarray) -> float:
    """log p(x) of the mixture of two Gaussians: the sum over all labels, the means integrated out."""
    n = len(x)
    logs = []
    for z in product(range(2), repeat=n):
        labels = np.array(z)
        counts = np.bincount(labels, minlength=2)
        total = gammaln(pi.sum()) - gammaln(pi.sum() + n) + (gammaln(pi + counts) - gammaln(pi)).sum()
        for k in range(2):
            part = x[labels == k]
            if len(part):
                cov = np.eye(len(part)) + 5.0
                total += sum(multivariate_normal.logpdf(part[:, j], np.zeros(len(part)), cov) for j in range(2))
        logs.append(total)
    return float(np.logaddexp.reduce(logs))


@pytest.mark.parametrize("seed", range(5))
def test_gaussian_mixtures_sum_and_bound(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(5, 2)) + 3.0 * rng.integers(2, size=(5, 1))
    pi = rng.uniform(0.5, 2.0, size=2)
    model = mixture(pi)
    exact = model.query([("z[0]", "z[1]"), "mu"], {"x": x.tolist()})
    assert exact.exact and exact.engine == "enumeration"
    assert exact.log_evidence == pytest.approx(by_hand(x, pi), abs=1e-9)
    field = model.query("z", {"x": x.tolist()}, engine="mean_field", random_state=seed)
    assert field.log_evidence <= exact.log_evidence + 1e-10 and rises(field.details["bounds"])


def test_the_bound_is_the_evidence_where_q_can_be_the_posterior() -> None:
    """One hidden variable: mean field is exact, and says what the closed form says."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(8, 3))
    seen = {"x": X.tolist(), "y": rng.normal(size=8).tolist()}
    model = regression("beta")
    field, exact = model.query("w", seen, engine="mean_field"), model.query("w", seen)
    assert field.log_evidence == pytest.approx(exact.log_evidence, abs=1e-10)
    assert np.allclose(field["w"].mean(), exact["w"].mean())


def test_regression_with_unknown_noise_is_bounded_by_its_integral() -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(10, 2))
    y = X @ [1.0, -1.0] + 0.5 * rng.normal(size=10)
    answer = regression("tau", 2).query(["w", "tau"], {"x": X.tolist(), "y": y.tolist()}, random_state=0)
    tau = np.linspace(1e-3, 30.0, 20001)
    logs = [
        multivariate_normal.logpdf(y, np.zeros(10), np.eye(10) / t + X @ X.T / 2.0) + D.Gamma(2.0, 1.0).log_density(t)
        for t in tau[::20]
    ]
    top = max(logs)
    integral = top + np.log(np.trapezoid(np.exp(np.array(logs) - top), tau[::20]))
    assert answer.engine == "mean_field" and answer.log_evidence < integral < answer.log_evidence + 1.0


def problems() -> list[tuple[Any, dict[str, Any]]]:
    """Fifty problems of many families."""
    out: list[tuple[Any, dict[str, Any]]] = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        out.append((mixture(), {"x": (rng.normal(size=(30, 2)) + 2.0 * rng.integers(3, size=(30, 1))).tolist()}))
        X = rng.normal(size=(15, 3))
        out.append((regression("tau"), {"x": X.tolist(), "y": (X.sum(axis=1) + rng.normal(size=15)).tolist()}))
        out.append((factor_analysis(), {"x": (rng.normal(size=(12, 2)) @ rng.normal(size=(2, 4))).tolist()}))
        out.append((poisson_mixture(), {"n": rng.poisson(3.0 + 9.0 * rng.integers(2, size=25)).tolist()}))
        out.append((shapes(), {"x": (rng.normal(size=(25, 2)) * rng.uniform(0.3, 2.0, size=2)).tolist()}))
    return out


def poisson_mixture() -> Any:
    text = "pi{simplex 2} -> z[2] -> n{count} <- rate; plate days: z, n; plate kinds: rate"
    cpds = {"pi": gg.Dirichlet([1.0, 1.0]), "rate": D.Gamma(1.0, 0.2), "n": D.Poisson(gg.Index("rate", by="z"))}
    return gg.BayesianNetwork(text, cpds=cpds)


def shapes() -> Any:
    text = "pi{simplex 2} -> z[2] -> x{real^2} <- mu{real^2}; L{matrix 2} -> x; plate cases: z, x; plate kinds: mu, L"
    cpds = {
        "pi": gg.Dirichlet([1.0, 1.0]),
        "mu": D.Normal(0.0, precision=0.1),
        "L": D.Wishart(3.0, np.eye(2)),
        "x": D.Gaussian(gg.Index("mu", by="z"), precision=gg.Index("L", by="z")),
    }
    return gg.BayesianNetwork(text, cpds=cpds)


def test_the_bound_never_falls_on_fifty_problems() -> None:
    everything = problems()
    assert len(everything) == 50
    for i, (model, seen) in enumerate(everything):
        field = model.query([], seen, engine="mean_field", random_state=i, restarts=1, max_iter=25)
        bounds = field.details["bounds"]
        assert len(bounds) > 1 and np.isfinite(bounds).all() and rises(bounds), f"problem {i}"


def test_factor_analysis_finds_the_noise() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 2)) @ rng.normal(size=(2, 5)) + 0.5 * rng.normal(size=(200, 5))
    answer = factor_analysis().query("tau", {"x": x.tolist()}, engine="mean_field", random_state=0, restarts=1)
    assert np.allclose(answer["tau"].mean(), 4.0, rtol=0.5)


def test_what_is_not_conjugate_is_refused() -> None:
    text = "v -> x{real}; plate cases: x"
    model = gg.BayesianNetwork(text, cpds={"v": D.Gamma(1.0, 1.0), "x": D.Normal(0.0, "v")})
    with pytest.raises(ModelError, match="not conjugate"):
        model.query("v", {"x": [1.0]})
    with pytest.raises(ModelError, match="must be observed"):
        regression("beta").query("w", {"y": [1.0, 2.0]})
    with pytest.raises(ModelError, match="no product"):
        mixture().query("z", {"x": [[0.0, 0.0]]}, engine="conjugate")
    with pytest.raises(ModelError, match="not a model of categories"):
        mixture().query("z", {"x": [[0.0, 0.0]]}, engine="collapsed_gibbs")
    with pytest.raises(gg.OptionError, match="n_chains"):
        mixture().query("z", {"x": [[0.0, 0.0]]}, engine="collapsed_gibbs", n_chains=0)


def test_gaps_in_numbers_are_predicted() -> None:
    model = gg.BayesianNetwork(
        "mu -> x{real}; plate cases: x", cpds={"mu": D.Normal(0.0, 1.0), "x": D.Normal("mu", 1.0)}
    )
    answer = model.query("x", {"x": [2.0, None]})
    assert answer["x"].mean()[1] == pytest.approx(1.0) and answer["x"].sd()[1] ** 2 == pytest.approx(1.5)
    assert answer.log_evidence == pytest.approx(norm.logpdf(2.0, 0.0, np.sqrt(2.0)))
