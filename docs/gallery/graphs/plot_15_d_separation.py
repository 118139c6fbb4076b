"""
Reading independence from a graph
=================================

Three patterns decide: a chain and a fork are blocked by the node between, a collider is opened by it or by its
descendants. Triebel, *Machine learning for computer vision* (section 4, "D-separation"), reads a graph with the path
a → e ← f → b, and a factorization over seven variables that OuYang, *Probabilistic machine learning* (figure 7.1),
draws as well; Hennig, *Probabilistic inference and learning*, warns that A ⊥ C | B may hold and A ⊥ C | B, D not.

No table is needed: separation is a property of the graph. Then we draw random tables and see that the numbers obey.
"""

# %%
# Three nodes, three patterns.
import matplotlib.pyplot as plt
import numpy as np

import gramgraph as gg

for text in ("A -> B -> C", "A <- B -> C", "A -> B <- C"):
    net = gg.BayesianNetwork(text)
    print(f"{text:12s} {net.independencies()}")

# %%
# Triebel's example: c is a descendant of the collider e, so observing c opens the path; observing f blocks it.
net = gg.BayesianNetwork("a -> e <- f -> b; e -> c")
print("given c the trail", net.active_trail("a", "b", given="c"), "is open")
print("given f no trail is open:", net.active_trail("a", "b", given="f"))
net.plot()

# %%
# The seven variables of p(x1) p(x2) p(x3) p(x4 | x1, x2, x3) p(x5 | x1, x3) p(x6 | x4) p(x7 | x4, x5).
seven = gg.BayesianNetwork(
    {"x1": [], "x2": [], "x3": [], "x4": ["x1", "x2", "x3"], "x5": ["x1", "x3"], "x6": ["x4"], "x7": ["x4", "x5"]}
)
seven.plot()

# %%
# Which pairs are independent, before and after observing x4? Observing makes some pairs independent and others
# dependent.
names = seven.variables
fig, axes = plt.subplots(1, 2, figsize=(7, 3.6), layout="constrained")
for ax, given in zip(axes, ((), ("x4",)), strict=True):
    shown = np.full((7, 7), np.nan)
    for i, j in np.ndindex(7, 7):
        if i != j and not {names[i], names[j]} & set(given):
            shown[i, j] = seven.is_dconnected(names[i], names[j], given)
    ax.imshow(shown, cmap="Blues", vmin=0, vmax=1.6)
    ax.set_facecolor("#b8bfc6")  # gray: the node itself, or observed
    ax.set_xticks(range(7), names)
    ax.set_yticks(range(7), names)
    ax.set_title("dependent pairs" + (" given x4" if given else ""))

# %%
# The numbers of the text
# -----------------------
assert net.is_dconnected("a", "b", given="c") and net.is_dseparated("a", "b", given="f")
assert seven.is_dseparated("x1", "x2") and seven.is_dconnected("x1", "x2", given="x4")
assert seven.is_dconnected("x6", "x7") and seven.is_dseparated("x6", "x7", given="x4")
assert set(seven.markov_blanket("x4")) == {"x1", "x2", "x3", "x6", "x7", "x5"}
warning = gg.BayesianNetwork("A -> B -> C; A -> D <- C")  # Hennig: more evidence is not always more independence
assert warning.is_dseparated("A", "C", given="B") and warning.is_dconnected("A", "C", given=["B", "D"])
joint = net.random_tables(0).query(net.variables)[net.variables].probabilities
a, b, c, f = (net.index(v) for v in "abcf")
assert gg.graphs.is_independent(joint, a, b, given=f) and not gg.graphs.is_independent(joint, a, b, given=c)
