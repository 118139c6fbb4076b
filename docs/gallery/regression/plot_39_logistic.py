r"""
Logistic regression: two roads to the weights, and doubt about them
===================================================================

OuYang, Probabilistic machine learning, section 3.3: weights by gradient or by Newton's steps (IRLS), more classes by
softmax, a link with lighter tails (probit), and the Laplace approximation of the posterior. Triebel, Machine learning
for computer vision, section 2, sets such discriminant models beside generative ones. (In the text's softmax and
probit there is one sigmoid too many.)

We see the probabilities averaged over the posterior of the weights beside those of the best weights: where data are
few, the average is less sure. Without a prior, classes that a line can part have no best weights at all, and the
library says so.
"""

import matplotlib.pyplot as plt
import numpy as np

import gramgraph as gg

rng = np.random.default_rng(5)
X = np.vstack([rng.normal([-1.2, 0], 1.0, (15, 2)), rng.normal([1.2, 0.6], 1.0, (15, 2))])
t = np.repeat([0, 1], 15)

irls = gg.BayesianLogisticRegression(prior=None, tol=1e-10).fit(X, t)
gradient = gg.BayesianLogisticRegression(prior=None, solver="gradient", tol=1e-10, max_iter=1000).fit(X, t)
probit = gg.BayesianLogisticRegression("probit", prior=None, tol=1e-10).fit(X, t)
print(f"IRLS needs {np.max(irls.n_iter_)} steps, the gradient {np.max(gradient.n_iter_)}")

# %%
# Classes that can be parted: the likelihood rises for ever as the weights grow. A prior, or an error.
try:
    gg.BayesianLogisticRegression(prior=None).fit([[-2.0], [-1.0], [1.0], [2.0]], [0, 0, 1, 1])
except gg.GramGraphError as error:
    message = str(error)
print(message)
kept = gg.BayesianLogisticRegression(prior=1.0).fit([[-2.0], [-1.0], [1.0], [2.0]], [0, 0, 1, 1])

# %%
# Averaged and plugged in: contours of p(class 1 | x).
model = gg.BayesianLogisticRegression(prior=0.05).fit(X, t)
u, v = np.meshgrid(np.linspace(-7, 7, 120), np.linspace(-7, 7, 120))
grid = np.column_stack([u.ravel(), v.ravel()])
figure, axes = plt.subplots(1, 2, figsize=(7, 3.6), layout="constrained", sharey=True)
for ax, average, title in zip(axes, (False, True), ("plugged in", "averaged"), strict=True):
    p = model.predict_proba(grid, average=average)[:, 1].reshape(u.shape)
    lines = ax.contour(u, v, p, levels=[0.05, 0.25, 0.5, 0.75, 0.95], colors="black", linewidths=1)
    ax.clabel(lines, fontsize=8)
    ax.scatter(*X.T, c=np.where(t, "#b3261e", "#1f4e9c"), s=14)
    ax.set(title=title, xlabel="x1")
axes[0].set_ylabel("x2")

# %%
# Three classes by softmax.
C = np.vstack([rng.normal(m, 0.9, (40, 2)) for m in ([0, 2], [-2, -1], [2, -1])])
c = np.repeat([0, 1, 2], 40)
softmax = gg.BayesianLogisticRegression("softmax").fit(C, c)
ax = gg.plot.plot_decision_regions(softmax, C, c)
ax.set(title="Softmax of three classes", xlabel="x1", ylabel="x2")

# %%
# The numbers of the text
# -----------------------
# At the best weights the gradient Σ (p − t) x is zero; both roads end there; the curvature is XᵀRX, R = p(1 − p).
ones = np.column_stack([X, np.ones(30)])
p = irls.predict_proba(X, average=False)[:, 1]
assert np.abs(ones.T @ (p - t)).max() < 1e-6
assert np.allclose(irls.coef_, gradient.coef_, atol=1e-3)
assert np.allclose(np.linalg.inv(irls.sigma_), ones.T @ (ones * (p * (1 - p))[:, None]), rtol=1e-4)
assert 1.4 < irls.coef_[0, 0] / probit.coef_[0, 0] < 2.1  # σ(a) is about Φ(a / 1.7)
far = np.array([[30.0, 30.0]])
assert model.predict_proba(far)[0, 1] < model.predict_proba(far, average=False)[0, 1]
assert np.isfinite(kept.coef_).all() and "prior" in message
T = np.eye(3)[c]
P = softmax.predict_proba(C, average=False)
assert np.allclose(((P - T).T @ C), -softmax.alpha_ * softmax.coef_, atol=1e-2)
