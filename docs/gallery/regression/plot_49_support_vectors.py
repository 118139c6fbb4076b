r"""
Three points, a parabola, and the kinds of support vectors
==========================================================

Zhu, Graphical models and kernel methods, section "Support vector machines": −1 and 1 belong to one class, 0 to the
other; no threshold parts them, but the kernel :math:`(1 + x x')^2` does. OuYang, Probabilistic machine learning,
section 6.1: with slack, points have :math:`\alpha = 0`, lie on the margin (:math:`0 < \alpha < C`) or inside it
(:math:`\alpha = C`); regression has a tube of half width ε.

We see f(x) = 2x² − 1 come out with α = (1, 2, 1), a soft margin with its three kinds of points, and the tube, in
which points do not count.
"""

import matplotlib.pyplot as plt
import numpy as np

import gramgraph as gg

x, t = np.array([[-1.0], [0.0], [1.0]]), np.array([1, -1, 1])
three = gg.SVC(gg.kernels.Polynomial(2), C=np.inf, tol=1e-10).fit(x, t)
grid = np.linspace(-1.6, 1.6, 200)[:, None]

# %%
# Three points on a line.
figure, ax = plt.subplots(figsize=(7, 3.2), layout="constrained")
ax.plot(grid, three.decision_function(grid), color="#1f4e9c", label="f(x)")
ax.plot(grid, 2 * grid**2 - 1, ":", color="black", lw=2.5, label="2x² − 1")
ax.axhline(0, color="#7d8590", lw=1)
ax.scatter(x, t, c=["#b3261e", "#1a7f37", "#b3261e"], zorder=3)
ax.set(title="A hyperplane in (1, √2 x, x²)", xlabel="x", ylabel="f(x)")
ax.legend(fontsize=8)

# %%
# Two classes that overlap: a thin ring is on the margin, a thick one inside it or on the wrong side.
rng = np.random.default_rng(0)
X = np.vstack([rng.normal([-1, -0.4], 0.8, (40, 2)), rng.normal([1, 0.4], 0.8, (40, 2))])
c = np.repeat([-1, 1], 40)
soft = gg.SVC(gg.kernels.Linear(), C=1.0, tol=1e-8).fit(X, c)
ax = gg.plot.plot_decision_regions(soft, X, c)
ax.set(xlabel="x1", ylabel="x2")

# %%
# Regression: only points on or outside the tube are support vectors.
u = np.sort(rng.uniform(0, 6, 60))[:, None]
v = np.sin(u[:, 0]) + 0.15 * rng.normal(size=60)
tube = gg.SVR(gg.kernels.RBF(1.0), C=5.0, epsilon=0.2, tol=1e-8).fit(u, v)
fine = np.linspace(0, 6, 200)[:, None]
f = tube.predict(fine)
figure, ax = plt.subplots(figsize=(7, 3.4), layout="constrained")
ax.fill_between(fine[:, 0], f - 0.2, f + 0.2, color="#cfe0f5", label="tube")
ax.plot(fine, f, color="#1f4e9c")
ax.plot(u, v, ".", color="black", label="points")
ax.plot(u[tube.support_], v[tube.support_], "o", mfc="none", mec="#b3261e", label="support vectors")
ax.set(title=f"{len(tube.support_)} of 60 points count", xlabel="x", ylabel="y")
ax.legend(fontsize=8, loc="lower left")

# %%
# The numbers of the text
# -----------------------
# α = (1, 2, 1) and f = 2x² − 1; then the conditions of Karush, Kuhn and Tucker for all three machines.
alpha = np.zeros(3)
alpha[three.support_] = np.abs(three.dual_coef_[0])
assert np.allclose(alpha, [1, 2, 1], atol=1e-6)
assert np.allclose(three.decision_function(grid), 2 * grid[:, 0] ** 2 - 1, atol=1e-6)
margin = c * soft.decision_function(X)
assert np.abs(margin[soft.margin_support_] - 1).max() < 1e-5  # 0 < α < C
assert margin[soft.bound_support_].max() < 1 + 1e-5  # α = C
assert margin[soft.non_support_].min() > 1 - 1e-5  # α = 0
assert abs(soft.dual_coef_.sum()) < 1e-8 and np.abs(soft.dual_coef_).max() <= 1 + 1e-12
gap = np.abs(v - tube.predict(u))
inside = np.setdiff1d(np.arange(60), tube.support_)
assert gap[inside].max() < 0.2 + 1e-5 and np.abs(gap[tube.margin_support_] - 0.2).max() < 1e-5
assert gap[tube.bound_support_].min() > 0.2 - 1e-5
