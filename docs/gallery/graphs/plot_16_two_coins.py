"""
Two coins, and maps of independence
===================================

Toss two coins; C says whether they agree. Any two of A, B, C are independent, any two fix the third. Hennig,
*Probabilistic inference and learning* ("The DAG for the two coins example"), finds three graphs for this
distribution. Triebel, *Machine learning for computer vision* (section 4), defines what a graph may promise: an I-map
promises nothing false, a D-map misses nothing, a perfect map is both. (A perfect map does not fix the distribution,
as a slide says, only its independences.)

We see that each of the three graphs is an I-map and none is perfect, and the two small graphs that the other family
of models cannot express.
"""

# %%
# The same distribution with each variable as the one that the others point to. The three are different v-structures.
import itertools

import matplotlib.pyplot as plt
import numpy as np

import gramgraph as gg

nets = {collider: gg.datasets.two_coins(collider) for collider in "CAB"}
joint = nets["C"].query(("A", "B", "C"))[("A", "B", "C")]
for collider, net in nets.items():
    print(
        f"both arrows into {collider}: {net.independencies()}; I-map {net.is_i_map(joint)}, D-map {net.is_d_map(joint)}"
    )
nets["C"].plot()

# %%
# Every graph over three nodes against this distribution. The complete graph is an I-map of anything, the empty one a
# D-map of anything, and here no graph is both.
kinds = {"neither": 0, "I-map": 0, "D-map": 0, "perfect": 0}
pairs = list(itertools.combinations("ABC", 2))
for choice in itertools.product((None, "->", "<-"), repeat=3):
    arrows = [(a, b) if c == "->" else (b, a) for (a, b), c in zip(pairs, choice, strict=True) if c]
    parents = {v: [a for a, b in arrows if b == v] for v in "ABC"}
    try:
        dag = gg.BayesianNetwork(parents)
    except gg.ModelError:  # a cycle
        continue
    i_map, d_map = dag.is_i_map(joint), dag.is_d_map(joint)
    kinds["perfect" if i_map and d_map else "I-map" if i_map else "D-map" if d_map else "neither"] += 1
fig, ax = plt.subplots(layout="constrained", figsize=(6.4, 3.2))
ax.bar_label(ax.bar(list(kinds), list(kinds.values()), color="#4c78a8"), padding=2)
ax.set(
    xlabel="what the graph is for the two coins", ylabel="number of graphs", title="All 25 directed graphs on A, B, C"
)
ax.set_ylim(0, 23)

# %%
# A collider has no perfect undirected map: moralizing joins the parents. The diamond of four friends who quarrel has
# no perfect directed one: every direction makes a collider or loses an independence.
collider = gg.BayesianNetwork("A -> C <- B").random_tables(0)
rng = np.random.default_rng(0)
edges = [("A", "C"), ("C", "B"), ("B", "D"), ("D", "A")]
diamond = gg.MarkovNetwork({edge: rng.uniform(0.5, 3.0, (2, 2)) for edge in edges})
diamond.plot()

# %%
# The numbers of the text
# -----------------------
assert np.allclose(joint.probabilities, nets["A"].query(("A", "B", "C"))[("A", "B", "C")].probabilities)
for net in nets.values():
    assert net.is_i_map(joint) and not net.is_d_map(joint)
assert not nets["A"].is_equivalent(nets["B"]) and not nets["A"].is_equivalent(nets["C"])
assert kinds == {"neither": 15, "I-map": 9, "D-map": 1, "perfect": 0}
assert collider.is_perfect_map(collider) and not collider.to_markov_network().is_perfect_map(collider)
assert diamond.is_perfect_map(diamond)
assert diamond.is_separated("A", "B", given=["C", "D"]) and diamond.is_separated("C", "D", given=["A", "B"])
orientations = itertools.product(*((edge, edge[::-1]) for edge in edges))
for arrows in orientations:
    if len({b for _, b in arrows}) > 1 and len({a for a, _ in arrows}) > 1:
        try:
            dag = gg.BayesianNetwork({v: [a for a, b in arrows if b == v] for v in "ABCD"})
        except gg.ModelError:
            continue
        assert not dag.is_perfect_map(diamond)
