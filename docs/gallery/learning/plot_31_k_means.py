"""
k-means
=======

Assign every point to the nearest center, move every center to the mean of its points, repeat: the cost never rises.
OuYang, *Probabilistic machine learning* (section 8.2.1), reads it as EM (assignments are the E step and means the M
step; the text has them swapped) and names two weaknesses: hard assignments, and the start. What he calls k-means++,
clustering a small subset first, is ``init="subset"`` here; k-means++ proper draws distant points.

We watch the cost fall, compare starts, and see hard EM as the limit of a mixture with vanishing variance.
"""

# %%
# Lloyd's two steps, by hand, from a bad start.
import matplotlib.pyplot as plt
import numpy as np

import gramgraph as gg
from gramgraph.estimators import KMeans

rng = np.random.default_rng(0)
angles = np.linspace(0, 2 * np.pi, 7)[:-1]
true_centers = np.column_stack([4 * np.cos(angles), 4 * np.sin(angles)])
X = (true_centers[:, None] + 0.7 * rng.normal(size=(6, 50, 2))).reshape(-1, 2)

centers, costs, path = X[:6].copy(), [], []
for _ in range(12):
    path.append(centers.copy())
    distance = ((X[:, None] - centers) ** 2).sum(axis=2)
    nearest = distance.argmin(axis=1)
    costs.append(distance.min(axis=1).sum())
    centers = np.array([X[nearest == k].mean(axis=0) if (nearest == k).any() else centers[k] for k in range(6)])
    costs.append(((X - centers[nearest]) ** 2).sum())
fig, axes = plt.subplots(1, 2, figsize=(7.6, 3.7), layout="constrained")
axes[0].scatter(*X.T, c=nearest, s=8, cmap="tab10")
for k in range(6):
    axes[0].plot(*np.array(path)[:, k].T, "k.-", linewidth=1)
axes[0].set(title="Six starts in one cluster", xlabel="x₁", ylabel="x₂", aspect="equal")
axes[1].plot(costs, "o-", color="#4c78a8", markersize=4)
axes[1].set(title="The cost after every half step", xlabel="half step", ylabel="Σ |x − m|²")

# %%
# Where to start: 200 runs each from random rows, from a clustered subset, and from k-means++. The best possible cost
# is reached often or seldom.
starts = {
    "random rows": lambda seed: X[np.random.default_rng(seed).choice(len(X), 6, replace=False)],
    "subset first": lambda seed: "subset",
    "k-means++": lambda seed: "k-means++",
}
found = {
    name: np.array([KMeans(6, init=start(seed), random_state=seed).fit(X).inertia_ for seed in range(200)])
    for name, start in starts.items()
}
best = min(values.min() for values in found.values())
fig, ax = plt.subplots(layout="constrained", figsize=(6.4, 3.8))
ax.boxplot(
    list(found.values()),
    tick_labels=[f"{n}\n{(v < 1.01 * best).mean():.0%} best" for n, v in found.items()],
    whis=(0, 100),
)
ax.set(ylabel="cost at the end", title="200 runs from each kind of start")

# %%
# Hard EM as a limit. Between two centers the responsibility of a mixture with common variance σ²I is a soft step; as
# σ falls it becomes the nearest-center rule.
m = np.array([[-1.0], [1.0]])
x = np.linspace(-2, 2, 401)[:, None]
fig, ax = plt.subplots(layout="constrained", figsize=(6.4, 3.6))
for sigma in (1.0, 0.5, 0.2):
    weight = np.exp(-((x - m.T) ** 2) / (2 * sigma**2))
    ax.plot(x, weight[:, 1] / weight.sum(axis=1), label=f"σ = {sigma}")
ax.plot(x, (abs(x - 1) < abs(x + 1)).astype(float), "k:", label="k-means")
ax.set(
    xlabel="x, centers at −1 and 1", ylabel="responsibility of the right center", title="From soft to hard assignments"
)
ax.legend(loc="upper left")

# %%
# The numbers of the text
# -----------------------
assert np.all(np.diff(costs) < 1e-9)
good = KMeans(6, n_init=10, random_state=0).fit(X)
labels = ((X[:, None] - good.cluster_centers_) ** 2).sum(axis=2).argmin(axis=1)
assert np.array_equal(labels, good.labels_)  # s_n = argmin |x_n − m_k|²
means = np.array([X[labels == k].mean(axis=0) for k in range(6)])
assert np.allclose(means, good.cluster_centers_, atol=1e-3)
mixture = gg.GaussianMixture(6, covariance_type="spherical", means_init=good.cluster_centers_, random_state=0).fit(X)
assert (mixture.predict(X) == good.labels_).mean() > 0.99
assert (found["k-means++"] < 1.01 * best).mean() > (found["random rows"] < 1.01 * best).mean()
