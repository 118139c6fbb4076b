r"""
Six priors from one kernel
==========================

Hennig, Probabilistic inference and learning, chapter "Gaussian processes" (kernels can also be combined): a kernel
may be scaled, added, multiplied and given other inputs, and stays a kernel. From one RBF the text makes six priors of
functions.

We see draws of each prior, and what the same data make of it. The kernels are values that are written as in the text:
``20 * RBF(5)``, ``20 * RBF().warp(φ)``, ``20 * RBF() + Linear().warp(φ)``.
"""

import matplotlib.pyplot as plt
import numpy as np

import gramgraph as gg
from gramgraph.kernels import RBF, Linear


def bend(X):
    return ((np.asarray(X) + 8) / 5) ** 3


def square(X):
    return np.hstack([np.ones_like(X), X, np.asarray(X) ** 2])


priors = {
    "exp(−(a−b)²/2)": RBF(),
    "20 ·": 20.0 * RBF(),
    "20 ·, width 5": 20.0 * RBF(5.0),
    "20 ·, width ½": 20.0 * RBF(0.5),
    "20 ·, input ((x+8)/5)³": 20.0 * RBF().warp(bend),
    "20 · + (1, x, x²)": 20.0 * RBF() + Linear().warp(square),
}
rng = np.random.default_rng(0)
x = np.sort(rng.uniform(-6, 6, 15))
y = 4 * np.sin(x) + 0.3 * x**2 + rng.normal(size=15)

# %%
# Draws of the priors.
figure, axes = plt.subplots(3, 2, figsize=(7, 7), layout="constrained")
for ax, (name, kernel) in zip(axes.flat, priors.items(), strict=True):
    gg.plot.plot_kernel_draws(kernel, span=(-8, 8), random_state=1, ax=ax)
    ax.set(title=name, xlabel="x", ylabel="f(x)")

# %%
# The same data under each of them, and the evidence.
figure, axes = plt.subplots(3, 2, figsize=(7, 7), layout="constrained")
for ax, (name, kernel) in zip(axes.flat, priors.items(), strict=True):
    process = gg.GaussianProcessRegressor(kernel, alpha=1.0, optimizer=None).fit(x[:, None], y)
    gg.plot.plot_process(process, span=(-8, 8), ax=ax)
    ax.set(
        title=f"{name}: log evidence {process.log_marginal_likelihood_value_:.0f}",
        xlabel="x",
        ylabel="y",
        ylim=(-15, 25),
    )
    ax.title.set_fontsize(9)
    ax.get_legend().remove()

# %%
# The numbers of the text
# -----------------------
# Each kernel is its formula, and each Gram matrix is positive semi-definite.
a, b = -2.0, 1.5
value = {name: kernel.gram([[a]], [[b]])[0, 0] for name, kernel in priors.items()}
bell = np.exp(-((a - b) ** 2) / 2)
assert abs(value["exp(−(a−b)²/2)"] - bell) < 1e-12 and abs(value["20 ·"] - 20 * bell) < 1e-12
assert abs(value["20 ·, width 5"] - 20 * np.exp(-((a - b) ** 2) / 50)) < 1e-12
assert abs(value["20 ·, width ½"] - 20 * np.exp(-((a - b) ** 2) / 0.5)) < 1e-12
assert abs(value["20 ·, input ((x+8)/5)³"] - 20 * np.exp(-((bend(a) - bend(b)) ** 2) / 2)) < 1e-12
assert abs(value["20 · + (1, x, x²)"] - (20 * bell + 1 + a * b + (a * b) ** 2)) < 1e-9
grid = np.linspace(-8, 8, 60)[:, None]
assert all(
    np.linalg.eigvalsh(kernel.gram(grid)).min() > -1e-8 * kernel.diag(grid).max() * 60 for kernel in priors.values()
)
