r"""
Relevance vectors on sinc
=========================

OuYang, Probabilistic machine learning, section 6.2: a Bayesian linear model with one kernel column for each point and
one precision :math:`\alpha_i` for each weight; the evidence drives most of them to infinity, and what is left are the
relevance vectors. Unlike support vectors they give a predictive deviation and need no C. (In the text, the covariance
of y is :math:`\beta^{-1} I + K\,\mathrm{diag}(\alpha^{-1})K^T` and the mean :math:`\beta\Sigma K^T y`.)

We see the mean, a band and the few points that carry the curve, beside the support vectors of the same kernel.
"""

import matplotlib.pyplot as plt
import numpy as np

import gramgraph as gg

rng = np.random.default_rng(0)
x = np.linspace(-10, 10, 100)[:, None]
truth = np.sinc(x[:, 0] / np.pi)
y = truth + 0.1 * rng.normal(size=100)
kernel = gg.kernels.RBF(2.0)

relevance = gg.RVR(kernel, average=False, bias=False).fit(x, y)
support = gg.SVR(kernel, C=1.0, epsilon=0.1).fit(x, y)

# %%
# The relevance vector machine.
ax = gg.plot.plot_rvr(relevance, x, y)
ax.plot(x, truth, ":", color="black", label="sin(x)/x")
ax.figure.set_size_inches(7, 3.6)
ax.set(xlabel="x", ylabel="y", title=f"{len(relevance.relevance_)} relevance vectors")
ax.legend(fontsize=8, loc="upper right")

# %%
# The support vector machine needs many more of the points.
figure, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
ax.plot(x, support.predict(x), color="#1f4e9c", label="mean")
ax.plot(x, y, ".", color="#57606a", label="points")
ax.plot(x[support.support_], y[support.support_], "o", mfc="none", mec="#b3261e", label="support vectors")
ax.plot(x, truth, ":", color="black", label="sin(x)/x")
ax.set(title=f"{len(support.support_)} support vectors", xlabel="x", ylabel="y")
ax.legend(fontsize=8, loc="upper right")

# %%
# The numbers of the text
# -----------------------
# The posterior of the weights that are left is the one of the formulas; few vectors, and the noise is found.
chosen = relevance.relevance_
K = kernel.gram(x, x[chosen])
beta = 1 / relevance.noise_
Sigma = np.linalg.inv(np.diag(relevance.alpha_) + beta * K.T @ K)
assert np.allclose(relevance.sigma_, Sigma, atol=1e-8)
assert np.allclose(relevance.mu_, beta * Sigma @ K.T @ y, atol=1e-6)
C = np.eye(100) / beta + K @ np.diag(1 / relevance.alpha_) @ K.T
evidence = -0.5 * (np.linalg.slogdet(C)[1] + y @ np.linalg.solve(C, y) + 100 * np.log(2 * np.pi))
assert abs(evidence - relevance.evidence_[-1]) < 1e-6
mean, std = relevance.predict(x, return_std=True)
assert np.allclose(std**2, 1 / beta + np.einsum("ij,jk,ik->i", K, Sigma, K), atol=1e-6)
assert len(chosen) <= 10 < len(support.support_) and abs(np.sqrt(relevance.noise_) - 0.1) < 0.02
assert np.sqrt(np.mean((mean - truth) ** 2)) < 0.05
