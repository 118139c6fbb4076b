"""All-Gaussian models: every engine against dense conditioning, and questions of every kind."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.stats import multivariate_normal

import gramgraph as gg
from gramgraph.engines import Run, get_engine
from gramgraph.io import native
from gramgraph.questions.reading import read
from tests.engines.mixed.drawing import brute_force, compare, evidence_from, gaussian_network


@pytest.mark.parametrize("engine", ["dense", "sparse", "junction_tree"])
@pytest.mark.parametrize("seed", range(12))
def test_engines_agree_with_dense_conditioning(engine, seed):
    rng = np.random.default_rng(seed)
    net = gaussian_network(rng, int(rng.integers(1, 9)))
    evidence = evidence_from(net, rng)
    truth = brute_force(net, evidence)
    answer = net.query(None, evidence, engine=engine)
    assert answer.exact and answer.engine == engine
    compare(answer, net, evidence, truth)
    free = [name for name in net.variables if name not in evidence][:2]
    if len(free) == 2:
        pair = tuple(free)
        joint = net.query([pair, free[0]], evidence, engine=engine)
        at = np.concatenate([truth[4][name] for name in pair])
        np.testing.assert_allclose(
            joint[pair].cov(), truth[3][np.ix_(at, at)], atol=1e-9 * (1 + np.abs(truth[3]).max())
        )


@pytest.mark.parametrize("seed", range(8))
def test_belief_propagation_is_exact_on_trees_and_has_exact_means_with_loops(seed):
    rng = np.random.default_rng(seed)
    n = 25
    P = np.zeros((n, n))
    for i in range(1, n):
        j = int(rng.integers(i))
        P[i, j] = P[j, i] = rng.normal()
    loops = seed % 2
    for _ in range(10 * loops):
        i, j = rng.choice(n, 2, replace=False)
        P[i, j] = P[j, i] = 0.3 * rng.normal()
    np.fill_diagonal(P, np.abs(P).sum(axis=1) + 0.5)  # walk-summable: converges
    net = gg.MarkovNetwork.from_precision(P, mean=5 * rng.normal(size=n))
    evidence = {"x3": 1.0, "x9": -2.0}
    exact = net.query(None, evidence, engine="dense")
    found = net.query(None, evidence, engine="bp")
    assert found.details["converged"] and found.details["residual"] < 1e-12
    assert found.exact == found.details["tree"] == (not loops)
    for name in exact:
        assert found[name].mean() == pytest.approx(exact[name].mean(), abs=1e-9)
        if not loops:
            assert found[name].var() == pytest.approx(exact[name].var(), abs=1e-9)
    assert found.log_evidence == pytest.approx(exact.log_evidence, abs=0.5 if loops else 1e-9)


def test_belief_propagation_says_when_it_does_not_converge():
    n = 6  # a dense, strongly frustrated model
    P = np.full((n, n), 0.9) + 0.1 * np.eye(n)
    found = gg.MarkovNetwork.from_precision(P, shift=np.arange(n)).query(None, engine="bp")
    assert not found.exact and not found.details["converged"]


def test_options_of_belief_propagation():
    net = gg.MarkovNetwork.from_precision([[2.0, -1.0], [-1.0, 2.0]], shift=[1.0, 0.0])
    assert not net.query(None, engine="bp", max_iter=1).details["converged"]
    assert net.query(None, engine="bp", damping=0.3)["x0"].mean() == pytest.approx(2 / 3, abs=1e-9)
    with pytest.raises(
        gg.OptionError, match="not an option of engine 'bp'. It takes max_iter, tol, damping. Did you mean 'damping'"
    ):
        net.query(None, engine="bp", dumping=0.3)
    with pytest.raises(gg.OptionError, match="damping is a number from 0 to below 1"):
        net.query(None, engine="bp", damping=1.0)
    with pytest.raises(gg.OptionError, match="takes no option 'damping'"):
        net.query(None, damping=0.3)
    with pytest.raises(gg.OptionError, match="takes no option 'damping'"):
        net.query(None, engine="sparse", damping=0.3)


@pytest.mark.parametrize("engine", ["auto", "sparse", "junction_tree"])
def test_table_of_cases_is_each_case_alone(engine, rng):
    net = gaussian_network(rng, 6)
    frame = net.sample(12, random_state=3)
    holes = frame.mask(rng.random(frame.shape) < 0.4)
    for name in net.variables:  # vectors are observed as a whole
        columns = [c for c in frame if c == name or c.startswith(f"{name}[")]
        holes.loc[holes[columns].isna().any(axis=1), columns] = np.nan
    batch = net.query(list(net.variables), holes, engine=engine)
    assert batch.log_evidence.shape == (12,)
    for row in range(12):
        evidence = {}
        for name in net.variables:
            columns = [c for c in frame if c == name or c.startswith(f"{name}[")]
            value = holes.iloc[row][columns].to_numpy(float)
            if not np.isnan(value).any():
                evidence[name] = value
        one = net.query(list(net.variables), evidence, engine="dense")
        assert batch.log_evidence[row] == pytest.approx(one.log_evidence, abs=1e-9)
        for name in net.variables:
            np.testing.assert_allclose(batch[name].mean()[row], one[name].mean(), atol=1e-9)
            np.testing.assert_allclose(batch[name].cov()[row], one[name].cov(), atol=1e-9)
    frame_of_answers = batch.to_frame()
    assert frame_of_answers.shape[0] == 12 and frame_of_answers.columns.nlevels == 2


def test_log_evidence_is_the_density(rng):
    net = gaussian_network(rng, 5, vectors=0.0)
    joint = net.to_gaussian()
    x = net.sample(1, random_state=0).iloc[0]
    truth = multivariate_normal(joint.mean, joint.cov).logpdf(x[list(net.variables)].to_numpy())
    assert net.log_evidence(x.to_dict()) == pytest.approx(truth, abs=1e-9)
    assert net.joint_log_prob(x.to_dict()) == pytest.approx(truth, abs=1e-9)
    rows = net.log_likelihood(net.sample(4, random_state=1))
    assert rows.shape == (4,)


@pytest.mark.parametrize("size", ["small", "large"])
def test_samples_have_the_posterior_moments(size):
    """Means within 5 standard errors: a false alarm in about 10⁻⁶ of runs, and the seed is fixed."""
    rng = np.random.default_rng(5)
    net = gaussian_network(rng, 6)
    if size == "large":
        n = 20_000
        drawn = get_engine("sparse", "gaussian").draw(net, read(net, [], {}), n, Run(random_state=rng))
        draws = pd.DataFrame(drawn.X)
        truth = net.to_gaussian()
        error = np.sqrt(np.diag(truth.cov) / n)
        assert (np.abs(draws.mean().to_numpy() - truth.mean) < 5 * error).all()
        np.testing.assert_allclose(draws.cov().to_numpy(), truth.cov, atol=0.1 * np.diag(truth.cov).max())
        return
    evidence = {net.variables[0]: net.to_gaussian().mean[: net.var(net.variables[0]).dimension] + 1.0}
    n = 20_000
    draws = net.sample(n, evidence, random_state=1)
    assert draws.attrs["exact"]
    answer = net.query(None, evidence)
    for name in answer:
        columns = [c for c in draws if c == name or c.startswith(f"{name}[")]
        error = np.sqrt(np.atleast_1d(answer[name].var()) / n)
        assert (np.abs(draws[columns].mean().to_numpy() - np.atleast_1d(answer[name].mean())) < 5 * error).all()


def test_best_values(rng):
    net = gaussian_network(rng, 5, vectors=0.0)
    evidence = {net.variables[1]: 0.5}
    best = net.map_query(evidence)
    answer = net.query(None, evidence)
    for name, value in best.assignment.items():
        assert value == pytest.approx(answer[name].mean(), abs=1e-9)
    assert best.log_prob == pytest.approx(net.joint_log_prob({**best.assignment, **evidence}), abs=1e-9)
    for name in best.assignment:
        moved = {**best.assignment, **evidence, name: best.assignment[name] + 0.1}
        assert net.joint_log_prob(moved) < best.log_prob
    name = net.variables[0]
    part = net.map_query(evidence, targets=[name])
    belief = answer[name]
    assert part.log_prob == pytest.approx(answer.log_evidence + np.log(belief.density(belief.mean())), abs=1e-9)
    frame = net.map_query(pd.DataFrame({net.variables[1]: [0.5, 1.5]}))
    assert frame["log_prob"][0] == pytest.approx(best.log_prob, abs=1e-9)


def test_functions_without_noise():
    cpds = {
        "x": (1.0, 2.0),
        "y": {"coefficients": 3.0, "intercept": 1.0, "sd": 0.0},
        "z": {"coefficients": 1.0, "sd": 1.0},
    }
    net = gg.BayesianNetwork("x{real} -> y{real} -> z{real}", cpds=cpds)
    answer = net.query(None, {"x": 2.0})
    assert answer["y"].mean() == pytest.approx(7.0) and answer["y"].var() == pytest.approx(0.0, abs=1e-12)
    assert net.query("x", {"y": 7.0})["x"].mean() == pytest.approx(2.0)
    both = net.query("z", {"x": 2.0, "y": 7.0})
    assert both["z"].mean() == pytest.approx(7.0)
    with pytest.raises(gg.ImpossibleEvidenceError, match="x, y"):
        net.query("z", {"x": 2.0, "y": 8.0})
    assert net.log_evidence({"x": 2.0, "y": 8.0}) == -np.inf
    with pytest.raises(gg.ModelError, match="without noise"):
        net.query("z", {"x": 2.0}, engine="sparse")
    assert net.map_query({"z": 1.0}).log_prob > -np.inf


@pytest.mark.parametrize("engine", ["dense", "sparse"])
def test_interventions_cut_the_edges(engine):
    cpds = {"x": (0.0, 1.0), "y": {"coefficients": 2.0, "sd": 1.0}, "z": {"coefficients": [[1.0, 1.0]], "sd": 1.0}}
    net = gg.BayesianNetwork("x{real} -> y{real}; x -> z{real} <- y", cpds=cpds)
    seen, forced = net.query("x", {"y": 2.0})["x"].mean(), net.do({"y": 2.0}).query("x", engine=engine)["x"].mean()
    assert seen == pytest.approx(0.8) and forced == pytest.approx(0.0)
    answer = net.do("y", 2.0).query(None, {"z": 3.0}, engine=engine)
    assert answer["x"].mean() == pytest.approx(0.5)  # z − 2 = x + noise
    assert answer["y"].mean() == pytest.approx(2.0) and answer["y"].var() == pytest.approx(0.0, abs=1e-12)


def test_noisy_readings_are_observed_children():
    net = gg.BayesianNetwork("x{real} -> y{real}", cpds={"x": (0.0, 1.0), "y": {"coefficients": 2.0, "sd": 1.0}})
    answer = net.query(["x", "y"], virtual_evidence={"x": (1.0, 0.5)})
    assert answer["x"].mean() == pytest.approx(0.8) and answer["x"].var() == pytest.approx(0.2)
    draws = net.sample(2000, virtual_evidence={"x": (1.0, 0.5)}, random_state=0)
    assert list(draws) == ["x", "y"] and draws["x"].mean() == pytest.approx(0.8, abs=0.06)


# ---------------------------------------------------------------------------------------------- Markov networks


def test_zeros_of_the_precision_are_missing_edges():
    P = np.array([[2.0, 1.0, 0.0, 0.5], [1.0, 2.0, 0.5, 0.0], [0.0, 0.5, 2.0, 0.0], [0.5, 0.0, 0.0, 1.5]])
    net = gg.MarkovNetwork.from_precision(pd.DataFrame(P, columns=list("abcd")), mean=[1.0, 2.0, 3.0, 4.0])
    assert net.edges == (("a", "b"), ("a", "d"), ("b", "c"))
    assert net.is_separated("c", "d", given=["a"])
    np.testing.assert_allclose(net.to_gaussian().cov, np.linalg.inv(P), atol=1e-12)
    np.testing.assert_allclose(net.to_gaussian().mean, [1, 2, 3, 4], atol=1e-12)
    R = net.partial_correlations()
    assert R.loc["a", "c"] == 0.0 and R.loc["a", "b"] == pytest.approx(-0.5)
    x = {"a": 0.3, "b": 1.0, "c": 2.0, "d": 3.0}
    off = np.array([0.3, 1.0, 2.0, 3.0]) - [1, 2, 3, 4]
    full = net.joint_log_prob(x) - net.log_evidence()
    assert full == pytest.approx(multivariate_normal(np.zeros(4), np.linalg.inv(P)).logpdf(off), abs=1e-9)
    assert native.loads(native.dumps(net)) == net
    best = net.map_query({"a": 0.3})
    assert best.log_prob == pytest.approx(net.joint_log_prob({**best.assignment, "a": 0.3}), abs=1e-9)


def test_network_and_joint_there_and_back(rng):
    net = gaussian_network(rng, 6, vectors=0.0)
    joint = net.to_gaussian()
    structure = {name: list(net.parents(name)) for name in net.variables}
    again = gg.BayesianNetwork.from_gaussian(joint.mean, joint.cov, structure, names=net.variables)
    for name in net.variables:
        a, b = net.conditional(name), again.conditional(name)
        np.testing.assert_allclose(a.coefficients, b.coefficients, atol=1e-8)
        np.testing.assert_allclose(a.covariance, b.covariance, atol=1e-8)
    full = gg.BayesianNetwork.from_gaussian(joint.mean, joint.cov)
    np.testing.assert_allclose(full.to_gaussian().cov, joint.cov, atol=1e-9 * np.abs(joint.cov).max())
    moral = net.to_markov_network()
    np.testing.assert_allclose(moral.to_gaussian().cov, joint.cov, atol=1e-8 * np.abs(joint.cov).max())
    assert moral.log_evidence() == pytest.approx(0.0, abs=1e-9)


# ---------------------------------------------------------------------------------------------- large models


def test_chain_of_ten_thousand():
    """Against the scalar recursion of a stationary process: variance 1 / (1 − a²) in the middle."""
    n, a = 10_000, 0.8
    off = np.full(n - 1, -a)
    diagonal = np.full(n, 1.0 + a * a)
    diagonal[-1], diagonal[0] = 1.0, 1.0  # stationary at both ends
    P = sparse.diags([off, diagonal, off], [-1, 0, 1]).tocsc()
    net = gg.MarkovNetwork.from_precision(P)
    answer = net.query(None, {"x5000": 2.0})
    assert answer.engine == "sparse" and answer.exact
    assert answer["x5001"].mean() == pytest.approx(2.0 * a, abs=1e-9)
    assert answer["x5003"].mean() == pytest.approx(2.0 * a**3, abs=1e-9)
    assert answer["x100"].var() == pytest.approx(1.0 / (1.0 - a * a), abs=1e-9)
    assert answer["x5001"].var() == pytest.approx(1.0, abs=1e-9)


def test_directed_chain_of_ten_thousand_prunes_and_solves():
    from gramgraph.conditionals import LinearGaussian
    from gramgraph.variables import real

    variables = [real(f"x{i}") for i in range(10_000)]
    parts = [LinearGaussian(variables[0], (), (), 0.0, 1.0)]
    parts += [LinearGaussian(v, (u,), [[0.5]], 1.0, 0.75) for u, v in pairwise(variables)]
    net = gg.BayesianNetwork.from_parts(variables, parts)
    answer = net.query(["x9999", "x50", "x3"], {"x9990": 3.0})
    mean = 3.0
    for _ in range(9):
        mean = 1.0 + 0.5 * mean
    assert answer["x9999"].mean() == pytest.approx(mean, abs=1e-9)
    assert answer["x50"].var() == pytest.approx(1.0, abs=1e-9)
    assert answer["x3"].mean() == pytest.approx(1.75, abs=1e-9)


def test_grid_against_dense():
    k = 12
    index = np.arange(k * k).reshape(k, k)
    pairs = np.concatenate(
        [np.c_[index[:, :-1].ravel(), index[:, 1:].ravel()], np.c_[index[:-1].ravel(), index[1:].ravel()]]
    )
    W = sparse.coo_array((np.full(len(pairs), -0.24), (pairs[:, 0], pairs[:, 1])), shape=(k * k, k * k))
    P = (W + W.T + sparse.eye_array(k * k)).tocsc()
    net = gg.MarkovNetwork.from_precision(P, shift=np.arange(k * k) / 100)
    evidence = {"x7": 1.0, "x80": -1.0}
    a, b = (net.query(None, evidence, engine=engine) for engine in ("sparse", "dense"))
    assert max(abs(a[name].mean() - b[name].mean()) for name in a) < 1e-9
    assert max(abs(a[name].var() - b[name].var()) for name in a) < 1e-9
    assert a.log_evidence == pytest.approx(b.log_evidence, abs=1e-8)
    plan = gg.plan(net, given=["x7"], engine="sparse")
    assert plan.parts == 143 and plan.bytes > 143 * 80 and "sparse" in str(plan)


def test_grid_of_thousands():
    from scipy.sparse.linalg import splu

    k = 50
    index = np.arange(k * k).reshape(k, k)
    pairs = [np.c_[index[:, :-1].ravel(), index[:, 1:].ravel()], np.c_[index[:-1].ravel(), index[1:].ravel()]]
    a, b = np.concatenate(pairs).T
    W = sparse.coo_array((np.full(len(a), -0.24), (a, b)), shape=(k * k, k * k))
    P = (W + W.T + sparse.eye_array(k * k)).tocsc()
    net = gg.MarkovNetwork.from_precision(P)
    answer = net.query(None, {"x0": 1.0})
    solve = splu(sparse.csc_matrix(P)[1:, 1:])
    h = np.zeros(k * k - 1)
    h[[0, k - 1]] = 0.24
    mean = solve.solve(h)
    for i in (1, 51, 1275, 2499):
        unit = np.zeros(k * k - 1)
        unit[i - 1] = 1.0
        assert answer[f"x{i}"].mean() == pytest.approx(mean[i - 1], abs=1e-12)
        assert answer[f"x{i}"].var() == pytest.approx(solve.solve(unit)[i - 1], abs=1e-9)


def test_weighted_draws_of_a_gaussian():
    net = gg.BayesianNetwork("x{real} -> y{real}", cpds={"x": (0.0, 1.0), "y": {"coefficients": 2.0, "sd": 1.0}})
    exact, drawn = net.query("x", {"y": 2.0}), net.query("x", {"y": 2.0}, engine="likelihood_weighting", random_state=0)
    assert abs(drawn["x"].mean() - exact["x"].mean()) < 5 * drawn["x"].standard_error()
    assert abs(drawn.log_evidence - exact.log_evidence) < 5 * drawn.details["log_evidence_error"]
    batch = net.query("x", pd.DataFrame({"y": [2.0, -2.0]}), engine="likelihood_weighting", random_state=0)
    np.testing.assert_allclose(batch["x"].mean(), [0.8, -0.8], atol=0.05)


def test_factor_graph_of_a_gaussian_network():
    net = gg.BayesianNetwork("x{real} -> y{real}", cpds={"x": (0.0, 1.0), "y": {"coefficients": 2.0, "sd": 1.0}})
    assert net.to_factor_graph().query("x", {"y": 2.0})["x"].mean() == pytest.approx(0.8)
    assert net.to_junction_tree().cliques == (("x", "y"),)
    assert net.to_networkx().nodes["x"] == {"real": 1}


def test_too_large_for_a_dense_matrix_is_said_before(monkeypatch):
    monkeypatch.setattr("gramgraph.compile.budget.available_memory", lambda: 1e8)
    P = sparse.eye_array(5_000).tocsc()  # 200 MB a matrix
    net = gg.MarkovNetwork.from_precision(P)
    with pytest.raises(gg.BudgetError, match="more than the budget"):
        net.query("x0", engine="dense")


def test_the_memory_that_is_given_holds_for_a_dense_matrix():
    net = gg.MarkovNetwork.from_precision(sparse.eye_array(200).tocsc())
    with pytest.raises(gg.BudgetError, match="more than the budget of 100 kB"):
        net.query("x0", engine="dense", memory=1e5)
    assert net.query("x0", engine="dense", memory=1e7)["x0"].var() == pytest.approx(1.0)


@pytest.mark.parametrize("seed", range(4))
def test_rows_with_their_own_gaps_are_each_row_alone(seed):
    """Many patterns take the compiled road, row by row; few take the other."""
    rng = np.random.default_rng(seed)
    net = gaussian_network(rng, 12, vectors=0.0)
    frame = net.sample(60, random_state=1).mask(rng.random((60, 12)) < 0.3)
    batch = net.query(None, frame)
    few = [net.query(list(net.variables), frame.iloc[[row]]) for row in range(60)]
    for row, one in enumerate(few):
        assert batch.log_evidence[row] == pytest.approx(one.log_evidence[0], abs=1e-9)
        for name in batch:
            assert batch[name].mean()[row] == pytest.approx(one[name].mean()[0], abs=1e-9)
            assert batch[name].var()[row] == pytest.approx(one[name].var()[0], abs=1e-9)
    np.testing.assert_allclose(net.log_evidence(frame), batch.log_evidence, atol=1e-9)


@pytest.mark.parametrize("shift", [0.0, 1e3, 1e9])
def test_means_far_from_zero_lose_nothing(shift) -> None:
    """Cases are centered where the means are large beside the deviations, and the answers do not depend on it."""
    cpds = {"x": (shift, 1.0), "y": {"coefficients": 1.0, "sd": 1.0}, "z": {"coefficients": [0.5, 0.5], "sd": 1.0}}
    net = gg.BayesianNetwork("x{real} -> y{real}; x -> z{real} <- y", cpds=cpds)
    cases = pd.DataFrame({"y": shift + np.array([-1.0, 0.0, 2.5] * 20)})
    found = net.query(None, cases)
    np.testing.assert_allclose(
        found["x"].mean() - shift, (cases["y"] - shift) / 2, atol=4e-16 * (1 + abs(shift)) + 1e-12
    )
    np.testing.assert_allclose(
        found["z"].mean() - shift, 0.75 * (cases["y"] - shift), atol=4e-16 * (1 + abs(shift)) + 1e-12
    )


@pytest.mark.parametrize("seed", range(3))
def test_sparse_and_dense_gains_give_the_same_means(seed, monkeypatch) -> None:
    """A chain with half of its nodes observed: most of the gain is zero, and is passed over."""
    from gramgraph.engines.gaussian import dense

    rng = np.random.default_rng(seed)
    names = [f"x{i}" for i in range(60)]
    cpds = {name: {"coefficients": float(rng.normal()), "sd": 1.0 + rng.random()} for name in names[1:]}
    net = gg.BayesianNetwork(edges=list(pairwise(names)), cpds={"x0": (float(rng.normal()), 1.0), **cpds},
                             states=dict.fromkeys(names, "real"))  # fmt: skip
    cases = net.sample(101, random_state=seed)[names[::2]]
    sparse_means = net.query(None, cases)
    monkeypatch.setattr(dense, "BLOCK_CELLS", 10**9)
    again = type(net).from_parts(net.vars, net.conditionals, check=False)
    dense_means = again.query(None, cases)
    for name in names[1::2]:
        np.testing.assert_allclose(sparse_means[name].mean(), dense_means[name].mean(), atol=1e-12)
    solved = [v for k, v in net.plans.items() if k[0] == "solved"]
    assert solved and solved[0].parts is not None
    assert all(v.parts is None for k, v in again.plans.items() if k[0] == "solved")


def test_frames_of_means_and_deviations_hold_what_the_beliefs_say() -> None:
    """`means`, `sds` and `to_frame` of many cases against the beliefs one by one; the rows keep their labels."""
    cpds = {"x": (0.5, 1.0), "y": {"coefficients": 2.0, "sd": 1.0}, "z": {"coefficients": [1.0, -1.0], "sd": 0.5}}
    net = gg.BayesianNetwork("x{real} -> y{real}; x -> z{real} <- y", cpds=cpds)
    cases = pd.DataFrame({"y": [1.0, np.nan, -2.0], "z": [0.0, 1.0, np.nan]}, index=["a", "b", "c"])
    answer = net.query(None, cases)
    for name in answer:
        np.testing.assert_array_equal(answer.means()[name], answer[name].mean())
        np.testing.assert_array_equal(answer.sds()[name], answer[name].sd())
        np.testing.assert_array_equal(answer.to_frame()[name, "sd"], answer[name].sd())
    assert list(answer.means().index) == list(answer.to_frame().index) == ["a", "b", "c"]
    mine = answer.means()
    mine.iloc[0, 0] = 99.0  # a frame is the reader's own
    assert not (answer.means() == 99.0).any().any()
    nobody = net.query(None, cases.iloc[:0])
    assert nobody.means().shape == nobody.sds().shape == (0, len(nobody))
    one = net.query(None, {"y": 1.0})
    assert one.means().shape == (1, 2) and one.sds()["x"].item() == pytest.approx(one["x"].sd())
    best = net.map_query(cases)
    for i, row in enumerate(cases.to_dict("records")):
        one = net.map_query({k: v for k, v in row.items() if not np.isnan(v)})
        assert best["log_prob"].iloc[i] == pytest.approx(one.log_prob, abs=1e-12)
        assert best["x"].iloc[i] == pytest.approx(one.assignment["x"], abs=1e-12)


@pytest.mark.parametrize("n", [1, 16, 37])
def test_a_gain_in_blocks_is_the_whole_matrix(n, monkeypatch) -> None:
    """Blocks of nine, two and one rows and an empty one, columns beside whole vectors, against one dense product."""
    from gramgraph._numerics.gaussian.rows import block_affine
    from gramgraph.engines.gaussian import dense

    monkeypatch.setattr(dense, "BLOCK_CELLS", 1)
    monkeypatch.setattr(dense, "BLOCK_SHARE", 10.0)
    rng = np.random.default_rng(n)
    G = np.zeros((13, 8))  # (wanted, observed)
    G[:9, [0, 2, 4]], G[9:11, 5:7], G[11, 7] = rng.normal(size=(9, 3)), rng.normal(size=(2, 2)), 1.5
    found = dense._blocks_of(G.T.copy(), np.ones(21), np.arange(8), np.arange(8, 21))
    assert sorted(np.diff(found[0]).tolist()) == [1, 1, 2, 9]
    X, start, out = rng.normal(size=(8, n)), rng.normal(size=13), np.empty(13 * n)
    block_affine(*found, start, X.reshape(-1), out)
    np.testing.assert_allclose(out.reshape(13, n), G @ X + start[:, None], atol=1e-14)
