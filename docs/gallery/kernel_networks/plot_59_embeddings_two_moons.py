r"""
Distributions as points of a function space: two moons
======================================================

Parikh, Kernel graphical models: the mean embedding :math:`\mu_X = E[\phi_X]`, the conditional operator :math:`C_{Y|X}
= \Phi_Y (K + \lambda N I)^{-1} \Phi_X^T`, and on top of them the sum rule :math:`\mu_Y = C_{Y|X}\,\mu_X`, the chain
rule, and Bayes' rule. Evaluated at a point, a mean embedding is a kernel density without its constant.

We see them on two moons, where p(y | x) has one or two peaks: no Gaussian could say that. A prior that moves x to the
right moves y by the sum rule, and an observed y gives a posterior of x with several peaks. (In the text the first
:math:`C_{Y|X}` lacks 1/N.)
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

import gramgraph as gg
from gramgraph.embeddings import (
    ConditionalOperator,
    MeanEmbedding,
    bayes_rule,
    chain_rule,
    conditional_operator,
    sum_rule,
)

points, _ = make_moons(600, noise=0.08, random_state=0)
x, y = points.T
kernel = gg.kernels.RBF(0.15)

# %%
# The embedding of the points, evaluated on a grid: a picture of their density; beside it the conditional embedding at
# three places.
mu = MeanEmbedding.of(points, kernel=kernel)
u, v = np.meshgrid(np.linspace(-1.5, 2.5, 70), np.linspace(-1, 1.5, 60))
C = conditional_operator(x, y, kernel_x=kernel, kernel_y=kernel)
line = np.linspace(-1, 1.5, 200)
figure, (left, right) = plt.subplots(1, 2, figsize=(7, 3.4), layout="constrained")
left.contourf(u, v, mu(np.column_stack([u.ravel(), v.ravel()])).reshape(u.shape), levels=12, cmap="Blues")
left.plot(x, y, ".", ms=1, color="black")
for at, color in ((-0.9, "#b3261e"), (0.5, "#1a7f37"), (1.7, "#8a4b00")):
    left.axvline(at, color=color, lw=1)
    right.plot(line, C.embedding([at])(line), color=color, label=f"x = {at}")
left.set(title="μ of the points", xlabel="x", ylabel="y")
right.set(title="Conditional embedding of y", xlabel="y", ylabel="μ(y | x)")
right.legend(fontsize=8)

# %%
# Sum rule: another distribution of x, and what follows for y.
rng = np.random.default_rng(1)
moved = np.clip(rng.normal(1.5, 0.2, 400), x.min(), x.max())
prior = MeanEmbedding.of(moved, kernel=kernel)
pushed = sum_rule(C, prior)
near = np.abs(x - 1.5) < 0.4
figure, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
ax.plot(line, sum_rule(C, MeanEmbedding.of(x, kernel=kernel))(line), color="#57606a", label="x as in the data")
ax.plot(line, pushed(line), color="#b3261e", label="x ~ N(1.5, 0.2²)")
ax.set(title="Sum rule", xlabel="y", ylabel="μ(y)")
ax.legend(fontsize=8)

# %%
# Bayes' rule: y = 0 was seen. Where is x?
grid = np.linspace(-1.5, 2.5, 200)
posterior = bayes_rule(C, MeanEmbedding.of(x, kernel=kernel), [0.0])
figure, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
ax.plot(grid, MeanEmbedding.of(x, kernel=kernel)(grid), color="#57606a", label="prior")
ax.plot(grid, posterior(grid), color="#b3261e", label="after y = 0")
ax.plot(x[np.abs(y) < 0.05], np.full((np.abs(y) < 0.05).sum(), -0.02), "k|", label="points with y near 0")
ax.set(title="Bayes' rule", xlabel="x", ylabel="μ(x | y)", ylim=(None, 0.45))
ax.legend(fontsize=8)

# %%
# The numbers of the text
# -----------------------
# Each object is its formula: a density without constant, ridge weights, and the rules that follow.
n = len(x)
K = kernel.gram(x[:, None])
assert abs(mu([[0.3, 0.2]])[0] - kernel.gram(points, [[0.3, 0.2]]).mean()) < 1e-12
plain = ConditionalOperator(x, y, kernel_x=kernel, kernel_y=kernel, reg=1e-3)
beta = np.linalg.solve(K + 1e-3 * n * np.eye(n), kernel.gram(x[:, None], np.array([[0.5]])))[:, 0]
assert np.allclose(np.ravel(plain.weights([0.5])), beta, atol=1e-8)
assert abs(plain.expect(y, [0.5])[0] - beta @ y) < 1e-8
gamma = np.linalg.solve(K + 1e-3 * n * np.eye(n), kernel.gram(x[:, None], moved[:, None]).mean(axis=1))
assert np.allclose(sum_rule(plain, prior)(line), kernel.gram(line[:, None], y[:, None]) @ gamma, atol=1e-8)
joint = chain_rule(plain, prior)
assert np.allclose(
    joint([1.5], line[::40])[0],
    np.ravel(kernel.gram([[1.5]], x[:, None]) * gamma @ kernel.gram(y[:, None], line[::40, None])),
    atol=1e-8,
)
assert abs(C.weights([0.5]).sum() - 1) < 1e-9
two = C.embedding([0.5])(line)
peaks = np.sum((two[1:-1] > two[:-2]) & (two[1:-1] > two[2:]) & (two[1:-1] > 0.3 * two.max()))
assert peaks == 2 and abs(pushed.mean()[0] - y[near].mean()) < 0.1
