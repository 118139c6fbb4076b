"""The graphical lasso: optimality conditions, scikit-learn's objective and contract, recovered graphs."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.covariance import graphical_lasso
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold
from sklearn.utils.estimator_checks import parametrize_with_checks

import gramgraph as gg
from gramgraph.estimators.graphical_lasso import GraphicalLasso, graphical_lasso_path, partial_correlations
from gramgraph.exceptions import ModelError
from tests.portions import examples

WORKED = np.array([[14, -16, 4, -2], [-16, 32, -8, 4], [4, -8, 8, -4], [-2, 4, -4, 5]], dtype=float)
CHAIN = np.eye(4, k=1, dtype=bool) | np.eye(4, k=-1, dtype=bool)


def problem(seed: int, p: int, n: int, density: float = 0.2) -> np.ndarray:
    rng = np.random.default_rng(seed)
    A = np.triu(rng.random((p, p)) < density, 1) * rng.uniform(-0.5, 0.5, (p, p))
    P = A + A.T
    P += np.diag(np.abs(P).sum(axis=1) + 0.3)
    return rng.multivariate_normal(np.zeros(p), np.linalg.inv(P), size=n)


def objective(S: np.ndarray, T: np.ndarray, alpha: float) -> float:
    off = np.abs(T).sum() - np.abs(np.diagonal(T)).sum()
    return float(-np.linalg.slogdet(T)[1] + np.vdot(S, T) + alpha * off)


CONTRACT = [GraphicalLasso(), GraphicalLasso("cv", cv=3)]
#: Further options of the same classes, for `make test-all`.
OPTIONS = [GraphicalLasso(0.1), GraphicalLasso(adaptive=True)]


@parametrize_with_checks(CONTRACT)
def test_contract(estimator: Any, check: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        check(estimator)


@pytest.mark.slow
@parametrize_with_checks(OPTIONS)
def test_contract_with_options(estimator: Any, check: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        check(estimator)


# --- the optimum ------------------------------------------------------------------------------------------------------


@given(st.integers(0, 1000), st.integers(2, 9), st.floats(0.02, 0.8))
@settings(max_examples=examples(40))
def test_optimality_conditions(seed: int, p: int, share: float) -> None:
    # At the optimum, with W = Θ⁻¹: (S − W)_ij = −α sign Θ_ij on edges, |S − W|_ij ≤ α elsewhere, W_ii = S_ii.
    X = problem(seed, p, 3 * p)
    S = np.cov(X.T, bias=True)
    alpha = share * np.abs(S - np.diag(np.diagonal(S))).max()
    path = graphical_lasso_path(S, [alpha], tol=1e-10, max_iter=2000)
    T = path.precisions[0]
    G = S - np.linalg.inv(T)
    scale = np.diagonal(S).max()
    edge = (T != 0.0) & ~np.eye(p, dtype=bool)
    assert np.abs(np.diagonal(G)).max() < 1e-4 * scale
    assert np.abs(G[edge] + alpha * np.sign(T[edge])).max(initial=0.0) < 1e-4 * scale
    assert np.abs(G).max() <= alpha + 1e-4 * scale
    assert path.dual_gaps[0] <= 1e-10 and np.array_equal(T, T.T)


@pytest.mark.parametrize("seed", [0, 1])
def test_no_worse_than_scikit_learn(seed: int) -> None:
    X = problem(seed, 25, 60)
    S = np.cov(X.T, bias=True)
    top = np.abs(S - np.diag(np.diagonal(S))).max()
    alphas = top * np.array([0.5, 0.2, 0.1])
    path = graphical_lasso_path(S, alphas, tol=1e-7)
    for alpha, T, value in zip(path.alphas, path.precisions, path.objectives, strict=True):
        peer = graphical_lasso(S, alpha, tol=1e-8, enet_tol=1e-8, max_iter=500)[1]
        assert value == pytest.approx(objective(S, T, alpha), abs=1e-9)
        assert value <= objective(S, peer, alpha) + 1e-6
        assert np.abs(T - peer).max() < 1e-2 * np.abs(T).max()


def test_the_gap_bounds_the_distance_to_the_optimum() -> None:
    S = np.cov(problem(3, 20, 40).T, bias=True)
    alphas = [0.3 * np.abs(S - np.diag(np.diagonal(S))).max()]
    best = graphical_lasso_path(S, alphas, tol=1e-11, max_iter=5000).objectives[0]
    for tol in (1.0, 1e-2, 1e-4):
        rough = graphical_lasso_path(S, alphas, tol=tol)
        assert best - 1e-10 <= rough.objectives[0] <= best + rough.dual_gaps[0] + 1e-10
        assert rough.dual_gaps[0] <= tol


def test_blocks_are_solved_alone() -> None:
    rng = np.random.default_rng(0)
    X = np.column_stack([problem(1, 5, 200, 0.8), problem(2, 4, 200, 0.8), rng.standard_normal(200)])
    S = np.cov(X.T, bias=True)
    S[:5, 5:] *= 0.01
    S[5:, :5] *= 0.01
    S[5:9, 9] *= 0.01
    S[9, 5:9] *= 0.01
    alpha = [0.05 * np.abs(S - np.diag(np.diagonal(S))).max()]
    whole = graphical_lasso_path(S, alpha, tol=1e-9).precisions[0]
    assert (whole[:5, 5:] == 0).all() and (whole[9, :9] == 0).all()
    assert np.allclose(whole[:5, :5], graphical_lasso_path(S[:5, :5], alpha, tol=1e-9).precisions[0], atol=1e-5)
    assert whole[9, 9] == pytest.approx(1 / S[9, 9])


def test_warm_starts_end_where_cold_ones_do() -> None:
    S = np.cov(problem(5, 15, 40).T, bias=True)
    path = graphical_lasso_path(S, n_alphas=8, tol=1e-9, max_iter=2000)
    assert (np.diff(path.alphas) < 0).all() and path.n_edges[0] == 0
    for alpha, value in zip(path.alphas, path.objectives, strict=True):
        alone = graphical_lasso_path(S, [alpha], tol=1e-9, max_iter=2000)
        assert alone.objectives[0] == pytest.approx(value, abs=1e-8)


def test_no_penalty_is_the_inverse() -> None:
    S = np.cov(problem(5, 6, 100).T, bias=True)
    assert np.allclose(graphical_lasso_path(S, [0.0]).precisions[0], np.linalg.inv(S))
    X = np.random.default_rng(0).standard_normal((3, 5))
    with pytest.raises(ModelError, match="alpha = 0 needs a positive definite covariance"):
        GraphicalLasso(0.0).fit(X)


@pytest.mark.parametrize(("n", "p", "alpha"), [(10, 30, 0.003), (20, 100, 0.1), (5, 8, 0.001)])
def test_far_fewer_rows_than_variables(n: int, p: int, alpha: float) -> None:
    for seed in range(3):
        X = np.random.default_rng(seed).standard_normal((n, p))
        model = GraphicalLasso(alpha).fit(X)
        assert model.dual_gap_ <= model.tol and np.linalg.eigvalsh(model.precision_)[0] > 0.0
        assert model.objective_ == pytest.approx(
            objective(np.corrcoef(X.T), model.precision_ * np.outer(X.std(0), X.std(0)), alpha)
        )


def test_nearly_singular_data_are_solved() -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((100, 1))
    X = np.hstack([x, x + 1e-4 * rng.standard_normal((100, 1)), rng.standard_normal((100, 3))])
    model = GraphicalLasso(0.05).fit(X)
    assert np.isfinite(model.precision_).all() and model.dual_gap_ <= model.tol


# --- graphs -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_the_worked_example_is_recovered_with_its_missing_edges(seed: int) -> None:
    X = np.random.default_rng(seed).multivariate_normal(np.zeros(4), WORKED, size=2000)
    model = GraphicalLasso(adaptive=True, refit=True).fit(X)
    assert np.array_equal(model.graph_, CHAIN)
    assert (model.precision_[[0, 0, 1], [2, 3, 3]] == 0.0).all()
    assert np.abs(model.precision_ - np.linalg.inv(WORKED)).max() < 0.02


@pytest.mark.parametrize("seed", range(5))
def test_the_worked_example_without_adaptive_weights(seed: int) -> None:
    X = np.random.default_rng(seed).multivariate_normal(np.zeros(4), WORKED, size=5000)
    model = GraphicalLasso(n_alphas=40).fit(X)
    assert np.array_equal(model.graph_, CHAIN)
    again = GraphicalLasso(n_alphas=40, refit=True).fit(X)
    assert np.array_equal(again.graph_, CHAIN)
    assert np.abs(again.precision_ - np.linalg.inv(WORKED)).max() < 0.02


def test_refitting_matches_the_moments_of_the_edges() -> None:
    # Dempster's conditions: Θ is zero off the graph, and its inverse agrees with S on edges and on the diagonal.
    X = problem(8, 10, 400)
    model = GraphicalLasso(0.1, refit=True, tol=1e-10, max_iter=2000).fit(X)
    S = np.cov(X.T, bias=True)
    same = model.graph_ | np.eye(10, dtype=bool)
    assert 0 < model.graph_.sum() < 90
    assert np.abs((model.covariance_ - S)[same]).max() < 1e-5 * S.max()
    assert (model.precision_[~same] == 0.0).all()
    assert model.score(X) >= GraphicalLasso(0.1).fit(X).score(X)


def test_units_do_not_matter_unless_asked_for() -> None:
    X = problem(7, 6, 300)
    units = 10.0 ** np.arange(-3, 3)
    a, b = GraphicalLasso(0.1).fit(X), GraphicalLasso(0.1).fit(X * units)
    assert np.array_equal(a.graph_, b.graph_)
    assert np.allclose(a.precision_, b.precision_ * np.outer(units, units), rtol=1e-6)
    plain = GraphicalLasso(0.1, standardize=False, tol=1e-8).fit(X)
    S = np.cov(X.T, bias=True)
    assert plain.objective_ == pytest.approx(objective(S, plain.precision_, 0.1), abs=1e-8)


def test_choices() -> None:
    X = problem(9, 12, 300, 0.15)
    ebic, strict = GraphicalLasso().fit(X), GraphicalLasso(gamma=1.0).fit(X)
    cv = GraphicalLasso("cv", cv=KFold(4, shuffle=True, random_state=0)).fit(X)
    assert (
        ebic.scores_[list(ebic.alphas_).index(ebic.alpha_)] == ebic.scores_.min()
        and cv.alpha_ == cv.alphas_[cv.scores_.argmax()]
    )
    assert strict.graph_.sum() <= ebic.graph_.sum() <= cv.graph_.sum()
    held_out = problem(9, 12, 20_000, 0.15)
    assert cv.score(held_out) > GraphicalLasso(1.0).fit(X).score(held_out)
    # the criterion by hand
    n, p = X.shape
    Z = (X - X.mean(0)) / X.std(0)
    R = np.corrcoef(X.T)
    i = list(ebic.alphas_).index(ebic.alpha_)
    refitted = GraphicalLasso(ebic.alpha_, refit=True, tol=1e-8).fit(Z)
    assert np.array_equal(refitted.graph_, ebic.graph_)
    T = refitted.precision_
    edges = (np.count_nonzero(T) - p) // 2
    wanted = n * (np.vdot(R, T) - np.linalg.slogdet(T)[1]) + edges * (np.log(n) + 2.0 * np.log(p))
    assert ebic.scores_[i] == pytest.approx(wanted, rel=1e-6)


def test_held_out_likelihood_by_hand() -> None:
    X = problem(2, 5, 60)
    model = GraphicalLasso("cv", cv=3, alphas=[0.02, 0.5, 0.1, 0.2], tol=1e-9).fit(X)
    assert model.alphas_.tolist() == [0.5, 0.2, 0.1, 0.02]
    total = np.zeros(4)
    for train, test in KFold(3).split(X):
        mean, size = X[train].mean(axis=0), X[train].std(axis=0)
        Z = (X[test] - mean) / size
        for k, alpha in enumerate(model.alphas_):
            T = graphical_lasso_path(np.corrcoef(X[train].T), [alpha], tol=1e-9).precisions[0]
            total[k] += 0.5 * (np.linalg.slogdet(T)[1] - np.einsum("ni,ij,nj->n", Z, T, Z).mean())
    assert np.allclose(model.scores_, total / 3, atol=1e-5)


def test_adaptive_penalties_take_bias_off_strong_edges() -> None:
    X = problem(4, 10, 2000, 0.15)
    plain, adaptive = GraphicalLasso(0.05).fit(X), GraphicalLasso(0.05, adaptive=True).fit(X)
    sure = plain.graph_ & (np.abs(plain.partial_correlations_) > 0.1)
    assert sure.any()
    assert (np.abs(adaptive.partial_correlations_[sure]) > np.abs(plain.partial_correlations_[sure])).all()
    softer = GraphicalLasso(0.05, adaptive=1.0).fit(X)
    assert np.abs(softer.partial_correlations_[sure]).mean() < np.abs(adaptive.partial_correlations_[sure]).mean()


def test_partial_correlations_are_correlations_of_residuals() -> None:
    X = problem(6, 4, 400, 0.8)
    X = X - X.mean(axis=0)
    rho = partial_correlations(np.linalg.inv(np.cov(X.T)))
    rest = X[:, 2:]
    left, right = (X[:, i] - rest @ np.linalg.lstsq(rest, X[:, i], rcond=None)[0] for i in (0, 1))
    assert rho[0, 1] == pytest.approx(np.corrcoef(left, right)[0, 1])


def test_it_becomes_a_gaussian_and_a_markov_network() -> None:
    pd = pytest.importorskip("pandas")
    X = np.random.default_rng(0).multivariate_normal([1, 2, 3, 4], WORKED, size=2000)
    model = GraphicalLasso(adaptive=True).fit(pd.DataFrame(X, columns=list("abcd")))
    assert [edge[:2] for edge in model.edges()] == [("a", "b"), ("b", "c"), ("c", "d")]
    g = model.to_gaussian()
    assert np.allclose(g.mean, model.location_) and np.allclose(g.precision, model.precision_)
    assert np.allclose(g.cov, model.covariance_, rtol=1e-8)
    net = model.to_markov_network()
    assert net.variables == ("a", "b", "c", "d")
    assert [set(edge) for edge in net.edges] == [{"a", "b"}, {"b", "c"}, {"c", "d"}]
    wanted = g.condition({0: 3.0})
    belief = net.query("c", {"a": 3.0})["c"]
    assert belief.mean() == pytest.approx(wanted.mean[1], abs=1e-9)
    assert model.to_markov_network(names=list("wxyz")).variables == ("w", "x", "y", "z")


def test_compiled_and_plain_loops_agree() -> None:
    from gramgraph._numerics.gaussian import glasso

    plain = getattr(glasso.sweep, "py_func", glasso.sweep)
    S = np.corrcoef(problem(1, 6, 50).T)
    L = np.full((6, 6), 0.1)
    np.fill_diagonal(L, 0.0)
    found = []
    for function in (glasso.sweep, plain):
        W, B = np.eye(6), np.zeros((6, 6))
        for _ in range(5):
            function(S, L, W, B, np.empty(6), 1e-10)
        found.append((W, B))
    assert np.allclose(found[0][0], found[1][0], atol=1e-12) and np.allclose(found[0][1], found[1][1], atol=1e-12)


def test_compiled_and_plain_loops_of_refitting_agree() -> None:
    from gramgraph._numerics.gaussian import glasso

    S = np.corrcoef(problem(1, 6, 50).T)
    graph = np.abs(S) > 0.1
    np.fill_diagonal(graph, False)
    start = np.concatenate([[0], np.cumsum(graph.sum(axis=1))])
    index = np.nonzero(graph)[1]
    found = []
    for function in (glasso.graph_sweep, getattr(glasso.graph_sweep, "py_func", glasso.graph_sweep)):
        W, B = S.copy(), np.zeros((6, 6))
        for _ in range(3):
            assert function(S, start, index, W, B, np.empty((6, 6)), np.empty(6)) >= 0.0
        found.append((W, B))
    assert np.allclose(found[0][0], found[1][0], atol=1e-12) and np.allclose(found[0][1], found[1][1], atol=1e-12)


def test_too_many_edges_for_a_refit() -> None:
    X = np.random.default_rng(0).standard_normal((5, 8))
    with pytest.raises(ModelError, match="too many for a maximum likelihood fit"):
        GraphicalLasso(0.001, refit=True, tol=1e-2).fit(X)
    assert GraphicalLasso().fit(X).graph_.shape == (8, 8)


def test_a_warning_when_sweeps_run_out() -> None:
    X = problem(0, 20, 25, 0.9)
    with pytest.warns(ConvergenceWarning, match="max_iter=3"):
        GraphicalLasso(0.05, max_iter=3, tol=1e-12).fit(X)


def test_public_names() -> None:
    assert gg.GraphicalLasso is GraphicalLasso and gg.estimators.graphical_lasso_path is graphical_lasso_path


# --- bad input ------------------------------------------------------------------------------------------------------

X0 = np.random.default_rng(0).standard_normal((20, 3))


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: GraphicalLasso("ebics").fit(X0), "alpha must be one of 'ebic', 'cv'.*Did you mean 'ebic'"),
        (lambda: GraphicalLasso(-1.0).fit(X0), "alpha must be a finite number of at least 0"),
        (lambda: GraphicalLasso(tol=0.0).fit(X0), "tol must be a positive number"),
        (lambda: GraphicalLasso(max_iter=0).fit(X0), "max_iter must be a whole number"),
        (lambda: GraphicalLasso(adaptive=-1.0).fit(X0), "adaptive must be a positive number"),
        (lambda: GraphicalLasso(standardize="yes").fit(X0), "standardize must be one of"),
        (lambda: GraphicalLasso(alphas=[-1.0]).fit(X0), "alphas must be non-negative"),
        (lambda: GraphicalLasso(n_alphas=0).fit(X0), "n_alphas must be a whole number"),
        (lambda: GraphicalLasso(alpha_min_ratio=2.0).fit(X0), "alpha_min_ratio must be"),
        (lambda: GraphicalLasso().fit(np.column_stack([X0, np.ones(20)])), "Column x3 is constant"),
        (lambda: graphical_lasso_path(np.ones((2, 3))), "square matrix"),
        (lambda: graphical_lasso_path([[1.0, np.nan], [np.nan, 1.0]]), "NaN"),
        (lambda: graphical_lasso_path([[1.0, 0.5], [0.2, 1.0]]), "symmetric"),
        (lambda: graphical_lasso_path([[1.0, 0.0], [0.0, 0.0]]), "variable 1 does not vary"),
        (lambda: graphical_lasso_path([[1.0, 2.0], [2.0, 1.0]]), "positive semidefinite"),
        (lambda: graphical_lasso_path(np.eye(2), [-1.0]), "alphas must be non-negative"),
        (lambda: graphical_lasso_path(np.eye(2), [0.1], weights=np.zeros((2, 2))), "weights must be"),
        (lambda: partial_correlations([[0.0]]), "positive diagonal"),
    ],
)
def test_bad_input(call: Any, match: str) -> None:
    with pytest.raises(ModelError, match=match):
        call()


def test_missing_values_are_named() -> None:
    X = X0.copy()
    X[3, 1] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        GraphicalLasso().fit(X)


def test_copies_of_a_column_are_named() -> None:
    rng = np.random.default_rng(0)
    x, u = rng.normal(size=(2, 300))
    X = np.column_stack([x, x + rng.normal(size=300), u, 2 * u])
    with pytest.raises(ValueError, match="x2 and x3 are multiples"):
        GraphicalLasso().fit(X)
    assert GraphicalLasso(0.1).fit(X).graph_[2, 3]


@pytest.mark.parametrize("precision", [[[1.0, 2.0], [2.0, 1.0]], [[1.0, np.nan], [np.nan, 1.0]], [["a"]]])
def test_partial_correlations_need_a_precision_matrix(precision):
    with pytest.raises(ModelError, match="precision must be"):
        partial_correlations(precision)


def test_results_of_cross_validation_have_the_words_of_scikit_learn(tmp_path):
    import gramgraph as gg

    X = np.random.default_rng(0).normal(size=(60, 3)) @ np.array([[1.0, 0.5, 0.0], [0.0, 1.0, 0.5], [0.0, 0.0, 1.0]])
    model = GraphicalLasso(alpha="cv", cv=3, n_alphas=4).fit(X)
    found = model.cv_results_
    folds = np.stack([found[f"split{k}_test_score"] for k in range(3)])
    assert np.array_equal(found["alphas"], model.alphas_)
    assert np.allclose(found["mean_test_score"], folds.mean(axis=0)) and "split3_test_score" not in found
    assert np.allclose(found["std_test_score"], folds.std(axis=0))
    gg.write(model, tmp_path / "model.json")
    assert np.array_equal(gg.read(tmp_path / "model.json").cv_results_["split1_test_score"], folds[1])
    assert not hasattr(model.set_params(alpha=0.1).fit(X), "cv_results_")
