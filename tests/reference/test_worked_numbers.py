"""Numbers that the source texts work out by hand, asked through the public interface.

Rows A1, B1 to B6 and C1 to C4 of the list of systems; the texts are Zhu (graphical models and kernel methods), Triebel
(machine learning for computer vision) and Hennig (probabilistic inference and learning).
"""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import gramgraph as gg
from gramgraph.models import LogLinear, boltzmann_machine, denoising_grid, ising_grid, markov_chain, potts_grid

EXACT = ["auto", "junction_tree", "elimination", "enumeration"]
exact = pytest.mark.parametrize("engine", EXACT)


def ask(net: gg.BayesianNetwork, name: str, state: str, given: dict[str, str], engine: str = "auto") -> float:
    answer = net.query(name, evidence=given, engine=engine)
    assert answer.exact
    return float(answer[name].prob(state))


# --------------------------------------------------------------------------------------------------- A1, B1, B2


@exact
@pytest.mark.parametrize(
    "name, variable, state, given, expected, tolerance",
    [
        ("envelopes", "envelope", "1", {"ball": "black"}, 1 / 3, 1e-12),
        ("envelopes", "ball", "black", {}, 3 / 4, 1e-12),
        ("card_trick", "card", "WW", {"face": "white"}, 2 / 3, 1e-12),
        ("card_trick", "face", "white", {}, 1 / 2, 1e-12),
        ("door", "door", "open", {"z1": "yes"}, 2 / 3, 1e-12),
        ("door", "door", "open", {"z1": "yes", "z2": "yes"}, 5 / 8, 1e-12),
        ("door", "after", "open", {"z1": "yes", "z2": "yes"}, 1 / 16, 1e-12),
        ("alarm_radio", "B", "yes", {"A": "yes"}, 0.495, 5e-4),
        ("alarm_radio", "B", "yes", {"A": "yes", "R": "yes"}, 0.08, 5e-3),
        ("fuel_gauge", "gauge", "empty", {}, 0.315, 1e-12),
        ("fuel_gauge", "gauge", "empty", {"fuel": "empty"}, 0.81, 1e-12),
        ("fuel_gauge", "fuel", "empty", {"gauge": "empty"}, 0.257, 5e-4),
        ("fuel_gauge", "fuel", "empty", {"gauge": "empty", "battery": "flat"}, 0.111, 5e-4),
        ("hmm_small", "z1", "1", {"x1": "R", "x2": "G"}, 0.7, 1e-12),
        ("hmm_small", "z2", "1", {"x1": "R", "x2": "G"}, 0.2, 1e-12),
    ],
)
def test_posteriors_of_the_texts(
    name: str, variable: str, state: str, given: dict[str, str], expected: float, tolerance: float, engine: str
) -> None:
    assert ask(gg.datasets.load(name), variable, state, given, engine) == pytest.approx(expected, abs=tolerance)


def test_a1_sum_product_and_bayes_rules_on_a_joint() -> None:
    net = gg.datasets.door()
    joint = net.query(("door", "z1"))[("door", "z1")].probabilities
    p_door, p_z1 = net.query("door")["door"].probabilities, net.query("z1")["z1"].probabilities
    assert np.allclose(joint.sum(axis=1), p_door)  # sum rule
    assert np.allclose(joint, p_door[:, None] * net.cpt["z1"].values)  # product rule
    assert np.allclose(joint[:, 1] / p_z1[1], net.query("door", evidence={"z1": "yes"})["door"].probabilities)
    everything = net.query(tuple(net.variables))[net.variables].probabilities
    door, z1, z2 = (net.index(name) for name in ("door", "z1", "z2"))
    assert gg.graphs.is_independent(everything, z1, z2, given=door)
    assert not gg.graphs.is_independent(everything, z1, z2)


def test_b1_joint_probability_of_the_burglary() -> None:
    net = gg.datasets.burglary()
    x = {"burglary": "yes", "earthquake": "no", "alarm": "yes", "john": "yes", "mary": "no"}
    assert round(np.exp(net.joint_log_prob(x)), 6) == 0.000253
    assert net.log_evidence(x) == pytest.approx(net.joint_log_prob(x))
    assert net.n_parameters == 10
    for K, M in product((2, 3, 5), (1, 2, 6)):
        assert markov_chain(M, K).n_parameters == K - 1 + (M - 1) * K * (K - 1)
    frame = net.sample(2000, random_state=0)
    # Four standard errors of a proportion: a false alarm about once in 16,000 seeds.
    p = ask(net, "john", "yes", {})
    assert abs((frame["john"] == "yes").mean() - p) < 4 * np.sqrt(p * (1 - p) / 2000)


def test_b2_three_nodes_and_explaining_away() -> None:
    chain, fork, collider = (gg.BayesianNetwork(s) for s in ("A -> B -> C", "A <- B -> C", "A -> B <- C"))
    for net in (chain, fork):
        assert net.is_dconnected("A", "C")
        assert not net.is_dconnected("A", "C", given="B")
    assert not collider.is_dconnected("A", "C")
    assert collider.is_dconnected("A", "C", given="B")
    net = gg.datasets.alarm_radio()
    prior, alarm = ask(net, "B", "yes", {}), ask(net, "B", "yes", {"A": "yes"})
    assert prior < ask(net, "B", "yes", {"A": "yes", "R": "yes"}) < alarm
    assert set(net.markov_blanket("B")) == {"A", "E"}


# --------------------------------------------------------------------------------------------------- B3


def test_b3_two_coins_have_three_graphs_and_no_perfect_map() -> None:
    nets = {collider: gg.datasets.two_coins(collider) for collider in "ABC"}
    joint = nets["C"].query(("A", "B", "C"))[("A", "B", "C")].probabilities
    for net in nets.values():
        assert np.allclose(net.query(("A", "B", "C"))[("A", "B", "C")].probabilities, joint)
        assert gg.graphs.is_i_map(net.graph, joint)
        assert not gg.graphs.is_d_map(net.graph, joint)
    for a, b in (("A", "B"), ("A", "C"), ("B", "C")):
        assert gg.graphs.is_independent(joint, "ABC".index(a), "ABC".index(b))
    assert not gg.graphs.is_independent(joint, 0, 1, given=2)
    assert not nets["A"].is_equivalent(nets["B"])
    markov = nets["C"].to_markov_network()
    assert gg.graphs.is_i_map(markov.graph, joint)


def test_b3_a_random_chain_has_a_perfect_map() -> None:
    chain = gg.BayesianNetwork("A -> B -> C").random_tables(0)
    joint = chain.query(("A", "B", "C"))[("A", "B", "C")].probabilities
    assert gg.graphs.is_perfect_map(chain.graph, joint)
    assert gg.graphs.is_perfect_map(chain.to_markov_network().graph, joint)
    assert chain.is_equivalent(gg.BayesianNetwork("A <- B -> C"))
    collider = gg.BayesianNetwork("A -> B <- C").random_tables(0)
    joint = collider.query(("A", "B", "C"))[("A", "B", "C")].probabilities
    assert gg.graphs.is_perfect_map(collider.graph, joint)
    assert not gg.graphs.is_perfect_map(collider.to_markov_network().graph, joint)


# --------------------------------------------------------------------------------------------------- B4, B5


@exact
@pytest.mark.parametrize("a", [-1.0, 0.3, 2.0])
def test_b4_two_node_ising(a: float, engine: str) -> None:
    """Z = 2e^a + 2e^-a and p(1, 1) = e^a / Z."""
    net = ising_grid(1, 2, coupling=a)
    Z = 2 * np.exp(a) + 2 * np.exp(-a)
    answer = net.query(("x0_0", "x0_1"), engine=engine)
    assert answer.log_evidence == pytest.approx(np.log(Z))
    assert answer[("x0_0", "x0_1")].prob("+1", "+1") == pytest.approx(np.exp(a) / Z)
    assert answer[("x0_0", "x0_1")].prob("-1", "+1") == pytest.approx(np.exp(-a) / Z)


def test_b4_energies_features_and_potentials_are_one_model() -> None:
    a = 0.7
    spin = np.array([[1.0, -1.0], [-1.0, 1.0]])
    states = {"s": ("-1", "+1"), "t": ("-1", "+1")}
    nets = [
        gg.MarkovNetwork({("s", "t"): np.exp(a * spin)}, states=states),
        gg.MarkovNetwork.from_energies({("s", "t"): -a * spin}, states=states),
        LogLinear([(("s", "t"), spin)], [a], states=states),
        LogLinear([(("s", "t"), lambda s, t: float(s) * float(t))], [a], states=states).to_markov_network(),
        boltzmann_machine([[0, a], [a, 0]], names=["s", "t"], spins=True),
    ]
    for net in nets:
        assert net.log_evidence() == pytest.approx(np.log(2 * np.exp(a) + 2 * np.exp(-a)))
        assert net.query(("s", "t"))[("s", "t")].prob("+1", "+1") == pytest.approx(np.exp(a) / (4 * np.cosh(a)))


def test_b4_separation_is_independence() -> None:
    net = ising_grid(2, 2, coupling=0.8, field=0.3)
    assert net.is_separated("x0_0", "x1_1", given=["x0_1", "x1_0"])
    joint = net.query(net.variables)[net.variables].probabilities
    assert gg.graphs.is_independent(joint, 0, 3, given=[1, 2])
    assert not gg.graphs.is_independent(joint, 0, 3, given=[1])
    assert set(net.markov_blanket("x0_0")) == {"x0_1", "x1_0"}


def test_b5_denoising_removes_a_lone_pixel() -> None:
    clean = np.ones((5, 5), dtype=int)
    noisy = clean.copy()
    noisy[2, 2] = 0
    net = denoising_grid(noisy, coupling=1.0, flip_probability=0.1)
    best = net.map_query().assignment
    assert set(best.values()) == {"+1"}
    assert 0.5 < net.query("x2_2")["x2_2"].prob("+1") < net.query("x0_0")["x0_0"].prob("+1")
    weak = denoising_grid(noisy, coupling=0.05, flip_probability=0.1).map_query().assignment
    assert weak["x2_2"] == "-1"


def test_b5_grid_marginals_against_brute_force() -> None:
    for net in (ising_grid(3, 3, 0.4, 0.1), potts_grid(2, 3, 3, 0.6, [0.1, 0.0, -0.3])):
        brute, fast = net.query(engine="enumeration"), net.query()
        assert fast.log_evidence == pytest.approx(brute.log_evidence)
        for name in net.variables:
            assert np.allclose(fast[name].probabilities, brute[name].probabilities, atol=1e-12)


# --------------------------------------------------------------------------------------------------- B6


@pytest.mark.parametrize("name", ["burglary", "alarm_radio", "fuel_gauge", "hmm_small", "asia", "sprinkler"])
def test_b6_conversions_answer_alike(name: str) -> None:
    net = gg.datasets.load(name)
    markov, graph = net.to_markov_network(), net.to_factor_graph()
    assert graph.is_tree == net.is_polytree() == (name not in ("asia", "sprinkler"))
    for other in (markov, graph, markov.to_factor_graph()):
        assert other.log_evidence() == pytest.approx(0.0, abs=1e-12)
        for variable in net.variables:
            expected = net.query(variable)[variable].probabilities
            assert np.allclose(other.query(variable)[variable].probabilities, expected, atol=1e-12)


# --------------------------------------------------------------------------------------------------- C1 to C4


def test_c1_chain_by_forward_and_backward_messages() -> None:
    rng = np.random.default_rng(3)
    pi, T = rng.dirichlet(np.ones(4)), rng.dirichlet(np.ones(4), 4)
    net = markov_chain(30, 4, initial=pi, transition=T)
    forward = pi @ np.linalg.matrix_power(T, 12)
    backward = np.linalg.matrix_power(T, 29 - 12)[:, 2]
    answer = net.query("x12", evidence={"x29": "2"})
    assert np.allclose(answer["x12"].probabilities, forward * backward / (forward @ backward), atol=1e-12)
    assert answer.log_evidence == pytest.approx(np.log(forward @ backward))


def test_c2_messages_of_the_small_hmm() -> None:
    """With x1 = R and x2 = G in the factors, as the text draws it: f1(z1) and f2(z1, z2)."""
    from gramgraph.analysis.messages import sum_product

    net = gg.datasets.hmm_small()
    f1 = net.cpt["z1"].values * net.cpt["x1"].values[:, 0]
    f2 = net.cpt["z2"].values * net.cpt["x2"].values[:, 1]
    z = {"z1": ("1", "2"), "z2": ("1", "2")}
    graph = gg.FactorGraph([("z1", f1), (("z1", "z2"), f2)], names=["f1", "f2"], states=z)
    passed = sum_product(graph, normalized=False)
    assert passed.to_variable("f1", "z1").tolist() == pytest.approx([1 / 4, 1 / 8])
    assert passed.to_factor("z1", "f2").tolist() == pytest.approx([1 / 4, 1 / 8])
    assert passed.to_variable("f2", "z2").tolist() == pytest.approx([1 / 32, 1 / 8])
    assert passed.to_factor("z2", "f2").tolist() == pytest.approx([1, 1])
    assert passed.to_variable("f2", "z1").tolist() == pytest.approx([7 / 16, 3 / 8])
    assert passed.belief("z1").probabilities.tolist() == pytest.approx([0.7, 0.3])
    assert passed.belief("z2").probabilities.tolist() == pytest.approx([0.2, 0.8])
    pair = net.query(("z1", "z2"), evidence={"x1": "R", "x2": "G"})[("z1", "z2")].probabilities
    assert np.allclose(passed.factor_belief("f2").probabilities, pair)
    assert graph.log_evidence() == pytest.approx(np.log(5 / 32))
    assert net.log_evidence({"x1": "R", "x2": "G"}) == pytest.approx(np.log(5 / 32))


def test_c3_most_probable_sequence_is_viterbi() -> None:
    net = gg.datasets.casino(12)
    rolls = dict(zip((f"roll{t}" for t in range(1, 13)), "315266646616", strict=True))
    start, step = np.log(net.cpt["die1"].values), np.log(net.cpt["die2"].values)
    seen = [np.log(net.cpt["roll1"].values)[:, int(face) - 1] for face in rolls.values()]
    score, back = start + seen[0], []
    for e in seen[1:]:
        through = score[:, None] + step
        back.append(through.argmax(axis=0))
        score = through.max(axis=0) + e
    path = [int(score.argmax())]
    for pointers in reversed(back):
        path.append(int(pointers[path[-1]]))
    best = net.map_query(rolls)
    assert best.log_prob == pytest.approx(score.max())
    assert [best.assignment[f"die{t}"] for t in range(1, 13)] == [("fair", "loaded")[i] for i in reversed(path)]
    assert best.assignment["die9"] == "loaded"


@exact
def test_c3_most_probable_state_is_not_the_most_probable_sequence(engine: str) -> None:
    net = gg.datasets.hmm_small()
    best = net.map_query({"x1": "R", "x2": "G"}, engine=engine)
    joint = {(a, b): net.joint_log_prob({"z1": a, "z2": b, "x1": "R", "x2": "G"}) for a, b in product("12", repeat=2)}
    assert (best.assignment["z1"], best.assignment["z2"]) == max(joint, key=joint.__getitem__)
    assert best.log_prob == pytest.approx(max(joint.values()))


@exact
def test_c4_exact_on_a_graph_with_loops(engine: str) -> None:
    net = gg.datasets.asia()
    given = {"dysp": "yes", "asia": "yes", "smoke": "no"}
    brute = net.query(evidence=given, engine="enumeration")
    answer = net.query(evidence=given, engine=engine)
    assert answer.log_evidence == pytest.approx(brute.log_evidence)
    for name in brute:
        assert np.allclose(answer[name].probabilities, brute[name].probabilities, atol=1e-12)
    tree = net.to_junction_tree()
    for i, name in enumerate(net.variables):
        assert set(tree.clique_with([name, *net.parents(name)])) >= {name, *net.parents(name)}, i


@exact
def test_noisy_or_with_many_causes_keeps_its_posterior(engine: str) -> None:
    """Structured and dense factors give the same answer: ten causes of one alarm."""
    from gramgraph.conditionals import NoisyOr, Table
    from gramgraph.variables import binary

    causes, alarm = tuple(binary(f"c{i}") for i in range(10)), binary("alarm")
    noisy = NoisyOr(alarm, causes, np.linspace(0.1, 0.9, 10), leak=0.01)
    rates = {c.name: 0.05 * (i + 1) for i, c in enumerate(causes)}
    structure = {"alarm": [c.name for c in causes]}
    small = gg.BayesianNetwork(structure, cpds={**rates, "alarm": noisy})
    dense = gg.BayesianNetwork(structure, cpds={**rates, "alarm": Table(alarm, causes, noisy.table())})
    given = {"alarm": "yes", "c3": "no"}
    a, b = small.query(evidence=given, engine=engine), dense.query(evidence=given, engine="enumeration")
    assert a.log_evidence == pytest.approx(b.log_evidence)
    assert list(a) == [name for name in small.variables if name not in given]
    for name in a:
        assert np.allclose(a[name].probabilities, b[name].probabilities, atol=1e-12)
    assert small.map_query(given).log_prob == pytest.approx(dense.map_query(given).log_prob)
