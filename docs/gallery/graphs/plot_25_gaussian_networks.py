"""
Gaussian networks, and edges from data
======================================

If every variable is a linear function of its parents plus noise, the joint is a Gaussian whose mean and covariance
follow by recursion along the arrows: Triebel, *Machine learning for computer vision* (section 4, "Gaussian
variables"). In the other direction, zeros of the precision Ω = Σ⁻¹ are missing edges of a random field: Zhu,
*Graphical models and kernel methods* ("Gaussian Markov random fields", GLASSO), with a 4 × 4 example.

We go both ways, and find the edges of the example again from samples.
"""

# %%
# Arrows to a joint: means and covariances by recursion.
import matplotlib.pyplot as plt
import numpy as np

import gramgraph as gg

body = gg.BayesianNetwork(
    "height{real} -> weight{real} -> pressure{real}; height -> pressure",
    cpds={
        "height": {"intercept": 175, "sd": 8},
        "weight": {"intercept": -60, "coefficients": {"height": 0.75}, "sd": 9},
        "pressure": {"intercept": 60, "coefficients": {"weight": 0.8, "height": 0.0}, "sd": 10},
    },
)
joint = body.to_gaussian()
print("mean", joint.mean.round(2), "covariance", joint.cov.round(1).tolist())
body.plot(body.query(evidence={"pressure": 150}), evidence={"pressure": 150})

# %%
# The text's Σ has no zero, its inverse has six: x1 – x2 – x3 – x4 is a chain. Correlation runs everywhere, direct
# dependence does not.
Sigma = np.array([[14, -16, 4, -2], [-16, 32, -8, 4], [4, -8, 8, -4], [-2, 4, -4, 5]], dtype=float)
Omega = np.linalg.inv(Sigma)
fig, axes = plt.subplots(1, 2, figsize=(7.2, 3.4), layout="constrained")
for ax, matrix, title in ((axes[0], Sigma, "Σ"), (axes[1], Omega, "Ω = Σ⁻¹")):
    ax.imshow(matrix, cmap="RdBu_r", vmin=-abs(matrix).max() * 1.6, vmax=abs(matrix).max() * 1.6)
    for (i, j), value in np.ndenumerate(matrix):
        ax.text(j, i, f"{value:.0f}" if title == "Σ" else f"{value.round(4) + 0:.4f}", ha="center", va="center")
    ax.set_xticks(range(4), ["x1", "x2", "x3", "x4"])
    ax.set_yticks(range(4), ["x1", "x2", "x3", "x4"])
    ax.set_title(title)
field = gg.MarkovNetwork.from_precision(Omega, names=["x1", "x2", "x3", "x4"], tolerance=1e-12)
field.plot()

# %%
# From samples: the inverse of a sample covariance is never zero. An L1 penalty on the precision makes zeros; its
# strength is chosen by EBIC. The path shows which edges come in first.
truth = gg.Gaussian(np.zeros(4), Sigma)
X = truth.sample(300, random_state=0)
found = gg.GraphicalLasso(refit=True).fit(X)
path = gg.estimators.graphical_lasso_path(np.corrcoef(X.T), n_alphas=40)
fig, ax = plt.subplots(layout="constrained")
for i in range(4):
    for j in range(i + 1, 4):
        edge = abs(i - j) == 1
        values = [abs(precision[i, j]) for precision in path.precisions]
        ax.semilogx(
            path.alphas,
            values,
            color="#4c78a8" if edge else "#b03a2e",
            linestyle="-" if edge else ":",
            label=f"x{i + 1}–x{j + 1}",
        )
ax.set(
    xlabel="penalty",
    ylabel="|Ω_ij|, of standardized columns",
    title="Along the penalty: true edges solid, others dotted",
)
ax.legend(loc="upper right")
print([(a, b, round(w, 3)) for a, b, w in found.edges()])

# %%
# The numbers of the text
# -----------------------
printed = np.array(
    [[0.1667, 0.0833, 0, 0], [0.0833, 0.0833, 0.0417, 0], [0, 0.0417, 0.25, 0.1667], [0, 0, 0.1667, 0.3333]]
)
assert np.allclose(Omega, printed, atol=5e-5)
assert {frozenset(edge) for edge in field.edges} == {frozenset(p) for p in (("x1", "x2"), ("x2", "x3"), ("x3", "x4"))}
assert field.is_separated("x1", "x4", given="x2")
assert abs(joint.mean[1] - (-60 + 0.75 * 175)) < 1e-9 and abs(joint.cov[1, 1] - (0.75**2 * 64 + 81)) < 1e-9
assert abs(joint.cov[0, 1] - 0.75 * 64) < 1e-9 and abs(np.linalg.inv(joint.cov)[0, 2]) < 1e-9  # a weight of 0
inverse = np.linalg.inv(np.cov(X.T))
assert abs(inverse[0, 3]) > 0 and len(found.edges()) == 3
assert all(abs(int(a[1:]) - int(b[1:])) == 1 for a, b, _ in found.edges())
