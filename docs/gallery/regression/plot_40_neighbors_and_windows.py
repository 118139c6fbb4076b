r"""
Nearest neighbors and Parzen's windows
======================================

Triebel, Machine learning for computer vision, section 2 (Introduction to learning): a ball around x that holds K
points, :math:`K_k` of them of class k, gives the densities :math:`p(x \mid k) = K_k / (N_k V)` and :math:`p(x) = K /
(N V)`; by Bayes' rule :math:`p(k \mid x) = K_k / K`. So the vote of neighbors is a generative model.

We see its regions for K = 1 and K = 15, and the other way round: the ball kept fixed (Parzen's window), which is a
kernel density. Section 6 puts a kernel in the place of the dot product; its squared distance has −2k(x, x′), where
the text prints a plus.
"""

import matplotlib.pyplot as plt
import numpy as np

import gramgraph as gg

rng = np.random.default_rng(7)
X = np.vstack([rng.normal([-1, 0], [0.7, 1.2], (60, 2)), rng.normal([1, 0.5], [1.0, 0.6], (40, 2))])
t = np.repeat([0, 1], [60, 40])
near = gg.estimators.KernelNeighborsClassifier

# %%
# The vote of one neighbor, and of fifteen.
figure, axes = plt.subplots(1, 2, figsize=(7, 3.4), layout="constrained")
for ax, K in zip(axes, (1, 15), strict=True):
    gg.plot.plot_decision_regions(near(K, kernel="linear").fit(X, t), X, t, ax=ax, resolution=120)
    ax.set(title=f"K = {K}", xlabel="x1", ylabel="x2")

# %%
# One dimension: the density from 15 neighbors has a ball as wide as it needs; windows have one width.
x = X[:, :1]
grid = np.linspace(-4, 4.5, 400)[:, None]
figure, ax = plt.subplots(figsize=(7, 3.8), layout="constrained")
density = near(15, kernel="linear").fit(x, np.zeros(100, dtype=int)).class_density(grid)[:, 0]
ax.plot(grid, density, color="#7d8590", lw=1, label="15 nearest neighbors")
for shape, color in (("tophat", "#b3261e"), ("gaussian", "#1f4e9c")):
    window = gg.estimators.KernelDensity(0.5, kernel=shape).fit(x)
    ax.plot(grid, np.exp(window.score_samples(grid)), color=color, label=f"window, {shape}")
best = gg.estimators.KernelDensity("loo").fit(x)
ax.plot(
    grid,
    np.exp(best.score_samples(grid)),
    "--",
    color="black",
    label=f"gaussian, h = {best.bandwidth_:.2f} by leaving one out",
)
ax.plot(x, np.full(100, -0.01), "|", color="black")
ax.set(title="Three estimates of one density", xlabel="x", ylabel="p(x)", ylim=(-0.03, 1.05 * min(density.max(), 0.9)))
ax.legend(fontsize=8)

# %%
# The numbers of the text
# -----------------------
# Bayes' rule with the two densities is the share of the votes; a top hat counts the points inside.
model = near(15, kernel="linear").fit(X, t)
some = rng.normal(size=(50, 2))
likelihood, prior = model.class_density(some), np.array([0.6, 0.4])
posterior = likelihood * prior / (likelihood * prior).sum(axis=1, keepdims=True)
assert np.allclose(posterior, model.predict_proba(some), atol=1e-12)
assert np.allclose(model.predict_proba(some) * 15, np.rint(model.predict_proba(some) * 15))
hat = np.exp(gg.estimators.KernelDensity(0.5, kernel="tophat").fit(x).score_samples([[0.1]]))[0]
assert abs(hat - np.sum(np.abs(x - 0.1) <= 0.5) / (100 * 1.0)) < 1e-12
k = gg.kernels.Polynomial(degree=2)
a, b = X[:1], X[1:2]
squared = (k.gram(a) + k.gram(b) - 2 * k.gram(a, b))[0, 0]
near_k = near(1, kernel=k).fit(b, [0]).kneighbors(a)[0][0, 0]
assert abs(near_k**2 - squared) < 1e-9
