"""Structures with real-valued columns: scores by formula and against published values, tests, searches."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from scipy.special import multigammaln
from scipy.stats import multivariate_normal

import gramgraph as gg
from gramgraph.learn.gaussian_scores import REAL_SCORES, MixedScores
from gramgraph.learn.mixed_table import MixedTable, read_table
from gramgraph.testing.random_models import random_bayesian_network


def linear(seed: int, n: int = 5, rows: int = 400, density: float = 0.5) -> tuple[pd.DataFrame, list[tuple[str, str]]]:
    rng = np.random.default_rng(seed)
    edges = [(a, b) for a, b in itertools.combinations(range(n), 2) if rng.random() < density]
    X = np.zeros((rows, n))
    for v in range(n):
        X[:, v] = rng.normal(size=rows) + sum(X[:, a] * rng.uniform(0.6, 1.2) for a, b in edges if b == v)
    names = [f"x{i}" for i in range(n)]
    return pd.DataFrame(X, columns=names), [(names[a], names[b]) for a, b in edges]


def mixed(seed: int, rows: int = 3000) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    sex = rng.integers(0, 2, rows)
    arm = np.where(rng.random(rows) < np.where(sex == 1, 0.75, 0.25), "new", "old")
    dose = rng.normal(size=rows) + 2.0 * sex
    gain = np.where(arm == "new", 1.5, -0.5) * dose + 0.5 * rng.normal(size=rows)
    return pd.DataFrame({"sex": np.where(sex == 1, "f", "m"), "arm": arm, "dose": dose, "gain": gain})


def bge_by_formula(X: np.ndarray) -> float:
    """log p of columns under a normal–Wishart prior, by the formula for a complete graph on all of them."""
    n, d = X.shape
    off = X - X.mean(axis=0)
    T, aw = 0.5 * np.eye(d), d + 2.0
    R = T + off.T @ off
    return float(
        -0.5 * n * d * math.log(math.pi) - 0.5 * d * math.log(n + 1)
        + multigammaln(0.5 * (aw + n), d) - multigammaln(0.5 * aw, d)
        + 0.5 * aw * np.linalg.slogdet(T)[1] - 0.5 * (aw + n) * np.linalg.slogdet(R)[1]
    )  # fmt: skip


def test_bge_of_a_complete_graph_is_the_normal_wishart_evidence() -> None:
    frame, _ = linear(0, 4, 60)
    scores = MixedScores(read_table(frame), "bge")
    whole = [tuple(range(v)) for v in range(4)]
    assert scores.total(whole) == pytest.approx(bge_by_formula(frame.to_numpy()), rel=1e-12)


@pytest.mark.parametrize("score", ["bge", "bic", "aic"])
def test_equivalent_graphs_have_equal_scores(score) -> None:
    frame, _ = linear(1, 4, 80)
    scores = MixedScores(read_table(frame), score)
    chain, fork, back = [(), (0,), (1,), (2,)], [(1,), (), (1,), (2,)], [(1,), (2,), (3,), ()]
    assert scores.total(chain) == pytest.approx(scores.total(fork), rel=1e-10)
    assert scores.total(chain) == pytest.approx(scores.total(back), rel=1e-10)
    assert scores.total(chain) != pytest.approx(scores.total([(), (0, 2), (), (2,)]), abs=1e-3)
    for order in itertools.permutations(range(4)):
        complete = [tuple(order[: order.index(v)]) for v in range(4)]
        assert scores.total(complete) == pytest.approx(scores.total([(), (0,), (0, 1), (0, 1, 2)]), rel=1e-10)


@pytest.mark.parametrize("seed", range(3))
def test_bdeu_is_equal_for_equivalent_discrete_graphs(seed) -> None:
    from gramgraph.data import Counts, code_table
    from gramgraph.learn.scores import FamilyScores

    frame = random_bayesian_network(np.random.default_rng(seed), 4).sample(200, random_state=seed)
    scores = FamilyScores(Counts(code_table(frame)), "bdeu")
    totals = [
        scores.total([tuple(order[: order.index(v)]) for v in range(4)]) for order in itertools.permutations(range(4))
    ]
    assert np.ptp(totals) < 1e-8


def test_the_likelihood_is_that_of_the_fitted_network() -> None:
    for frame, edges in ((linear(2)[0], [("x0", "x2"), ("x1", "x2")]), (mixed(0), [("arm", "gain"), ("dose", "gain")])):
        table = read_table(frame)
        scores = MixedScores(table, "log_likelihood")
        parents = [tuple(table.position(a) for a, b in edges if b == name) for name in table.names]
        net = gg.BayesianNetwork.from_parts(table.variables, [None] * len(parents), parents=parents).fit(frame)
        assert scores.total(parents) == pytest.approx(float(np.sum(net.log_likelihood(frame))), rel=1e-9)


def test_few_rows_in_a_configuration_share_slopes_and_variance() -> None:
    frame = mixed(1, 200)
    frame.loc[[3], "arm"] = "rare"
    table = read_table(frame)
    at = [table.position(name) for name in ("gain", "arm", "dose")]
    scores = MixedScores(table, "log_likelihood")
    value = scores.family(at[0], (at[1], at[2]))
    assert np.isfinite(value)
    net = gg.BayesianNetwork.from_parts(
        table.variables, [None] * 4, parents=[(), (), (), tuple(sorted((at[1], at[2])))]
    ).fit(frame)
    known = scores.family(0, ()) + scores.family(1, ()) + scores.family(2, ()) + value
    assert known == pytest.approx(float(np.sum(net.log_likelihood(frame))), rel=1e-9)


def test_published_and_other_libraries_scores(shared_data) -> None:
    frame = pd.read_csv(shared_data / "bn_data" / "gaussian.test.csv.gz")
    net = gg.BayesianNetwork(
        {"A": [], "B": [], "E": [], "G": [], "C": ["A", "B"], "D": ["B"], "F": ["A", "D", "E", "G"]}
    )
    assert gg.learn.score(net, frame, "bic") == pytest.approx(-53221.35, abs=0.01)  # bnlearn's manual
    assert gg.learn.score(net, frame, "bge") == pytest.approx(-53258.94, abs=0.005)
    scores = pytest.importorskip("pgmpy.structure_score")
    theirs = scores.BICGauss(frame)
    total = sum(theirs.local_score(v, tuple(net.parents(v))) for v in net.variables)
    assert gg.learn.score(net, frame, "bic") == pytest.approx(total, abs=1e-6)
    theirs = scores.AICGauss(frame)
    total = sum(theirs.local_score(v, tuple(net.parents(v))) for v in net.variables)
    assert gg.learn.score(net, frame, "aic") == pytest.approx(total, abs=1e-6)


def test_conditional_gaussian_scores_equal_pgmpy(shared_data) -> None:
    """pgmpy divides by n - 1 where the largest likelihood divides by n: the difference is known."""
    library = pytest.importorskip("pgmpy.structure_score")
    frame = pd.read_csv(shared_data / "bn_data" / "clgaussian.test.csv.gz")
    frame = frame.astype({c: "category" for c in frame if c in "ABCF"})
    table, theirs = read_table(frame), library.BICCondGauss(frame)
    ours = MixedScores(table, "bic")
    for child, parents in [("D", ()), ("D", ("A", "H")), ("H", ("A", "B")), ("E", ("B", "D")), ("C", ("A", "B"))]:
        at = [table.position(p) for p in parents]
        v = table.position(child)
        known = theirs.local_score(child, parents)
        if table.real[v]:
            which, _ = table.configurations([p for p in at if not table.real[p]])
            n = np.bincount(which)
            n = n[n > 0].astype(float)
            known += float((n / 2 * (np.log(n / (n - 1)) - 1 / n)).sum())
        assert ours.family(v, at) == pytest.approx(known, abs=1e-6)


@pytest.mark.parametrize("score", ["bic", "bge"])
@pytest.mark.parametrize("method", ["hill_climb", "tabu", "ges", "order", "exact", "mmhc", "pc"])
def test_gaussian_networks_are_found(method, score) -> None:
    frame, edges = linear(5, 6, 5000, 0.35)
    net = gg.learn_structure(frame, method=method, score=score, alpha=0.001)
    truth = gg.BayesianNetwork({name: [a for a, b in edges if b == name] for name in frame})
    assert net.is_equivalent(truth)
    assert net.query("x5", {"x0": 1.0})["x5"].var() > 0
    assert net.report.score == pytest.approx(gg.learn.score(net, frame, score), rel=1e-10)


def test_exact_search_of_gaussians_is_the_best() -> None:
    frame, _ = linear(6, 5, 60)
    for score in REAL_SCORES:
        scores = MixedScores(read_table(frame), score)
        best = max(
            sum(
                max(scores.family(v, s) for k in range(i + 1) for s in itertools.combinations(order[:i], k))
                for i, v in enumerate(order)
            )
            for order in itertools.permutations(range(5))
        )
        assert gg.learn_structure(frame, method="exact", score=score).report.score == pytest.approx(best, rel=1e-10)


def test_mixed_columns_give_a_conditional_linear_gaussian_network() -> None:
    frame = mixed(2)
    for method in ("hill_climb", "exact", "ges", "order", "pc", "mmhc"):
        net = gg.learn_structure(frame, method=method, alpha=0.001)
        assert {frozenset(e) for e in net.edges} == {
            frozenset(e) for e in [("sex", "arm"), ("sex", "dose"), ("arm", "gain"), ("dose", "gain")]
        }
        assert ("arm", "gain") in net.edges and ("sex", "dose") in net.edges
    answer = net.query("gain", {"arm": "new", "dose": 2.0})["gain"]
    assert answer.mean() == pytest.approx(3.0, abs=0.1)
    with pytest.raises(gg.OptionError, match="from a real to a discrete"):
        gg.learn_structure(frame, required=[("dose", "arm")])
    with pytest.raises(gg.OptionError, match="'bge' is for real columns"):
        gg.learn_structure(frame, score="bge")
    with pytest.raises(gg.OptionError, match="for real-valued columns"):
        gg.learn_structure(frame, score="k2")
    with pytest.raises(gg.OptionError, match="discrete columns"):
        gg.learn_structure(frame, method="chow_liu")


def test_gaps_and_strange_columns() -> None:
    frame, _ = linear(7, 3, 300)
    gaps = frame.copy()
    gaps.iloc[::7, 1] = np.nan
    with pytest.warns(gg.ModelWarning, match="left out"):
        net = gg.learn_structure(gaps)
    assert net.edges == gg.learn_structure(gaps.dropna()).edges
    twin = frame.assign(copy=frame["x0"], same=0.5)
    found = gg.learn_structure(twin)
    assert {"x0", "copy"} in [set(edge) for edge in found.edges]
    assert not [edge for edge in found.edges if "same" in edge]
    with pytest.raises(gg.VariableError, match="inf"):
        gg.learn_structure(frame.assign(x1=np.inf))
    weighted = gg.learn_structure(frame, weights=np.r_[np.ones(150), np.zeros(150)])
    half = gg.learn_structure(frame.iloc[:150])
    assert weighted.report.score == pytest.approx(half.report.score)
    assert isinstance(read_table(frame.assign(w=1), weights="w"), MixedTable)


def test_fisher_z_by_formula() -> None:
    frame, _ = linear(8, 3, 200)
    x, y, z = frame.to_numpy().T
    rest = [v - np.polyval(np.polyfit(z, v, 1), z) for v in (x, y)]
    r = np.corrcoef(*rest)[0, 1]
    found = gg.learn.independence_test(frame, "x0", "x1", "x2")
    assert found.statistic == pytest.approx(math.sqrt(200 - 1 - 3) * math.atanh(r))
    assert found.p_value == pytest.approx(math.erfc(abs(found.statistic) / math.sqrt(2)))


def test_the_likelihood_ratio_of_gaussians_by_formula() -> None:
    frame = mixed(3, 300)
    found = gg.learn.independence_test(frame, "gain", "dose", "sex", test="cg")
    gain = 0.0
    for _, part in frame.groupby("sex"):
        X = part[["dose", "gain"]].to_numpy()
        S = np.cov(X.T, bias=True)
        joint = multivariate_normal(X.mean(axis=0), S).logpdf(X).sum()
        apart = sum(multivariate_normal(X[:, i].mean(), S[i, i]).logpdf(X[:, i]).sum() for i in (0, 1))
        gain += joint - apart
    assert (found.statistic, found.dof) == (pytest.approx(2 * gain), 2)
    plain = gg.learn.independence_test(frame, "sex", "arm", test="g2")
    assert gg.learn.independence_test(frame.assign(x=frame["dose"]), "sex", "arm", test="auto") == plain


@pytest.mark.parametrize("test", ["fisher_z", "cg"])
def test_levels_of_parametric_tests(test) -> None:
    """Share of p-values below 0.05 of 150: outside 0.05 ± 0.05 about once in a hundred runs."""
    rng = np.random.default_rng(0)
    p = []
    for _ in range(150):
        z = rng.normal(size=200)
        frame = pd.DataFrame({"x": z + rng.normal(size=200), "y": z + rng.normal(size=200), "z": z})
        if test == "cg":
            frame["s"] = np.where(rng.random(200) < 0.5, "a", "b")
            frame["x"] += np.where(frame["s"] == "a", 1.0, 0.0)
        given = ["z", "s"] if test == "cg" else ["z"]
        p.append(gg.learn.independence_test(frame, "x", "y", given, test=test).p_value)
    assert 0.0 < np.mean(np.array(p) < 0.05) < 0.1


@pytest.mark.parametrize("test", ["hsic", "kci"])
def test_kernel_tests_hold_their_level_and_see_what_correlations_miss(test) -> None:
    """Of 60 p-values under independence, more than 9 are below 0.05 once in 1,000 runs."""
    rng = np.random.default_rng(1)
    low = 0
    for i in range(60):
        z = rng.normal(size=120)
        frame = pd.DataFrame({"x": z**2 + rng.normal(size=120), "y": np.sin(z) + rng.normal(size=120), "z": z})
        given = "z" if i % 2 else ()
        if not given:
            frame["y"] = rng.normal(size=120)
        low += gg.learn.independence_test(frame, "x", "y", given, test=test).p_value < 0.05
    assert low <= 9
    x = np.linspace(-2, 2, 300)
    frame = pd.DataFrame({"x": x, "y": x**2 + 0.3 * rng.normal(size=300), "z": rng.normal(size=300)})
    assert gg.learn.independence_test(frame, "x", "y", test=test).p_value < 0.01
    assert gg.learn.independence_test(frame, "x", "y", "z", test=test).p_value < 0.01
    assert gg.learn.independence_test(frame, "x", "y", test="fisher_z").p_value > 0.05
    net = gg.learn_structure(frame, method="pc", test=test, alpha=0.01)
    assert {frozenset(edge) for edge in net.edges} == {frozenset(("x", "y"))}


def test_tests_that_do_not_fit_the_columns_say_so() -> None:
    real, labels = linear(9, 2, 50)[0], gg.datasets.asia().sample(50, random_state=0)
    for frame, test, words in (
        (real, "g2", "real-valued"),
        (labels, "fisher_z", "all are discrete"),
        (mixed(0, 50), "fisher_z", "is discrete"),
        (real, "fischer_z", "Did you mean 'fisher_z'"),
    ):
        with pytest.raises(gg.OptionError, match=words):
            gg.learn_structure(frame, method="pc", test=test)
