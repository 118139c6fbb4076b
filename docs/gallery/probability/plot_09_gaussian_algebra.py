"""
The algebra of Gaussians
========================

Products, linear maps, marginals and conditionals of Gaussians are Gaussians; inference becomes linear algebra.
Hennig, *Probabilistic inference and learning* ("Gaussian probability distributions"), lists the rules, with Bayes'
theorem in gain and in precision form; OuYang, *Probabilistic machine learning* (section 1.3), adds the tower rules,
Triebel, *Machine learning for computer vision* (section 3), uses all of them for regression.

We draw each rule and check that both forms agree.
"""

# %%
# A product of two Gaussians is a Gaussian, times the constant N(a; b, A + B): two opinions about one point are
# joined, and each counts by its precision.
import matplotlib.pyplot as plt
import numpy as np

import gramgraph as gg

first = gg.Gaussian([0.0, 1.0], [[2.0, 1.2], [1.2, 1.0]])
second = gg.Gaussian([2.0, 0.0], [[0.5, 0.0], [0.0, 2.0]])
both = first.product(second)
fig, ax = plt.subplots(layout="constrained")
gg.plot.plot_gaussian([first, second, both], labels=["first", "second", "product"], ax=ax)
ax.set(xlabel="x₁", ylabel="x₂", title="Product of two Gaussians (1 and 2 deviations)")

# %%
# Observe y = Ax + b + noise. The gain form inverts a matrix of the size of y, the precision form one of the size of
# x; the answer is the same.
A, b, noise = np.array([[1.0, 0.5]]), np.array([0.3]), np.array([[0.4]])
gain = first.bayes(A, b, noise, [2.0])
precise = first.bayes(A, b, noise, [2.0], form="precision")
fig, ax = plt.subplots(layout="constrained")
gg.plot.plot_gaussian([first, gain], labels=["prior", "posterior"], ax=ax)
line = np.array([0.0, 2.2])
ax.plot(line, (2.0 - 0.3 - line) / 0.5, color="#b03a2e", linestyle=":", label="Ax + b = y")
ax.set(xlabel="x₁", ylabel="x₂", title="Bayes' theorem: observing y = 2")
ax.legend(loc="upper left")

# %%
# Conditioning cuts through the joint, marginalizing looks at it from the side.
cut, side = first.condition({0: 1.5}), first.marginal(1)
x = np.linspace(-2.5, 4.5, 300)
fig, ax = plt.subplots(layout="constrained")
ax.plot(x, side.density(x[:, None]), color="#4c78a8", label="p(x₂)")
ax.plot(x, cut.density(x[:, None]), color="#b03a2e", label="p(x₂ | x₁ = 1.5)")
ax.set(xlabel="x₂", ylabel="density", title="Marginal and conditional")
ax.legend(loc="upper right")

# %%
# Draws: μ + Rz with RRᵀ = Σ. Cholesky's root and the root from eigenvectors give other points from the same z, and
# the same distribution.
chol = first.sample(400, random_state=0)
eigen = first.sample(400, random_state=0, method="eigen")
fig, axes = plt.subplots(1, 2, figsize=(6.4, 3.4), layout="constrained")
for ax, points, title in ((axes[0], chol, "Cholesky"), (axes[1], eigen, "eigenvectors")):
    gg.plot.plot_gaussian(first, points=points, ax=ax)
    ax.set(title=title, xlabel="x₁", ylabel="x₂")

# %%
# The numbers of the text
# -----------------------
C = np.linalg.inv(first.precision + second.precision)
assert np.allclose(both.cov, C) and np.allclose(both.mean, C @ (first.shift + second.shift))
Z = gg.Gaussian(second.mean, first.cov + second.cov).log_density(first.mean)  # N(a; b, A + B)
assert abs(first.log_overlap(second) - Z) < 1e-12
assert gain.allclose(precise)
joint = first.joint(A, b, noise)  # of (x, y): the tower rules give the moments of y
assert np.allclose(joint.mean[2:], A @ first.mean + b)
assert np.allclose(joint.cov[2:, 2:], A @ first.cov @ A.T + noise)  # Var E[y | x] + E Var[y | x]
assert joint.condition({2: 2.0}).allclose(gain)
assert not np.allclose(chol, eigen)
big = [first.sample(100_000, random_state=0, method=m) for m in ("cholesky", "eigen")]
assert all(np.allclose(np.cov(points.T), first.cov, atol=0.03) for points in big)
