r"""
Fisher's direction, and the Gaussians behind it
===============================================

OuYang, Probabilistic machine learning, sections 3.1 and 3.2: a class can be described by a Gaussian, and Bayes' rule
then gives the posterior of the class; or one looks for the direction :math:`w \propto S_W^{-1}(m_1 - m_2)` on which
the classes lie farthest apart against their spread, and puts a threshold on it by one Gaussian for each class.

We see three boundaries on one picture: Fisher's line, the linear discriminant (one covariance for both), the
quadratic one (each its own), and the two Gaussians on Fisher's direction. (The text divides the scatter of each class
by its size: ``weighting="equal"``.)
"""

import matplotlib.pyplot as plt
import numpy as np

import gramgraph as gg

rng = np.random.default_rng(2)
A = rng.multivariate_normal([0, 0], [[2.0, 1.5], [1.5, 1.6]], 120)
B = rng.multivariate_normal([3.2, 0.6], [[0.5, -0.3], [-0.3, 1.2]], 60)
X, t = np.vstack([A, B]), np.repeat([0, 1], [120, 60])

fisher = gg.FisherDiscriminant(weighting="equal").fit(X, t)
linear = gg.GaussianClassifier("shared").fit(X, t)
quadratic = gg.GaussianClassifier("own").fit(X, t)

# %%
# The boundaries: where p(class 1 | x) = ½.
u, v = np.meshgrid(np.linspace(-4, 6, 200), np.linspace(-4, 4.5, 200))
grid = np.column_stack([u.ravel(), v.ravel()])
figure, ax = plt.subplots(figsize=(7, 4.6), layout="constrained")
ax.plot(*A.T, ".", color="#1f4e9c", label="class 0")
ax.plot(*B.T, ".", color="#b3261e", label="class 1")
for model, name, style in (
    (fisher, "Fisher", "-"),
    (linear, "one covariance", "--"),
    (quadratic, "two covariances", ":"),
):
    ax.contour(u, v, model.predict_proba(grid)[:, 1].reshape(u.shape), levels=[0.5], colors="black", linestyles=style)
    ax.plot([], [], "k", linestyle=style, label=f"{name}, {np.mean(model.predict(X) != t):.1%} wrong")
ax.set(title="Three boundaries", xlabel="x1", ylabel="x2")
ax.legend(fontsize=8, loc="upper left", bbox_to_anchor=(1.01, 1))

# %%
# On Fisher's direction each class is a Gaussian; the threshold is where both, times their shares, are equal.
z = fisher.transform(X)[:, 0]
s = np.linspace(z.min() - 1, z.max() + 1, 300)
figure, ax = plt.subplots(figsize=(7, 3.4), layout="constrained")
for k, color in ((0, "#1f4e9c"), (1, "#b3261e")):
    bell = gg.distributions.Normal(z[t == k].mean(), z[t == k].var())
    ax.hist(z[t == k], bins=25, density=True, alpha=0.3, color=color)
    ax.plot(s, np.exp(bell.log_density(s)), color=color, label=f"class {k}")
ax.axvline(fisher.threshold_, color="black", label="threshold")
ax.set(title="The projection", xlabel="wᵀx", ylabel="density")
ax.legend(fontsize=8)

# %%
# The numbers of the text
# -----------------------
# The directions are those of the formulas, and at the threshold the weighted densities are equal.
mean = [X[t == k].mean(axis=0) for k in (0, 1)]
within = [np.cov(X[t == k].T, bias=True) for k in (0, 1)]
for model, S_W in (
    (fisher, within[0] + within[1]),
    (gg.FisherDiscriminant().fit(X, t), 120 * within[0] + 60 * within[1]),
):
    w = np.linalg.solve(S_W, mean[1] - mean[0])
    found = model.scalings_[:, 0]
    assert abs(abs(w @ found) / np.linalg.norm(w) / np.linalg.norm(found) - 1) < 1e-12
weights = linear.coef_[1] - linear.coef_[0]  # the linear discriminant is Fisher's direction with pooled scatter
assert abs(abs(weights @ found) / np.linalg.norm(weights) / np.linalg.norm(found) - 1) < 1e-9
bells = [gg.distributions.Normal(z[t == k].mean(), z[t == k].var()) for k in (0, 1)]
shares = [np.log(n / 180) + bell.log_density(fisher.threshold_) for bell, n in zip(bells, (120, 60), strict=True)]
assert abs(shares[0] - shares[1]) < 1e-6
assert np.mean(quadratic.predict(X) != t) <= np.mean(linear.predict(X) != t)
