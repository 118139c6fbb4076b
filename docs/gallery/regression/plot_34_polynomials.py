r"""
Polynomials: too stiff, too loose, and held back
================================================

Triebel, Machine learning for computer vision, section 3 (Regression), fits :math:`y(x, w) = \sum_j w_j x^j` with M
weights to N points by the pseudo-inverse :math:`w = \Phi^+ t`, and then by :math:`w = (\lambda I +
\Phi^T\Phi)^{-1}\Phi^T t`.

We draw M = 1, 3, 5, 10 at N = 10, then N = 10, 20, 40, 100 at M = 10, then four values of λ, and print the weights:
they explode where the polynomial oscillates, and a small penalty is enough to tame them. (The points are drawn here:
a sine with noise.)
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import gramgraph as gg

rng = np.random.default_rng(3)
grid = np.linspace(0, 1, 300)


def points(n):
    x = np.linspace(0, 1, n)
    return x, np.sin(2 * np.pi * x) + 0.25 * rng.normal(size=n)


def powers(M):
    return lambda X: np.asarray(X)[:, :1] ** np.arange(M)


def draw(ax, model, x, t, title):
    ax.plot(grid, np.sin(2 * np.pi * grid), color="#1a7f37", label="truth")
    ax.plot(grid, model.predict(grid[:, None]), color="#b3261e", label="fit")
    ax.plot(x, t, "o", ms=4, color="#1f4e9c", label="points")
    ax.set(title=title, xlabel="x", ylabel="t", ylim=(-1.9, 1.9))


# %%
# Ten points, more and more weights: the last polynomial passes through every point and is useless between them.
x, t = points(10)
figure, axes = plt.subplots(2, 2, figsize=(7, 5.4), layout="constrained")
weights = {}
for ax, M in zip(axes.flat, (1, 3, 5, 10), strict=True):
    model = gg.estimators.LeastSquares(powers(M)).fit(x[:, None], t)
    weights[f"M = {M}"] = model.coef_
    draw(ax, model, x, t, f"N = 10, M = {M}")
axes[0, 0].legend(fontsize=8)

# %%
# Ten weights, more and more points: more data allow a more complex model.
figure, axes = plt.subplots(2, 2, figsize=(7, 5.4), layout="constrained")
largest = []
for ax, N in zip(axes.flat, (10, 20, 40, 100), strict=True):
    u, v = (x, t) if N == 10 else points(N)
    model = gg.estimators.LeastSquares(powers(10)).fit(u[:, None], v)
    largest.append(np.abs(model.coef_).max())
    draw(ax, model, u, v, f"N = {N}, M = 10")
axes[0, 0].legend(fontsize=8)

# %%
# Ten points, ten weights and a penalty: the most probable weights under the prior N(0, I/α) and noise of precision β
# are those of λ = α/β.
figure, axes = plt.subplots(2, 2, figsize=(7, 5.4), layout="constrained")
for ax, lam in zip(axes.flat, (1.0, 1e-3, 1e-6, 1e-11), strict=True):
    model = gg.BayesianLinearRegression(powers(10), alpha=lam, beta=1.0, learn=None).fit(x[:, None], t)
    weights[f"λ = {lam:g}"] = model.coef_
    draw(ax, model, x, t, f"N = M = 10, λ = {lam:g}")
axes[0, 0].legend(fontsize=8)

# %%
# The table of weights.
table = pd.DataFrame({name: pd.Series(w) for name, w in weights.items()})
table.index = [f"w{j}" for j in table.index]
print(table.round(2).to_string(na_rep=""))

# %%
# The numbers of the text
# -----------------------
# M = 1 is the mean; ten weights pass through ten points; the penalized weights are those of the formula.
Phi = powers(10)(x[:, None])
assert abs(weights["M = 1"][0] - t.mean()) < 1e-12
assert np.abs(Phi @ weights["M = 10"] - t).max() < 1e-6
for lam in (1.0, 1e-3, 1e-6):
    normal = np.linalg.solve(lam * np.eye(10) + Phi.T @ Phi, Phi.T @ t)
    assert np.abs(weights[f"λ = {lam:g}"] - normal).max() < 1e-5 * np.abs(normal).max()
assert largest[0] > 5 * max(largest[2:])
assert np.abs(weights["λ = 1"]).max() < np.abs(weights["λ = 1e-06"]).max() < np.abs(weights["M = 10"]).max()
