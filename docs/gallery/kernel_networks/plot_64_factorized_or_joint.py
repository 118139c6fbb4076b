"""
Why factorize: the curse of dimension, seen
===========================================

Parikh, Kernel graphical models: a kernel density in many dimensions is "like evaluating a huge covariance operator",
and very inaccurate. The graphical model breaks the operator into small ones that can be estimated.

We see the held-out log density per variable of a chain with 2 to 12 variables, learned from 500 rows: the joint
kernel density gets worse with every variable, the tree of pairwise densities does not. The best possible value is
known, as we drew the chain.
"""

from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import gramgraph as gg


def draw(n, d, rng):
    x = np.empty((n, d))
    x[:, 0] = rng.normal(size=n)
    for i in range(1, d):
        x[:, i] = np.sin(2.5 * x[:, i - 1]) + 0.3 * rng.normal(size=n)
    return x


def log_density(x):
    mean = np.column_stack([np.zeros(len(x)), np.sin(2.5 * x[:, :-1])])
    sd = np.where(np.arange(x.shape[1]) == 0, 1.0, 0.3)
    return (-0.5 * ((x - mean) / sd) ** 2 - np.log(sd) - 0.5 * np.log(2 * np.pi)).sum(axis=1)


# %%
# Three estimates for each number of variables.
numbers, score = (2, 4, 8, 12), {"truth": [], "tree of kernels": [], "joint kernel density": []}
for d in numbers:
    rng = np.random.default_rng(d)
    train, test = draw(500, d, rng), draw(2000, d, rng)
    names = [f"x{i}" for i in range(d)]
    tree = gg.learn_tree(pd.DataFrame(train, columns=names), edge="kernel", edges=list(pairwise(names)), cells=64)
    joint = gg.estimators.KernelDensity("loo").fit(train)
    score["truth"].append(log_density(test).mean() / d)
    score["tree of kernels"].append(tree.log_likelihood(pd.DataFrame(test, columns=names)).mean() / d)
    score["joint kernel density"].append(joint.score_samples(test).mean() / d)

# %%
# Nats per variable; higher is better.
figure, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
for (name, values), style in zip(score.items(), ("k:", "o-", "s-"), strict=True):
    ax.plot(numbers, values, style, label=name)
ax.set(title="500 rows of a chain", xlabel="number of variables", ylabel="held-out log density per variable")
ax.legend(fontsize=8)

# %%
# The numbers of the text
# -----------------------
# The text gives none; its claim is what we check: the loss of the joint estimate grows, that of the tree does not.
loss = {name: np.array(score["truth"]) - values for name, values in score.items()}
print({name: values.round(2).tolist() for name, values in loss.items()})
assert np.all(np.diff(loss["joint kernel density"]) > 0) and loss["joint kernel density"][-1] > 0.4
assert loss["tree of kernels"].max() < 0.2 and loss["tree of kernels"][-1] < loss["joint kernel density"][-1] / 3
assert loss["tree of kernels"].min() > -0.05  # nothing is better than the truth
