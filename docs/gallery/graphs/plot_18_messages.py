"""
Sum-product, message by message
===============================

A hidden Markov model of two steps, with a red and a green observation. Zhu, *Graphical models and kernel methods*
("Example: a simple HMM"), takes z₂ as the root of the factor graph and sends messages up and back down: (1/4, 1/8),
(1/32, 1/8), (1, 1), (7/16, 3/8); the products of what comes in are the marginals (0.7, 0.3) and (0.2, 0.8).

We watch the six messages in the order in which they are sent, then the star of OuYang, *Probabilistic machine
learning* (figure 7.4).
"""

# %%
# Observations are absorbed into the factors: f₁(z₁) = p(z₁) p(R | z₁) and f₂(z₁, z₂) = p(z₂ | z₁) p(G | z₂).
from fractions import Fraction

import matplotlib.pyplot as plt
import numpy as np

import gramgraph as gg

hmm = gg.datasets.hmm_small()
f1 = hmm.cpt["z1"].values * hmm.cpt["x1"][{"x1": "R"}]
f2 = hmm.cpt["z2"].values * hmm.cpt["x2"][{"x2": "G"}]
graph = gg.FactorGraph(
    [("z1", f1), (("z1", "z2"), f2)], names=["f1", "f2"], states={"z1": ("1", "2"), "z2": ("1", "2")}
)
sent = graph.sum_product(normalized=False, root="z2")
print(sent)

# %%
# The picture: one panel for each step. Variables are round, factors are boxes.
place = {"f1": 0, "z1": 1, "f2": 2, "z2": 3}
steps = sent.to_frame()
fig, axes = plt.subplots(6, 1, figsize=(6.4, 7.6), layout="constrained")
for ax, (step, message) in zip(axes, steps.groupby("step"), strict=True):
    sender, receiver = message[["sender", "receiver"]].iloc[0]
    ax.plot([0, 3], [0, 0], color="#b8bfc6", zorder=0)
    for name, x in place.items():
        shape = "circle,pad=0.35" if name[0] == "z" else "square,pad=0.45"
        ax.text(x, 0, name, ha="center", va="center", bbox={"boxstyle": shape, "fc": "#e4e7eb", "ec": "#52606d"})
    a, b = place[sender], place[receiver]
    ax.annotate(
        "", (b + 0.2 * np.sign(a - b), 0), (a + 0.2 * np.sign(b - a), 0), arrowprops={"color": "#b03a2e", "width": 2}
    )
    values = ", ".join(str(Fraction(value).limit_denominator(1000)) for value in message["value"])
    ax.text((a + b) / 2, 0.5, f"({values})", ha="center", fontsize=11, color="#b03a2e")
    ax.text(-0.45, 0.5, f"step {step}", fontsize=10)
    ax.set(xlim=(-0.5, 3.5), ylim=(-0.6, 1.0))
    ax.axis("off")
fig.suptitle("Up to the root z₂, and back down")

# %%
# A star: x2 in the middle, three factors around it. The marginal of x2 is the product of three messages, each of them
# a sum over one leaf.
rng = np.random.default_rng(1)
tables = {name: rng.uniform(0.2, 1.0, (2, 3)) for name in ("fa", "fb", "fc")}
star = gg.FactorGraph(
    [(("x1", "x2"), tables["fa"]), (("x3", "x2"), tables["fb"]), (("x4", "x2"), tables["fc"])], names=["fa", "fb", "fc"]
)
inner = star.sum_product(normalized=False, root="x2")
star.plot()

# %%
# The numbers of the text
# -----------------------
assert np.allclose(sent.to_variable("f1", "z1"), [1 / 4, 1 / 8], atol=1e-15)
assert np.allclose(sent.to_factor("z1", "f2"), [1 / 4, 1 / 8], atol=1e-15)
assert np.allclose(sent.to_variable("f2", "z2"), [1 / 32, 1 / 8], atol=1e-15)
assert np.allclose(sent.to_factor("z2", "f2"), [1, 1])
assert np.allclose(sent.to_variable("f2", "z1"), [7 / 16, 3 / 8], atol=1e-15)
assert np.allclose(sent.belief("z1").probabilities, [0.7, 0.3]) and np.allclose(
    sent.belief("z2").probabilities, [0.2, 0.8]
)
pair = hmm.query(("z1", "z2"), {"x1": "R", "x2": "G"})[("z1", "z2")].probabilities
assert np.allclose(sent.factor_belief("f2").probabilities, pair)  # the marginal of a factor's variables
assert abs(np.exp(sent.log_evidence) - 5 / 32) < 1e-15
product = np.prod([table.sum(axis=0) for table in tables.values()], axis=0)
assert np.allclose(inner.belief("x2").probabilities, product / product.sum())
