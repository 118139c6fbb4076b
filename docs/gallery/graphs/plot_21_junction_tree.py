"""
A junction tree, step by step
=============================

Messages are exact on trees; any graph becomes a tree of cliques. Triebel, *Machine learning for computer vision*
(section 4a, "Junction tree algorithm"), and Hennig, *Probabilistic inference and learning* ("Generalization to any
graph"), name the steps: moralize, triangulate, and join the cliques by a spanning tree of the largest overlaps. The
cost is exponential in the largest clique.

We take the steps on the network of the chest clinic, and then see what a bad order of elimination costs.
"""

# %%
# The network: 8 variables, one loop (smoke, lung, either, dysp, bronc).
import itertools

import matplotlib.pyplot as plt
import numpy as np

import gramgraph as gg

net = gg.datasets.asia()
net.plot()

# %%
# Moralize: parents of a common child are joined, arrows dropped. Triangulate: every loop of four or more gets a
# chord. The two marriages are blue, the one chord is red.
moral = gg.graphs.moralize(net.graph)
made = gg.graphs.triangulate(moral)
arrows = {frozenset(map(net.index, edge)) for edge in net.edges}
at = {"asia": (0, 3), "tub": (0, 2), "smoke": (2.5, 3), "lung": (1.6, 2), "bronc": (3.4, 2)}
at |= {"either": (1, 1), "xray": (0.4, 0), "dysp": (2.6, 0)}
fig, ax = plt.subplots(layout="constrained")
for i, j in itertools.combinations(range(len(net)), 2):
    chord = (i, j) in made.fill_edges or (j, i) in made.fill_edges
    if chord or j in moral.neighbors[i]:
        color = "#b03a2e" if chord else "#9aa5b1" if frozenset((i, j)) in arrows else "#4c78a8"
        (x0, y0), (x1, y1) = at[net.variables[i]], at[net.variables[j]]
        ax.plot([x0, x1], [y0, y1], color=color, linewidth=1.5 if color == "#9aa5b1" else 3, zorder=0)
for name, (x, y) in at.items():
    ax.text(x, y, name, ha="center", va="center", bbox={"boxstyle": "round", "fc": "#e4e7eb", "ec": "#52606d"})
ax.set(title="Moral graph: marriages blue, chord red", xlim=(-0.6, 4), ylim=(-0.4, 3.4))
ax.axis("off")

# %%
# The cliques and their tree; edges are labeled with what both ends share. Every variable lives in a connected part.
tree = net.to_junction_tree()
gg.plot.plot_junction_tree(tree)

# %%
# The price of an order. Every order of elimination triangulates; most of 2,000 random ones make larger cliques than
# the heuristic's. On a large network that decides whether a question can be answered at all: ``gg.plan`` tells
# beforehand.
rng = np.random.default_rng(0)
widths = [net.induced_width(list(rng.permutation(net.variables))) for _ in range(2000)]
fig, ax = plt.subplots(layout="constrained", figsize=(6.4, 3.4))
ax.hist(widths, bins=np.arange(1.5, 7.5), color="#4c78a8", rwidth=0.8, label="random orders")
ax.axvline(tree.width, color="#b03a2e", label=f"min-fill: {tree.width}")
ax.set(xlabel="width (largest clique − 1)", ylabel="orders", title="Good and bad orders of elimination")
ax.legend(loc="upper right")
print(gg.plan(net))

# %%
# The numbers of the text
# -----------------------
married = {frozenset(map(net.index, edge)) for edge in (("tub", "lung"), ("bronc", "either"))}
edges = {frozenset((i, j)) for i in range(len(net)) for j in moral.neighbors[i]}
assert edges == arrows | married and len(made.fill_edges) == 1
assert len(tree.cliques) == 6 and tree.width == 2 == min(widths)
# A spanning tree of largest overlaps: their sizes add up to those of the cliques minus the number of variables.
assert sum(map(len, tree.separators)) == sum(map(len, tree.cliques)) - len(net)
for name in net.variables:  # running intersection
    inside = [k for k, clique in enumerate(tree.cliques) if name in clique]
    links = [e for e, s in zip(tree.edges, tree.separators, strict=True) if name in s]
    assert len(links) == len(inside) - 1
seen = {"dysp": "yes", "smoke": "yes"}
exact, fast = net.query("lung", seen, engine="enumeration"), net.query("lung", seen, engine="junction_tree")
assert np.allclose(exact["lung"].probabilities, fast["lung"].probabilities, atol=1e-12)
