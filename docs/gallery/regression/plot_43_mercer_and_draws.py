r"""
Mercer's pairs, and why draws are rougher than the space they come from
=======================================================================

Hennig, Probabilistic inference and learning, chapter "Understanding kernels": a kernel is :math:`\sum_i \lambda_i
\phi_i(a)\phi_i(b)`; a draw of its process is :math:`\sum_i z_i \sqrt{\lambda_i}\,\phi_i` with :math:`z_i \sim N(0,
1)` (Karhunen and Loève); and its squared norm in the kernel's space, :math:`\sum_i z_i^2`, grows without end: draws
are almost never in the space, posterior means always are.

For the Wiener kernel on [0, 1] the pairs are known, :math:`\lambda_n = 1/((n-\frac12)^2\pi^2)` and :math:`\phi_n =
\sqrt2 \sin((n-\frac12)\pi x)`. We see them found from a grid, draws of 3 to 300 terms, and their norms.
"""

import matplotlib.pyplot as plt
import numpy as np

import gramgraph as gg
from gramgraph.rkhs import RKHSFunction, karhunen_loeve, mercer

n = 800
x = (np.arange(n)[:, None] + 0.5) / n
wiener = gg.kernels.Wiener()
pairs = mercer(wiener, x, 40)
number = np.arange(1, 41)
known = 1 / ((number - 0.5) ** 2 * np.pi**2)

# %%
# Eigenvalues and the first eigenfunctions: circles are the formula, lines the ones found.
figure, (left, right) = plt.subplots(1, 2, figsize=(7, 3.2), layout="constrained")
left.loglog(number, known, "o", ms=5, mfc="none", label="formula")
left.loglog(number, pairs.values, "-", color="#b3261e", label="found")
left.set(title="Eigenvalues", xlabel="n", ylabel="λ")
left.legend(fontsize=8)
found = pairs(x)[:, :3]
right.plot(x, found)
right.set(title="First three eigenfunctions", xlabel="x", ylabel="φ(x)")

# %%
# Draws with more and more terms, and the squared norm of each: about the number of terms.
figure, (left, right) = plt.subplots(1, 2, figsize=(7, 3.2), layout="constrained")
terms = (3, 10, 30, 100, 300)
norms = []
for k in terms:
    draws = karhunen_loeve(wiener, x, k, n_draws=20, random_state=0)
    norms.append([f.norm() ** 2 for f in draws])
    if k != 100:
        left.plot(x, draws[0](x) + k**0.3, lw=1, label=f"{k} terms")
left.set(title="One draw, moved apart", xlabel="x", ylabel="f(x)", ylim=(0, 9))
left.legend(fontsize=8, ncols=2, loc="upper left")
right.loglog(terms, np.mean(norms, axis=1), "o", color="#b3261e", label="mean of 20 draws")
right.loglog(terms, terms, color="black", label="number of terms")
right.set(title="Squared norm", xlabel="terms", ylabel="‖f‖²")
right.legend(fontsize=8)

# %%
# The posterior mean of the same kernel from 30 noisy points is in the space, with a modest norm.
rng = np.random.default_rng(0)
u = np.sort(rng.uniform(0, 1, 30))[:, None]
v = np.sin(6 * u[:, 0]) + 0.1 * rng.normal(size=30)
weights = np.linalg.solve(wiener.gram(u) + 0.01 * np.eye(30), v)
mean = RKHSFunction(wiener, u, weights)
print(f"‖posterior mean‖² = {mean.norm() ** 2:.1f}, ‖draw of 300 terms‖² = {np.mean(norms[-1]):.0f}")

# %%
# The numbers of the text
# -----------------------
# Mercer's pairs, the sum that gives the kernel back, and E‖f‖² = number of terms.
assert np.abs(pairs.values[:10] / known[:10] - 1).max() < 2e-3
sines = np.sqrt(2) * np.sin((number[:3] - 0.5) * np.pi * x)
assert np.abs(np.abs(found) - np.abs(sines)).max() < 5e-3
whole = mercer(wiener, x[::10], None)
assert np.allclose((whole(x[::10]) * whole.values) @ whole(x[::10]).T, wiener.gram(x[::10]), atol=1e-9)
for k, values in zip(terms, norms, strict=True):
    assert abs(np.mean(values) / k - 1) < 4 * np.sqrt(2 / (20 * k))  # a χ² with 20 k degrees of freedom
assert mean.norm() ** 2 < 60
assert (
    abs(mean.norm() ** 2 - weights @ wiener.gram(u) @ weights) < 1e-9
)  # Σ βᵢ γⱼ k(xᵢ, xⱼ), no division as in the text
