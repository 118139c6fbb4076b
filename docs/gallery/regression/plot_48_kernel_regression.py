r"""
Kernel ridge, local means, and what to do when there are many points
====================================================================

Triebel, Machine learning for computer vision, section 6 (Dual representation): :math:`w = (\Phi^T\Phi + \lambda
I)^{-1}\Phi^T t` is also :math:`\Phi^T a` with :math:`a = (K + \lambda I)^{-1} t`, so that only dot products are
needed. OuYang, Probabilistic machine learning, section 4.4 (Nadaraya and Watson) and 5.3 (low rank, random Fourier
features). In (5.3.2) the inverse is :math:`\sigma^{-2} I - \sigma^{-2} Q(\sigma^2 I + Q^TQ)^{-1}Q^T`; the text prints
:math:`\sigma^2` in front.

We see primal and dual give one curve, two ways to smooth, and the error of landmarks and random features against
their number.
"""

import matplotlib.pyplot as plt
import numpy as np

import gramgraph as gg

rng = np.random.default_rng(1)
x = np.sort(rng.uniform(0, 10, 400))[:, None]
y = np.sin(x[:, 0]) * np.exp(-0.1 * x[:, 0]) + 0.15 * rng.normal(size=400)
kernel = gg.kernels.RBF(0.8)
grid = np.linspace(0, 10, 300)[:, None]

# %%
# Kernel ridge with its penalty by leaving one out, and local means with their width by the same.
ridge = gg.KernelRidge("loo", kernel=kernel).fit(x, y)
local = gg.NadarayaWatson("loo").fit(x, y)
figure, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
ax.plot(x, y, ".", ms=3, color="#7d8590", label="points")
ax.plot(grid, ridge.predict(grid), color="#1f4e9c", label=f"kernel ridge, λ = {float(np.ravel(ridge.alpha_)[0]):.2g}")
ax.plot(grid, local.predict(grid), "--", color="#b3261e", label=f"Nadaraya–Watson, h = {local.bandwidth_:.2g}")
ax.set(title="Two smoothers", xlabel="x", ylabel="y")
ax.legend(fontsize=8)

# %%
# With m landmarks or m random features the cost falls from n³ to n m².
exact = gg.KernelRidge(0.1, kernel=kernel).fit(x, y).predict(grid)
numbers = (5, 10, 20, 40, 80)
error = {way: [] for way in ("nystrom", "features")}
for way in error:
    for m in numbers:
        runs = [
            gg.KernelRidge(0.1, kernel=kernel, approx=way, n_components=m, random_state=s).fit(x, y).predict(grid)
            for s in range(3)
        ]
        error[way].append(np.sqrt(np.mean([(run - exact) ** 2 for run in runs])))
figure, ax = plt.subplots(figsize=(7, 3.4), layout="constrained")
ax.loglog(numbers, error["nystrom"], "o-", label="landmarks (Nyström)")
ax.loglog(numbers, error["features"], "s-", label="random Fourier features")
ax.set(title="Distance to the exact curve", xlabel="m", ylabel="root mean squared difference")
ax.set_xticks(numbers, numbers)
ax.minorticks_off()
ax.legend(fontsize=8)

# %%
# The numbers of the text
# -----------------------
# Primal and dual; weights of Nadaraya and Watson; Woodbury's identity with the right powers of σ.
Phi = x[:20] ** np.arange(4) / 10.0 ** np.arange(4)
t, lam = y[:20], 0.3
primal = np.linalg.solve(Phi.T @ Phi + lam * np.eye(4), Phi.T @ t)
dual = gg.KernelRidge(lam, kernel="linear").fit(Phi, t)
assert np.allclose(Phi.T @ dual.dual_coef_, primal, atol=1e-9)
k = np.exp(-((grid - x.T) ** 2) / (2 * local.bandwidth_**2))
assert np.allclose(local.predict(grid), k @ y / k.sum(axis=1), atol=1e-9)
Q, sigma2 = kernel.gram(x[:50], x[:50:5]), 0.2
left = np.linalg.inv(Q @ Q.T + sigma2 * np.eye(50))
right = (np.eye(50) - Q @ np.linalg.inv(sigma2 * np.eye(10) + Q.T @ Q) @ Q.T) / sigma2
assert np.abs(left - right).max() < 1e-9
assert error["nystrom"][-1] < 1e-4 and error["features"][-1] < error["features"][0]
