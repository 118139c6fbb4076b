"""Kernels made from probability models: contract, integrals, derivatives of the log-likelihood."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import quad
from scipy.stats import norm

import gramgraph as gg
from gramgraph.kernels import (
    CategoricalProbabilityProduct,
    Fisher,
    GaussianProbabilityProduct,
    KernelError,
    LatentVariable,
    NetworkScore,
)
from gramgraph.testing.kernels import check_kernel

RNG = np.random.default_rng(0)
PRIOR, TABLE = np.array([0.2, 0.5, 0.3]), RNG.dirichlet(np.ones(4), size=3)
ROWS = RNG.dirichlet(np.ones(4), size=5)
NET = gg.BayesianNetwork("A -> B <- C; B -> D{low|mid|high}").random_tables(0)
CASES = pd.DataFrame(
    {
        "A": ["yes", "no", None, None, "yes"],
        "B": [None, "yes", None, "no", "yes"],
        "C": ["no", "no", None, None, "yes"],
        "D": ["low", "mid", "high", None, "low"],
    }
)


def gaussians(d, n):
    out = []
    for _ in range(n):
        L = RNG.normal(size=(d, d))
        out.append((RNG.normal(size=d), L @ L.T + 0.3 * np.eye(d)))
    return out


class Normal:
    """N(mean, 1) with its score by the mean."""

    mean = 0.5

    def fisher_score(self, X, /):
        return np.asarray(X, dtype=float).reshape(-1, 1) - self.mean


CONTRACT = {
    "latent table": (LatentVariable(PRIOR, TABLE), np.array([0, 1, 3, 2, 0]), np.array([2, 1])),
    "latent function": (
        LatentVariable(PRIOR, lambda X: norm.pdf(np.asarray(X)[:, None], [0.0, 1.0, 2.0])),
        [0.0, 0.3, 1.7],
        [1.0, 2.0],
    ),
    "categorical": (CategoricalProbabilityProduct(power=0.7), ROWS, ROWS[:2]),
    "gaussian": (GaussianProbabilityProduct(power=0.7), gaussians(2, 5), gaussians(2, 3)),
    "fisher": (Fisher(Normal()), [0.0, 1.0, 3.0], [2.0]),
    # Made in its test: the information of a network has to be computed.
    "fisher of a network": (lambda: Fisher(NET, information="model"), CASES, CASES.iloc[:2]),
}


@pytest.mark.parametrize("case", CONTRACT)
def test_contract(case):
    kernel, X, Y = CONTRACT[case]
    kernel = kernel() if case == "fisher of a network" else kernel
    check_kernel(kernel, X, Y, inputs=case in ("latent function", "fisher"))


def test_contract_of_a_fisher_kernel_of_rows():
    class Pair:
        """Independent normals; the score by mean and log variance of the first."""

        def fisher_score(self, X, /):
            return np.column_stack([X[:, 0] - 0.3, X[:, 0] ** 2 - 1.0, np.sin(X[:, 1])])

    X = RNG.normal(size=(5, 2))
    check_kernel(Fisher.from_sample(Pair(), RNG.normal(size=(40, 2))), X, RNG.normal(size=(3, 2)))
    with pytest.raises(KernelError, match="not rows of real numbers"):
        Fisher(NET).pullback(CASES, inputs=True)


@pytest.mark.parametrize("power", [0.5, 1.0, 1.7])
def test_categorical_gradients_along_the_simplex(power):
    kernel, P, Q = CategoricalProbabilityProduct(power=power), ROWS, ROWS[1:4]
    for Y in (None, Q):
        K, pull = kernel.pullback(P, Y, inputs=True)
        bar = RNG.normal(size=K.shape)
        found = pull(bar)
        for side, points in (("X", P), ("Y", Y)):
            if points is None:
                continue
            for i in range(len(points)):
                step = np.zeros_like(points)
                step[i, :2] = 1e-6, -1e-6  # stays on the simplex
                args = [(points + s * step, Y) if side == "X" else (P, points + s * step) for s in (1, -1)]
                slope = np.vdot(bar, kernel.gram(*args[0]) - kernel.gram(*args[1])) / 2e-6
                gradient = getattr(found, side)[i]
                assert gradient[0] - gradient[1] == pytest.approx(slope, rel=1e-6, abs=1e-7)


@pytest.mark.parametrize("power", [0.5, 1.3])
def test_gaussian_gradients_by_mean_and_covariance(power):
    kernel, A, B = GaussianProbabilityProduct(power=power), gaussians(2, 4), gaussians(2, 3)

    def moved(points, i, c, h):
        out = [(m.copy(), s.copy()) for m, s in points]
        if c < 2:
            out[i][0][c] += h
        else:  # symmetric moves: an entry and its mirror image by half each
            a, b = divmod(c - 2, 2)
            out[i][1][a, b] += h / 2
            out[i][1][b, a] += h / 2
        return out

    for Y in (None, B):
        K, pull = kernel.pullback(A, Y, inputs=True)
        bar = RNG.normal(size=K.shape)
        found = pull(bar)
        for side, points in (("X", A), ("Y", Y)):
            if points is None:
                continue
            for i, c in np.ndindex(len(points), 6):
                pair = [moved(points, i, c, h) for h in (1e-5, -1e-5)]
                values = [kernel.gram(p, Y) if side == "X" else kernel.gram(A, p) for p in pair]
                slope = np.vdot(bar, values[0] - values[1]) / 2e-5
                assert getattr(found, side)[i, c] == pytest.approx(slope, rel=1e-6, abs=1e-7)


def test_latent_variable_kernel_is_the_sum_over_causes():
    k = LatentVariable(PRIOR, TABLE)
    expected = sum(PRIOR[z] * np.outer(TABLE[z], TABLE[z]) for z in range(3))
    np.testing.assert_allclose(k.gram(np.arange(4)), expected, rtol=1e-14)
    assert k.gram(np.arange(4)).sum() == pytest.approx(1.0)  # it is p(x, x′) of two draws from one cause


@pytest.mark.parametrize("power", [0.5, 1.0, 1.7])
def test_gaussian_product_is_its_integral(power):
    k = GaussianProbabilityProduct(power=power)
    for (m1, v1), (m2, v2) in [((0.0, 1.0), (1.0, 2.0)), ((-1.0, 0.3), (0.5, 0.3))]:
        integrand = lambda x: (norm.pdf(x, m1, v1**0.5) * norm.pdf(x, m2, v2**0.5)) ** power  # noqa: B023, E731
        expected = quad(integrand, -30, 30, points=[m1, m2])[0]
        assert k.gram([(m1, v1)], [(m2, v2)])[0, 0] == pytest.approx(expected, rel=1e-8)


def test_gaussian_product_of_independent_coordinates_is_a_product():
    k = GaussianProbabilityProduct(power=0.8)
    p, q = ([0.0, 1.0], [1.0, 0.5]), ([0.3, -1.0], [2.0, 0.7])
    parts = [k.gram([(p[0][j], p[1][j])], [(q[0][j], q[1][j])])[0, 0] for j in range(2)]
    assert k.gram([p], [q])[0, 0] == pytest.approx(parts[0] * parts[1], rel=1e-12)
    np.testing.assert_allclose(GaussianProbabilityProduct(power=0.5).diag(gaussians(3, 4)), 1.0, rtol=1e-12)


def test_categorical_product():
    np.testing.assert_allclose(CategoricalProbabilityProduct(power=1.0).gram(ROWS), ROWS @ ROWS.T)
    np.testing.assert_allclose(CategoricalProbabilityProduct(power=0.5).diag(ROWS), 1.0)
    zero = np.array([[1.0, 0.0], [0.5, 0.5]])
    k = CategoricalProbabilityProduct(power=0.5)
    numeric = CategoricalProbabilityProduct(0.5 * np.exp(1e-6)).gram(zero) - CategoricalProbabilityProduct(
        0.5 * np.exp(-1e-6)
    ).gram(zero)
    assert k.pullback(zero)[1](np.ones((2, 2))).theta[0] == pytest.approx(numeric.sum() / 2e-6, rel=1e-6)


# ------------------------------------------------------------------------------------------------------ Fisher


def log_evidence(tables, case):
    """log p(case) by the whole joint of NET's structure, from logits."""
    from scipy.special import softmax

    a, c, b, d = (softmax(tables[name], axis=-1) for name in ("A", "C", "B", "D"))
    joint = np.einsum("a,c,acb,bd->abcd", a, c, b, d)
    for axis, name in enumerate("ABCD"):
        if isinstance(case[name], str):
            keep = np.zeros(joint.shape[axis])
            keep[NET.states(name).index(case[name])] = 1
            joint = joint * keep.reshape([-1 if i == axis else 1 for i in range(4)])
    return np.log(joint.sum())


def test_network_score_is_the_derivative_of_the_log_likelihood():
    assert [v.name for v in NET.conditional("B").scope] == ["A", "C", "B"]
    logits = {name: np.log(NET.conditional(name).table()) for name in NET.variables}
    score = NetworkScore(NET).fisher_score(CASES)
    for row, case in enumerate(CASES.to_dict("records")):
        column = 0
        for name in NET.variables:
            for at in np.ndindex(logits[name].shape):
                ends = []
                for h in (1e-5, -1e-5):
                    moved = {key: value.copy() for key, value in logits.items()}
                    moved[name][at] += h
                    ends.append(log_evidence(moved, case))
                assert score[row, column] == pytest.approx((ends[0] - ends[1]) / 2e-5, abs=1e-8)
                column += 1
        assert column == score.shape[1]


def test_model_information_is_the_pseudo_inverse_of_the_true_one_on_complete_cases():
    every = pd.DataFrame(
        [
            (a, b, c, d)
            for a in NET.states("A")
            for b in NET.states("B")
            for c in NET.states("C")
            for d in NET.states("D")
        ],
        columns=list("ABCD"),
    )
    p = np.exp([NET.joint_log_prob(case) for case in every.to_dict("records")])
    S = NetworkScore(NET).fisher_score(every)
    np.testing.assert_allclose(p @ S, 0.0, atol=1e-14)  # the expected score is 0
    I = S.T @ (p[:, None] * S)
    np.testing.assert_allclose(Fisher(NET, information="model").gram(every), S @ np.linalg.pinv(I) @ S.T, atol=1e-8)
    np.testing.assert_allclose(Fisher(NET, information=I).gram(every), S @ np.linalg.pinv(I) @ S.T, atol=1e-8)
    # E k(x, x) is the number of free parameters
    assert p @ Fisher(NET, information="model").diag(every) == pytest.approx(NET.n_parameters)


def test_fisher_kernel_of_a_normal_with_a_sampled_information():
    X = np.random.default_rng(3).normal(0.5, 1.0, 2000)
    k = Fisher.from_sample(Normal(), X)
    assert k.gram([1.5], [2.5])[0, 0] == pytest.approx(2.0, rel=0.15)  # I = 1 ± 0.03: five standard errors
    assert Fisher.from_sample(Normal(), X, diagonal=True).gram([1.5], [2.5]) == pytest.approx(k.gram([1.5], [2.5]))
    assert k.diag(X).mean() == pytest.approx(1.0)


def test_cases_as_dicts():
    dicts = [{k: v for k, v in case.items() if isinstance(v, str)} for case in CASES.to_dict("records")]
    np.testing.assert_array_equal(Fisher(NET).gram(dicts), Fisher(NET).gram(CASES))


def test_faults_are_named():
    with pytest.raises(KernelError, match="fisher_score"):
        Fisher(object())
    with pytest.raises(KernelError, match="'model'"):
        Fisher(Normal(), information="model")
    with pytest.raises(KernelError, match="'Q' is not a variable"):
        Fisher(NET).gram([{"Q": "yes"}])
    with pytest.raises(KernelError, match="sum 1"):
        LatentVariable([0.5, 0.6], TABLE[:2])
    with pytest.raises(KernelError, match="0 to 3"):
        LatentVariable(PRIOR, TABLE).gram([4])
    with pytest.raises(KernelError, match="row 0"):
        CategoricalProbabilityProduct().gram([[0.5, 0.6]])
    with pytest.raises(KernelError, match="positive definite"):
        GaussianProbabilityProduct().gram([([0.0, 0.0], [[1.0, 2.0], [2.0, 1.0]])])


def test_contract_on_rows_that_may_not_move_freely():
    check_kernel(CategoricalProbabilityProduct(), ROWS)


def test_distributions_are_points():
    pairs = [([0.0, 1.0], [[2.0, 0.3], [0.3, 1.0]]), ([1.0, 1.0], [[1.0, 0.0], [0.0, 3.0]])]
    kernel = GaussianProbabilityProduct()
    assert np.array_equal(kernel.gram([gg.Gaussian(*pair) for pair in pairs]), kernel.gram(pairs))
    assert np.array_equal(kernel.gram([gg.distributions.Normal(1.0, 2.0)]), kernel.gram([([1.0], 2.0)]))
    with pytest.raises(KernelError, match="entry 0"):
        kernel.gram([gg.distributions.Gamma(1.0, 1.0)])
