"""
Credit scoring: who pays back, and how sure is that?
====================================================

Hennig, Probabilistic inference and learning, chapters "Gaussian process classification" and "Practical examples",
scores the German credit data by a Gaussian process with a logistic link and Laplace's approximation; probabilities
are averages of σ(f) over the posterior of f, which is not the same as σ of the mean.

We see both kinds of probability held out, how well they are calibrated, and what follows when a bad loan costs five
times what a good one earns. (The data are the 1,000 loans of the German credit file where ``GRAMGRAPH_DATA`` holds
it; else loans that are drawn here.)
"""

import os
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.metrics import log_loss, roc_auc_score

import gramgraph as gg

file = Path(os.environ.get("GRAMGRAPH_DATA", "../shared/data")) / "kernel" / "german.data.gz"
rng = np.random.default_rng(0)
if file.exists():
    raw = pd.read_csv(file, sep=r"\s+", header=None)
    X = pd.get_dummies(raw.drop(columns=20).rename(columns=str), dtype=float)
    X[["1", "4"]] = np.log(X[["1", "4"]])  # months and amount
    bad = (raw[20] == 2).to_numpy().astype(int)
else:
    X = pd.DataFrame(rng.normal(size=(1000, 8)), columns=list("abcdefgh"))
    score = (-0.9 + 1.1 * X["a"] + 0.9 * X["b"] * X["c"] - 0.7 * X["d"]).to_numpy()
    bad = (rng.uniform(size=1000) < 1 / (1 + np.exp(-score))).astype(int)
X = ((X - X.mean()) / X.std()).to_numpy()
order = rng.permutation(1000)
train, test = order[:500], order[500:]

# %%
# A process with two hyper-parameters, learned by the evidence; a linear model beside it.
process = gg.GaussianProcessClassifier(2.0 * gg.kernels.RBF(8.0)).fit(X[train], bad[train])
line = gg.BayesianLogisticRegression(prior="evidence").fit(X[train], bad[train])
p = {
    "process, averaged": process.predict_proba(X[test])[:, 1],
    "process, plugged in": process.predict_proba(X[test], average=False)[:, 1],
    "linear, averaged": line.predict_proba(X[test])[:, 1],
    "share of bad loans": np.full(500, bad[train].mean()),
}
loss = {name: log_loss(bad[test], value) for name, value in p.items()}
for name, value in p.items():
    print(f"{name:20s} log loss {loss[name]:.4f}   area under the curve {roc_auc_score(bad[test], value):.3f}")

# %%
# What was said against what happened, in tenths of the loans.
figure, ax = plt.subplots(figsize=(6.4, 4.0), layout="constrained")
for name, marker in (("process, averaged", "o"), ("process, plugged in", "^")):
    tenth = np.array_split(np.argsort(p[name]), 10)
    ax.plot([p[name][i].mean() for i in tenth], [bad[test][i].mean() for i in tenth], marker, label=name)
ax.plot([0, 1], [0, 1], color="#7d8590")
ax.set(title="Calibration", xlabel="said p(bad)", ylabel="happened")
ax.legend(fontsize=8)

# %%
# A good loan earns 1, a bad one costs 5: lend where p(bad) < 1/6.
limits = np.linspace(0.02, 0.98, 97)
gain = np.where(bad[test], -5.0, 1.0)
best = p["process, averaged"]
figure, ax = plt.subplots(figsize=(6.4, 4.0), layout="constrained")
ax.plot(limits, [gain[best < c].sum() for c in limits], color="#1f4e9c")
ax.axvline(1 / 6, color="#b3261e", label="1/6")
ax.axhline(0, color="#7d8590", lw=1)
ax.set(title="Gain on 500 loans", xlabel="lend where p(bad) is below", ylabel="gain")
ax.legend(fontsize=8)
print(f"gain at 1/6: {gain[best < 1 / 6].sum():.0f}; lending to all: {gain.sum():.0f}")

# %%
# The numbers of the text
# -----------------------
# Averaged and plugged-in probabilities differ, and the average is the nearer to ½; both are better than the share.
mean, var = process.latent_mean_and_variance(X[test])
nodes, weights = np.polynomial.hermite_e.hermegauss(60)
by_hand = (1 / (1 + np.exp(-(mean[:, None] + np.sqrt(var)[:, None] * nodes)))) @ weights / weights.sum()
assert np.abs(by_hand - p["process, averaged"]).max() < 1e-3
assert np.all(np.abs(p["process, averaged"] - 0.5) <= np.abs(p["process, plugged in"] - 0.5) + 1e-9)
assert max(loss["process, averaged"], loss["process, plugged in"]) < loss["share of bad loans"]
assert gain[best < 1 / 6].sum() > max(0.0, gain.sum())
