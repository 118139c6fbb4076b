"""
Plates: regression and naive Bayes drawn with what repeats
==========================================================

Triebel, *Machine learning for computer vision* (section 4), Hennig, *Probabilistic inference and learning*, and OuYang,
*Probabilistic machine learning* (section 7), draw parameters as nodes: a plate is a box around what repeats, a dot is a
hyper-parameter, a shaded node is observed. Bayesian regression has weights outside the plate of the data; naive Bayes
has one table for each class and feature.

We see both models written as text, their drawings, and that a question about them gives the closed forms:
Σ = (αI + βXᵀX)⁻¹ and m = βΣXᵀy for the weights, and counts plus the prior's for the tables.
"""

# %%
# Regression: ``plate points`` repeats x and y; the weights stand outside, so all points share them.
import matplotlib.pyplot as plt
import numpy as np

import gramgraph as gg

line = gg.BayesianNetwork(
    "alpha* -> w{real^2} -> y{real} <- x{real^2}; beta* -> y; plate points: x, y",
    cpds={
        "w": gg.distributions.Normal(0.0, precision="alpha"),
        "y": gg.distributions.Normal(gg.Dot("w", "x"), precision="beta"),
    },
    alpha=2.0,
    beta=25.0,
)
line.plot()

# %%
# Twenty points near the line −0.3 + 0.5 x. Evidence is a list as long as the plate; None is what is not known.
rng = np.random.default_rng(0)
t = rng.uniform(-1, 1, 20)
X = np.column_stack([np.ones(20), t])
y = X @ [-0.3, 0.5] + 0.2 * rng.normal(size=20)
new = np.column_stack([np.ones(41), np.linspace(-1.5, 1.5, 41)])
answer = line.query(["w", "y"], {"x": [*X.tolist(), *new.tolist()], "y": [*y.tolist(), *[None] * 41]})
mean, sd = answer["y"].mean()[20:], answer["y"].sd()[20:]
fig, ax = plt.subplots(layout="constrained")
ax.fill_between(new[:, 1], mean - 2 * sd, mean + 2 * sd, color="#c9d8ee", label="mean ± 2 sd")
ax.plot(new[:, 1], mean, color="#1f4e9c", label="predictive mean")
ax.plot(t, y, "o", color="#9c3d1f", label="points")
ax.set(xlabel="x", ylabel="y", title="Regression as a plate model")
ax.legend(loc="upper left")

# %%
# Naive Bayes: ``phi`` has one row of probabilities for every kind and feature; ``gg.Index`` picks the row of the class.
naive = gg.BayesianNetwork(
    "pi{simplex 2} -> c[2] -> x[3] <- phi{simplex 3}; plate kinds: phi; plate features: phi, x; plate cases: c, x",
    cpds={"pi": gg.Dirichlet([1.0, 1.0]), "phi": gg.Dirichlet([0.5] * 3), "x": gg.Index("phi", by="c")},
)
naive.plot()

# %%
# Thirty cases with four features each; the class of the last one is asked for.
classes = rng.integers(2, size=30)
features = np.where(rng.random((30, 4)) < 0.6, classes[:, None], rng.integers(3, size=(30, 4)))
seen = {"c": [*classes[:-1].tolist(), None], "x": features.T.tolist()}
p = naive.query("c", seen)["c"].probabilities[-1]
print(f"the last case is of class 1 with probability {p[1]:.4f}")

# %%
# The numbers of the text
# -----------------------
S = np.linalg.inv(2.0 * np.eye(2) + 25.0 * X.T @ X)
assert np.allclose(answer["w"].mean(), 25.0 * S @ X.T @ y, atol=1e-8)
assert np.allclose(answer["w"].sd() ** 2, np.diag(S), atol=1e-8)
by_hand = np.bincount(classes[:-1], minlength=2) + 1.0
for k in range(2):
    for j in range(4):
        counts = np.bincount(features[:-1][classes[:-1] == k, j], minlength=3) + 0.5
        by_hand[k] *= counts[features[-1, j]] / counts.sum()
assert np.allclose(p, by_hand / by_hand.sum(), atol=1e-8)
