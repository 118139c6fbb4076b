"""
Laplace's approximation of a skewed density
===========================================

Put a Gaussian on the mode: its mean is the maximum of log p, its precision the curvature there. Hennig,
*Probabilistic inference and learning* ("The Laplace approximation"), calls it rough and local; OuYang, *Probabilistic
machine learning* (section 1.5), derives it by Taylor's expansion (of ln p: the text drops the logarithm in (1.5.4),
and the square in (1.5.1)).

We see where it is good, where it misleads, and that the choice of coordinates matters.
"""

# %%
# A skewed density: a Gaussian bell times a steep logistic curve. Only log p is needed, not the normalizer.
import matplotlib.pyplot as plt
import numpy as np

import gramgraph as gg


def log_p(z):
    return -0.5 * z[0] ** 2 - np.log1p(np.exp(-(20 * z[0] + 4)))


found = gg.distributions.laplace_approximation(log_p, 0.5)
z = np.linspace(-2, 4, 1201)
p = np.exp([log_p([value]) for value in z])
area = np.trapezoid(p, z)

fig, axes = plt.subplots(2, 1, sharex=True, figsize=(6.4, 6.4), layout="constrained")
axes[0].plot(z, p / area, color="#4c78a8", label="p(z)")
axes[0].plot(z, found.gaussian.density(z[:, None]), color="#b03a2e", label="Laplace")
axes[0].set(ylabel="density", title="Same mode, same curvature")
axes[0].legend(loc="upper right")
axes[1].plot(z, -np.log(p / area), color="#4c78a8", label="−log p(z)")
axes[1].plot(z, -found.gaussian.log_density(z[:, None]), color="#b03a2e", label="its parabola")
axes[1].set(xlabel="z", ylabel="negative logarithm", ylim=(0, 10))
axes[1].legend(loc="upper center")
print(f"log of the normalizer: {found.log_normalizer:.4f} by Laplace, {np.log(area):.4f} by quadrature")

# %%
# Coordinates matter: the Beta posterior of a rare event is skewed on (0, 1), while its log odds are nearly Gaussian.
# Fitting there and changing variables back gives a better approximation of the same density.
beta = gg.distributions.Beta(3, 21)
direct = gg.distributions.laplace_approximation(lambda m: beta.log_density(m[0]), 0.2)


def log_odds_density(t):  # the density of t = log m/(1−m): times the derivative m(1 − m)
    m = 1 / (1 + np.exp(-t[0]))
    return beta.log_density(m) + np.log(m * (1 - m))


odds = gg.distributions.laplace_approximation(log_odds_density, -2.0)
m = np.linspace(1e-4, 0.5, 800)
back = odds.gaussian.density(np.log(m / (1 - m))[:, None]) / (m * (1 - m))
fig, ax = plt.subplots(layout="constrained")
ax.plot(m, beta.density(m), color="#4c78a8", label="Beta(3, 21)")
ax.plot(m, direct.gaussian.density(m[:, None]), color="#b03a2e", linestyle="--", label="Laplace on m")
ax.plot(m, back, color="#2e7d32", linestyle=":", linewidth=2, label="Laplace on the log odds")
ax.set(xlabel="m", ylabel="density", title="Better coordinates, better approximation")
ax.legend(loc="upper right")

# %%
# The numbers of the text
# -----------------------
# q = N(z₀, A⁻¹) with A = −d²/dz² ln p at the mode; for a Gaussian it is exact.
mode, h = found.mode[0], 1e-4
A = -(log_p([mode + h]) - 2 * log_p([mode]) + log_p([mode - h])) / h**2
assert abs(found.gaussian.cov[0, 0] - 1 / A) < 1e-5
assert abs(direct.mode[0] - 2 / 22) < 1e-6  # (a − 1)/(a + b − 2)
exact = gg.Gaussian([1.0, -2.0], [[2.0, 0.3], [0.3, 0.5]])
again = gg.distributions.laplace_approximation(exact.log_density, [0.0, 0.0])
assert again.gaussian.allclose(exact, atol=1e-6) and abs(again.log_normalizer) < 1e-6
assert np.trapezoid(abs(back - beta.density(m)), m) < np.trapezoid(
    abs(direct.gaussian.density(m[:, None]) - beta.density(m)), m
)
