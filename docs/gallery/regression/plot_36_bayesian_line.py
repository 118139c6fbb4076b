r"""
A line that is known better with every point
============================================

Triebel, Machine learning for computer vision, section 3 (Bayesian linear regression), starts from the prior N(0, 0.5
I) of intercept and slope, takes points of the line :math:`a_0 = -0.3,\; a_1 = 0.5` with noise of deviation 0.2, and
looks at the posterior after 1, 2 and 20 of them: each posterior is the prior of the next point. Then nine Gaussians
learn a sine from 1, 2, 4 and 25 points.

We see the ellipse of the weights shrink onto the truth, lines drawn from it, and the band of predictions pinched at
the data.
"""

import matplotlib.pyplot as plt
import numpy as np

import gramgraph as gg

rng = np.random.default_rng(4)
x = rng.uniform(-1, 1, 20)
t = -0.3 + 0.5 * x + 0.2 * rng.normal(size=20)
line = gg.BayesianLinearRegression(alpha=2.0, beta=25.0, learn=None)

# %%
# Point after point: ``partial_fit`` multiplies the likelihood of the new points into the posterior.
figure, axes = plt.subplots(2, 3, figsize=(7, 4.8), layout="constrained")
grid = np.linspace(-1, 1, 2)[:, None]
for column, (start, stop) in zip(axes.T, ((0, 1), (1, 2), (2, 20)), strict=True):
    line.partial_fit(x[start:stop, None], t[start:stop])
    gg.plot.plot_gaussian(line.weights(), ax=column[0])
    column[0].plot(-0.3, 0.5, "+", ms=12, mew=2, color="#b3261e", label="truth")
    column[0].set(title=f"{stop} point{'s' * (stop > 1)}", xlabel="a0", ylabel="a1", xlim=(-1.5, 1.5), ylim=(-1.5, 1.5))
    column[0].set_aspect("equal", adjustable="box")
    a0, a1 = line.weights().sample(6, random_state=1).T
    column[1].plot(grid, a0 + a1 * grid, color="#b3261e", lw=1)
    column[1].plot(x[:stop], t[:stop], "o", ms=4, color="#1f4e9c")
    column[1].set(xlabel="x", ylabel="t", xlim=(-1, 1), ylim=(-1.5, 1.5))
axes[0, 0].legend(loc="upper right", fontsize=8)

# %%
# Nine Gaussians and a sine: predictive bands of two deviations, and six functions drawn from the posterior.
u = rng.uniform(0, 1, 25)
v = np.sin(2 * np.pi * u) + 0.2 * rng.normal(size=25)
nine = gg.gp.GaussianBasis.spread(0, 1, 9, width=0.12, bias=False)
fine = np.linspace(0, 1, 200)[:, None]
figure, axes = plt.subplots(2, 2, figsize=(7, 5.4), layout="constrained")
for ax, n in zip(axes.flat, (1, 2, 4, 25), strict=True):
    sine = gg.BayesianLinearRegression(nine, alpha=2.0, beta=25.0, learn=None).fit(u[:n, None], v[:n])
    mean, std = sine.predict(fine, return_std=True)
    ax.fill_between(fine[:, 0], mean - 2 * std, mean + 2 * std, color="#f3d3d0")
    ax.plot(
        fine,
        np.tensordot(nine.transform(fine), sine.weights().sample(6, random_state=0), (1, 1)),
        lw=0.7,
        color="#7d8590",
    )
    ax.plot(fine, np.sin(2 * np.pi * fine), color="#1a7f37", label="truth")
    ax.plot(fine, mean, color="#b3261e", label="mean")
    ax.plot(u[:n], v[:n], "o", ms=4, color="#1f4e9c")
    ax.set(title=f"{n} point{'s' * (n > 1)}", xlabel="x", ylabel="t", ylim=(-2, 2))
axes[0, 0].legend(fontsize=8)

# %%
# The numbers of the text
# -----------------------
# Twenty steps give what one step gives, which is :math:`S_N^{-1} = S_0^{-1} + \sigma^{-2}\Phi^T\Phi`; the truth is
# recovered.
Phi = np.column_stack([np.ones(20), x])
S = np.linalg.inv(2.0 * np.eye(2) + 25.0 * Phi.T @ Phi)
assert np.allclose(line.sigma_, S, atol=1e-12) and np.allclose(line.coef_, S @ Phi.T @ t * 25.0, atol=1e-12)
gap = line.coef_ - [-0.3, 0.5]
assert gap @ np.linalg.solve(line.sigma_, gap) < 9.2  # inside the ellipse that holds 99 %
assert np.abs(gap).max() < 0.1
mean, std = line.predict([[0.5]], return_std=True)
assert abs(std[0] ** 2 - (0.04 + np.array([1, 0.5]) @ S @ [1, 0.5])) < 1e-12
