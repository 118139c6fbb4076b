"""
Mixtures of Gaussians and of Bernoullis
=======================================

A mixture draws a hidden class z, then x from the density of that class. OuYang, *Probabilistic machine learning*
(sections 8.2.2 and 8.2.3), derives EM for Gaussian and for Bernoulli components. (The M step of the Gaussian case is
left out there: weighted means and covariances; in (8.2.21) and (8.2.28) the product over pixels and the exponent 1 −
x are missing.)

We see soft assignments, a number of components chosen by BIC, and handwritten digits as ten tables of pixels.
"""

# %%
# Three Gaussian clusters of different shape. The curve is the objective of EM.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import gramgraph as gg

rng = np.random.default_rng(0)
parts = [
    gg.Gaussian([0, 0], [[1.0, 0.9], [0.9, 1.2]]).sample(150, random_state=1),
    gg.Gaussian([4, 0], [[0.3, 0.0], [0.0, 2.0]]).sample(100, random_state=2),
    gg.Gaussian([1, 5], [[2.0, -0.8], [-0.8, 0.5]]).sample(100, random_state=3),
]
X = np.vstack(parts)
mixture = gg.GaussianMixture(3, random_state=0).fit(X)
fig, axes = plt.subplots(1, 2, figsize=(7.8, 3.8), layout="constrained")
gg.plot.plot_mixture(mixture, X, ax=axes[0])
axes[0].set_title("Components at 1 and 2 deviations")
axes[1].plot(mixture.report_.trace, "o-", color="#4c78a8", markersize=4)
axes[1].set(xlabel="step", ylabel="objective", title="EM never falls")

# %%
# How many? BIC weighs the likelihood against the number of parameters.
ks = range(1, 8)
bics = [gg.GaussianMixture(k, n_init=2, random_state=0).fit(X).bic(X) for k in ks]
fig, ax = plt.subplots(layout="constrained", figsize=(6.4, 3.4))
ax.plot(ks, bics, "o-", color="#4c78a8")
ax.set(xlabel="number of components", ylabel="BIC (smaller is better)", title="Choosing the number of components")

# %%
# Digits: 8 × 8 pixels, black or white (scikit-learn's bundled set, 900 images). Ten Bernoulli components without
# labels: each is a table of 64 probabilities, drawn as an image. Some digits share a component, some take two.
digits = load_digits()
D, labels = (digits.data[:900] > 7).astype(float), digits.target[:900]
model = gg.BernoulliMixture(10, random_state=1).fit(D)
assigned = model.predict(D)
fig, axes = plt.subplots(2, 5, figsize=(7, 3.4), layout="constrained")
for k, ax in enumerate(axes.flat):
    inside = np.bincount(labels[assigned == k], minlength=10)
    ax.imshow(model.means_[k].reshape(8, 8), cmap="gray_r", vmin=0, vmax=1)
    ax.set_title(f"mostly {inside.argmax()} ({inside.max() / max(inside.sum(), 1):.0%})", fontsize=10)
    ax.set(xticks=[], yticks=[])

# %%
# The mixture is a network too: the lower half of a digit is asked for, given the upper half.
image = D[labels == 3][1]
seen = {f"x{d}": str(int(image[d])) for d in range(32)}
hidden = [f"x{d}" for d in range(32, 64)]
answer = model.query(hidden, evidence=seen)
completed = np.concatenate([image[:32], [answer[name].prob("1") for name in hidden]])
fig, axes = plt.subplots(1, 3, figsize=(6.4, 2.5), layout="constrained")
for ax, pixels, title in (
    (axes[0], image, "image"),
    (axes[1], np.where(np.arange(64) < 32, image, 0.5), "seen"),
    (axes[2], completed, "completed"),
):
    ax.imshow(pixels.reshape(8, 8), cmap="gray_r", vmin=0, vmax=1)
    ax.set(title=title, xticks=[], yticks=[])

# %%
# The numbers of the text
# -----------------------
# One E step and one M step by the formulas leave a converged mixture where it is.
densities = [gg.Gaussian(m, C).log_density(X) for m, C in zip(mixture.means_, mixture.covariances_, strict=True)]
joint = np.log(mixture.weights_) + np.column_stack(densities)
gamma = np.exp(joint - np.logaddexp.reduce(joint, axis=1, keepdims=True))
assert np.allclose(gamma, mixture.predict_proba(X), atol=1e-8)
share = gamma.sum(axis=0)
assert np.allclose(share / len(X), mixture.weights_, atol=1e-2) and np.allclose(
    gamma.T @ X / share[:, None], mixture.means_, atol=2e-2
)
assert np.all(np.diff(mixture.report_.trace) > -1e-8) and ks[int(np.argmin(bics))] == 3
log_p = np.log(model.weights_) + D @ np.log(model.means_).T + (1 - D) @ np.log(1 - model.means_).T
expected = np.exp(log_p - np.logaddexp.reduce(log_p, axis=1, keepdims=True))
assert np.allclose(model.predict_proba(D), expected, atol=1e-8)  # (8.2.21), with the product over pixels
purity = sum(np.bincount(labels[assigned == k], minlength=10).max() for k in range(10)) / len(D)
assert purity > 0.6
