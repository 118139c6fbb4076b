r"""
Gaussian processes with a mean: zero, given, learned
====================================================

OuYang, Probabilistic machine learning, section 5.1 and figure 5.1, sets GP(0, k) beside GP(x, k): a mean function
that is near the truth makes predictions better where data are few. The mean may also have parameters, learned with
those of the kernel. The posterior mean is kernel ridge regression with :math:`\lambda = \sigma^2`.

We see three processes on points around a rising line with a wave: away from the data the first falls back to zero,
the second to x, the third to a line that it found, and whose doubt is part of the band. (In the evidence of the text,
``|K|`` stands for ``log |K|``.)
"""

import matplotlib.pyplot as plt
import numpy as np

import gramgraph as gg

rng = np.random.default_rng(6)
x = np.sort(np.concatenate([rng.uniform(-3, 0, 8), rng.uniform(2, 3.5, 5)]))[:, None]
y = x[:, 0] + 0.6 * np.sin(2 * x[:, 0]) + 0.1 * rng.normal(size=13)
kernel = 1.0 * gg.kernels.RBF(1.0)

# %%
# One kernel, three means. The grid goes beyond the points on both sides.
means = {"GP(0, k)": None, "GP(x, k)": lambda X: np.asarray(X)[:, 0], "GP(a + bx, k)": gg.gp.LinearMean()}
figure, axes = plt.subplots(1, 3, figsize=(7, 3), layout="constrained", sharey=True)
processes = {}
for ax, (name, mean) in zip(axes, means.items(), strict=True):
    process = gg.GaussianProcessRegressor(kernel, alpha=0.01, mean=mean).fit(x, y)
    processes[name] = process
    gg.plot.plot_process(process, span=(-8, 8), ax=ax)
    ax.plot([-8, 8], [-8, 8], ":", color="black", lw=1)
    ax.set(title=name, xlabel="x", ylabel="y" if ax is axes[0] else "", ylim=(-10, 10))
    if ax.get_legend():
        ax.get_legend().remove()

# %%
# Which one do the data prefer? And how wrong are they far from the points?
far = np.concatenate([np.linspace(-7, -4, 50), np.linspace(4.5, 7, 50)])[:, None]
truth = far[:, 0] + 0.6 * np.sin(2 * far[:, 0])
error = {name: np.sqrt(np.mean((p.predict(far) - truth) ** 2)) for name, p in processes.items()}
for name, p in processes.items():
    print(f"{name:14s} log evidence {p.log_marginal_likelihood_value_:7.2f}   error far away {error[name]:.2f}")

# %%
# The numbers of the text
# -----------------------
# Posterior and evidence by their formulas; the mean is that of kernel ridge regression with λ = σ².
fixed = gg.GaussianProcessRegressor(kernel, alpha=0.01, optimizer=None).fit(x, y)
K = kernel.gram(x) + 0.01 * np.eye(13)
Kf = kernel.gram(far, x)
mean, cov = fixed.predict(far, return_cov=True)
assert np.allclose(mean, Kf @ np.linalg.solve(K, y), atol=1e-8)
assert np.allclose(cov, kernel.gram(far) - Kf @ np.linalg.solve(K, Kf.T), atol=1e-7)
log_p = -0.5 * (np.linalg.slogdet(K)[1] + y @ np.linalg.solve(K, y) + 13 * np.log(2 * np.pi))
assert abs(fixed.log_marginal_likelihood_value_ - log_p) < 1e-7
ridge = gg.KernelRidge(0.01, kernel=kernel).fit(x, y)
assert np.allclose(ridge.predict(far), mean, atol=1e-8)
assert error["GP(x, k)"] < error["GP(0, k)"] / 2 and error["GP(a + bx, k)"] < error["GP(0, k)"] / 2
