"""Undirected models from data: moments match, gradients are right, small cases agree with the full joint table."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gramgraph as gg
from gramgraph.data import code_table
from gramgraph.data.counts import Counts
from gramgraph.learn.ascent import climb, subgradient
from gramgraph.learn.expectations import ExactExpectations, LoopyExpectations
from gramgraph.learn.log_linear import Likelihood
from gramgraph.learn.log_linear_design import contrasts, design_of_features, design_of_network
from gramgraph.learn.pseudo_likelihood import PseudoLikelihood
from tests.portions import examples

SCOPES = [("a", "b"), ("b", "c"), ("c", "d"), ("a", "d"), ("d", "e", "f")]
SIZES = {"a": 3, "b": 2, "c": 2, "d": 3, "e": 2, "f": 1}


def random_net(seed: int, scopes=SCOPES, sizes=SIZES, scale: float = 0.7) -> gg.MarkovNetwork:
    rng = np.random.default_rng(seed)
    tables = {scope: np.exp(scale * rng.normal(size=[sizes[v] for v in scope])) for scope in scopes}
    return gg.MarkovNetwork(tables, states=dict(sizes))


def joint(net: gg.MarkovNetwork) -> dict[tuple[int, ...], float]:
    """Every assignment with its probability, by multiplying the factors out."""
    sizes = [var.size for var in net.vars]
    names = net.variables
    logs = {
        at: net.joint_log_prob({n: net.states(n)[i] for n, i in zip(names, at, strict=True)})
        for at in itertools.product(*map(range, sizes))
    }
    total = np.logaddexp.reduce(list(logs.values()))
    return {at: float(np.exp(value - total)) for at, value in logs.items()}


def shares(frame: pd.DataFrame, net: gg.MarkovNetwork, names: tuple[str, ...]) -> np.ndarray:
    counts = Counts(code_table(frame, net.vars))
    return np.asarray(counts.table(names)) / len(frame)


# ------------------------------------------------------------------------------------------------- the optimum


@pytest.mark.parametrize("method", ["exact", "ipf"])
@pytest.mark.parametrize("seed", range(3))
def test_at_the_maximum_the_margins_of_every_scope_are_those_of_the_data(method, seed) -> None:
    net = random_net(seed)
    frame = net.sample(3000, random_state=seed)
    fitted = net.fit(frame, method=method)
    assert fitted.fit_report.converged
    for scope in SCOPES:
        np.testing.assert_allclose(fitted.query(scope)[scope].probabilities, shares(frame, net, scope), atol=2e-6)


def test_a_margin_that_does_not_match_is_not_the_maximum() -> None:
    net = random_net(0)
    frame = net.sample(3000, random_state=0)
    design, counts = design_of_network(net, net.vars), Counts(code_table(frame, net.vars))
    objective = Likelihood(design, design.shares(counts), ExactExpectations(design))
    best = net.fit(frame, method="exact").fit_report
    top = objective(best.weights)[0]
    rng = np.random.default_rng(1)
    for _ in range(20):
        other = best.weights + 0.05 * rng.normal(size=len(best.weights))
        value, gradient = objective(other)
        assert value < top
        assert np.abs(gradient).max() > 1e-4


def test_the_likelihood_is_that_of_the_joint_table() -> None:
    net = random_net(3)
    frame = net.sample(400, random_state=0)
    fitted = net.fit(frame, method="exact")
    p = joint(fitted)
    rows = code_table(frame, net.vars).matrix.T
    expected = sum(np.log(p[tuple(row)]) for row in rows.tolist())
    assert fitted.fit_report.value == pytest.approx(expected, rel=1e-9)
    assert fitted.fit_report.objective == "log-likelihood"


def test_the_pseudo_likelihood_is_that_of_the_joint_table() -> None:
    net = random_net(4)
    frame = net.sample(300, random_state=0)
    fitted = net.fit(frame, method="pseudo_likelihood", l2=0.01)
    p = joint(fitted)
    expected = 0.0
    for row in map(tuple, code_table(frame, net.vars).matrix.T.tolist()):
        for v, var in enumerate(net.vars):
            others = sum(p[(*row[:v], y, *row[v + 1 :])] for y in range(var.size))
            expected += np.log(p[row] / others)
    assert fitted.fit_report.value == pytest.approx(expected, rel=1e-9)


def test_exact_and_proportional_fitting_agree_on_a_loop() -> None:
    net = random_net(5)
    frame = net.sample(2000, random_state=0)
    exact, ipf = (net.fit(frame, method=m, tol=1e-9) for m in ("exact", "ipf"))
    a, b = joint(exact), joint(ipf)
    assert max(abs(a[at] - b[at]) for at in a) < 1e-8
    assert exact.fit_report.value == pytest.approx(ipf.fit_report.value, abs=1e-6)


@pytest.mark.parametrize("method", ["exact", "bp", "pseudo_likelihood", "ipf"])
def test_the_trace_never_falls(method) -> None:
    net = random_net(6)
    report = net.fit(net.sample(1000, random_state=0), method=method).fit_report
    assert len(report.trace) > 3
    assert (np.diff(report.trace) >= -1e-12).all()
    assert report.n_iter == len(report.trace) - 1


# ------------------------------------------------------------------------------------------------- gradients


@st.composite
def problems(draw):
    """A random design, rows, and weights."""
    n = draw(st.integers(2, 5))
    sizes = [draw(st.integers(1, 3)) for _ in range(n)]
    names = [f"v{i}" for i in range(n)]
    pool = [c for k in (1, 2, 3) for c in itertools.combinations(range(n), k)]
    chosen = draw(st.lists(st.sampled_from(pool), min_size=1, max_size=5, unique=True))
    seed = draw(st.integers(0, 10_000))
    rng = np.random.default_rng(seed)
    tables = {tuple(names[v] for v in c): np.ones([sizes[v] for v in c]) for c in chosen}
    net = gg.MarkovNetwork(tables, states=dict(zip(names, sizes, strict=True)))
    rows = {name: rng.integers(0, size, 30).astype(str) for name, size in zip(names, sizes, strict=True)}
    design = design_of_network(net, net.vars)
    weights = rng.normal(size=30) if draw(st.booleans()) else None
    table = code_table(rows, net.vars, weights=None if weights is None else np.abs(weights))
    return design, table, rng.normal(size=design.n_weights)


def slope(objective, w: np.ndarray) -> np.ndarray:
    step = 1e-5
    return np.array([(objective(w + step * e)[0] - objective(w - step * e)[0]) / (2 * step) for e in np.eye(len(w))])


@settings(max_examples=examples(40))
@given(problems())
def test_gradients_equal_differences(problem) -> None:
    design, table, w = problem
    likelihood = Likelihood(design, design.shares(Counts(table)), ExactExpectations(design))
    pseudo = PseudoLikelihood(design, table)
    for objective in (likelihood, pseudo):
        np.testing.assert_allclose(objective(w)[1], slope(objective, w), atol=2e-8)


@settings(max_examples=examples(40))
@given(problems())
def test_counted_patterns_and_scanned_rows_agree(problem) -> None:
    design, table, w = problem
    counted = PseudoLikelihood(design, table)
    scanned = PseudoLikelihood(design, table)
    free = np.flatnonzero(design.sizes > 1)
    scanned._patterns = scanned._patterns._replace(variables=np.zeros(0, np.int64))
    scanned._scanned = free
    scanned._rows = (table.matrix, np.ones(1) if table.weights is None else table.weights)
    (a, da), (b, db) = counted(w), scanned(w)
    assert a == pytest.approx(b, rel=1e-12)
    np.testing.assert_allclose(da, db, atol=1e-13)


@pytest.mark.parametrize("weighted", [False, True])
def test_products_of_matrices_agree_with_the_scan(weighted) -> None:
    names, sizes = [f"v{i}" for i in range(12)], [2, 3, 2, 4, 2, 2, 1, 3, 2, 2, 2, 2]
    every = {p: np.ones([sizes[i] for i in p]) for p in itertools.combinations(range(12), 2)}
    net = gg.MarkovNetwork(
        {(*(names[i] for i in p),): t for p, t in every.items()}, states=dict(zip(names, sizes, strict=True))
    )
    rng = np.random.default_rng(0)
    rows = {v: rng.integers(0, k, 300).astype(str) for v, k in zip(names, sizes, strict=True)}
    table = code_table(rows, net.vars, weights=rng.random(300) if weighted else None)
    matrices, scan = (PseudoLikelihood(design_of_network(net, net.vars), table) for _ in range(2))
    assert matrices._pairs is not None and len(matrices._scanned) == 11
    scan._pairs = None
    w = rng.normal(size=matrices.design.n_weights)
    (a, da), (b, db) = matrices(w), scan(w)
    assert a == pytest.approx(b, rel=1e-12)
    np.testing.assert_allclose(da, db, atol=1e-12)


def test_rows_are_scanned_where_neighbors_have_many_states() -> None:
    names = [f"v{i}" for i in range(14)]
    star = gg.MarkovNetwork(edges=[("v0", v) for v in names[1:]])
    rng = np.random.default_rng(0)
    table = code_table({v: rng.choice(["no", "yes"], 50) for v in names}, star.vars)
    objective = PseudoLikelihood(design_of_network(star, star.vars), table)
    assert objective._scanned.tolist() == [0]
    w = rng.normal(size=objective.design.n_weights)
    np.testing.assert_allclose(objective(w)[1], slope(objective, w), atol=2e-8)


@pytest.mark.parametrize("seed", range(5))
def test_loopy_expectations_are_exact_on_trees_and_bethe_gradients_elsewhere(seed) -> None:
    rng = np.random.default_rng(seed)
    tree = random_net(seed, [("a", "b"), ("b", "c"), ("b", "d", "e")])
    design = design_of_network(tree, tree.vars)
    w = rng.normal(size=design.n_weights)
    exact, loopy = ExactExpectations(design), LoopyExpectations(design)
    assert loopy.run(design.log_values(w))[0] == pytest.approx(exact.run(design.log_values(w))[0], rel=1e-10)
    np.testing.assert_allclose(loopy.run(design.log_values(w))[1], exact.run(design.log_values(w))[1], atol=1e-9)
    loop = random_net(seed)
    design = design_of_network(loop, loop.vars)
    w = 0.5 * rng.normal(size=design.n_weights)
    cells = np.concatenate([np.full(n, 1.0 / n) for n in np.diff(design.value_ptr)])
    objective = Likelihood(design, cells, LoopyExpectations(design, tol=1e-13))
    np.testing.assert_allclose(objective(w)[1], slope(objective, w), atol=1e-6)


@given(st.integers(1, 9))
def test_contrasts_are_orthogonal_to_each_other_and_to_the_mean(size) -> None:
    C = contrasts(size)
    np.testing.assert_allclose(C.T @ C, size * np.eye(size - 1), atol=1e-12)
    np.testing.assert_allclose(C.sum(axis=0), 0, atol=1e-12)


# ------------------------------------------------------------------------------------------------- methods


def test_pseudo_likelihood_is_the_likelihood_of_independent_variables() -> None:
    alone = gg.MarkovNetwork({"a": np.ones(3), "b": np.ones(2), "c": np.ones(4)})
    rng = np.random.default_rng(0)
    frame = {"a": rng.choice(list("012"), 200), "b": rng.choice(["no", "yes"], 200), "c": rng.choice(list("0123"), 200)}
    exact, pseudo = (alone.fit(frame, method=m, tol=1e-9) for m in ("exact", "pseudo_likelihood"))
    assert exact.fit_report.value == pytest.approx(pseudo.fit_report.value, rel=1e-12)
    np.testing.assert_allclose(exact.fit_report.weights, pseudo.fit_report.weights, atol=1e-7)


def couplings(net: gg.MarkovNetwork) -> np.ndarray:
    """J of every pair factor, whatever stands in the fields."""
    pairs = [f.log_values() for f in net.factors() if len(f.scope) == 2]
    return np.array([(t[0, 0] + t[1, 1] - t[0, 1] - t[1, 0]) / 4 for t in pairs])


@pytest.fixture(scope="module")
def grid():
    rng = np.random.default_rng(0)
    J = (rng.uniform(-0.5, 0.5, (4, 3)), rng.uniform(-0.5, 0.5, (3, 4)))
    net = gg.models.ising_grid(4, 4, J, rng.uniform(-0.3, 0.3, (4, 4)))
    return net, net.sample(4000, random_state=1)


@pytest.mark.parametrize(
    ("method", "options", "error"),
    [
        ("exact", {}, 0.03),
        ("bp", {}, 0.06),
        ("pseudo_likelihood", {}, 0.03),
        ("contrastive_divergence", {"max_iter": 200}, 0.03),
        ("contrastive_divergence", {"max_iter": 200, "persistent": True}, 0.03),
    ],
)
def test_couplings_of_a_grid_come_back(grid, method, options, error) -> None:
    truth, frame = grid
    fitted = gg.models.ising_grid(4, 4).fit(frame, method=method, random_state=0, **options)
    assert fitted.fit_report.method == method
    assert np.abs(couplings(fitted) - couplings(truth)).mean() < error
    weights = dict(zip(fitted.fit_report.names, fitted.fit_report.weights, strict=True))
    pair = next(f for f in fitted.factors() if len(f.scope) == 2)
    assert couplings(fitted)[0] == pytest.approx(weights["·".join(v.name for v in pair.scope)])


def test_contrastive_divergence_is_repeatable_and_climbs(grid) -> None:
    _, frame = grid
    runs = [
        gg.models.ising_grid(4, 4).fit(frame, method="contrastive_divergence", max_iter=30, random_state=5)
        for _ in range(2)
    ]
    assert runs[0] == runs[1]
    trace = runs[0].fit_report.trace
    assert trace[-1] > trace[0] + 0.1


def test_auto_takes_what_fits() -> None:
    chain = gg.MarkovNetwork(edges="a - b - c")
    rng = np.random.default_rng(0)
    frame = {v: rng.choice(["no", "yes"], 100) for v in "abc"}
    assert chain.fit(frame).fit_report.method == "closed_form"
    assert chain.fit(frame, l2=0.1).fit_report.method == "exact"
    wide = gg.models.ising_grid(25, 25)
    rows = {v: rng.choice([-1, 1], 300) for v in wide.variables}
    assert wide.fit(rows, l2=0.1).fit_report.method == "pseudo_likelihood"


def test_weights_count_rows_more_than_once(grid) -> None:
    net = random_net(2)
    frame = net.sample(200, random_state=0)
    times = np.random.default_rng(0).integers(0, 4, 200)
    repeated = frame.loc[np.repeat(np.arange(200), times)]
    for method in ("exact", "pseudo_likelihood", "ipf"):
        kwargs = {} if method == "ipf" else {"l2": 0.01}
        a = net.fit(frame, method=method, weights=times, **kwargs)
        b = net.fit(repeated, method=method, **kwargs)
        p, q = joint(a), joint(b)
        assert max(abs(p[at] - q[at]) for at in p) < 1e-6, method
        assert a.fit_report.rows == b.fit_report.rows == times.sum()
    named = net.fit(frame.assign(w=times), method="exact", weights="w", l2=0.01)
    np.testing.assert_allclose(named.fit_report.weights, net.fit(repeated, method="exact", l2=0.01).fit_report.weights)


def test_an_equivalent_sample_adds_uniform_rows() -> None:
    net = random_net(7, [("a", "b"), ("b", "c")], {"a": 3, "b": 2, "c": 2})
    frame = net.sample(20, random_state=0)
    every = pd.DataFrame(list(itertools.product("012", ["no", "yes"], ["no", "yes"])), columns=list("abc"))
    both = pd.concat([frame.astype(str), every.replace({"no": "0", "yes": "1"})])
    for method in ("exact", "closed_form", "ipf"):
        a = net.fit(frame, method=method, equivalent_sample_size=12)
        b = net.fit(both, method=method)
        p, q = joint(a), joint(b)
        assert max(abs(p[at] - q[at]) for at in p) < 1e-6, method


# ------------------------------------------------------------------------------------------------- penalties


def test_l1_gives_exact_zeros_and_the_conditions_of_a_maximum_hold(grid) -> None:
    _, frame = grid
    every = {pair: np.ones((2, 2)) for pair in itertools.combinations(list(frame)[:8], 2)}
    net = gg.MarkovNetwork(every, states={v: ["-1", "+1"] for v in list(frame)[:8]})
    frame = frame[list(frame)[:8]]
    for method in ("exact", "pseudo_likelihood"):
        report = net.fit(frame, method=method, l1=0.05).fit_report
        assert report.converged
        pairs = np.array(["·" in name for name in report.names])
        assert 0 < np.count_nonzero(report.weights[pairs]) < pairs.sum()
        assert (report.weights[~pairs] != 0).all(), "fields are not penalized by l1"
        assert report.n_active == np.count_nonzero(report.weights)
    huge = net.fit(frame, method="exact", l1=10.0).fit_report
    assert not huge.weights[pairs].any()


def test_l2_is_a_prior(grid) -> None:
    _, frame = grid
    net = gg.models.ising_grid(4, 4)
    norms = [np.linalg.norm(net.fit(frame, method="exact", l2=l2).fit_report.weights) for l2 in (0.0, 0.1, 1.0, 100.0)]
    assert (np.diff(norms) < 0).all()
    assert norms[-1] < 0.05


def test_climbing_a_quadratic_with_penalties_is_soft_thresholding() -> None:
    rng = np.random.default_rng(0)
    target = rng.normal(size=20)
    l1, l2 = rng.uniform(0, 1, 20), rng.uniform(0, 1, 20)
    l1[::5] = 0.0
    found = climb(
        lambda w: (-0.5 * float(((w - target) ** 2).sum()), target - w),
        np.zeros(20), l1=l1, l2=l2, max_iter=200, tol=1e-9,
    )  # fmt: skip
    expected = np.sign(target) * np.maximum(np.abs(target) - l1, 0) / (1 + l2)
    np.testing.assert_allclose(found.weights, expected, atol=1e-9)
    assert ((found.weights == 0) == (expected == 0)).all()
    assert np.abs(subgradient(found.weights, target - found.weights, l1, l2)).max() < 2e-8


# ------------------------------------------------------------------------------------------------- features


def test_features_expect_what_the_rows_show() -> None:
    agree = lambda a, b: float(a == b)  # noqa: E731
    features = [(("a", "b"), agree, "ab"), (("b", "c"), agree, "bc"), (("c", "a"), agree, "ca"), ("a", [0.0, 1.0], "a")]
    truth = gg.models.LogLinear(features, weights=[0.5, -0.8, 0.3, 0.4])
    frame = truth.sample(3000, random_state=0)
    fitted = truth.with_weights(np.zeros(4)).fit(frame)
    assert fitted.fit_report.names == ("ab", "bc", "ca", "a")
    p = joint(fitted)  # joint_log_prob is θ · f(x)
    rows = [dict(zip(truth.variables, r, strict=True)) for r in frame.astype(str).values]
    shown = np.mean([truth.feature_values(row) for row in rows], axis=0)
    states = [truth.states(v) for v in truth.variables]
    expected = sum(
        weight * truth.feature_values({v: s[i] for v, s, i in zip(truth.variables, states, at, strict=True)})
        for at, weight in p.items()
    )
    np.testing.assert_allclose(expected, shown, atol=2e-6)
    assert np.abs(fitted.weights - truth.weights).max() < 0.2


def test_tied_features_share_a_weight_and_sum_their_moments() -> None:
    agree = lambda a, b: float(a == b)  # noqa: E731
    names = [f"x{i}" for i in range(6)]
    pairs = list(itertools.pairwise(names))
    model = gg.models.LogLinear([(pair, agree, "same") for pair in pairs])
    frame = model.with_weights(np.full(5, 0.7)).sample(2000, random_state=0)
    share = np.mean([(frame[a].astype(str) == frame[b].astype(str)).mean() for a, b in pairs])
    for method in ("exact", "pseudo_likelihood"):
        fitted = model.fit(frame, tie="name", method=method, tol=1e-9)
        assert len(set(fitted.weights)) == 1 and len(fitted.fit_report.weights) == 1
        tolerance = 1e-6 if method == "exact" else 0.1
        assert fitted.weights[0] == pytest.approx(np.log(share / (1 - share)), abs=tolerance)
    labels = model.fit(frame, tie=[0, 0, 0, 1, 1])
    assert len(set(labels.weights[:3])) == 1 and len(set(labels.weights)) == 2
    assert design_of_features(model, [0, 0, 0, 1, 1]).n_weights == 2
    with pytest.raises(gg.ModelError, match="one label for each of 5 features, not 2"):
        model.fit(frame, tie=[0, 1])
    with pytest.raises(gg.OptionError, match="tie is None"):
        model.fit(frame, tie="names")
    with pytest.raises(gg.OptionError, match="full tables"):
        model.fit(frame, method="ipf")


# ------------------------------------------------------------------------------------------------- odd data


def test_zeros_of_factors_stay_zeros() -> None:
    table = [[1.0, 0.0], [1.0, 1.0]]
    net = gg.MarkovNetwork({("a", "b"): table, ("b", "c"): np.ones((2, 2)), ("a", "c"): np.ones((2, 2))})
    rows = {"a": ["no", "yes", "yes", "no"], "b": ["no", "no", "yes", "no"], "c": ["no", "yes", "no", "yes"]}
    for method in ("exact", "pseudo_likelihood"):
        fitted = net.fit(rows, method=method, l2=0.01)
        assert fitted.query(("a", "b"))[("a", "b")].probabilities[0, 1] == 0
        assert fitted.fit_report.converged
    with pytest.raises(gg.ModelError, match=r"1 rows fall into cells that the table over \(a, b\) holds impossible"):
        net.fit({**rows, "a": ["no", "yes", "no", "no"]})


def test_states_come_from_the_data_where_there_are_no_tables() -> None:
    frame = pd.DataFrame({"sky": ["sun", "rain", "snow", "sun"] * 5, "wet": [False, True, True, True] * 5})
    net = gg.MarkovNetwork(edges="sky - wet").fit(frame)
    assert net.states("sky") == ("rain", "snow", "sun") and net.states("wet") == ("no", "yes")
    assert net.query("wet", {"sky": "sun"})["wet"].prob("yes") == pytest.approx(0.5)


def test_rows_with_missing_cells_are_left_out_with_a_word() -> None:
    net = gg.MarkovNetwork(edges="a - b")
    frame = pd.DataFrame({"a": ["no", "yes", None, "yes"], "b": ["no", "yes", "no", "no"]})
    with pytest.warns(gg.ModelWarning, match="1 of 4 rows have missing cells and are left out"):
        fitted = net.fit(frame)
    assert fitted == net.fit(frame.dropna()) and fitted.fit_report.dropped == 1
    with pytest.raises(gg.VariableError, match="there is no EM for it"):
        net.fit(frame, missing="error")
    with pytest.raises(gg.VariableError, match="nothing but missing cells in b"):
        net.fit({"a": ["no", "yes"], "b": [None, None]})
    with pytest.raises(gg.VariableError, match="each of the 2 rows"):
        net.fit(pd.DataFrame({"a": ["no", None], "b": [None, "yes"]}))
    with pytest.raises(gg.OptionError, match="missing is"):
        net.fit(frame, missing="drop")


def test_bad_input_is_told_clearly() -> None:
    net = gg.MarkovNetwork({("a", "b"): np.ones((2, 2))})
    good = {"a": ["no", "yes"], "b": ["no", "yes"]}
    with pytest.raises(gg.StateError, match="row 1: 'maybe' is not a state of a"):
        net.fit({**good, "a": ["no", "maybe"]})
    with pytest.raises(gg.VariableError, match="no column 'b'"):
        net.fit({"a": ["no", "yes"]})
    with pytest.raises(gg.VariableError, match="no rows"):
        net.fit({"a": [], "b": []})
    with pytest.raises(gg.OptionError, match="Did you mean 'exact'"):
        net.fit(good, method="exakt")
    with pytest.raises(gg.OptionError, match="l1 must be a finite number"):
        net.fit(good, l1=-1)
    with pytest.raises(gg.OptionError, match="'sweeps' is not an option of engine 'exact'"):
        net.fit(good, method="exact", l2=1, sweeps=3)
    with pytest.raises(gg.OptionError, match="takes l2"):
        net.fit(good, method="pseudo_likelihood", equivalent_sample_size=3)
    with pytest.raises(gg.OptionError, match="max_iter"):
        net.fit(good, method="exact", max_iter=0)
    with pytest.raises(gg.OptionError, match="maximum likelihood"):
        net.fit(good, method="closed_form", l1=1)
    with pytest.raises(gg.OptionError, match="more than 4,096 cells"):
        gg.MarkovNetwork({tuple("abcdefg"): np.ones((4,) * 7)}).fit({v: list("0123") for v in "abcdefg"}, l2=1)
    with pytest.raises(gg.ModelError, match="GraphicalLasso"):
        gg.MarkovNetwork.from_precision(np.eye(2)).fit({"x0": [1.0], "x1": [2.0]})


def test_what_does_not_fit_into_memory_is_told_before() -> None:
    wide = gg.models.ising_grid(30, 30)
    rows = {v: [-1, 1] for v in wide.variables}
    for method in ("exact", "ipf"):
        with pytest.raises(gg.BudgetError, match='method="pseudo_likelihood"'):
            wide.fit(rows, method=method)


def test_a_constant_column_is_learned_and_warned_of() -> None:
    frame = {"a": ["no"] * 30, "b": ["no", "yes"] * 15, "c": ["no", "no", "yes"] * 10}
    net = gg.MarkovNetwork(edges="a - b - c; a - c")
    with pytest.warns(gg.ModelWarning, match="no row has a=yes"):
        fitted = net.fit(frame, method="exact")
    assert fitted.query("a")["a"].prob("yes") < 1e-4
    assert np.isfinite(fitted.fit_report.weights).all()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        held = net.fit(frame, method="exact", l2=0.1)
    assert 0 < held.query("a")["a"].prob("yes") < 0.5


def test_too_few_steps_are_reported() -> None:
    net = random_net(0)
    with pytest.warns(gg.ModelWarning, match="no convergence after 2 steps"):
        report = net.fit(net.sample(500, random_state=0), method="exact", max_iter=2).fit_report
    assert not report.converged and report.gradient > 1e-4


def test_progress_and_interruption() -> None:
    net = random_net(0)
    frame = net.sample(500, random_state=0)
    told: list[tuple[int, int]] = []
    net.fit(frame, method="exact", progress=lambda done, total: told.append((done, total)))
    assert [done for done, _ in told] == list(range(1, len(told) + 1)) and told[0][1] == 1000

    def stop(done: int, total: int) -> None:
        if done == 4:
            raise KeyboardInterrupt

    with pytest.warns(gg.ModelWarning, match="no convergence"):
        cut = net.fit(frame, method="exact", progress=stop)
    assert cut.fit_report.n_iter == 4 and cut.fit_report.trace[-1] > cut.fit_report.trace[0]


def test_reports_show_themselves() -> None:
    net = random_net(0)
    report = net.fit(net.sample(500, random_state=0), method="exact").fit_report
    frame = report.to_frame()
    assert list(frame.columns) == ["feature", "weight"] and len(frame) == len(report.weights)
    assert "exact: log-likelihood" in repr(report)
    pytest.importorskip("matplotlib").use("Agg")
    assert len(report.plot().lines[0].get_xdata()) == len(report.trace)


def test_files_and_other_frames_give_the_same(tmp_path) -> None:
    pl = pytest.importorskip("polars")
    net = random_net(1)
    frame = net.sample(300, random_state=0).astype(str)
    frame.to_csv(tmp_path / "rows.csv", index=False)
    a = net.fit(frame, method="exact", l2=0.01)
    assert a == net.fit(pl.from_pandas(frame), method="exact", l2=0.01)
    assert a == net.fit(tmp_path / "rows.csv", method="exact", l2=0.01)
