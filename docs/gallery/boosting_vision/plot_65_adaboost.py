r"""
Stumps become strong: AdaBoost, round by round
==============================================

Triebel, Machine learning for computer vision, section 5 (Boosting): a stump with the smallest weighted error, its
weight :math:`\alpha_m = \log\frac{1 - err_m}{err_m}`, and heavier weights :math:`v_i e^{\alpha_m}` on what it got
wrong; the sign of :math:`\sum_m \alpha_m \phi_m(x)` decides. This minimizes the exponential loss.

We see the weights of the points after 1, 2, 3 and 30 rounds, the loss functions of the text, and how the margin goes
on growing after the training error has come to zero.
"""

import matplotlib.pyplot as plt
import numpy as np

import gramgraph as gg

rng = np.random.default_rng(2)
X = rng.uniform(-1, 1, (80, 2))
t = np.where(X[:, 0] ** 2 + (X[:, 1] - 0.1) ** 2 < 0.45, 1, -1)
model = gg.AdaBoostClassifier(300, criterion="error").fit(X, t)
scores = np.array(list(model.staged_decision_function(X)))  # Σ α φ after each round

# %%
# Points are as large as their weights, v ∝ exp(−t Σαφ / 2) after each round; lines are the boundary so far.
u, v = np.meshgrid(np.linspace(-1.1, 1.1, 90), np.linspace(-1.1, 1.1, 90))
stages = list(model.staged_decision_function(np.column_stack([u.ravel(), v.ravel()])))
weights = np.exp(-t * scores / 2)
weights /= weights.sum(axis=1, keepdims=True)
figure, axes = plt.subplots(2, 2, figsize=(7, 6.4), layout="constrained")
for ax, m in zip(axes.flat, (1, 2, 3, 30), strict=True):
    ax.contourf(u, v, stages[m - 1].reshape(u.shape) > 0, levels=[-1, 0.5, 2], colors=["#cfe0f5", "#f8ddd9"])
    ax.scatter(*X.T, s=1000 * weights[m - 1], c=np.where(t > 0, "#b3261e", "#1f4e9c"))
    ax.set(
        title=f"{m} round{'s' * (m > 1)}: {np.mean(np.sign(scores[m - 1]) != t):.0%} wrong", xlabel="x1", ylabel="x2"
    )

# %%
# The losses of the text, as functions of t·y.
losses = {
    "0–1": gg.losses.ZeroOne(),
    "squared": gg.losses.Squared(),
    "exponential": gg.losses.Exponential(),
    "log": gg.losses.Log(),
}
margin = np.linspace(-2, 2, 400)
figure, ax = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
for name, loss in losses.items():
    ax.plot(margin, loss(np.ones(400), margin), label=name)
ax.set(title="Losses", xlabel="t · y(x)", ylabel="loss", ylim=(0, 5))
ax.legend(fontsize=8)

# %%
# Error, exponential loss and the smallest margin t Σαφ / Σα, round by round.
alphas = np.abs(np.diff(np.vstack([np.zeros(len(t)), scores]), axis=0)).max(axis=1)
smallest = (t * scores).min(axis=1) / np.cumsum(alphas)
exponential = np.exp(-t * scores / 2).mean(axis=1)
figure, ax = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
ax.plot(np.mean(np.sign(scores) != t, axis=1), color="#b3261e", label="training error")
ax.plot(exponential, color="#1f4e9c", label="exponential loss")
ax.plot(smallest, color="#1a7f37", label="smallest margin")
ax.set(title="Three hundred rounds", xlabel="round", ylabel="value")
ax.legend(fontsize=8)

# %%
# The numbers of the text
# -----------------------
# Every round by hand: err of the stump under the weights so far, α of the formula, a loss that falls by 2√(err(1 −
# err)).
w = np.full(80, 1 / 80)
for m in range(10):
    step = scores[m] - (scores[m - 1] if m else 0)
    wrong = np.sign(step) != t
    err = w[wrong].sum() / w.sum()
    alpha = np.log((1 - err) / err)
    assert np.allclose(np.abs(step), alpha, atol=1e-9)
    w = w * np.exp(alpha * wrong)
    assert abs(exponential[m] / (exponential[m - 1] if m else 1) - 2 * np.sqrt(err * (1 - err))) < 1e-9
    assert abs((w / w.sum())[wrong].sum() - 0.5) < 1e-9  # for the next round this stump is worth nothing
    assert np.allclose(w / w.sum(), weights[m], atol=1e-9)
assert (
    gg.losses.Log()([1.0], [0.0])[0] == 1.0 and abs(gg.losses.Log()([1.0], [-1.0])[0] - np.log2(1 + np.exp(2))) < 1e-12
)
done = int(np.argmax(np.mean(np.sign(scores) != t, axis=1) == 0))
assert np.all(np.sign(scores[-1]) == t) and smallest[-1] > smallest[done] > 0
