r"""
How many functions, and which: the evidence decides
===================================================

Hennig, Probabilistic inference and learning, chapter "Hierarchical inference: learning the features", maximizes the
evidence :math:`p(y \mid \theta)`: a squared error plus a term of Occam that grows with the volume of hypotheses.
OuYang, Probabilistic machine learning, section 2.3, learns α and β in this way.

We see the log evidence against the number of basis functions, beside the error on new points, which it never saw;
then sigmoids whose places and widths are learned, where two are enough for what ten fixed ones need.
"""

import matplotlib.pyplot as plt
import numpy as np

import gramgraph as gg

rng = np.random.default_rng(0)


def truth(x):
    return np.where(x < -1, -1.0, 1.0) + 1.2 / (1 + np.exp(-(x - 3) / 0.15))


x, new = np.sort(rng.uniform(-6, 6, 60)), rng.uniform(-6, 6, 2000)
y, y_new = (truth(u) + 0.2 * rng.normal(size=len(u)) for u in (x, new))

# %%
# Polynomials of growing degree: the fit to the data always improves, the evidence has a peak.
degrees = range(1, 26)
models = [gg.BayesianLinearRegression(gg.gp.LegendreBasis(d, -6, 6)).fit(x[:, None], y) for d in degrees]
evidence = [model.log_evidence_ for model in models]
error = [np.sqrt(np.mean((model.predict(new[:, None]) - y_new) ** 2)) for model in models]
inside = [
    np.sqrt(np.mean((gg.estimators.LeastSquares(m.basis_).fit(x[:, None], y).predict(x[:, None]) - y) ** 2))
    for m in models
]
figure, (left, right) = plt.subplots(1, 2, figsize=(7, 3.2), layout="constrained")
left.plot(degrees, evidence, "o-", ms=3, color="#1f4e9c")
left.set(title="Evidence", xlabel="degree", ylabel="log p(y | degree)")
right.plot(degrees, error, "o-", ms=3, color="#b3261e", label="new points")
right.plot(degrees, inside, "o-", ms=3, color="#1a7f37", label="points of the fit, least squares")
right.set(title="Errors", xlabel="degree", ylabel="root mean squared error")
right.legend(fontsize=8)

# %%
# Learned features: places and width of two sigmoids by type-II maximum likelihood, against ten fixed ones. The
# evidence has many peaks in θ, so that we start from several places and keep the best.
starts = [gg.gp.SigmoidBasis(places, 0.4) for places in ([-4.0, 0.0], [-2.0, 2.0], [0.0, 4.0])]
tried = [gg.BayesianLinearRegression(start, learn="features").fit(x[:, None], y) for start in starts]
learned = max(tried, key=lambda model: model.log_evidence_)
fixed = gg.BayesianLinearRegression(gg.gp.SigmoidBasis(np.linspace(-6, 6, 10), 1.0)).fit(x[:, None], y)
grid = np.linspace(-6, 6, 400)[:, None]
figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for model, name, color in ((learned, "two learned sigmoids", "#b3261e"), (fixed, "ten fixed sigmoids", "#1f4e9c")):
    ax.plot(grid, model.predict(grid), color=color, label=f"{name}, log evidence {model.log_evidence_:.1f}")
ax.plot(x, y, ".", color="black")
ax.set(title="Features that are learned", xlabel="x", ylabel="y")
ax.legend(fontsize=8)
print("learned places", learned.basis_.locations.round(2), "width", round(float(learned.basis_.width), 3))

# %%
# The numbers of the text
# -----------------------
# The log evidence is that of the marginal Gaussian N(y; 0, I/β + ΦΦᵀ/α); the learned places are those of the steps,
# −1 and 3.
m = models[4]
Phi = m.basis_.transform(x[:, None])
C = np.eye(60) / m.beta_ + Phi @ Phi.T / m.alpha_
by_hand = -0.5 * (y @ np.linalg.solve(C, y) + np.linalg.slogdet(C)[1] + 60 * np.log(2 * np.pi))
assert abs(m.log_evidence_ - by_hand) < 1e-8
assert np.abs(np.sort(learned.basis_.locations) - [-1, 3]).max() < 0.25
assert learned.log_evidence_ > fixed.log_evidence_ + 10
assert all(np.diff(inside) < 1e-9) and error[int(np.argmax(evidence))] < 1.2 * min(error)
