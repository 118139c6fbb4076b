"""Quadrature on nodes: Gaussian chains with sharp and far evidence, two modes, angles, joints, tables of cases."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import integrate

import gramgraph as gg
from gramgraph.conditionals import ConditionalLinearGaussian, LinearGaussian, Predictor, Softmax, Table
from gramgraph.engines.nodes.grids import Grid, negligible, refined
from gramgraph.exceptions import ModelError
from gramgraph.variables import Circle, Positive, Var, binary, real

NOISE = 0.0025 * 7.0  # a quarter percent of the range of a standard normal variable


def chain(n, noise):
    cpds = {"x0": (0.0, 1.0)}
    cpds |= {f"x{i}": {"coefficients": {f"x{i - 1}": 1.0}, "sd": noise} for i in range(1, n)}
    return gg.BayesianNetwork(" -> ".join(f"x{i}{{real}}" for i in range(n)), cpds=cpds)


@pytest.mark.parametrize(
    ("noise", "evidence"),
    [
        (0.5, {"x5": 1.0, "x12": -1.0, "x19": 0.5}),
        (NOISE, {"x5": 1.0, "x19": 0.9}),
        (NOISE, {"x19": 10.0}),
        (NOISE, {"x19": 10.0, "x0": 9.8}),
    ],
)
def test_chains_of_gaussians_also_sharp_and_far_out(noise, evidence):
    net = chain(20, noise)
    exact, found = net.query(None, evidence), net.query(None, evidence, engine="nodes")
    assert abs(exact.log_evidence - found.log_evidence) < 1e-6
    for name in exact:
        assert abs(exact[name].mean() - found[name].mean()) < 1e-6 * exact[name].sd()
        assert found[name].sd() == pytest.approx(exact[name].sd(), rel=1e-6)
    assert found.quality == "checked" and found.details["log_evidence_error"] < 1e-6


def test_far_evidence_makes_the_line_longer():
    net = chain(5, 0.5)
    exact, found = net.query(None, {"x4": 100.0}), net.query(None, {"x4": 100.0}, engine="nodes")
    assert found.log_evidence == pytest.approx(exact.log_evidence, abs=1e-6)
    assert found["x0"].mean() == pytest.approx(exact["x0"].mean(), abs=1e-6)


class Square:
    def predict(self, X):
        return np.asarray(X)[:, 0] ** 2


@pytest.mark.parametrize(("sd", "seen"), [(0.1, 4.0), (0.01, 9.0), (0.001, 4.0)])
def test_two_modes(sd, seen):
    x, y = real("x"), real("y")
    net = gg.BayesianNetwork(cpds=[LinearGaussian(x), Predictor(y, (x,), Square(), sd)])
    found = net.query("x", {"y": seen}, engine="nodes")
    root, reach = np.sqrt(seen), 5.0 * sd / np.sqrt(seen)

    def joint(t):
        return np.exp(-0.5 * t**2 - 0.5 * ((t**2 - seen) / sd) ** 2) / (2.0 * np.pi * sd)

    ends = {"a": root - reach, "b": root + reach, "epsabs": 0.0, "epsrel": 1e-12}
    z = 2.0 * integrate.quad(joint, **ends)[0]
    square = 2.0 * integrate.quad(lambda t: t**2 * joint(t), **ends)[0] / z
    assert abs(found.log_evidence - np.log(z)) < 1e-6
    assert abs(found["x"].mean()) < 1e-6 and found["x"].var() == pytest.approx(square, rel=1e-8)
    grid = np.linspace(-5.0, 5.0, 2_000_001)
    assert found["x"].density(grid).sum() * (grid[1] - grid[0]) == pytest.approx(1.0, abs=1e-3)


def test_a_softmax_child_against_integrals():
    x, s = real("x"), binary("s")
    net = gg.BayesianNetwork(cpds=[LinearGaussian(x, (), (), 0.5, sd=2.0), Softmax.logistic(s, (x,), [3.0], 1.0)])
    found = net.query("x", {"s": "yes"})
    assert found.engine == "nodes" and not found.exact

    def joint(t):
        return np.exp(-0.125 * (t - 0.5) ** 2) / np.sqrt(8.0 * np.pi) / (1.0 + np.exp(-1.0 - 3.0 * t))

    z = integrate.quad(joint, -30.0, 30.0, epsabs=1e-13, limit=200)[0]
    mean = integrate.quad(lambda t: t * joint(t), -30.0, 30.0, epsabs=1e-13, limit=200)[0] / z
    assert found.log_evidence == pytest.approx(np.log(z), abs=1e-8)
    assert found["x"].mean() == pytest.approx(mean, abs=1e-8)
    assert found["x"].cdf(found["x"].quantile(0.3)) == pytest.approx(0.3, abs=1e-6)
    assert found["x"].quantile(0.3) == pytest.approx(_quantile(joint, z, 0.3), abs=2e-2)
    low, high = found["x"].interval(0.9)
    assert low < mean < high
    draws = found["x"].sample(4000, random_state=0)
    assert abs(draws.mean() - mean) < 5.0 * found["x"].sd() / np.sqrt(4000)
    assert found["x"].expect(lambda t: t**2) == pytest.approx(found["x"].var() + mean**2, rel=1e-8)


def _quantile(joint, z, q):
    t = np.linspace(-20.0, 20.0, 40_001)
    return float(np.interp(q, np.cumsum(joint(t)) * (t[1] - t[0]) / z, t))


def test_joints_tables_of_cases_and_impossible_evidence():
    x, y, s = real("x"), real("y"), binary("s")
    parts = [LinearGaussian(x), LinearGaussian(y, (x,), [0.8], sd=0.6), Softmax.logistic(s, (y,), [2.0])]
    net = gg.BayesianNetwork(cpds=parts)
    one = net.query([("x", "y"), "s"], {"s": "yes"}, engine="nodes")
    drawn = net.query([("x", "y")], {"s": "yes"}, engine="likelihood_weighting", random_state=0)
    assert np.abs(one[("x", "y")].mean() - drawn[("x", "y")].mean()).max() < 0.02
    assert np.abs(one[("x", "y")].cov() - drawn[("x", "y")].cov()).max() < 0.03
    many = net.query(["x", "s"], [{"s": "yes"}, {"y": 1.0}, {"x": 0.5}], engine="nodes")
    assert many["x"].mean()[0] == pytest.approx(net.query("x", {"s": "yes"}, engine="nodes")["x"].mean(), abs=1e-12)
    assert many["x"].mean()[2] == 0.5 and many["s"].probabilities[0, 1] == pytest.approx(1.0)
    assert many["x"].sd()[1] == pytest.approx(0.6, abs=1e-6)
    assert not np.isnan(many["x"].mean()).any() and len(many.to_frame()) == 3
    table = gg.Table(s, (), [1.0, 0.0])
    with pytest.raises(gg.ImpossibleEvidenceError):
        gg.BayesianNetwork(cpds=[table, LinearGaussian(x)]).query("x", {"s": "yes"}, engine="nodes")


def test_vectors_are_left_to_draws():
    v, s = real("v", 2), binary("s")
    net = gg.BayesianNetwork(
        cpds=[LinearGaussian(v, (), (), np.zeros(2), np.eye(2)), Softmax.logistic(s, (v,), [1.0, 1.0])]
    )
    assert net.query("v", {"s": "yes"}, random_state=0).engine == "likelihood_weighting"
    with pytest.raises(gg.ModelError, match="takes scalars"):
        net.query("v", {"s": "yes"}, engine="nodes")


def test_grids_follow_the_mass():
    grid = Grid(real("x"), ((-1.0, 1.0, 64),))
    p = np.exp(-0.5 * ((grid.x - 0.3) / 0.01) ** 2)
    finer, again = refined(grid, p, 64)
    assert again and finer.span < 0.5 * grid.span and finer.panels[0][0] < 0.3 < finer.panels[0][1]
    two = np.exp(-0.5 * ((np.abs(grid.x) - 0.7) / 0.01) ** 2)
    pieces, _ = refined(grid, two, 64)
    assert len(pieces.panels) == 2
    longer, again = refined(grid, np.linspace(0.0, 1.0, 64), 64)
    assert again and longer.panels[-1][1] > 1.0
    turn = Grid(Var("a", Circle()), ((-np.pi, np.pi, 64),))
    same, again = refined(turn, np.full(64, 1.0), 64)
    assert not again and same.size == 64
    assert Grid(Var("p", Positive()), ((0.0, 1.0, 8),)).weights.sum() == pytest.approx(np.e - 1.0, rel=1e-2)


def test_values_that_interventions_set_are_known():
    """On the line, on the circle, above zero; also joint with others, and together with evidence."""
    rng = np.random.default_rng(0)
    w = rng.uniform(-3.0, 3.0, 150)
    frame = pd.DataFrame({"w": w, "s": np.exp(0.3 * np.cos(w) + 0.2 * rng.normal(size=150))})
    frame["y"] = np.log(frame.s) + 0.2 * rng.normal(size=150)
    frame["k"] = np.where(frame.y + np.cos(w) + 0.3 * rng.normal(size=150) > 0.0, "yes", "no")
    net = gg.BayesianNetwork("w{circle} -> s{positive} -> y{real} -> k{no|yes}; w -> k").fit(frame)
    for given in ({"y": 0.3}, {"w": 0.5}, {"s": 1.2}, {"w": 0.5, "y": -0.2}):
        cut = net.do(given)
        found, drawn = cut.query(None), cut.query("k", engine="likelihood_weighting", random_state=0, budget=20_000)
        assert found.engine == "nodes" and found["k"].probabilities == pytest.approx(drawn["k"].probabilities, abs=0.02)
        assert all(found[name].mean() == value and found[name].sd() == 0.0 for name, value in given.items())
    both = net.do({"y": 0.3}).query([("y", "k")], {"w": 0.5})["y", "k"]
    assert both.mean() == pytest.approx(0.3)
    known = net.query("k", {"y": 0.3, "w": 0.5})["k"].probabilities
    assert net.do({"y": 0.3}).query("k", {"w": 0.5})["k"].probabilities == pytest.approx(known, abs=1e-9)


def test_few_nodes_leave_far_tails_to_themselves():
    """A tail with 10⁻⁸ of the mass in every box has nodes where there are 64 of them, not where there are 24."""
    grid = Grid(real("x"), ((-10.0, 10.0, 40),))
    p = np.where(grid.t > 5.0, 1e-8, np.exp(-0.5 * grid.t**2))
    p[-1] = 0.0
    long, short = refined(grid, p, 64)[0], refined(grid, p, 24)[0]
    assert long.panels[-1][1] > 9.0 and short.panels[-1][1] < 6.0
    assert negligible(8) == negligible(24) == 1e-6 and negligible(64) == negligible(256) == pytest.approx(1e-10)


def test_cliques_of_three_lines_get_more_nodes_where_the_error_is_above_the_goal():
    """Nodes that stand farther apart than the noise are doubled, and the answer is then exact; 0.0018 sd off before."""
    a, b, c, d = (real(name) for name in "abcd")
    net = gg.BayesianNetwork(
        cpds=[
            LinearGaussian(a),
            LinearGaussian(b),
            LinearGaussian(c, (a, b), [[1.0, -0.8]], sd=0.2),
            LinearGaussian(d, (a, b, c), [[0.3, 0.5, 0.4]]),
        ]
    )
    exact, found = net.query(None, {"d": 1.0}), net.query(None, {"d": 1.0}, engine="nodes")
    assert found.details["node_error"] < 0.02
    for name in "abc":
        assert abs(exact[name].mean() - found[name].mean()) < 1e-6 * exact[name].sd()


def test_kernels_are_integrated_over_boxes_exactly():
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(-1.0, 0.05, 300), rng.normal(1.0, 0.6, 300)])  # narrower than the nodes stand
    y = np.sin(3.0 * x) + 0.05 * rng.normal(size=600)
    data = {"x": x, "y": y}
    parts = [gg.KernelConditional.fit(real("x"), (), data), gg.KernelConditional.fit(real("y"), (real("x"),), data)]
    laws = parts[1].laws({real("x"): np.array([[-1.0], [0.4]])}, 2)
    edges = np.array([-40.0, -0.8, -0.3, 0.0, 0.25, 0.9, 40.0])
    masses = np.exp(laws.log_masses(edges[:-1], edges[1:]))
    assert masses.sum(axis=1) == pytest.approx(np.ones(2), abs=1e-5)
    fine = np.linspace(-0.3, 0.0, 20_001)
    inner = np.exp(laws.log_density(0.5 * (fine[1:] + fine[:-1]))).sum(axis=1) * (fine[1] - fine[0])
    assert masses[:, 2] == pytest.approx(inner, rel=1e-5)
    found = gg.BayesianNetwork(cpds=parts).query(None, engine="nodes")
    assert abs(found.log_evidence) < 1e-4 and found["x"].mean() == pytest.approx(x.mean(), abs=0.02)


def test_masses_of_angles_close():
    rng = np.random.default_rng(0)
    a = np.mod(rng.vonmises(3.0, 2.0, 400) + np.pi, 2.0 * np.pi) - np.pi
    c = gg.KernelConditional.fit(Var("a", Circle()), (), {"a": a})
    edges = np.linspace(-np.pi, np.pi, 9)
    masses = np.exp(c.laws({}, 1).log_masses(edges[:-1], edges[1:]))[0]
    share = np.histogram(a, edges)[0] / len(a)
    assert masses.sum() == pytest.approx(1.0, abs=1e-9) and np.abs(masses - share).max() < 0.03


def atoms(spread=0.0, extra=()):
    """d -> y, where y has a standard deviation of `spread` under the first state of d."""
    d, y = binary("d"), real("y")
    parts = [Table(d, (), [0.5, 0.5]), ConditionalLinearGaussian(y, (d,), {}, [0.0, 1.0], sd=[spread, 1.0])]
    return gg.BayesianNetwork(cpds=[*parts, *extra])


@pytest.mark.parametrize("spread", [0.0, 1e-9, 1e-4])
@pytest.mark.parametrize("evidence", [{}, {"z": 0.7}])
def test_what_has_no_noise_or_hardly_any_is_not_missed(spread, evidence):
    """Values at nodes saw nothing of the first state: log p was −0.69 instead of 0, p(d) 0 and 1."""
    net = atoms(spread, [LinearGaussian(real("z"), (real("y"),), [1.0], sd=0.5)])
    exact, found = net.query(None, evidence, engine="mixture"), net.query(None, evidence, engine="nodes")
    error = max(found.details["node_error"], found.details["log_evidence_error"])
    assert error < 0.1
    assert found.log_evidence == pytest.approx(exact.log_evidence, abs=error + 1e-9)
    assert found["d"].probabilities == pytest.approx(exact["d"].probabilities, abs=error + 1e-9)
    assert abs(found["y"].mean() - exact["y"].mean()) < error * exact["y"].sd()


def test_what_stands_at_points_alone_has_boxes_of_some_size():
    """Boxes around points became narrower until numbers ended, and held nothing."""
    d, e, y = binary("d"), binary("e"), real("y")
    centers = [[0.3, -1.8], [-1.9, 3.7]]
    parts = [Table(d, (), [0.2, 0.8]), Table(e, (d,), [[0.2, 0.8], [0.7, 0.3]])]
    parts += [ConditionalLinearGaussian(y, (d, e), {}, centers, sd=0.0), LinearGaussian(real("z"), (y,), [1.0])]
    net = gg.BayesianNetwork(cpds=parts)
    exact, found = net.query(None, {"z": 2.0}), net.query(None, {"z": 2.0}, engine="nodes")
    assert exact.engine == "mixture"
    assert found.log_evidence == pytest.approx(exact.log_evidence, abs=1e-3)
    assert found["y"].mean() == pytest.approx(exact["y"].mean(), abs=1e-3)


@pytest.mark.parametrize("evidence", [{}, {"s": "yes"}, {"y": 1.0}])
def test_functions_of_hidden_numbers_are_refused(evidence):
    x, y, s = real("x"), real("y"), binary("s")
    parts = [LinearGaussian(x), LinearGaussian(y, (x,), [2.0], 0.5, sd=0.0), Softmax.logistic(s, (y,), [2.0])]
    net = gg.BayesianNetwork(cpds=parts)
    with pytest.raises(ModelError, match="engine 'nodes' needs noise .*: y is a function of x without noise"):
        net.query(None, evidence, engine="nodes")
    assert net.query("y", {"x": 1.0}, engine="nodes")["y"].mean() == pytest.approx(2.5, abs=1e-6)
    assert net.query(None, evidence).engine != "nodes"  # "auto" goes elsewhere
    draws = atoms(0.0, [Softmax.logistic(s, (y,), [2.0])]).query("d", {"s": "yes"})  # and draws meet points
    hits = np.array([0.5, (1.0 / (1.0 + np.exp(-2.0 * np.random.default_rng(0).normal(1.0, 1.0, 200_000)))).mean()])
    assert draws.engine == "likelihood_weighting"
    assert draws["d"].probabilities == pytest.approx(hits / hits.sum(), abs=0.01)
