"""
Factor graphs
=============

A factor graph shows the product itself: a box for each factor, joined to its variables. Triebel, *Machine learning
for computer vision* (section 4a), and Hennig, *Probabilistic inference and learning* ("Factor graph"), convert both
kinds of models to it: moralization may turn a tree into a graph with loops, while a polytree stays a tree as a factor
graph; and one factor over three variables or three factors over pairs are the same undirected graph, but not the same
model.

We convert, look, and ask all versions the same question.
"""

# %%
# A head-to-head node: moralizing marries the parents, which hides that they are independent.
import numpy as np

import gramgraph as gg

net = gg.BayesianNetwork("x1 -> x3 <- x2; x3 -> x4; x2 -> x5").random_tables(0)
net.plot()

# %%
# The undirected version has the loop x1, x2, x3.
moral = net.to_markov_network()
moral.plot()

# %%
# The factor graph has none: messages are exact on it.
graph = net.to_factor_graph()
graph.plot()

# %%
# One factor or three? Both models below have the same undirected graph, a triangle. The factor graphs differ, and so
# does the number of parameters: seven free numbers against pairwise interactions only.
rng = np.random.default_rng(0)
one = gg.FactorGraph([(("a", "b", "c"), rng.uniform(0.1, 1, (2, 2, 2)))], names=["f"])
pairs = (("a", "b"), ("b", "c"), ("a", "c"))
three = gg.FactorGraph([(pair, rng.uniform(0.1, 1, (2, 2))) for pair in pairs], names=["f_ab", "f_bc", "f_ac"])
one.plot()
three.plot()

# %%
# What tells them apart: the interaction of third order, the log odds ratio of a and b when c changes. It is zero for
# every product of pairs.


def third_order(model):
    log_p = np.log(model.query(("a", "b", "c"))[("a", "b", "c")].probabilities)
    sign = np.array([1, -1])
    return np.einsum("abc,a,b,c", log_p, sign, sign, sign)


print(f"third-order interaction: {third_order(one):.3f} with one factor, {third_order(three):.1e} with three")

# %%
# The numbers of the text
# -----------------------
assert net.is_polytree() and graph.is_tree
assert len(moral.edges) == 5 > len(net.variables) - 1  # one edge too many for a tree
assert ("x1", "x2") in moral.edges or ("x2", "x1") in moral.edges
for name in net.variables:
    expected = net.query(name, {"x4": "yes"} if name != "x4" else {})[name].probabilities
    for other in (moral, graph):
        found = other.query(name, {"x4": "yes"} if name != "x4" else {})[name].probabilities
        assert np.allclose(found, expected, atol=1e-12)
assert np.allclose(
    graph.sum_product({"x4": "yes"}).belief("x1").probabilities, net.query("x1", {"x4": "yes"})["x1"].probabilities
)
assert {frozenset(e) for e in one.edges} == {frozenset(e) for e in three.edges} and one.is_tree and not three.is_tree
assert abs(third_order(three)) < 1e-10 < abs(third_order(one))
